"""What a call costs in a training: `report()` beside the trackers that are installed, in one run; and its import.

`python -m tests.bench.reporting`, in an environment with wandb, trackio, tensorboard and mlflow-skinny: what is missing
is left out. Each logs the same three numbers and a step to files, without a network, in a process of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SETTLES_SECONDS = 2.0
MOST_CALL_MICROSECONDS, MOST_IMPORT_MILLISECONDS = 10.0, 3.0
LINE = "one line, written at once"
IMPORTS = ("import json", "from mpstui import report")
Log = Callable[[int, dict[str, float]], Any]


def of_report(folder: Path) -> Log:
    """In a run directory, as inside `mpstui run`."""
    from mpstui.reporting import Report

    report = Report({"MPSTUI_RUN_DIR": str(folder)})
    return lambda step, numbers: report(step=step, **numbers)


def of_a_line(folder: Path) -> Log:
    """What no call can do without that has a line on disk before it returns: that line, and the write."""
    file = os.open(folder / "metrics.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def log(step: int, numbers: dict[str, float]) -> None:
        loss, lr, norm = numbers["loss"], numbers["lr"], numbers["grad_norm"]
        line = f'{{"time": {time.time():.4f}, "step": {step}, "loss": {loss!r}, "lr": {lr!r}, "grad_norm": {norm!r}}}\n'
        os.write(file, line.encode())

    return log


def of_nothing(folder: Path) -> Log:
    """`report()` without a run."""
    from mpstui.reporting import Report

    report = Report({})
    return lambda step, numbers: report(step=step, **numbers)


def of_wandb(folder: Path) -> Log:
    """Offline."""
    import wandb

    settings = wandb.Settings(silent=True, x_disable_stats=True)
    run = wandb.init(mode="offline", dir=str(folder), project="bench", settings=settings)
    return lambda step, numbers: run.log(numbers, step=step)


def of_trackio(folder: Path) -> Log:
    """Into its own local store."""
    os.environ["TRACKIO_DIR"] = str(folder)
    import trackio

    trackio.init(project="bench", embed=False)
    return lambda step, numbers: trackio.log(numbers, step=step)


def of_tensorboard(folder: Path) -> Log:
    """A call for each number, as it has it."""
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder))

    def log(step: int, numbers: dict[str, float]) -> None:
        for name, value in numbers.items():
            writer.add_scalar(name, value, step)

    return log


def of_mlflow(folder: Path) -> Log:
    """A call for each number, into a file store."""
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    import mlflow

    mlflow.set_tracking_uri((folder / "store").as_uri())  # which it makes
    mlflow.start_run()

    def log(step: int, numbers: dict[str, float]) -> None:
        for name, value in numbers.items():
            mlflow.log_metric(name, value, step=step)

    return log


PEERS = {
    "report()": (of_report, 20_000),
    "report() without a run": (of_nothing, 20_000),
    LINE: (of_a_line, 20_000),
    "SummaryWriter.add_scalar": (of_tensorboard, 2_000),
    "wandb.log, offline": (of_wandb, 2_000),
    "trackio.log": (of_trackio, 500),
    "mlflow.log_metric": (of_mlflow, 50),
}


def measured(name: str) -> tuple[float, float, float]:
    """Microseconds a step: of the calling thread's processor, of the whole process and its children, and of the wall.

    What a tracker's own threads and processes do takes the training's processors and its interpreter lock as well: they
    are given time to come to an end, and what they spend without a call is taken off.
    """
    make, calls = PEERS[name]
    with tempfile.TemporaryDirectory() as place:
        log = make(Path(place))
        numbers = {"loss": 0.25, "lr": 0.001, "grad_norm": 0.5}
        for step in range(20):
            log(step, numbers)
        time.sleep(SETTLES_SECONDS)
        at = _spent()
        time.sleep(SETTLES_SECONDS)
        idle = _spent() - at
        at, begun, began = _spent(), time.thread_time(), time.perf_counter()
        for step in range(20, 20 + calls):
            log(step, {**numbers, "loss": 1.0 / step})
        thread, wall = time.thread_time() - begun, time.perf_counter() - began
        time.sleep(SETTLES_SECONDS)
        whole = max(thread, _spent() - at - idle)
    return 1e6 * thread / calls, 1e6 * whole / calls, 1e6 * wall / calls


def import_seconds(words: str, times: int) -> float:
    """Processor time of an import in an interpreter of its own, the median; an installed file has its byte code."""
    code = f"import time; begun = time.process_time(); {words}; print(time.process_time() - begun)"
    with tempfile.TemporaryDirectory() as cache:
        environ = {**os.environ, "PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}  # empty: written
        command, spent = [sys.executable, "-c", code], []
        for _ in range(1 + times):  # the first one writes it
            done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
            spent.append(float(done.stdout))
    return statistics.median(spent[1:])


def _spent() -> float:
    """Seconds of processor time of this process and of those that it has started."""
    total = time.process_time()
    with contextlib.suppress(ImportError):
        import psutil  # type: ignore[import-untyped]

        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                total += sum(child.cpu_times()[:2])
    return total


def main() -> int:
    """Print the tables; 1 where the import costs above three milliseconds, or `report()` above ten microseconds or a
    tenth of the cheapest other one.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", choices=PEERS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print("measured", json.dumps(measured(args.one)), flush=True)
        os._exit(0)  # what trackers do at an exit is not measured
    print(f"milliseconds of an import, the median of {10 * args.rounds}")
    imports = {words: 1e3 * import_seconds(words, 10 * args.rounds) for words in IMPORTS}
    for words, cost in imports.items():
        print(f"{words:26}  {cost:14.2f}")
    print(f"microseconds a step of three numbers, the median of {args.rounds} rounds")
    print(f"{'':26}  calling thread  whole process      wall")
    found: dict[str, list[list[float]]] = {}
    for name in list(PEERS) * args.rounds:
        command = [sys.executable, "-m", "tests.bench.reporting", "--one", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        told = [line.partition(" ")[2] for line in done.stdout.splitlines() if line.startswith("measured ")]
        found.setdefault(name, []).extend([json.loads(told[0])] if told else [])
    whole: dict[str, float] = {}
    for name, rounds in found.items():
        if not rounds:
            print(f"{name:26}  left out: it cannot be imported, or failed")
            continue
        thread, whole[name], wall = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"{name:26}  {thread:14.2f}  {whole[name]:13.2f}  {wall:8.2f}")
    ours, others = whole["report()"], [cost for name, cost in whole.items() if name != LINE and "report" not in name]
    if others:
        print(f"report() costs {ours / min(others):.3f} of the cheapest other one")
    slow = ours > MOST_CALL_MICROSECONDS or imports[IMPORTS[-1]] > MOST_IMPORT_MILLISECONDS
    return int(slow or any(ours > other / 10 for other in others))


if __name__ == "__main__":
    raise SystemExit(main())
