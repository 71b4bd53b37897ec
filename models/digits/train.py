"""Train, prune and export the sample model: a residual convnet on 8x8 digits.

Four steps, all seeded and on one CPU thread:
  1. train the dense network on 80 % of scikit-learn's digits;
  2. zero the smallest 16x16 blocks of every convolution but the first;
  3. fine-tune with those blocks held at zero;
  4. export the dense and the sparse network to ONNX.

The test digits take no part in steps 1 to 3; they are saved beside the models.

    python models/digits/train.py [--out-dir DIR]
"""

import argparse
import copy
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional as F

SEED = 7
BLOCK = 16
ZERO_BLOCKS = 0.60
TEST_SHARE = 0.20
BATCH = 64
TRAIN_EPOCHS = 20
TUNE_EPOCHS = 20
OPSET = 17


class Scale(nn.Module):
    """Maps raw pixels, 0 to 16, to 0 to 1."""

    def __init__(self):
        super().__init__()
        self.register_buffer("factor", torch.tensor(1.0 / 16.0))

    def forward(self, image):
        return image * self.factor


class ConvNorm(nn.Module):
    """A convolution without bias ("same" padding), then batch normalisation."""

    def __init__(self, in_channels, out_channels, kernel, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel, stride,
                              padding=kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(out_channels)

    def forward(self, x):
        return self.norm(self.conv(x))


class Residual(nn.Module):
    """relu(body(x) + shortcut(x)), with a ReLU between the layers of the body."""

    def __init__(self, layers, shortcut=None):
        super().__init__()
        self.body = nn.Sequential()
        for number, layer in enumerate(layers, start=1):
            if number > 1:
                self.body.add_module(f"relu{number - 1}", nn.ReLU())
            self.body.add_module(f"layer{number}", layer)
        self.shortcut = shortcut or nn.Identity()
        if shortcut:  # the body's last bias already serves the sum
            shortcut.norm.bias.requires_grad_(False)
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.relu(self.body(x) + self.shortcut(x))


class DigitsNet(nn.Module):
    """A plain, a strided and a bottleneck residual block; 104,490 parameters."""

    def __init__(self):
        super().__init__()
        self.scale = Scale()
        self.stem = ConvNorm(1, 32, 3)
        self.relu = nn.ReLU()
        self.block1 = Residual([ConvNorm(32, 32, 3), ConvNorm(32, 32, 3)])
        self.block2 = Residual([ConvNorm(32, 64, 3, stride=2), ConvNorm(64, 64, 3)],
                               shortcut=ConvNorm(32, 64, 1, stride=2))
        self.block3 = Residual([ConvNorm(64, 48, 1), ConvNorm(48, 48, 3),
                                ConvNorm(48, 64, 1)])
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.classifier = nn.Linear(64, 10)

    def forward(self, image):
        x = self.relu(self.stem(self.scale(image)))
        x = self.block3(self.block2(self.block1(x)))
        return self.classifier(self.flatten(self.pool(x)))


def load_split():
    """Returns the training and the test digits, each as (uint8 images, labels)."""
    digits = load_digits()
    images, labels = digits.images.astype(np.uint8), digits.target.astype(np.uint8)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=TEST_SHARE, random_state=SEED, stratify=labels)
    return (train_x, train_y), (test_x, test_y)


def as_tensors(split):
    images, labels = split
    return (torch.from_numpy(images).float().unsqueeze(1),
            torch.from_numpy(labels).long())


def shift_each(images, generator):
    """Moves each image by -1, 0 or 1 pixel along both axes."""
    count, size = len(images), images.shape[-1]
    padded = F.pad(images, (1, 1, 1, 1)).squeeze(1)
    first = torch.randint(0, 3, (2, count, 1), generator=generator)
    rows, columns = first + torch.arange(size)
    picked = padded[torch.arange(count)[:, None, None],
                    rows[:, :, None], columns[:, None, :]]
    return picked.unsqueeze(1)


def prunable_convs(model):
    """Every convolution whose channel counts are multiples of the block."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Conv2d) and module.in_channels % BLOCK == 0:
            yield name, module


def block_mask(weight):
    """True where an OIHW weight is kept: its largest 16x16 blocks by L2 norm.

    A block spans 16 output and 16 input channels at one kernel position, which
    is a 16x16 block of the weight seen as an OC x (KH*KW*IC) matrix.
    """
    out_channels, in_channels, height, width = weight.shape
    blocks = weight.reshape(out_channels // BLOCK, BLOCK,
                            in_channels // BLOCK, BLOCK, height, width)
    norms = blocks.square().sum(dim=(1, 3))
    keep = torch.ones(norms.numel(), dtype=torch.bool)
    keep[norms.flatten().argsort()[:round(ZERO_BLOCKS * keep.numel())]] = False
    keep = keep.reshape(norms.shape)
    return keep.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)


@torch.no_grad()
def apply_masks(model, masks):
    for name, conv in prunable_convs(model):
        conv.weight.masked_fill_(~masks[name], 0.0)


def fit(model, split, epochs, peak_rate, masks=None):
    """SGD with a one-cycle rate; after each step the masked weights return to 0."""
    images, labels = as_tensors(split)
    generator = torch.Generator().manual_seed(SEED)
    steps = -(-len(images) // BATCH)
    optimizer = torch.optim.SGD(model.parameters(), lr=peak_rate, momentum=0.9,
                                weight_decay=5e-4, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, peak_rate, epochs=epochs, steps_per_epoch=steps)
    model.train()
    for _ in range(epochs):
        for batch in torch.randperm(len(images), generator=generator).split(BATCH):
            logits = model(shift_each(images[batch], generator))
            optimizer.zero_grad()
            F.cross_entropy(logits, labels[batch]).backward()
            optimizer.step()
            schedule.step()
            if masks:
                apply_masks(model, masks)


@torch.no_grad()
def report(step, model, split):
    images, labels = as_tensors(split)
    model.eval()
    correct = int((model(images).argmax(dim=1) == labels).sum())
    print(f"{step:<18} {correct}/{len(labels)} = {correct / len(labels):.2%}", flush=True)


def export(model, path):
    """Writes ONNX in inference form, batch normalisation left as its own nodes."""
    model.eval()
    torch.onnx.export(
        model, (torch.zeros(1, 1, 8, 8),), str(path), opset_version=OPSET, dynamo=False,
        training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
        input_names=["image"], output_names=["logits"],
        dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out-dir", type=Path, default=Path(__file__).parent)
    out_dir = parser.parse_args().out_dir
    out_dir.mkdir(parents=True, exist_ok=True)

    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    train, test = load_split()
    np.save(out_dir / "test_images.npy", np.ascontiguousarray(test[0]))
    np.save(out_dir / "test_labels.npy", test[1])

    dense = DigitsNet()
    fit(dense, train, TRAIN_EPOCHS, peak_rate=0.1)
    report("before pruning", dense, test)
    export(dense, out_dir / "digits_dense.onnx")

    sparse = copy.deepcopy(dense)
    masks = {name: block_mask(conv.weight.detach())
             for name, conv in prunable_convs(sparse)}
    apply_masks(sparse, masks)
    report("right after", sparse, test)
    fit(sparse, train, TUNE_EPOCHS, peak_rate=0.05, masks=masks)
    report("after fine-tuning", sparse, test)
    export(sparse, out_dir / "digits_sparse.onnx")


if __name__ == "__main__":
    main()
