#!/usr/bin/env python3
"""ResNet-50 on one fixed synthetic batch in eager PyTorch: what gputrain is measured against.

Prints one JSON object: throughput without the warm-up, seconds from the start of the process to the end of the
first step, and peak memory.
"""
import argparse
import json
import os
import time


def seconds_since_process_start() -> float:
    with open("/proc/self/stat") as stat:
        ticks = int(stat.read().rsplit(")", 1)[1].split()[19])
    with open("/proc/uptime") as uptime:
        return float(uptime.read().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")


parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, required=True)
parser.add_argument("--accumulation", type=int, default=1, help="micro-batches per update")
parser.add_argument("--precision", choices=["fp32", "tf32", "fp16-mixed", "bf16-mixed", "fp16-true", "bf16-true"], required=True)
parser.add_argument("--steps", type=int, required=True)
parser.add_argument("--warmup", type=int, required=True)
parser.add_argument("--no-benchmark", action="store_true", help="cudnn.benchmark off")
parser.add_argument("--checkpoint", choices=["none", "reentrant", "non-reentrant"], default="none", help="compute each bottleneck again in the backward pass")
options = parser.parse_args()

import torch  # noqa: E402  (its import is part of what is measured)
import torchvision  # noqa: E402

tf32 = options.precision == "tf32"
torch.backends.cuda.matmul.allow_tf32 = tf32
torch.backends.cudnn.allow_tf32 = tf32
torch.backends.cudnn.benchmark = not options.no_benchmark
torch.manual_seed(1)
device = torch.device("cuda")

model = torchvision.models.resnet50()
if options.checkpoint != "none":
    from torch.utils.checkpoint import checkpoint

    class Again(torch.nn.Module):
        def __init__(self, block: torch.nn.Module) -> None:
            super().__init__()
            self.block = block

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return checkpoint(self.block, x, use_reentrant=options.checkpoint == "reentrant")

    for stage in (model.layer1, model.layer2, model.layer3, model.layer4):
        for name, block in list(stage.named_children()):
            setattr(stage, name, Again(block))
model = model.to(device, memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
images = torch.randn(options.batch, 3, 224, 224, device=device).to(memory_format=torch.channels_last)
labels = torch.randint(1000, (options.batch,), device=device)


dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(options.precision.split("-")[0])
mixed = options.precision.endswith("-mixed")
scaler = torch.amp.GradScaler("cuda", enabled=options.precision.startswith("fp16"))
if options.precision.endswith("-true"):  # as torchvision's own code does it: all in 16 bits, but normalisation
    model.to(dtype)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.float()
    images = images.to(dtype)
    scaler = torch.amp.GradScaler("cuda", enabled=False)  # it refuses gradients in float16


def step() -> torch.Tensor:
    optimizer.zero_grad(set_to_none=True)
    for _ in range(options.accumulation):
        with torch.autocast("cuda", dtype=dtype, enabled=mixed):
            loss = torch.nn.functional.cross_entropy(model(images), labels) / options.accumulation
        scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return loss


step()
torch.cuda.synchronize()
first_step = seconds_since_process_start()
for _ in range(options.warmup - 1):
    step()
torch.cuda.synchronize()
begin = time.perf_counter()
for number in range(options.steps - options.warmup):
    loss = step()
    if number % 10 == 9:
        loss.item()
torch.cuda.synchronize()
seconds = time.perf_counter() - begin
print(json.dumps({
    "samples_per_second": options.batch * options.accumulation * (options.steps - options.warmup) / seconds,
    "first_step_seconds": first_step,
    "memory_allocated_peak_bytes": torch.cuda.max_memory_allocated(),
    "memory_reserved_peak_bytes": torch.cuda.max_memory_reserved(),
}))
