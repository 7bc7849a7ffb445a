"""A script for the examined interpreter: prints one JSON object about its torch. Imports nothing from mpstui.

``facts``: its version, and the devices it was built for and finds. ``test DEVICE [train]``: compute there, compare with
the CPU.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import sys
import time
from importlib import metadata
from typing import Any

SIZE = 128
TOLERANCE = 1e-2


def facts(torch: Any) -> dict[str, Any]:
    """Return torch's version and interpreter, and the devices it was built for and finds."""
    cuda_available = bool(torch.cuda.is_available())
    numpy = None
    with contextlib.suppress(metadata.PackageNotFoundError):
        numpy = metadata.version("numpy")
    return {
        "version": str(torch.__version__),
        "file": str(torch.__file__),
        "prefix": sys.prefix,
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "numpy": numpy,
        "threads": int(torch.get_num_threads()),
        "devices": {
            "mps": {
                "built": bool(torch.backends.mps.is_built()),
                "available": bool(torch.backends.mps.is_available()),
                "name": None,
            },
            "cuda": {
                "built": torch.version.cuda is not None or getattr(torch.version, "hip", None) is not None,
                "available": cuda_available,
                "name": str(torch.cuda.get_device_name(0)) if cuda_available else None,
            },
            "cpu": {"built": True, "available": True, "name": None},
        },
    }


def test(torch: Any, device: str, *, train: bool) -> dict[str, Any]:
    """Compare a matrix product on ``device`` with the CPU's; with ``train``, also take two steps of a tiny network."""
    torch.manual_seed(0)
    left, right = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)
    started = time.perf_counter()
    product = (left.to(device) @ right.to(device)).to("cpu")
    seconds = time.perf_counter() - started
    error = float((product - left @ right).abs().max())
    found: dict[str, Any] = {"works": error < TOLERANCE, "largest_error": error, "seconds": seconds}
    if not train:
        return found
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = torch.randn(64, 8).to(device)
    targets = inputs.sum(dim=1, keepdim=True)
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    losses.append(float(torch.nn.functional.mse_loss(model(inputs), targets).detach()))
    return {**found, "losses": losses, "loss_falls": losses[-1] < losses[0]}


def main(words: list[str]) -> int:
    """Print one JSON object: ``facts`` about torch, or the ``test`` of a device, which may include ``train``."""
    gc.disable()
    try:
        torch = importlib.import_module("torch")
    except ModuleNotFoundError as error:
        print(json.dumps({"missing": error.name}))
        return 0
    gc.freeze()  # collecting torch's objects at exit took 0.6 s of the 1.9 s of CPU time per answer
    answer = facts(torch) if words[0] == "facts" else test(torch, words[1], train=words[2:] == ["train"])
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
