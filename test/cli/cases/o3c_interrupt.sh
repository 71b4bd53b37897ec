# A compiler that is told to end leaves nothing behind, whenever that happens.
cat >exp.mlir <<'M'
func.func @main(%x: tensor<4xf32> {o3.name = "x"}) -> (tensor<4xf32> {o3.name = "y"}) {
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
M
cat >stop.py <<'M'
import os, signal, subprocess, sys, time

def start():
    return subprocess.Popen([sys.argv[1], "exp.mlir", "-q", "-o", "out/m.so"], stderr=subprocess.PIPE)

begin = time.monotonic()
start().wait()
whole = time.monotonic() - begin
os.remove("out/m.so")
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    for part in range(1, 12):
        process = start()
        time.sleep(whole * part / 10)
        process.send_signal(number)
        status = process.wait()
        files = os.listdir("out")
        if "m.so" in files:
            os.remove("out/m.so")
        assert status in (0, -number), (number, part, status, process.stderr.read())
        # The signal may come between the renaming and the end.
        assert files == ["m.so"] or (files == [] and status != 0), (number, part, status, files)
M
mkdir out
run 0 python3 stop.py "$O3C"
out_is ""

# Nor one that meets a limit on the size of files.
run 1 bash -c 'ulimit -f 1; exec "$0" exp.mlir -o out/m.so' "$O3C"
[ -z "$(ls -A out)" ] || fail "left in the folder: $(ls -A out)"
