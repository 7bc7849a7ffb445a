"""`make bench-train`: the shared loop against the bare one, same model, batch and precision, turn about in one run.

    python -m tests.bench.train --device cuda --batch-size 512 --precision bf16 --compile --epochs 6 --turns 3
    python -m tests.bench.train --device cuda --batch-size 128 --precision bf16 --against lightning accelerate titan
    python -m tests.bench.train --device cuda --batch-size 512 --precision bf16 --processes 2

The shared loop runs as users run it, heartbeat, metrics.jsonl and requests on, on CUDA with its steps replayed, but for
two reports an epoch. Prints images per second of everything as they are measured, then median and spread over the turns
and the ratio to the bare loop; compiled on CUDA there are two of those, one of which issues each pass as one CUDA
graph, and the faster counts. With ``--processes`` also the shared loop over so many devices, at the same batch on each,
against itself on one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CIFAR_IMAGES, SYNTHETIC_IMAGES = 50_000, 4_000
PEERS = {
    "lightning": "Lightning's Trainer",
    "transformers": "Hugging Face's Trainer",
    "accelerate": "a loop with accelerate",
    "titan": "as torchtitan does it",
}
BARE, REPLAYED, SHARED = "bare loop", "bare loop, replayed", "mpstui's loop"


def apart(module: str, args: argparse.Namespace, *more: str) -> float:
    """Images per second of a contender that measures itself, first epoch left out."""
    command = [sys.executable, "-m", f"tests.bench.{module}", *_common(args), "--precision", args.precision, *more]
    command += ["--compile"] if args.compile else []
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return float(statistics.median(json.loads(done.stdout.splitlines()[-1])["images_per_second"]))


def shared_loop(args: argparse.Namespace, processes: int = 1) -> float:
    """Images per second of `python -m trainer cifar`, from its own metrics.jsonl, first epoch left out."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "attempts" / "1").mkdir(parents=True)
        several = ["torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "-m"]
        command = [sys.executable, "-m", *(several if processes > 1 else []), "trainer", "cifar", *_common(args)]
        command += ["--precision", args.precision, "--compile", "on" if args.compile else "off"]
        command += ["--optimizer", "sgd", "--eval-every", str(args.epochs), "--save-every", "0"]
        command += ["--report-every", str(max(10, _images(args) // args.batch_size // 2))]  # to be measured by
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "MPSTUI_RUN_DIR": folder, "MPSTUI_ATTEMPT": "1", "PYTHONPATH": path}
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, cwd=folder)
        lines = (Path(folder) / "metrics.jsonl").read_text().splitlines()
    points = [point for line in lines if "loss" in (point := json.loads(line)) and point["epoch"] > 1]
    if len(points) < 3:
        raise SystemExit("too short to measure; give more --epochs")
    steps = points[-1]["step"] - points[0]["step"]
    return float(steps * processes * args.batch_size / (points[-1]["time"] - points[0]["time"]))


def contenders(args: argparse.Namespace) -> dict[str, Callable[[], float]]:
    """Whoever runs, by name."""
    chosen: dict[str, Callable[[], float]] = {BARE: lambda: apart("bare_cifar", args)}
    if args.compile and args.device == "cuda":
        chosen[REPLAYED] = lambda: apart("bare_cifar", args, "--replay")
    chosen[SHARED] = lambda: shared_loop(args)
    if args.processes > 1:
        chosen[f"the same on {args.processes}"] = lambda: shared_loop(args, args.processes)
    for peer in args.against:
        chosen[PEERS[peer]] = lambda peer=peer: apart(f"{peer}_cifar", args)  # type: ignore[misc]
    return chosen


def _common(args: argparse.Namespace) -> list[str]:
    chosen = ["--device", args.device, "--batch-size", str(args.batch_size), "--epochs", str(args.epochs)]
    chosen += ["--width", str(args.width)]
    chosen += ["--data", str(args.data.resolve())] if args.data else []
    return [*chosen, "--limit", str(_images(args))]


def _images(args: argparse.Namespace) -> int:
    images = args.limit or (CIFAR_IMAGES if args.data else SYNTHETIC_IMAGES)
    return int(images - images % (args.batch_size * args.processes))  # no smaller last step


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch-size", type=int, default=128, help="on each device")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--processes", type=int, default=1, help="also over so many devices")
    parser.add_argument("--against", nargs="*", default=[], choices=tuple(PEERS))
    return parser.parse_args()


def main() -> None:
    """Measure and print one row each."""
    args = _arguments()
    running = contenders(args)
    rates: dict[str, list[float]] = {name: [] for name in running}
    for turn in range(1, args.turns + 1):
        for name, run in running.items():
            rates[name].append(run())
            print(f"turn {turn}  {name:<24} {rates[name][-1]:>10,.0f} images/s", flush=True)
    yardstick = max(statistics.median(rates[name]) for name in (BARE, REPLAYED) if name in rates)
    for name, values in rates.items():
        middle = statistics.median(values)
        spread = f"[{min(values):,.0f} to {max(values):,.0f}]"
        print(f"{name:<24} {middle:>10,.0f} images/s  {spread:<22} {middle / yardstick:6.3f} of the bare loop")


if __name__ == "__main__":
    main()
