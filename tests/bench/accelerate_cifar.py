"""The same model and data in a loop with accelerate: a peer for bench-train. Needs `pip install accelerate`.

    python -m tests.bench.accelerate_cifar --device cuda --batch-size 512 --precision bf16 --epochs 3

Well meant: the bare loop with what accelerate adds as its documentation has it (prepare, autocast, backward, its
schedule), data and augmentation on the device. Prints one JSON line as the others do.
"""

from __future__ import annotations

import json
import time

import torch
import torch.nn.functional as F
from accelerate import Accelerator

from .bare_cifar import arguments, augmented, make_model, prepare, synchronise


def main() -> None:
    """Train and print the rates."""
    args = arguments(__doc__)
    torch.backends.cudnn.benchmark = True
    device = torch.device(args.device)
    data = prepare(args)
    accelerator = Accelerator(mixed_precision="bf16" if args.precision == "bf16" else "no", cpu=device.type == "cpu")
    network = make_model(args, data.classes)
    optimizer = torch.optim.SGD(
        network.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4, nesterov=True, fused=device.type != "mps"
    )
    steps = len(data.labels) // args.batch_size
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, args.epochs * steps, pct_start=0.2)
    network, optimizer, schedule = accelerator.prepare(network, optimizer, schedule)
    rates = []
    for _ in range(args.epochs):
        synchronise(device)
        began = time.perf_counter()
        order = torch.randperm(len(data.labels), device=device)
        for step in range(steps):
            chosen = order[step * args.batch_size : (step + 1) * args.batch_size]
            with accelerator.accumulate(network):
                loss = F.cross_entropy(network(augmented(data.pixels[chosen])).float(), data.labels[chosen])
                accelerator.backward(loss)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
        synchronise(device)
        rates.append(steps * args.batch_size / (time.perf_counter() - began))
    print(json.dumps({"images_per_second": rates[1:] or rates}))


if __name__ == "__main__":
    main()
