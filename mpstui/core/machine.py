"""The devices of this machine: by a quick check, and by asking the run's interpreter if that finds none."""

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
"""Accepted values; ``auto`` takes CUDA, else MPS, else CPU."""
ASK_SECONDS = 60.0
"""Loading torch can take half a minute on a busy machine or from a cold network file system."""
INSTALLED_TRAINER = "mpstui_trainer"
BUNDLED = "vendor"
"""The folder next to our packages in which a bundle keeps third-party ones."""
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
    """Answers questions about a Python interpreter, given the environment that a run would have."""

    def devices(self, python: str, env: Mapping[str, str]) -> Mapping[str, bool]:
        """Return which devices its torch can use; empty if unknown (no torch, or no answer in time)."""
        ...

    def modules(self, python: str, env: Mapping[str, str], names: tuple[str, ...]) -> Mapping[str, bool]:
        """Return which modules it can import; empty if unknown."""
        ...


def trainer_module() -> str:
    """Return the import name of the shipped trainers, which ``{trainer}`` in a profile stands for.

    A wheel must not claim the name ``trainer``, which other packages install; in a checkout it is a folder.
    """
    return INSTALLED_TRAINER if (Path(__file__).parents[2] / INSTALLED_TRAINER).is_dir() else "trainer"


def bundled_trainers() -> Path | None:
    """Return the folder of the shipped trainers in a bundle sent to another machine; None if this is not a bundle."""
    root = Path(__file__).parents[2]
    return root if (root / BUNDLED).is_dir() else None


def with_trainers(environ: Mapping[str, str]) -> dict[str, str]:
    """Return ``environ`` with PYTHONPATH extended so that a bundle's trainers are found."""
    parts = (str(bundled_trainers() or ""), environ.get("PYTHONPATH", ""))
    path = os.pathsep.join(part for part in parts if part)
    return {**environ, "PYTHONPATH": path} if path else dict(environ)


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that a run would start on."""

    system: str
    """As ``platform.system()``: Darwin, Linux."""
    architecture: str
    """As ``platform.machine()``: arm64, x86_64."""
    nvidia: bool
    cores: int
    """Number of logical cores that this process may use."""
    python: str
    """The interpreter that runs mpstui: what ``{python}`` means unless a profile names another."""
    interpreter: Interpreter
    gpus: Callable[[], Sequence[str]] = tuple
    """Returns the UUIDs of the NVIDIA GPUs in bus order; empty if unknown. Called only if a queue needs them."""
    physical_cores: Callable[[], int | None] = lambda: None
    """Returns the number of physical cores that this process may use (on Apple silicon, performance cores only)."""

    def seems_to_have(self, device: str) -> bool:
        """Guess from platform and driver files, within microseconds; the run's interpreter may still find more."""
        if device == "mps":
            return self.system == "Darwin" and self.architecture == "arm64"
        return self.nvidia if device == "cuda" else True

    def has(self, device: str, python: str, env: Mapping[str, str]) -> bool:
        """True if a run of ``python`` with ``env`` finds the device; asks that interpreter before returning False."""
        return self.seems_to_have(device) or self.interpreter.devices(python, env).get(device, False)

    def usable_devices(self) -> tuple[str, ...]:
        """Return the devices that the quick check finds, best first."""
        return tuple(device for device in ("cuda", "mps", "cpu") if self.seems_to_have(device))


class SubprocessInterpreter:
    """Asks in a subprocess with a time limit, or in this process if the answer cannot differ."""

    def devices(self, python: str, env: Mapping[str, str]) -> Mapping[str, bool]:
        """See :class:`Interpreter`."""
        return _ask([python, "-c", _ASK_DEVICES], env)

    def modules(self, python: str, env: Mapping[str, str], names: tuple[str, ...]) -> Mapping[str, bool]:
        """See :class:`Interpreter`; a module that our own interpreter lacks may still be on the run's PYTHONPATH."""
        if python == sys.executable and all(find_spec(name) is not None for name in names):
            return dict.fromkeys(names, True)
        return _ask([python, "-c", _ASK_MODULES, *names], env)


def this_machine() -> Machine:
    """Describe the machine that this process runs on."""
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
    """Run a command that prints one JSON object, with the current folder kept off its import path."""
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
    """True if a command's first word is a Python interpreter."""
    return PurePath(word).name.startswith("python")


