"""Each remedy of each rule, end to end: the crash comes, the remedy changes what it says, and the run goes on."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from mpstui.core.diagnosis.engine import diagnose
from mpstui.core.diagnosis.evidence import evidence_from_run_dir
from mpstui.core.diagnosis.log_text import screen_lines
from mpstui.core.diagnosis.rules import rule
from mpstui.core.launching.actions import Actions
from mpstui.core.launching.choice import LaunchChoice
from mpstui.core.launching.cure import cure_of
from mpstui.core.launching.launch import launch
from mpstui.core.launching.planning import plan
from mpstui.core.machine import this_machine
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import State
from mpstui.core.profiles.library import load_profile
from mpstui.core.runs.monitor import Monitor
from mpstui.ui.app import MpstuiApp
from mpstui.ui.services import Services
from mpstui.ui.theme import OWN_THEME
from mpstui.wire.rundir import RunDir
from tests.core.diagnosis.excerpts import EXCERPTS
from tests.end_to_end.conftest import STANDIN, CommandLine
from tests.end_to_end.pressing import PATIENCE_SECONDS, second_attempt
from tests.ui import fakes
from tests.ui.driving import Driver
from tests.waiting import wait_until

pytestmark = pytest.mark.end_to_end

HIGH, LOW = "PYTORCH_MPS_HIGH_WATERMARK_RATIO", "PYTORCH_MPS_LOW_WATERMARK_RATIO"
PROFILE = """
command = ["{{python}}", "{program}", "{crash}"]
agent = false
[env]
{env}
[args]
{args}
[device_args]
auto = ["--device", "{device}"]
cpu = ["--device", "cpu"]
[roles]
batch_size = "batch"
accumulate = "accumulate"
workers = "workers"
persistent_workers = "persistent"
prefetch_factor = "prefetch"
precision = "precision"
fp16 = "fp16"
bf16 = "bf16"
pin_memory = "pin"
devices = "devices"
strategy = "strategy"
processes = "processes"
backend = "backend"
"""


@dataclass(frozen=True, slots=True)
class Case:
    """What a run is started with, and what the remedy has to change, which spares the run."""

    says: tuple[str, ...]
    args: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    device: str = "mps"
    words: str = ""
    """What the program prints last; left out: the rule's excerpt."""
    file: str = ""
    """An empty one, in the folder where the program is started."""


