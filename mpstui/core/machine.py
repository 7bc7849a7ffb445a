"""What this machine has: devices by a quick check, and by asking the run's interpreter when that finds none."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Protocol

from ..wire import storage
from ..wire.records import GPU_VARIABLE
from .model.errors import OperationError, UsageError

if TYPE_CHECKING:
    from .telemetry.sources.nvml import Nvml

DEVICES = ("auto", "mps", "cuda", "cpu")
"""What may be asked for; ``auto`` takes CUDA, else MPS, else CPU."""
ASK_SECONDS = 60.0
"""A busy machine, or a cold file system of a network, takes half a minute to load torch."""
INSTALLED_TRAINER = "mpstui_trainer"
BUNDLED = "vendor"
"""The folder beside our packages in which a bundle has those of others."""
_NVIDIA_WITNESSES = ("/dev/nvidiactl", "/proc/driver/nvidia", "/dev/dxg")
_ASK_DEVICES = """
import gc
gc.disable()
import json, torch
gc.freeze()
print(json.dumps({"mps": bool(torch.backends.mps.is_available()), "cuda": bool(torch.cuda.is_available())}))
"""
_ASK_MODULES = """
import importlib.util, json, sys
print(json.dumps({name: importlib.util.find_spec(name) is not None for name in sys.argv[1:]}))
"""


class Interpreter(Protocol):
    """Answers for one Python interpreter, given the environment a run would have."""

    def devices(self, python: str, env: Mapping[str, str]) -> Mapping[str, bool]:
        """Which devices its torch can use; empty when it cannot say (no torch, no answer in time)."""
        ...

    def modules(self, python: str, env: Mapping[str, str], names: tuple[str, ...]) -> Mapping[str, bool]:
        """Which modules it could import; empty when it cannot say."""
        ...


def trainer_module() -> str:
    """Return the name the shipped trainers are imported by, which ``{trainer}`` in a profile stands for.

    A wheel must not claim the name ``trainer``, which other packages install; a checkout has it in its own folder.
    """
    return INSTALLED_TRAINER if (Path(__file__).parents[2] / INSTALLED_TRAINER).is_dir() else "trainer"


def bundled_trainers() -> Path | None:
    """Where the shipped trainers lie when no interpreter finds them by itself: in what was sent to a far machine."""
    root = Path(__file__).parents[2]
    return root if (root / BUNDLED).is_dir() else None


def with_trainers(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment in which the shipped trainers are found."""
    parts = (str(bundled_trainers() or ""), environ.get("PYTHONPATH", ""))
    path = os.pathsep.join(part for part in parts if part)
    return {**environ, "PYTHONPATH": path} if path else dict(environ)


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine a run would start on."""

    system: str
    """As ``platform.system()``: Darwin, Linux."""
    architecture: str
    """As ``platform.machine()``: arm64, x86_64."""
    nvidia: bool
    cores: int
    """Logical cores this process may use."""
    python: str
    """The interpreter mpstui runs in: what ``{python}`` means unless a profile names another."""
    interpreter: Interpreter
    gpus: Callable[[], Sequence[str]] = tuple
    """UUIDs of the NVIDIA cards in bus order; empty where they are not known. Asked only when a queue needs them."""
    physical_cores: Callable[[], int | None] = lambda: None
    """Cores that do not share their parts with another one, of those this process may use; of Apple's the fast ones."""

    def seems_to_have(self, device: str) -> bool:
        """Guess from platform and driver files, in microseconds; the run's interpreter may still find more."""
        if device == "mps":
            return self.system == "Darwin" and self.architecture == "arm64"
        return self.nvidia if device == "cuda" else True

    def has(self, device: str, python: str, env: Mapping[str, str]) -> bool:
        """Whether a run of ``python`` with ``env`` finds the device; asks that interpreter before it says no."""
        return self.seems_to_have(device) or self.interpreter.devices(python, env).get(device, False)

    def usable_devices(self) -> tuple[str, ...]:
        """The devices the quick check finds, best first."""
        return tuple(device for device in ("cuda", "mps", "cpu") if self.seems_to_have(device))