_STARTER = re.compile(
    r"env|\w*sh|script|nohup|time|nice|ionice|chrt|taskset|numactl|setsid|stdbuf|timeout|caffeinate|xvfb-run|make|just"
    r"|uvx?|pixi|conda|mamba|micromamba|mpirun|mpiexec|srun"
)


def may_start_python(program: str, cwd: Path, environ: Mapping[str, str]) -> bool:
    """True if a command's first word is Python, a script or a launcher of other programs, or cannot be examined."""
    if is_python(program) or _STARTER.fullmatch(PurePath(program).name):
        return True
    found = str(cwd / program) if "/" in program else shutil.which(program, path=environ.get("PATH"))
    try:
        with storage.open_file(found or "") as file:
            return file.read(2) == b"#!"
    except OSError:
        return True


def require_device(device: str, program: str, environ: Mapping[str, str], machine: Machine) -> None:
    """Refuse a device that this machine lacks; the run's own interpreter decides.

    Raises:
        UsageError: with a hint to launch on the CPU.
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
    """Refuse to start on a disk that is nearly full: there, a mere print() can end a training.

    Raises:
        OperationError: less than ``least_bytes`` are free.
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
    """See :class:`Machine`; None if the system does not say."""
    try:
        if sys.platform == "darwin":
            told = subprocess.check_output(["/usr/sbin/sysctl", "-n", "hw.perflevel0.physicalcpu"], text=True)
            return int(told)
        threads = (cpus / f"cpu{number}/topology/thread_siblings_list" for number in os.sched_getaffinity(0))
        return len({path.read_text() for path in threads})
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None


BUS_ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""Makes CUDA number GPUs like the driver and ``nvidia-smi``; by default, the fastest one is 0."""
_MINOR = re.compile(r"^Device Minor:\s*(\d+)", re.MULTILINE)
_UUID = re.compile(r"^GPU UUID:\s*(GPU-[\w-]+)", re.MULTILINE)
_PROC, _DEV = Path("/proc/driver/nvidia/gpus"), Path("/dev")


@dataclass(frozen=True, slots=True)
class VisibleGpus:
    """The GPUs that a program can use; none if ``names`` is empty."""

    names: tuple[str, ...]
    env: Mapping[str, str]
    """Variables that must be set for the names to mean these GPUs."""


@cache
def gpus_of_this_machine() -> tuple[str, ...]:
    """Return the UUID of every GPU in bus order; empty if unknown."""
    from .telemetry.sources.nvml import Nvml  # imported late: only GPU queues need it

    return read_driver(_PROC, _DEV) or read_nvml(Nvml())


def read_driver(proc: Path, dev: Path) -> tuple[str, ...]:
    """Return the UUIDs of the GPUs that the Linux driver lists (a folder each, by bus address) and that have a device
    file.

    A container may list the GPUs of the whole host; only those assigned to it have a device file.
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
    """Return the UUIDs that NVML lists, for systems without the driver's folder (WSL); empty if a GPU is missing,
    since the numbers would shift."""
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
    """Return which of the GPUs ``uuids`` a CUDA program sees under ``environ``; None if that is unknown.

    Follows CUDA's own rules (CUDA C++ Programming Guide, "CUDA Environment Variables"): a list of numbers, UUID
    prefixes or ``MIG-...`` names, cut off at the first that does not exist; an empty list hides all.
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
        return None  # CUDA refuses a list that names a GPU twice
    if not names or not all(name in uuids for name in names):
        return VisibleGpus(tuple(names), {})
    # Turn UUIDs into numbers, so that a GPU has only one name.
    return VisibleGpus(tuple(str(uuids.index(name)) for name in names), BUS_ORDER)


def _known(word: str, uuids: Sequence[str]) -> str | None:
    """Return the word, with a UUID prefix completed; None if it names no GPU."""
    if word.isdecimal():
        return str(int(word)) if not uuids or int(word) < len(uuids) else None
    if word.startswith("GPU-") and uuids:
        matching = [uuid for uuid in uuids if uuid.lower().startswith(word.lower())]
        return matching[0] if len(matching) == 1 else None
    return word if word.startswith(("GPU-", "MIG-")) else None
