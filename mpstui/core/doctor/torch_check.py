"""The doctor's checks of torch: does each device compute, do versions fit together, do OpenMP runtimes collide?"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..diagnosis.evidence import signal_name
from ..diagnosis.preflight import LaunchFacts, Version, preflight, version
from .report import CheckResult, Status

PROBE = Path(__file__).with_name("torch_probe.py")
TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class TorchExamination:
    """The facts ``torch`` and ``devices`` of the report, and the results drawn from them."""

    torch: Mapping[str, Any] | None
    devices: Mapping[str, Mapping[str, Any]]
    results: tuple[CheckResult, ...]


def examine_torch(python: str, environ: Mapping[str, str], *, system: str, train: bool) -> TorchExamination:
    """Import torch in ``python``, compute on every device it finds, and with ``train`` also train there.

    Args:
        system: as ``platform.system()``; missing MPS is only reported on a Mac.
    """
    facts, failure = _probe(python, environ, "facts")
    if facts is None:
        text = f"torch cannot be imported in {python}: {failure}"
        return TorchExamination(None, {}, (CheckResult("torch", Status.PROBLEM, text, "reinstall it"),))
    if "missing" in facts:
        text = f"{python} has no {facts['missing']}: the shipped trainers need it"
        advice = f"{python} -m pip install 'mpstui[train]'; a program of your own may use another interpreter"
        status = Status.PROBLEM if train else Status.WARNING
        return TorchExamination(None, {}, (CheckResult("torch", status, text, advice),))
    devices: dict[str, Mapping[str, Any]] = {}
    for device, found in facts.pop("devices").items():
        devices[device] = found
        if found["available"]:
            result, failure = _probe(python, environ, "test", device, *(["train"] if train else []))
            devices[device] = {**found, **(result or {"works": False, "error": failure})}
    results = [CheckResult("torch", Status.OK, f"torch {facts['version']} in {python}")]
    results += [result for device in devices for result in _judge(device, devices[device], system)]
    # A training that is slower than expected is often running on the CPU unnoticed.
    if devices and not any(devices.get(name, {}).get("available") for name in ("mps", "cuda")):
        results.append(CheckResult("accelerator", Status.NOTE, "no accelerator found: trainings run on the CPU"))
    return TorchExamination(facts, devices, tuple(results))


def _judge(device: str, found: Mapping[str, Any], system: str) -> Iterator[CheckResult]:
    if not found["available"]:
        if device == "mps" and system == "Darwin":
            text, advice = "this torch was built without MPS", "use the wheel for an arm64 Python"
            if found["built"]:
                text = "torch was built with MPS but finds no device"
                advice = "needs macOS 14; virtual machines have no Metal device"
            yield CheckResult("mps", Status.WARNING, text, advice)
        elif device == "cuda" and found["built"]:
            advice = "see `nvidia-smi`: the usual reason is a driver older than this CUDA"
            yield CheckResult("cuda", Status.NOTE, "torch was built for CUDA but finds no device", advice)
        return
    if not found["works"]:
        why = found.get("error") or f"its result is off by {found['largest_error']:.3g}"
        yield CheckResult(
            device, Status.PROBLEM, f"{device} is present but does not compute: {why}", _DEVICE_ADVICE[device]
        )
        return
    name = f" ({found['name']})" if found["name"] else ""
    yield CheckResult(device, Status.OK, f"{device}{name} computes: a matrix product matches the CPU's")
    if "losses" in found:
        losses = " -> ".join(f"{loss:.4f}" for loss in found["losses"])
        status = Status.OK if found["loss_falls"] else Status.PROBLEM
        text = f"training on {device}: loss {losses}" + ("" if found["loss_falls"] else ", which does not fall")
        yield CheckResult(f"train_{device}", status, text, "" if found["loss_falls"] else _DEVICE_ADVICE[device])


_DEVICE_ADVICE = {
    "mps": "launch with --device cpu, and try another torch version",
    "cuda": "launch with --device cpu; see `nvidia-smi` for the driver",
    "cpu": "reinstall torch: this one cannot be trusted",
}


def _probe(python: str, environ: Mapping[str, str], *words: str) -> tuple[dict[str, Any] | None, str]:
    """Return the probe's answer, or None and the reason why there is none."""
    command = [python, str(PROBE), *words]
    try:
        done = subprocess.run(
            command,
            env={**environ, "PYTHONSAFEPATH": "1"},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return None, f"no answer within {TIMEOUT_SECONDS:.0f} s"
    except OSError as error:
        return None, f"{python} cannot be started: {error.strerror}"
    try:
        answer = json.loads(done.stdout.strip().splitlines()[-1]) if done.returncode == 0 else None
    except (ValueError, IndexError):
        answer = None
    if isinstance(answer, dict):
        return answer, ""
    last = next((line.strip()[:300] for line in reversed(done.stderr.splitlines()) if line.strip()), "no message")
    if done.returncode < 0:
        return None, f"ended by {signal_name(-done.returncode)}: {last}"
    return None, last if done.returncode else "its answer was not understood"


# (torch needed, macOS needed, for what), newest last; taken from the wheels, see docs/mps.md.
_ON_MPS: tuple[tuple[Version, Version, str], ...] = (
    ((2, 5), (0,), "fp16 autocast"),
    ((2, 6), (14,), "bfloat16 autocast"),
    ((2, 7), (14,), "torch.compile (usable from 2.8 on)"),
    ((2, 8), (0,), "GradScaler"),
)
# torch.compile reads bytecode: (Python, first torch that knows its bytecode), see pytorch#123300, pytorch#156856.
_COMPILES: tuple[tuple[Version, Version], ...] = (((3, 14), (2, 10)), ((3, 13), (2, 6)), ((3, 12), (2, 4)))
RECOMMENDED_TORCH = "2.8"


def judge_versions(torch: Mapping[str, Any] | None, system: Mapping[str, Any]) -> Iterator[CheckResult]:
    """Yield what these versions cannot do together, or else that they work together.

    Args:
        torch: the examined torch: ``version``, and ``python`` and ``numpy`` of its interpreter.
        system: as returned by `machine_check.system_facts`.
    """
    found = version(torch["version"]) if torch else None
    if torch is None or found is None:
        return
    mac = version(system["release"]) if system["system"] == "Darwin" else None
    lacking = list(_lacking(found, version(torch.get("python")), version(torch.get("numpy")), mac))
    yield from lacking
    if not lacking:
        beside = [f"{name} {torch[name.lower()]}" for name in ("Python", "NumPy") if torch.get(name.lower())]
        with_what = " and ".join(beside) or "what is beside it"
        yield CheckResult("versions", Status.OK, f"torch {torch['version']} works with {with_what}")


def _lacking(
    torch: Version, python: Version | None, numpy: Version | None, mac: Version | None
) -> Iterator[CheckResult]:
    for warning in preflight(LaunchFacts(device="mps", torch_version=torch, macos_version=mac)):
        yield CheckResult(f"versions_{warning.id}", Status.WARNING, warning.sentence, warning.remedy.text)
    missing = [what for needed, macos, what in _ON_MPS if mac and (torch < needed or mac < macos)]
    if mac and missing:
        text = f"on MPS, torch {_dotted(torch)} on macOS {_dotted(mac)} has no {', no '.join(missing)}"
        advice = f"upgrade to torch {RECOMMENDED_TORCH} or newer (bfloat16 and torch.compile: macOS 14), or do without"
        yield CheckResult("versions_mps", Status.NOTE, text, advice)
    needed = next((needed for since, needed in _COMPILES if python and python >= since), None)
    if python and needed and torch < needed:
        text = f"torch {_dotted(torch)} cannot compile on Python {_dotted(python[:2])}: torch.compile raises there"
        advice = f"upgrade to torch {_dotted(needed)}, take an older Python, or launch with TORCH_COMPILE_DISABLE=1"
        yield CheckResult("versions_compile", Status.NOTE, text, advice)
    if numpy and numpy >= (2,) and torch < (2, 3):
        text = f"torch {_dotted(torch)} was built for NumPy 1 and NumPy {_dotted(numpy)} is installed"
        yield CheckResult("versions_numpy", Status.WARNING, text, "install 'numpy<2', or torch 2.3 or newer")


def _dotted(numbers: Version) -> str:
    return ".".join(str(number) for number in numbers)


# The file name of a runtime: libomp.dylib (LLVM), libiomp5.so (Intel), libgomp-a34b3233.so.1 (GNU, in a wheel).
_RUNTIME = re.compile(r"lib(?P<family>i?omp|gomp)\d*(?:-[0-9a-f]+)?\.(?:\d+\.)*(?:dylib|so)(?:\.\d+)*")
# Where wheels keep their libraries: torch/lib, sklearn/.dylibs, scikit_learn.libs, faiss/.dylibs, functorch/.dylibs.
_FOLDERS_OF_WHEELS = ("*/lib", "*/.dylibs", "*/.libs", "*.libs", "*")
_BESIDE_THE_SYSTEM = ("opt/homebrew/opt/libomp/lib", "usr/local/opt/libomp/lib")


@dataclass(frozen=True, slots=True)
class Runtime:
    """One OpenMP library."""

    path: str
    family: str
    """``omp`` (LLVM), ``iomp`` (Intel) or ``gomp`` (GNU)."""
    owner: str
    """The package that it belongs to."""


def openmp_runtimes(packages: Path, prefix: Path, root: Path = Path("/")) -> tuple[Runtime, ...]:
    """Return every OpenMP library that a program in this environment can load, each file once.

    Args:
        packages: the environment's site-packages.
        prefix: the environment's folder; conda keeps libraries in its ``lib``.
        root: the file system's root, to find Homebrew's libomp.
    """
    places = [
        (folder, folder.relative_to(packages).parts[0].removesuffix(".libs"))
        for pattern in _FOLDERS_OF_WHEELS
        for folder in sorted(packages.glob(pattern))
    ]
    places += [(prefix / "lib", "the environment"), *((root / place, "Homebrew") for place in _BESIDE_THE_SYSTEM)]
    found: dict[Path, Runtime] = {}
    for folder, owner in places:
        for path in sorted(folder.glob("*omp*")):
            match = _RUNTIME.fullmatch(path.name)
            if match and path.exists():  # may be a dangling symlink
                found.setdefault(path.resolve(), Runtime(str(path), match["family"], owner))
    return tuple(found.values())


def judge_openmp(runtimes: Sequence[Runtime]) -> Iterator[CheckResult]:
    """Warn about runtimes that collide. GNU's does not look for others, so several copies of it are fine."""
    # LLVM's and Intel's share a code base: the second one to be loaded ends the process with OMP Error #15.
    kmp = [one for one in runtimes if one.family in ("omp", "iomp")]
    names = ", ".join(f"{one.owner} ({Path(one.path).name})" for one in kmp)
    if len(kmp) > 1:
        text = f"{len(kmp)} copies of the OpenMP runtime are installed: {names}"
        advice = (
            "a program that loads two of them can end with OMP Error #15 or crash in a barrier: install these packages "
            "from one source (all by conda, or all by pip), or launch with OMP_NUM_THREADS=1; KMP_DUPLICATE_LIB_OK "
            "only hides it"
        )
        yield CheckResult("openmp", Status.WARNING, text, advice)
    elif kmp:
        yield CheckResult("openmp", Status.OK, f"one OpenMP runtime of LLVM or Intel: {names}")


def environment_of(torch: Mapping[str, Any] | None) -> tuple[Path, Path] | None:
    """Return site-packages and prefix of the examined torch's environment; None without torch."""
    if torch is None or not torch.get("file") or not torch.get("prefix"):
        return None
    return Path(torch["file"]).parent.parent, Path(torch["prefix"])
