"""What the agent costs a training step, paired: blocks of steps with it and without it take turns in one process.

    python -m tests.bench.agent_cost [BLOCKS]

Prints the median CPU time of a step and what the agent adds to it, in microseconds and as a share of 10 ms.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

import mpstui

STEPS = 100


def installed(folder: str) -> Any:
    """The agent as it comes into a program: under its private name."""
    sys.path.append(str(Path(mpstui.__file__).parent / "agent" / "boot"))
    boot = __import__("_mpstui_boot")
    return boot._load_agent().install(torch, {**os.environ, "MPSTUI_RUN_DIR": folder})


def main() -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    optimizers: Any = sys.modules["torch.optim.optimizer"]
    iterators: Any = sys.modules["torch.utils.data.dataloader"]
    with tempfile.TemporaryDirectory() as folder:
        assert installed(folder) is not None
        places = (torch.autograd, "backward"), (DataLoader, "__iter__"), (iterators._BaseDataLoaderIter, "__next__")
        watched = [(owner, name, getattr(owner, name)) for owner, name in places]
        hooks = dict(optimizers._global_optimizer_post_hooks)
        net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
        optimizer = torch.optim.Adam(net.parameters())
        loader = DataLoader(TensorDataset(torch.randn(STEPS * 4, 64)), batch_size=4)
        micros: dict[bool, list[float]] = {True: [], False: []}
        for number in range(2 * blocks + 2):
            agent = number % 2 == 0
            for owner, name, function in watched:
                setattr(owner, name, function if agent else function.__wrapped__)
            optimizers._global_optimizer_post_hooks.clear()
            optimizers._global_optimizer_post_hooks.update(hooks if agent else {})
            begun = time.process_time()
            for (batch,) in loader:
                optimizer.zero_grad()
                (net(batch).square().mean() / 2).backward()
                optimizer.step()
            if number >= 2:  # the first of each warms up
                micros[agent].append((time.process_time() - begun) / STEPS * 1e6)
        bare = median(micros[False])
        added = median(there - gone for there, gone in zip(micros[True], micros[False], strict=True))
        print(f"a step takes {bare:.0f} us, the agent adds {added:.1f} us: {added / 100:.2f} % of 10 ms")


if __name__ == "__main__":
    main()
