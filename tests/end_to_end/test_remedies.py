"""Each remedy that changes a launch: the crash comes, the key is pressed on the screen, the new attempt is spared."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from mpstui.core.diagnosis.rules import all_rules
from mpstui.core.launching.choice import LaunchChoice
from mpstui.core.launching.planning import launch, plan
from mpstui.core.machine import this_machine
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import State
from mpstui.core.profiles.library import load_profile
from mpstui.core.runs.monitor import Monitor
from mpstui.ui.app import MpstuiApp
from mpstui.ui.services import Services
from mpstui.ui.theme import OWN_THEME
from mpstui.wire.rundir import RunDir
from tests.end_to_end.conftest import STANDIN, CommandLine
from tests.end_to_end.pressing import PATIENCE_SECONDS, second_attempt
from tests.standin.refusals import REFUSALS
from tests.ui import fakes
from tests.ui.driving import Driver
from tests.waiting import wait_until

pytestmark = pytest.mark.end_to_end

HIGH = "PYTORCH_MPS_HIGH_WATERMARK_RATIO"
PROFILE = """
name = "{name}"
command = ["{{python}}", "{program}", "{name}"]
[env]
{env}
[args]
{args}
[defaults]
accumulate = 1
[device_args]
auto = ["--device", "mps"]
cpu = ["--device", "cpu"]
[roles]
batch_size = "batch"
accumulate = "accumulate"
workers = "workers"
persistent_workers = "persistent"
prefetch_factor = "prefetch"
precision = "precision"
fp16 = "fp16"
pin_memory = "pin"
devices = "devices"
strategy = "strategy"
processes = "processes"
backend = "backend"
"""


@dataclass(frozen=True, slots=True)
class Case:
    """What a run is started with, and what the form must say that the remedy changes."""

    says: tuple[str, ...]
    args: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)


BATCH = {"batch": "32"}
LOADER = {"workers": "4", "persistent": "true", "prefetch": "2"}
CASES: Mapping[str, Case] = {
    "mps_oom": Case(("batch 32 -> 16", "accumulate 1 -> 2"), BATCH),
    "killed_os": Case(("batch 32 -> 16", f"{HIGH} 0.0 -> unset"), BATCH, {HIGH: "0.0"}),
    "mps_watermark_invalid": Case((f"{HIGH} 0.7 -> unset",), {}, {HIGH: "0.7"}),
    "mps_op_missing": Case(("PYTORCH_ENABLE_MPS_FALLBACK 0 -> 1",), {}, {"PYTORCH_ENABLE_MPS_FALLBACK": "0"}),
    "mps_float64": Case(("device mps -> cpu",)),
    "mps_bf16": Case(("precision bf16 -> fp32",), {"precision": "bf16"}),
    "mpsgraph_llvm": Case(("precision fp16 -> fp32",), {"precision": "fp16"}),
    "amp_fp16_not_mps": Case(("fp16 true -> not given", "ACCELERATE_MIXED_PRECISION unset -> no"), {"fp16": "true"}),
    "lightning_precision": Case(("precision bf16-mixed -> bf16",), {"precision": "bf16-mixed"}),
    "compile_mps": Case(("TORCH_COMPILE_DISABLE unset -> 1",)),
    "dl_spawn_guard": Case(("workers 4 -> 0", "persistent true -> not given", "prefetch 2 -> not given"), LOADER),
    "pin_memory_mps": Case(("pin true -> not given",), {"pin": "true"}),
    "omp_duplicate": Case(("OMP_NUM_THREADS unset -> 1",)),
    "lightning_ddp_mps": Case(("devices 2 -> 1", "strategy ddp -> auto"), {"devices": "2", "strategy": "ddp"}),
    "dist_mps": Case(
        ("processes 2 -> 1", "backend nccl -> gloo", "device mps -> cpu"), {"processes": "2", "backend": "nccl"}
    ),
    "weights_only": Case(("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD unset -> 1",)),
}


def start(mpstui: CommandLine, name: str, home: Home) -> str:
    """A run that will crash."""
    case = CASES[name]
    path = mpstui.cwd / f"{name}.toml"
    env = "\n".join(f'{key} = "{value}"' for key, value in case.env.items())
    args = "\n".join(f"{key} = {_toml(value)}" for key, value in case.args.items())
    path.write_text(PROFILE.format(name=name, program=STANDIN / "program.py", env=env, args=args))
    environ = mpstui.environment()
    profile = load_profile(str(path), home, mpstui.cwd)
    return launch(plan(LaunchChoice(profile), environ=environ, machine=this_machine()), home, environ, time.time())


def _toml(value: str) -> str:
    return value if value == "true" or value.isdecimal() else f'"{value}"'


def test_the_table_holds_every_kind_of_change_that_a_remedy_makes() -> None:
    def kinds(names: object) -> set[str]:
        rules = [one for one in all_rules() if one.remedy.can_be_applied and (names is None or one.id in CASES)]
        changes = {f"{change.operation} {change.role}" for one in rules for change in one.remedy.args}
        return changes | {f"env {name}" for one in rules for name in one.remedy.env}

    assert set(CASES) == set(REFUSALS)
    assert kinds(None) - kinds(CASES) == {
        "remove bf16",  # changed like fp16
        "env PYTHONFAULTHANDLER",  # like OMP_NUM_THREADS
        "env TORCH_COMPILE_OVERRIDE_BACKENDS",
        "env WANDB_MODE",
    }


def test_each_remedy_is_one_key_away_and_the_run_goes_on(mpstui: CommandLine) -> None:
    home = Home(mpstui.home, mpstui.home)
    runs = {name: start(mpstui, name, home) for name in CASES}
    monitor = Monitor(home)

    def ended(states: set[State]) -> bool:
        return {snapshot.run for snapshot in monitor.refresh() if snapshot.state in states} >= set(runs.values())

    wait_until(lambda: ended({State.FAILED, State.KILLED}), timeout=PATIENCE_SECONDS, what="every crash")
    app = MpstuiApp(Services(home, mpstui.environment(), mpstui.cwd, time.time), theme=OWN_THEME)

    async def press_all() -> None:
        async with app.run_test(size=(150, 50)) as pilot:
            driver = Driver(app, pilot, fakes.world())
            for name, run in runs.items():
                await press(driver, app, name, RunDir(home.runs / run))

    asyncio.run(press_all())
    wait_until(lambda: ended({State.FINISHED}), timeout=PATIENCE_SECONDS, what="every second attempt")
    for run in runs.values():
        output = RunDir(home.runs / run).attempt(2).output.read_text()
        assert output.endswith("the run goes on\n")


async def press(driver: Driver, app: MpstuiApp, name: str, run: RunDir) -> None:
    """Open the run, press the key of the remedy, read what it changes, start it."""
    app.open_run(run.run)
    await driver.sees("f apply the remedy")
    await driver.press("f")
    if name == "weights_only":
        await driver.sees("can run any code")
        assert run.attempt_numbers() == [1]
        await driver.press("y")
    await driver.sees("Changed by the remedy")
    flat = " ".join(" ".join(driver.text.replace("│", " ").split()).split())
    assert [said for said in CASES[name].says if said not in flat] == [], driver.text
    await driver.press("ctrl+s")
    await second_attempt(driver, run)
    app.close_run()
