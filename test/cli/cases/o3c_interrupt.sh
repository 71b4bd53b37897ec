# A compiler that is told to end leaves nothing behind, whenever that happens.
cat >stop.py <<'M'
import os, signal, subprocess, sys, time
o3c, model = sys.argv[1:]
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    for delay in (0.02, 0.06, 0.1, 0.15, 0.2, 0.3):
        process = subprocess.Popen([o3c, model, "-q", "-o", "out/m.so"], stderr=subprocess.PIPE)
        time.sleep(delay)
        process.send_signal(number)
        status = process.wait()
        files = os.listdir("out")
        if status == 0:
            assert files == ["m.so"], files
            os.remove("out/m.so")
        else:
            assert status == -number, (number, delay, status, process.stderr.read())
            assert files == [], (number, delay, files)
M
mkdir out
run 0 python3 stop.py "$O3C" "$O3_ROOT/models/digits/digits_sparse.onnx"
out_is ""
