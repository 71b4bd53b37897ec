"""Who O3 is compared with. Each has a function that gives a call of no arguments, which runs the model once on its
feeds, and the outputs of such a run. All get one input, one output and the number of threads."""

import os
import subprocess
import sys

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
