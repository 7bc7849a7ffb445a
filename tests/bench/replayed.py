"""Whether replayed steps (recorded as CUDA graphs) are the eager ones, and how fast both are.

    python -m tests.bench.replayed --device cuda [--steps 200] [--tasks cifar gsdiff] [--optimizers sgd muon] [--jobs 8]

Each task is trained with each optimizer three times from one seed on small generated data, in full float32, without
dropout: eagerly, eagerly again, replayed (with ``--compile`` compiled too). Prints whether the eager losses are equal
bit for bit, by how much the replayed ones are off at most (as a share of the loss, of 1 where it is smaller) and at
which step, and steps a second of both, as the loop reports them (with ``--jobs``, of several at once). Ends with 1
where eager is not itself, or replayed is off by more than ``--most``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.trainer.cases import synthetic
from trainer.optimizers import RECIPES
from trainer.tasks import shipped_tasks

ROOT = Path(__file__).resolve().parents[2]
SMALL = {
    "indicator": ("--dropout", "0"),  # compiled dropout draws other numbers than eager
    "twotower": ("--width", "32", "--layers", "1", "--embedding", "16"),
}
# Deterministic: else the fastest of several kernels is chosen by a race, each time anew.
EXACT = ("--precision", "fp32", "--matmul-precision", "highest", "--deterministic")
OFTEN = ("--report-every", "1", "--eval-every", "1000000")


def trained(args: argparse.Namespace, task: str, optimizer: str, *how: str) -> tuple[list[float], float, str]:
    """The loss of every step, steps a second, and what it said of what it could not do."""
    words = [*synthetic(task), *SMALL.get(task, ()), *EXACT, *OFTEN, "--optimizer", optimizer, *how]
    words += ["--device", args.device, "--stop-after", str(args.steps), "--epochs", "1000000", "--save-every", "0"]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "attempts" / "1").mkdir(parents=True)
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        environ = {**os.environ, "MPSTUI_RUN_DIR": folder, "MPSTUI_ATTEMPT": "1", "PYTHONPATH": path}
        command = [sys.executable, "-P", "-m", "trainer", task, *words, "--schedule", "constant"]
        subprocess.run(command, env=environ, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        points = [json.loads(line) for line in (Path(folder) / "metrics.jsonl").read_text().splitlines()]
        events = [json.loads(line) for line in (Path(folder) / "events.jsonl").read_text().splitlines()]
    speeds = [point["steps_per_second"] for point in points[1:] if point.get("steps_per_second")]
    unmet = next((event["text"] for event in events if event.get("unmet")), "")
    losses = [point["loss"] for point in points if "loss" in point]
    return losses, statistics.median(speeds) if speeds else float("nan"), unmet


def compared(args: argparse.Namespace, task: str, optimizer: str) -> bool:
    """Print a row; whether all is as promised."""
    eagerly = ("--compile", "off", "--replay", "off")
    eager, speed, _ = trained(args, task, optimizer, *eagerly)
    again, _, _ = trained(args, task, optimizer, *eagerly)
    replayed, faster, unmet = trained(args, task, optimizer, "--compile", "on" if args.compile else "off")
    row = f"{task:<10} {optimizer:<6} {len(eager):>4} steps  eager {'is' if eager == again else 'IS NOT'} itself"
    if unmet:
        print(f"{row}  {unmet}", flush=True)
        return False
    apart = [abs(one - other) / max(1.0, abs(one)) for one, other in zip(eager, replayed, strict=True)]
    worst = max(range(len(apart)), key=apart.__getitem__)
    print(f"{row}  off {apart[worst]:.1e} at step {worst + 1}  {speed:.1f} and {faster:.1f} steps/s", flush=True)
    return eager == again and apart[worst] <= args.most


def main() -> int:
    """Every pair, in turn or several at once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--tasks", nargs="+", default=shipped_tasks(), choices=shipped_tasks())
    parser.add_argument("--optimizers", nargs="+", default=list(RECIPES), choices=list(RECIPES))
    parser.add_argument("--most", type=float, default=1e-6, help="how far the losses may be apart (1e-6)")
    parser.add_argument("--compile", action="store_true", help="compile the replayed ones too")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    pairs = [(task, optimizer) for task in args.tasks for optimizer in args.optimizers]
    with ThreadPoolExecutor(args.jobs) as pool:
        well = list(pool.map(lambda pair: compared(args, *pair), pairs))
    return 0 if all(well) else 1


if __name__ == "__main__":
    sys.exit(main())