BATCH = Case(("batch 32 -> 16", "accumulate 1 -> 2"), {"batch": "32", "accumulate": "1"})
WORKERS = Case(
    ("workers 4 -> 0", "persistent true -> not given", "prefetch 2 -> not given"),
    {"workers": "4", "persistent": "true", "prefetch": "2"},
)
CPU, EAGER = Case(("device mps -> cpu",)), Case(("TORCH_COMPILE_DISABLE unset -> 1",))
FULL = Case(("precision fp16 -> fp32",), {"precision": "fp16"})
CASES: Mapping[str, Case] = {
    **dict.fromkeys(["mps_oom", "mps_buffer_too_big", "mps_assert_ndarray"], BATCH),
    **dict.fromkeys(["metal_cmdbuf", "metal_cmdbuf_oom", "metal_watchdog", "metal_hang"], BATCH),
    "cpu_oom": Case(BATCH.says, BATCH.args, device="cpu"),
    "cuda_oom": Case(BATCH.says, BATCH.args, device="cuda"),
    "killed_os": Case(
        (*BATCH.says, f"{HIGH} 0.0 -> unset", f"{LOW} 1.4 -> unset"), BATCH.args, {HIGH: "0.0", LOW: "1.4"}
    ),
    "mps_watermark_invalid": Case((f"{HIGH} 0.7 -> unset", f"{LOW} 1.4 -> unset"), {}, {HIGH: "0.7", LOW: "1.4"}),
    **dict.fromkeys(["dl_spawn_guard", "dl_pickle", "dl_worker_signal", "dl_share_mps", "dl_shared_memory"], WORKERS),
    **dict.fromkeys(
        ["too_many_files", "dl_mappings", "dl_shared_handle", "objc_fork", "metal_xpc", "cuda_fork"], WORKERS
    ),
    **dict.fromkeys(["device_mismatch", "device_module", "generator_device", "bus_error"], CPU),
    **dict.fromkeys(["macos_too_old", "mps_not_built"], CPU),
    **dict.fromkeys(["metal_encoder_thread", "mps_internal_assert", "mps_float64", "mps_op_limit"], CPU),
    "mps_view_backward": CPU,
    "cuda_hardcoded": Case(("device cuda -> cpu",), device="cuda"),
    **dict.fromkeys(["dtype_mismatch", "mpsgraph_llvm", "mps_autocast", "nan_loss"], FULL),
    "mps_bf16": Case(("precision bfloat16 -> float32",), {"precision": "bfloat16"}),
    "lightning_precision": Case(("precision 16-mixed -> 16",), {"precision": "16-mixed"}),
    "amp_fp16_not_mps": Case(
        ("fp16 true -> not given", "ACCELERATE_MIXED_PRECISION fp16 -> unset"),
        {"fp16": "true", "precision": "no"},
        {"ACCELERATE_MIXED_PRECISION": "fp16"},
    ),
    "amp_bf16_unsupported": Case(
        ("bf16 true -> not given", "precision bf16-mixed -> 32"), {"bf16": "true", "precision": "bf16-mixed"}
    ),
    "mps_op_missing": Case(("PYTORCH_ENABLE_MPS_FALLBACK 0 -> 1",), {}, {"PYTORCH_ENABLE_MPS_FALLBACK": "0"}),
    **dict.fromkeys(["compile_mps", "metal_shader_compile"], EAGER),
    "compile_failed": Case(EAGER.says, device="cpu"),
    "compile_fullgraph": Case(
        ("TORCH_COMPILE_DISABLE 1 -> unset", "TORCH_COMPILE_OVERRIDE_BACKENDS unset -> >=0:eager"),
        {},
        {"TORCH_COMPILE_DISABLE": "1"},
    ),
    "pin_memory_mps": Case(("pin true -> not given",), {"pin": "true"}),
    "omp_segfault": Case(("OMP_NUM_THREADS 4 -> 1",), {}, {"OMP_NUM_THREADS": "4"}),
    "lightning_ddp_mps": Case(("devices 2 -> 1", "strategy ddp -> auto"), {"devices": "2", "strategy": "ddp"}),
    "dist_mps": Case(
        ("processes 2 -> 1", "backend nccl -> gloo", "device mps -> cpu"), {"processes": "2", "backend": "nccl"}
    ),
    "weights_only": Case(("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD unset -> 1",)),
    "wandb_login": Case(("WANDB_MODE unset -> offline",)),
    "old_protobuf": Case(("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION unset -> python",)),
    "module_of_project": Case(
        ("PYTHONPATH unset -> {cwd}",), words="ModuleNotFoundError: No module named 'nets'", file="nets.py"
    ),
}
"""By the id of the rule; `tests/contract/test_remedies.py` wants one for each remedy that can be applied."""
MOVED: Mapping[str, str] = {
    "mps_assert_ndarray": "MPSNDArray.mm:84: failed assertion `[MPSNDArrayDescriptor x:] error: start (3) is not less'",
    "mpsgraph_llvm": "error: input types 'tensor<34x10xf32>' and 'tensor<1xi64>' are not broadcast compatible",
    "mps_op_missing": "NotImplementedError: Could not run 'aten::empty' with arguments from the 'SparseMPS' backend.",
    "metal_shader_compile": "RuntimeError: Failed to created pipeline state object, error: AGXMetalG16X Code=3",
}
"""Messages that show their rule's remedy to be of no use: the CPU is offered instead (``otherwise_device``)."""
PRESSED = ("mps_oom", "weights_only", "device_mismatch", "amp_fp16_not_mps")
"""Those that are applied with the key on the screen; the others as `restart --fix` does it."""


def words_of(name: str) -> str:
    """What a program that crashes as this rule says has printed last."""
    excerpt = "" if name == "killed_os" else next(text for rule_id, text in EXCERPTS if rule_id == name)
    return CASES[name].words or excerpt


def signal_of(name: str) -> int:
    """The signal that ends it; 0: an exception does."""
    found = rule(name)
    return 0 if found.codes else int(signal.SIGBUS) if name == "bus_error" else found.signals[0]