class SubprocessInterpreter:
    """Asks in a subprocess, with a time limit; our own interpreter is asked in place where nothing can differ."""

    def devices(self, python: str, env: Mapping[str, str]) -> Mapping[str, bool]:
        """See :class:`Interpreter`."""
        return _ask([python, "-c", _ASK_DEVICES], env)

    def modules(self, python: str, env: Mapping[str, str], names: tuple[str, ...]) -> Mapping[str, bool]:
        """See :class:`Interpreter`; a module that our own interpreter lacks may still be on the run's PYTHONPATH."""
        if python == sys.executable and all(find_spec(name) is not None for name in names):
            return dict.fromkeys(names, True)
        return _ask([python, "-c", _ASK_MODULES, *names], env)


def this_machine() -> Machine:
    """The machine this process runs on."""
    affinity = getattr(os, "sched_getaffinity", None)  # macOS has none
    return Machine(
        system=platform.system(),
        architecture=platform.machine(),
        nvidia=any(Path(witness).exists() for witness in _NVIDIA_WITNESSES),
        cores=len(affinity(0)) if affinity else os.cpu_count() or 1,
        python=sys.executable,
        interpreter=SubprocessInterpreter(),
        gpus=gpus_of_this_machine,
        physical_cores=physical_cores_of_this_machine,
    )


def _ask(command: list[str], env: Mapping[str, str]) -> Mapping[str, bool]:
    """Run a question that prints one JSON object; the current folder is kept off its import path."""
    environment = {**env, "PYTHONSAFEPATH": "1"}
    try:
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ASK_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        answer = json.loads(done.stdout.strip().splitlines()[-1]) if done.returncode == 0 else {}
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired):
        return {}
    return {str(name): value is True for name, value in answer.items()} if isinstance(answer, dict) else {}


def is_python(word: str) -> bool:
    """Whether a command's first word is a Python interpreter."""
    return PurePath(word).name.startswith("python")


_STARTER = re.compile(
    r"env|\w*sh|script|nohup|time|nice|ionice|chrt|taskset|numactl|setsid|stdbuf|timeout|caffeinate|xvfb-run|make|just"
    r"|uvx?|pixi|conda|mamba|micromamba|mpirun|mpiexec|srun"
)


def may_start_python(program: str, cwd: Path, environ: Mapping[str, str]) -> bool:
    """Whether a command's first word is Python, a script, or made to start other programs; True where nobody knows."""
    if is_python(program) or _STARTER.fullmatch(PurePath(program).name):
        return True
    found = str(cwd / program) if "/" in program else shutil.which(program, path=environ.get("PATH"))
    try:
        with storage.open_file(found or "") as file:
            return file.read(2) == b"#!"
    except OSError:
        return True


def require_device(device: str, program: str, environ: Mapping[str, str], machine: Machine) -> None:
    """Refuse a device that this machine lacks; the run's own interpreter has the last word.

    Raises:
        UsageError: with the offer to launch on the CPU.
    """
    python = program if is_python(program) else machine.python
    if device == "auto" or machine.seems_to_have(device):
        return
    found = machine.interpreter.devices(python, environ)
    if found.get(device):
        return
    there = " and ".join(machine.usable_devices())
    unanswered = f"{python} has no torch to find a {device} device with, or did not answer within {ASK_SECONDS:.0f} s"
    missing = f"this machine has no {device} device that {python} can use"
    raise UsageError(
        f"{missing if found else unanswered} (there is: {there})",
        "launch with `--device cpu`, or `--device auto` to take what is there",
        field="device",
    )


def require_disk_space(folder: Path, least_bytes: int) -> None:
    """Refuse to start on a disk that is about to be full: a training's own print() ends it there.

    Raises:
        OperationError: there is less than ``least_bytes`` free.
    """
    existing = next((parent for parent in (folder, *folder.parents) if parent.is_dir()), Path("/"))
    free = shutil.disk_usage(existing).free
    if free < least_bytes:
        from .present import size

        raise OperationError(
            f"only {size(free)} are free on the disk of {folder}; the floor is {size(least_bytes)}",
            "free some space; a profile can lower the floor (`min_free_disk`)",
        )


