"""Whether replayed steps (recorded as CUDA graphs) are the eager ones, and how fast both are.

    python -m tests.bench.replayed --device cuda [--steps 200] [--tasks cifar gsdiff] [--optimizers sgd muon] [--jobs 8]
    python -m tests.bench.replayed --device cuda --kill [--steps 200] ...
    python -m tests.bench.replayed --device cuda --processes 2 [--shard] [--precision bf16] ...

Each task is trained with each optimizer three times from one seed on small generated data, in full float32 unless
``--precision`` says otherwise, without dropout: eagerly, eagerly again, replayed (with ``--compile`` compiled too).
Prints whether the eager losses are equal bit for bit, by how much the replayed ones are off at most (as a share of the
loss, of 1 where it is smaller) and at which step, and steps a second of both, as the loop reports them (with
``--jobs``, of several at once). Ends with 1 where eager is not itself, or replayed is off by more than ``--most``.

With ``--processes`` each training is one of so many GPUs that exchange gradients, or with ``--shard`` weights too.

With ``--kill`` it trains twice instead, replayed: in one go, and killed by SIGKILL on the way, then resumed from the
newest checkpoint. Prints whether all losses behind that checkpoint are equal bit for bit; ends with 1 where one is not.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mpstui.core.bench.training import trainer_command
from mpstui.core.telemetry.procfs import psutil
from tests.trainer.cases import synthetic
from trainer.optimizers import RECIPES
from trainer.tasks import shipped_tasks

ROOT = Path(__file__).resolve().parents[2]
SMALL = {
    "indicator": ("--dropout", "0"),  # compiled dropout draws other numbers than eager
    "twotower": ("--width", "32", "--layers", "1", "--embedding", "16"),
}
# Deterministic: else the fastest of several kernels is chosen by a race, each time anew.
EXACT = ("--matmul-precision", "highest", "--deterministic")
OFTEN = ("--report-every", "1", "--eval-every", "1000000")


def started(
    args: argparse.Namespace, task: str, optimizer: str, folder: Path, *how: str, attempt: int = 1
) -> subprocess.Popen[bytes]:
    """A training of so many steps, its run directory in that folder."""
    words = [*synthetic(task), *SMALL.get(task, ()), *EXACT, *OFTEN, "--optimizer", optimizer, *how]
    words += ["--precision", args.precision]
    words += ["--device", args.device, "--stop-after", str(args.steps), "--epochs", "1000000"]
    (folder / "attempts" / str(attempt)).mkdir(parents=True)
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environ = {**os.environ, "MPSTUI_RUN_DIR": str(folder), "MPSTUI_ATTEMPT": str(attempt), "PYTHONPATH": path}
    words += ["--shard"] if args.shard else []
    command = trainer_command(sys.executable, task, *words, "--schedule", "constant", processes=args.processes)
    return subprocess.Popen(command, env=environ, cwd=folder, stdout=subprocess.DEVNULL)


def trained(args: argparse.Namespace, task: str, optimizer: str, *how: str) -> tuple[list[float], float, str]:
    """The loss of every step, steps a second, and what it said of what it could not do."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ended(started(args, task, optimizer, folder, "--save-every", "0", *how))
        points = written(folder / "metrics.jsonl")
        events = written(folder / "events.jsonl")
    speeds = [point["steps_per_second"] for point in points[1:] if point.get("steps_per_second")]
    unmet = next((event["text"] for event in events if event.get("unmet")), "")
    losses = [point["loss"] for point in points if "loss" in point]
    return losses, statistics.median(speeds) if speeds else float("nan"), unmet


def ended(process: subprocess.Popen[bytes]) -> None:
    """Wait until it has done all its steps."""
    if process.wait():
        raise SystemExit(f"a training ended with {process.returncode}")


def written(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a file of JSON lines; a process that was killed may have left half a line."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def resumed(args: argparse.Namespace, task: str, optimizer: str) -> bool:
    """Print a row; whether a killed and resumed training went on as if nothing had happened."""
    how = ("--compile", "on" if args.compile else "off", "--save-steps", str(max(1, args.steps // 7)))
    whole, _, _ = trained(args, task, optimizer, *how)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        killed = started(args, task, optimizer, folder, *how)
        while sum("loss" in point for point in written(folder / "metrics.jsonl")) < args.steps * 3 // 4:
            if killed.poll() is not None:
                raise SystemExit(f"{task}, {optimizer}: over before it could be killed")
            time.sleep(0.02)
        for process in [*psutil.Process(killed.pid).children(recursive=True), killed]:
            process.kill()
        killed.wait()
        ended(started(args, task, optimizer, folder, *how, "--resume", "latest", attempt=2))
        points = [point for point in written(folder / "metrics.jsonl") if "loss" in point]
    last = max(point["step"] for point in points if point["attempt"] == 1)
    again = {point["step"]: point["loss"] for point in points if point["attempt"] == 2}
    first = min(again)
    equal = first > 1 and again == dict(enumerate(whole[first - 1 :], start=first))
    said = "equal to one in one go" if equal else "NOT EQUAL to one in one go"
    print(f"{task:<10} {optimizer:<6} killed after step {last}, resumed with step {first}: {said}", flush=True)
    return equal


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
    parser.add_argument("--kill", action="store_true", help="kill and resume instead")
    parser.add_argument("--processes", type=int, default=1, help="of each training, each on a GPU of its own")
    parser.add_argument("--shard", action="store_true", help="divide weights and moments over them")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    pairs = [(task, optimizer) for task in args.tasks for optimizer in args.optimizers]
    with ThreadPoolExecutor(args.jobs) as pool:
        well = list(pool.map(lambda pair: (resumed if args.kill else compared)(args, *pair), pairs))
    return 0 if all(well) else 1


if __name__ == "__main__":
    sys.exit(main())
