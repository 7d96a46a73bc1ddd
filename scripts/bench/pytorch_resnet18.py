#!/usr/bin/env python3
"""ResNet-18 for small images in eager PyTorch, trained as `configs/fashion-resnet18.yaml` says: the peer of loss_curves.

usage: pytorch_resnet18.py JOB.json

The job, written by loss_curves, names precision, data, settings, and the runs to make: from given weights over given
batches, or from a seed, which draws both. Prints one JSON object: run -> loss and skipped of each window.
Needs torch and numpy.
"""
import gzip
import json
import math
import os
import struct
import sys

if __name__ == "__main__" and (len(sys.argv) != 2 or sys.argv[1].startswith("-")):  # before what may be missing
    is_asked = sys.argv[1:] in (["-h"], ["--help"])
    print(__doc__, file=sys.stdout if is_asked else sys.stderr)
    sys.exit(0 if is_asked else 2)

import numpy  # noqa: E402
import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


class BasicBlock(nn.Module):
    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride != 1 or channels != width:
            self.downsample = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(x)) + shortcut)


class ResNet18(nn.Module):
    """torchvision's, names included, with a 3x3 first convolution and without max-pool."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 64, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        channels = 64
        for number, width in enumerate((64, 128, 256, 512), 1):
            first = BasicBlock(channels, width, 1 if number == 1 else 2)
            setattr(self, f"layer{number}", nn.Sequential(first, BasicBlock(width, width, 1)))
            channels = width
        self.fc = nn.Linear(512, 10)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1))


def read_idx(path: str, offset: int) -> numpy.ndarray:
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=offset).copy()


def read_parameters(path: str) -> dict[str, Tensor]:
    """The float32 tensors of a safetensors file but running statistics."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    found = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32" or "running_" in name:
            continue
        begin, end = entry["data_offsets"]
        values = numpy.frombuffer(data[begin:end], numpy.float32).copy()
        found[name] = torch.from_numpy(values).reshape(entry["shape"])
    return found


def load(model: nn.Module, path: str) -> None:
    """The weights that a step of length 1e-30 left: what was 0 before it is 0 again."""
    given = read_parameters(path)
    own = dict(model.named_parameters())
    if own.keys() != given.keys():
        sys.exit(f"{path}: its parameters are not those of ResNet-18: {sorted(own.keys() ^ given.keys())}")
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(torch.where(given[name].abs() < 1e-20, 0, given[name]))


def drawn_batches(samples: int, size: int, steps: int) -> list[list[int]]:
    batches: list[list[int]] = []
    while len(batches) < steps:
        order = torch.randperm(samples).tolist()
        batches += [order[first:first + size] for first in range(0, samples, size)]
    return batches[:steps]


class Scale:
    """GradScaler with its defaults, which itself refuses gradients in float16."""

    def __init__(self, precision: str) -> None:
        self.value = 65536.0 if precision.startswith("fp16") else 1.0
        self.moves = precision.startswith("fp16")
        self.good = 0

    def update(self, finite: bool) -> None:
        if not self.moves:
            return
        self.good = self.good + 1 if finite else 0
        if not finite:
            self.value *= 0.5
        elif self.good == 2000:
            self.value, self.good = self.value * 2, 0


class Learner:
    """Model, float32 master weights and optimizer."""

    def __init__(self, model: nn.Module, job: dict) -> None:
        self.job = job
        self.dtype = TYPES.get(job["precision"].split("-")[0])
        self.true = job["precision"].endswith("-true")
        self.model = model.to(job["device"], memory_format=torch.channels_last)
        if self.true:
            for module in self.model.modules():
                if not isinstance(module, nn.BatchNorm2d):
                    for parameter in module.parameters(recurse=False):
                        parameter.data = parameter.data.to(self.dtype)
        # Of weights that were rounded, as gputrain's are.
        self.masters = [p.detach().float().clone().requires_grad_() for p in self.model.parameters()]
        self.optimizer = torch.optim.SGD(self.masters, lr=job["lr"], momentum=job["momentum"],
                                         weight_decay=job["weight_decay"])
        self.scale = Scale(job["precision"])
        self.applied = 0

    @torch.no_grad()
    def write_back(self) -> None:
        for parameter, master in zip(self.model.parameters(), self.masters):
            parameter.copy_(master)

    def learning_rate(self) -> float:
        warmup, steps = self.job["warmup_steps"], self.job["steps"]
        if self.applied < warmup:
            return self.job["lr"] * (self.applied + 1) / (warmup + 1)
        progress = min((self.applied - warmup) / max(steps - warmup, 1), 1)
        return self.job["lr"] * 0.5 * (1 + math.cos(math.pi * progress))

    def loss(self, images: Tensor, labels: Tensor) -> Tensor:
        mixed = self.dtype is not None and not self.true
        with torch.autocast(self.job["device"], dtype=self.dtype, enabled=mixed):
            output = self.model(images.to(self.dtype) if self.true else images)
        return nn.functional.cross_entropy(output.float(), labels, label_smoothing=self.job["label_smoothing"])

    def step(self, images: Tensor, labels: Tensor) -> tuple[Tensor, bool]:
        self.model.zero_grad(set_to_none=True)
        loss = self.loss(images, labels)
        (loss * self.scale.value).backward()
        gradients = [parameter.grad.float() / self.scale.value for parameter in self.model.parameters()]
        finite = not self.scale.moves or bool(torch.stack([g.isfinite().all() for g in gradients]).all())
        self.scale.update(finite)
        if finite:
            for master, gradient in zip(self.masters, gradients):
                master.grad = gradient
            self.optimizer.param_groups[0]["lr"] = self.learning_rate()
            self.optimizer.step()
            self.applied += 1
            self.write_back()
        return loss.detach(), not finite


def train(run: dict, job: dict, images: Tensor, labels: Tensor) -> dict:
    torch.manual_seed(run.get("seed", 0))
    model = ResNet18()
    if "weights" in run:
        load(model, run["weights"])
        batches = run["batches"]
    else:
        batches = drawn_batches(len(labels), job["batch"], job["steps"])
    learner = Learner(model, job)
    # gputrain does the same in one multiplication and one addition.
    scale, shift = 1 / (255 * job["std"]), -job["mean"] / job["std"]
    losses, skipped = [], []
    for ids in batches:
        chosen = torch.tensor(ids, device=images.device)
        batch = (images[chosen].float() * scale + shift).contiguous(memory_format=torch.channels_last)
        loss, was_skipped = learner.step(batch, labels[chosen])
        losses.append(loss)
        skipped.append(was_skipped)
    values = torch.stack(losses).double().tolist()
    return {"loss": [value if math.isfinite(value) else None for value in values], "skipped": skipped}


def main() -> None:
    with open(sys.argv[1]) as file:
        job = json.load(file)
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # what cuBLAS needs to be deterministic
    torch.use_deterministic_algorithms(True)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = job["precision"] == "tf32"
    images = torch.from_numpy(read_idx(job["images"], 16)).view(-1, 1, 28, 28).to(job["device"])
    labels = torch.from_numpy(read_idx(job["labels"], 8)).long().to(job["device"])
    print(json.dumps({run["name"]: train(run, job, images, labels) for run in job["runs"]}))


if __name__ == "__main__":
    main()
