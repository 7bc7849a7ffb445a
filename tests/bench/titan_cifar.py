"""A bare loop in the manner of torchtitan: a peer for bench-train.

    python -m tests.bench.titan_cifar --device cuda --batch-size 512 --precision bf16 --epochs 3

Each residual block is compiled by itself, gradients are clipped by a foreach norm at every step, metrics are read once
in ten steps, garbage is collected by hand. Prints one JSON line as the others do.
"""

from __future__ import annotations

import gc
import json
import time

import torch
import torch.nn.functional as F

from trainer.models.resnet import ResNet

from .bare_cifar import arguments, augmented, prepare, synchronise

_LOGGED_STEPS = 10
_GARBAGE_STEPS = 1000


def main() -> None:
    """Train and print the rates."""
    args = arguments(__doc__)
    torch.backends.cudnn.benchmark = True
    device = torch.device(args.device)
    data = prepare(args)
    network = ResNet((2, 2, 2, 2), args.width, data.classes)
    network.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    for block in network.stages:
        block.compile()
    optimizer = torch.optim.SGD(
        network.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4, nesterov=True, fused=device.type != "mps"
    )
    steps = len(data.labels) // args.batch_size
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, args.epochs * steps, pct_start=0.2)
    autocast = torch.autocast(device.type, torch.bfloat16, enabled=args.precision == "bf16")
    gc.disable()
    rates, done = [], 0
    for _ in range(args.epochs):
        synchronise(device)
        began = time.perf_counter()
        order = torch.randperm(len(data.labels), device=device)
        for step in range(steps):
            chosen = order[step * args.batch_size : (step + 1) * args.batch_size]
            optimizer.zero_grad()
            with autocast:
                loss = F.cross_entropy(network(augmented(data.pixels[chosen])).float(), data.labels[chosen])
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1e9, foreach=True)
            optimizer.step()
            schedule.step()
            done += 1
            if done % _LOGGED_STEPS == 0:
                loss.item()
            if done % _GARBAGE_STEPS == 0:
                gc.collect(1)
        synchronise(device)
        rates.append(steps * args.batch_size / (time.perf_counter() - began))
    print(json.dumps({"images_per_second": rates[1:] or rates}))


if __name__ == "__main__":
    main()
