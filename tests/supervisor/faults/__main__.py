"""``python -m tests.supervisor.faults --runs N --seed S``: plays scenes, prints the table, exits with 1 when red."""

from __future__ import annotations

import argparse
import importlib.util
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..kit import CAN_MOUNT, small_disk
from . import accidents, disks, heavy, kills, rules, world
from .stage import Faults, Scene, Scenes, Stage

PROOFS = {
    "pid_is_enough": "recycled_pid_in_the_tree",
    "members_by_number": "recycled_pid_in_the_tree",
    "start_not_compared": "recycled_pid_of_the_trainer",
    "group_by_number": "recycled_pid_of_the_trainer",
    "mark_not_asked": "stranger_in_the_record",
    "killed_once": "hydra",
    "never_killed": "ignores_term",
    "reserves_kept": "full_disk",
    "pause_answered_first": "answers_follow_acts",
    "no_tree": "ranks",
    "no_exit_record": "running_trainer",
    "unknown_is_success": "running_supervisor",
    "two_terms": "stopping_supervisor",
    "lost_is_ok": "after_a_lost_run",
    "no_sync": "power_cut",
    "exit_not_durable": "power_cut",
    "slot_not_released": "slot_while_it_leaves",
    "slot_not_inherited": "slot_of_a_dead_supervisor",
    "place_not_left": "slot_of_a_dead_supervisor",
    "reaped_first": "child_that_slipped_away",
    "no_subreaper": "daemon_without_a_trace",
    "answered_first": "answers_follow_acts",
    "shutdown_cancels": "shutdown_in_the_queue",
    "no_waiting": "crashes_twice",
    "waiting_forgotten": "crashes_twice",
    "progress_gate_open": "crashes_twice",
}
"""One rule broken on purpose, and a scene that must notice."""
SMALL_DISK_SCENES = {**disks.SMALL_DISK_SCENES, **world.SMALL_DISK_SCENES}
OTHERS_A_ROUND = 3
"""A thousand runs are then more than fifty of each kill, and about six of everything else."""


@dataclass(frozen=True)
class Played:
    """One scene, played once."""

    name: str
    faults: Faults
    seconds: float


def scenes() -> dict[str, tuple[Scene, dict[str, Any]]]:
    """Every scene that can be played here, by name."""
    found: Scenes = {**kills.SCENES, **kills.BESIDE, **accidents.SCENES, **disks.SCENES, **heavy.SCENES, **rules.SCENES}
    found |= world.SCENES
    if importlib.util.find_spec("torch"):
        found |= heavy.TORCH_SCENES
    if CAN_MOUNT:
        found |= SMALL_DISK_SCENES
        found |= disks.FROZEN_SCENES if shutil.which("chattr") else {}
    return {scene.__name__: (scene, setting) for scene, setting in found.items()}


def play(name: str, sabotage: str | None = None, seed: int = 0) -> Played:
    """Play one scene in a world of its own; ``seed`` decides what a scene leaves to chance."""
    scene, setting = scenes()[name]
    begun = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="mpstui-faults-", ignore_cleanup_errors=True) as folder,
        ExitStack() as stack,
    ):
        home = Path(folder) / "home"
        if scene in SMALL_DISK_SCENES:
            stack.enter_context(small_disk(home))
        stage = Stage(home, sabotage=sabotage, seed=seed, **setting)
        try:
            scene(stage)
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            stage.faults.wrong_states.append(f"the scene broke off: {error}")
        faults = stage.leave()
    return Played(name, faults, time.monotonic() - begun)


def draw(runs: int, seed: int, only: Sequence[str]) -> list[str]:
    """Names of the scenes to play: all of them once, then rounds of every kill and of some of the others."""
    names, chance = [name for name in scenes() if not only or name in only], random.Random(seed)
    kinds = {scene.__name__ for scene in kills.SCENES}
    often, others = [name for name in names if name in kinds], [name for name in names if name not in kinds]
    drawn, left = chance.sample(names, len(names)), list[str]()
    while len(drawn) < runs:
        left = left if len(left) >= OTHERS_A_ROUND else [*left, *chance.sample(others, len(others))]
        beside, left = left[:OTHERS_A_ROUND], left[OTHERS_A_ROUND:]
        drawn += chance.sample([*often, *beside], len(often) + len(beside))
    return drawn[:runs]


def report(played: Sequence[Played]) -> bool:
    """Print the table; True when it is green."""
    print(f"{'scene':<28}{'runs':>5}{'wrong states':>14}{'strays':>8}{'foreign signals':>17}{'lost exit codes':>17}")
    for name in sorted({item.name for item in played}):
        _row(name, [item for item in played if item.name == name])
    _row("all", played)
    for item in played:
        for text in item.faults.all:
            print(f"  {item.name}: {text}")
    return not any(item.faults.all for item in played)


def _row(name: str, played: Sequence[Played]) -> None:
    faults = [item.faults for item in played]
    columns = [
        sum(len(one.wrong_states) for one in faults),
        sum(len(one.strays) for one in faults),
        sum(len(one.foreign_signals) for one in faults),
        sum(len(one.lost_exits) for one in faults),
    ]
    print(f"{name:<28}{len(played):>5}{columns[0]:>14}{columns[1]:>8}{columns[2]:>17}{columns[3]:>17}")


def prove() -> bool:
    """Whether the suite turns red when a rule is broken."""
    sharp = True
    for sabotage, name in PROOFS.items():
        if name not in scenes():
            print(f"  {sabotage:<20} not tried: {name} cannot be played here")
            continue
        faults = play(name, sabotage).faults
        sharp = sharp and bool(faults.all)
        verdict = faults.all[0].splitlines()[0] if faults.all else "NOT NOTICED"
        print(f"  {sabotage:<20} noticed by {name}: {verdict}")
    return sharp


@contextmanager
def _busy(load: int) -> Iterator[None]:
    """A machine with other things to do, as long as this process lives."""
    code = "import os, sys\nparent = os.getppid()\nwhile os.getppid() == parent:\n for _ in range(1 << 20): pass"
    busy = [subprocess.Popen([sys.executable, "-I", "-S", "-c", code]) for _ in range(load)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def main() -> int:
    """Play, print, prove."""
    parser = argparse.ArgumentParser(prog="python -m tests.supervisor.faults", description=__doc__)
    parser.add_argument("--runs", type=int, default=len(scenes()))
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", action="append", default=[], choices=sorted(scenes()))
    parser.add_argument("--sabotage", choices=sorted(PROOFS))
    parser.add_argument("--no-proof", action="store_true")
    parser.add_argument("--load", type=int, default=0, help="so many busy processes beside it")
    chosen = parser.parse_args()
    names = draw(chosen.runs, chosen.seed, chosen.only)
    with _busy(chosen.load), ThreadPoolExecutor(chosen.jobs) as pool:
        seeds = range(chosen.seed, chosen.seed + len(names))
        played = list(pool.map(lambda name, seed: play(name, chosen.sabotage, seed), names, seeds))
    green = report(played)
    print(f"seed {chosen.seed}, {len(played)} runs, {sum(item.seconds for item in played):.0f} s of play")
    if chosen.sabotage is None and not chosen.no_proof:
        print("broken on purpose:")
        green = prove() and green
    print("GREEN" if green else "RED")
    return 0 if green else 1


if __name__ == "__main__":
    sys.exit(main())
