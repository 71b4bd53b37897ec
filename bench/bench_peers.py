"""Who O3 is compared with. Each has a function that gives a call of no arguments, which runs the model once on its
feeds, and the outputs of such a run. All get one input, one output and the number of threads."""

import os
import shutil
import subprocess
import sys
import tempfile
import weakref

import numpy as np
import onnxruntime

HERE = os.path.dirname(os.path.abspath(__file__))


def onnx_runtime(path, feeds, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, value in feeds.items():
        binding.bind_cpu_input(name, value)
    for output in session.get_outputs():
        binding.bind_output(output.name)
    call = lambda: session.run_with_iobinding(binding)
    call()
    return call, binding.copy_outputs_to_cpu()


def openvino_model(path, feeds, threads):
    import openvino
    # One stream is least latency; without f32 it computes in bfloat16 where the processor can.
    config = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32",
              "PERFORMANCE_HINT": "LATENCY"}
    request = openvino.Core().compile_model(path, "CPU", config).create_infer_request()
    for name, value in feeds.items():
        request.set_tensor(name, openvino.Tensor(np.asarray(value, order="C"), shared_memory=True))
    request.infer()
    outputs = [np.array(tensor.data) for tensor in request.output_tensors]
    return request.infer, outputs


class DeepSparse:
    """An engine in a child process, which lives as long as this: a call goes there and back through two pipes."""

    def __init__(self, python, path, feeds, threads):
        with tempfile.TemporaryDirectory(prefix="o3-bench-") as folder:
            given, answered = (os.path.join(folder, name) for name in ("feeds.npz", "outputs.npz"))
            np.savez(given, **{str(number): value for number, value in enumerate(feeds.values())})
            command = [python, os.path.join(HERE, "deepsparse_child.py"), path, str(threads), given, answered]
            self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                          stderr=subprocess.DEVNULL, env={**os.environ, "NM_DISABLE_ANALYTICS": "True"})
            weakref.finalize(self, self.child.communicate)
            self.expect("ready")
            with np.load(answered) as loaded:
                self.outputs = [loaded[name] for name in loaded.files]

    def expect(self, word):
        for line in self.child.stdout:
            if line.strip() == word:
                return
        raise SystemExit(f"bench_peers: DeepSparse ended with {self.child.wait()}")

    def run(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        self.expect("done")


def deepsparse_model(path, feeds, threads, python):
    """Heeds the order of |feeds|, which must be the model's."""
    engine = DeepSparse(python, path, feeds, threads)
    return engine.run, engine.outputs


def install_deepsparse(build):
    """The Python that has it, in a venv in the folder |build|, and its version; None twice, after a line that says why,
    when it cannot be had."""
    folder = os.path.join(build, "deepsparse-venv")
    python = os.path.join(folder, "bin", "python")
    base = next(filter(None, (shutil.which(f"python3.{minor}") for minor in (11, 10, 9, 8))), sys.executable)
    steps = [[python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r",
              os.path.join(HERE, "requirements-deepsparse.txt")],
             [python, "-c", "import deepsparse; print(deepsparse.__version__)"]]
    if not os.path.exists(python):
        steps.insert(0, [base, "-m", "venv", folder])
    for step in steps:
        ended = subprocess.run(step, capture_output=True, text=True, check=False,
                               env={**os.environ, "NM_DISABLE_ANALYTICS": "True"})
        if ended.returncode:
            why = (ended.stderr.strip().splitlines() or ["it says nothing"])[-1]
            print(f"SKIPPED: DeepSparse is not measured: it cannot be installed: {why}", flush=True)
            return None, None
    return python, ended.stdout.strip().splitlines()[-1]


def install_openvino():
    """Its version; None, after a line that says why, when it cannot be had."""
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-c",
               os.path.join(HERE, "..", "test", "requirements.txt"), "-r", os.path.join(HERE, "requirements.txt")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        import openvino
        return openvino.__version__.split("-")[0]
    except ImportError as error:
        why = (ended.stderr.strip().splitlines() or [str(error)])[-1]
        print(f"SKIPPED: OpenVINO is not measured: it cannot be installed: {why}", flush=True)
        return None
