#!/usr/bin/env python3
"""Evaluates the weights of a finished gputrain run on Fashion-MNIST with torchvision's model, and compares.

usage: evaluate_in_torchvision.py RUN_DIR DATA_DIR [--model resnet18]

The run trained a ResNet with `stem: small` on `fashion_mnist` in fp32 or tf32. Names and shapes have to fit strictly;
validation loss and accuracy have to be those of the run. Needs torch, torchvision, numpy and safetensors.
"""
import argparse
import gzip
import json
import os
import sys

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("run_dir")
parser.add_argument("data_dir")
parser.add_argument("--model", default="resnet18")
parser.add_argument("--label-smoothing", type=float, default=0.1)
options = parser.parse_args()

# Here, so that --help works without them.
import numpy  # noqa: E402
import safetensors.torch  # noqa: E402
import torch  # noqa: E402
import torchvision  # noqa: E402


def idx(name, offset):
    path = os.path.join(options.data_dir, name)
    opener = gzip.open if not os.path.exists(path) else open
    with opener(path if os.path.exists(path) else path + ".gz", "rb") as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=offset).copy()


def images(name):
    return torch.from_numpy(idx(name, 16)).view(-1, 1, 28, 28).float() / 255


device = "cuda" if torch.cuda.is_available() else "cpu"
train = images("train-images-idx3-ubyte")
test = ((images("t10k-images-idx3-ubyte") - train.mean()) / train.std(correction=0)).to(device)
labels = torch.from_numpy(idx("t10k-labels-idx1-ubyte", 8)).long().to(device)

model = getattr(torchvision.models, options.model)(num_classes=10)
model.conv1 = torch.nn.Conv2d(1, 64, 3, padding=1, bias=False)
model.maxpool = torch.nn.Identity()
model.load_state_dict(safetensors.torch.load_file(os.path.join(options.run_dir, "model.safetensors")), strict=True)
model.eval().to(device)
with torch.no_grad():
    logits = torch.cat([model(part) for part in test.split(500)])
loss = torch.nn.functional.cross_entropy(logits, labels, label_smoothing=options.label_smoothing).item()
accuracy = (logits.argmax(1) == labels).double().mean().item()

with open(os.path.join(options.run_dir, "summary.json")) as file:
    ours = json.load(file)["last_eval"]
print(f"gputrain:    loss {ours['loss']:.5f}, accuracy {ours['metrics']['accuracy']:.4%}")
print(f"torchvision: loss {loss:.5f}, accuracy {accuracy:.4%}")
# TF32 keeps 10 bits of a factor: the loss moves in the fourth digit, and a few of 10,000 images change sides.
agree = abs(loss - ours["loss"]) < 2e-3 * loss and abs(accuracy - ours["metrics"]["accuracy"]) <= 1e-3
sys.exit(0 if agree else 1)
