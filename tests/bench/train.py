"""`make bench-train`: the shared loop against the bare one, same model, batch and precision, turn about in one run.

    python -m tests.bench.train --device cuda --batch-size 512 --precision bf16 --compile --epochs 6 --turns 3

The shared loop runs as users run it: heartbeat, metrics.jsonl and requests on. Prints images per second of both (median
and spread over the turns) and their ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def bare(args: argparse.Namespace) -> float:
    """Images per second of the bare loop, first epoch left out."""
    command = [sys.executable, "-m", "tests.bench.bare_cifar", *_shared(args)]
    command += ["--precision", args.precision, *(["--compile"] if args.compile else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return float(statistics.median(json.loads(done.stdout.splitlines()[-1])["images_per_second"]))


def shared_loop(args: argparse.Namespace) -> float:
    """Images per second of `python -m trainer cifar`, from its own metrics.jsonl, first epoch left out."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "attempts" / "1").mkdir(parents=True)
        command = [sys.executable, "-P", "-m", "trainer", "cifar", *_shared(args), "--optimizer", "sgd"]
        command += ["--precision", args.precision, "--compile", "on" if args.compile else "off"]
        command += ["--eval-every", str(args.epochs), "--save-every", "0"]
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "MPSTUI_RUN_DIR": folder, "MPSTUI_ATTEMPT": "1", "PYTHONPATH": path}
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        lines = (Path(folder) / "metrics.jsonl").read_text().splitlines()
    points = [point for line in lines if "loss" in (point := json.loads(line)) and point["epoch"] > 1]
    steps = points[-1]["step"] - points[0]["step"]
    return float(steps * args.batch_size / (points[-1]["time"] - points[0]["time"]))


def _shared(args: argparse.Namespace) -> list[str]:
    chosen = ["--device", args.device, "--batch-size", str(args.batch_size), "--epochs", str(args.epochs)]
    chosen += ["--width", str(args.width)]
    if args.data:
        chosen += ["--data", str(args.data)]
    return chosen + (["--limit", str(args.limit)] if args.limit else [])


def main() -> None:
    """Measure and print one row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    rates: dict[str, list[float]] = {"bare loop": [], "mpstui's loop": []}
    for _ in range(args.turns):
        rates["bare loop"].append(bare(args))
        rates["mpstui's loop"].append(shared_loop(args))
    for name, values in rates.items():
        print(f"{name:<14} {statistics.median(values):>10,.0f} images/s  [{min(values):,.0f} to {max(values):,.0f}]")
    ratio = statistics.median(rates["mpstui's loop"]) / statistics.median(rates["bare loop"])
    print(f"ratio          {ratio:>10.3f}  (goal: at least 0.98)")


if __name__ == "__main__":
    main()