def physical_cores_of_this_machine(cpus: Path = Path("/sys/devices/system/cpu")) -> int | None:
    """See :class:`Machine`; None where the system does not tell."""
    try:
        if sys.platform == "darwin":
            told = subprocess.check_output(["/usr/sbin/sysctl", "-n", "hw.perflevel0.physicalcpu"], text=True)
            return int(told)
        threads = (cpus / f"cpu{number}/topology/thread_siblings_list" for number in os.sched_getaffinity(0))
        return len({path.read_text() for path in threads})
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None


BUS_ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""Makes CUDA count as the driver and ``nvidia-smi`` do; by itself it calls the fastest card 0."""
_MINOR = re.compile(r"^Device Minor:\s*(\d+)", re.MULTILINE)
_UUID = re.compile(r"^GPU UUID:\s*(GPU-[\w-]+)", re.MULTILINE)
_PROC, _DEV = Path("/proc/driver/nvidia/gpus"), Path("/dev")


@dataclass(frozen=True, slots=True)
class VisibleGpus:
    """What a program could use: nothing where ``names`` is empty."""

    names: tuple[str, ...]
    env: Mapping[str, str]
    """What the names need beside them to mean these cards."""


@cache
def gpus_of_this_machine() -> tuple[str, ...]:
    """The UUID of every card in bus order; empty where nobody knows."""
    from .telemetry.sources.nvml import Nvml  # for queues of GPUs alone; a restart on the CPU asks for none

    return read_driver(_PROC, _DEV) or read_nvml(Nvml())


def read_driver(proc: Path, dev: Path) -> tuple[str, ...]:
    """What the Linux driver lists, one folder a card by bus address, as far as its device file is there to be opened.

    A container may list the cards of the whole host; those it was given are the ones with a device file.
    """
    found = []
    for folder in sorted(proc.glob("*")):
        try:
            text = (folder / "information").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        minor, uuid = _MINOR.search(text), _UUID.search(text)
        if minor and uuid and (dev / f"nvidia{minor[1]}").exists():
            found.append(uuid[1])
    return tuple(found)


def read_nvml(nvml: Nvml) -> tuple[str, ...]:
    """What NVML lists, for systems without the driver's folder (WSL); no answer where a card is lost: numbers shift."""
    from .telemetry.source import SourceError, SourceRequest

    try:
        cards = nvml.read(SourceRequest()).gpus
    except SourceError:
        return ()
    finally:
        nvml.close()
    uuids = tuple(card.uuid or "" for card in cards or ())
    return uuids if all(uuids) and [card.index for card in cards or ()] == list(range(len(uuids))) else ()


def visible_gpus(environ: Mapping[str, str], uuids: Sequence[str]) -> VisibleGpus | None:
    """What ``environ`` lets a CUDA program see of the cards ``uuids``; None where that cannot be said.

    As CUDA reads its variable (CUDA C++ Programming Guide, "CUDA Environment Variables"): a list of numbers, of
    beginnings of UUIDs or of ``MIG-...`` names that ends at the first one there is not; empty hides all.
    """
    value = environ.get(GPU_VARIABLE)
    if value is None:
        return VisibleGpus(tuple(str(number) for number in range(len(uuids))), BUS_ORDER) if uuids else None
    names = []
    for word in (part.strip() for part in value.split(",")):
        name = _known(word, uuids)
        if name is None:
            break
        names.append(name)
    if len(set(names)) < len(names):
        return None  # CUDA refuses a list that names a card twice
    if not names or not all(name in uuids for name in names):
        return VisibleGpus(tuple(names), {})
    # UUIDs as the numbers of their cards, so that two ways to name a card are one.
    return VisibleGpus(tuple(str(uuids.index(name)) for name in names), BUS_ORDER)


def _known(word: str, uuids: Sequence[str]) -> str | None:
    """The word, a UUID in full; None where it names no card."""
    if word.isdecimal():
        return str(int(word)) if not uuids or int(word) < len(uuids) else None
    if word.startswith("GPU-") and uuids:
        matching = [uuid for uuid in uuids if uuid.lower().startswith(word.lower())]
        return matching[0] if len(matching) == 1 else None
    return word if word.startswith(("GPU-", "MIG-")) else None