def start(mpstui: CommandLine, name: str, home: Home, environ: Mapping[str, str]) -> str:
    """A run that will crash as a rule of this name says."""
    case = CASES[name]
    spared_by = [said.format(cwd=mpstui.cwd) for said in case.says]
    crash = {"text": words_of(name), "signal": signal_of(name), "code": 1, "spared_by": spared_by}
    if case.file:
        (mpstui.cwd / case.file).touch()
    path = mpstui.cwd / f"{name}.json"
    path.write_text(json.dumps(crash))
    env = "\n".join(f'{key} = "{value}"' for key, value in case.env.items())
    args = "\n".join(f"{key} = {_toml(value)}" for key, value in case.args.items())
    words = {"program": STANDIN / "program.py", "crash": path, "env": env, "args": args, "device": case.device}
    profile = mpstui.cwd / f"{name}.toml"
    profile.write_text(PROFILE.format(**words))
    choice = LaunchChoice(load_profile(str(profile), home, mpstui.cwd))
    return launch(plan(choice, environ=environ, machine=this_machine(), check=False), home, environ, time.time())


def _toml(value: str) -> str:
    return value if value == "true" or value.isdecimal() else f'"{value}"'


def test_each_remedy_changes_what_it_says_and_the_run_goes_on(mpstui: CommandLine) -> None:
    home, environ = Home(mpstui.home, mpstui.home), mpstui.environment()
    protobuf = "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"
    for name in ("TORCH_COMPILE_DISABLE", "OMP_NUM_THREADS", "WANDB_MODE", "PYTHONPATH", protobuf, HIGH, LOW):
        environ.pop(name, None)
    # Rules that share a case have one remedy: one run proves it, and the others' words must lead to the same launch.
    started = {id(CASES[name]): name for name in reversed([*CASES])}
    runs = {name: RunDir(home.runs / start(mpstui, name, home, environ)) for name in started.values()}
    monitor, actions = Monitor(home), Actions(environ, machine=this_machine())

    def ended(attempt: int) -> bool:
        return all(run.attempt(attempt).exit.exists() for run in runs.values())

    wait_until(lambda: ended(1), timeout=PATIENCE_SECONDS, what="every crash")
    cures = {}
    proofs = [(name, case, words_of(name)) for name, case in CASES.items()]
    for name, case, words in (*((name, CPU, words) for name, words in MOVED.items()), *proofs):
        run = runs[started[id(case)]]
        evidence = evidence_from_run_dir(run.path)
        if words != words_of(started[id(case)]):
            lines = (*evidence.lines[:3], *screen_lines(words.split("\n")))
            killed = signal_of(name) or None
            evidence = replace(evidence, lines=lines, signal=killed, exit_code=None if killed else 1)
        if name == "killed_os":  # here nothing was killed for memory
            evidence = replace(evidence, memory_events=("Out of memory: Killed process 4711",))
        cure = cure_of(run, diagnose(evidence), environ, home.arguments)
        assert cure is not None
        assert cure.finding.id == name
        assert {str(change) for change in cure.changes} == {said.format(cwd=mpstui.cwd) for said in case.says}, name
        cures[name] = cure
        assert (cure.risk is None) == (name != "weights_only")
    for name, run in runs.items():
        if name not in PRESSED:
            actions.restart(monitor.snapshot(run.run), choice=cures[name].choice)
    app = MpstuiApp(Services(home, environ, mpstui.cwd, time.time), theme=OWN_THEME)

    async def press_all() -> None:
        async with app.run_test(size=(150, 50)) as pilot:
            driver = Driver(app, pilot, fakes.world())
            for name in PRESSED:
                await press(driver, app, name, runs[name])

    asyncio.run(press_all())
    wait_until(lambda: ended(2), timeout=PATIENCE_SECONDS, what="every second attempt")
    for run in runs.values():
        assert run.attempt(2).output.read_text().endswith("the run goes on\n")
        assert monitor.snapshot(run.run).state is State.FINISHED


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
    lines = driver.text.splitlines()
    column = next(line.index("─ preview") for line in lines if "─ preview" in line)
    flat = " ".join(" ".join(line[column:] for line in lines).split())
    assert [said for said in CASES[name].says if said not in flat] == [], driver.text
    await driver.press("ctrl+s")
    await second_attempt(driver, run)
    app.close_run()
