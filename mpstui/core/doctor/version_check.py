"""Versions of torch, Python, NumPy and macOS against what is known to work together (docs/mps.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..diagnosis.preflight import LaunchPlan, Version, preflight, version
from .report import Finding, Status

# (from this torch on, macOS needed, what works then), newest last; read in the wheels, see docs/mps.md.
_ON_MPS: tuple[tuple[Version, Version, str], ...] = (
    ((2, 5), (0,), "fp16 autocast"),
    ((2, 6), (14,), "bfloat16 autocast"),
    ((2, 7), (14,), "torch.compile (usable from 2.8 on)"),
    ((2, 8), (0,), "GradScaler"),
)
# torch.compile reads byte code: Python, and the first torch that knows it (pytorch#123300, pytorch#156856).
_COMPILES: tuple[tuple[Version, Version], ...] = (((3, 14), (2, 10)), ((3, 13), (2, 6)), ((3, 12), (2, 4)))
_NUMPY_2_NEEDS: Version = (2, 3)
RECOMMENDED_TORCH = "2.8"


def judge_versions(torch: Mapping[str, Any] | None, system: Mapping[str, Any]) -> Iterator[Finding]:
    """What this combination cannot do; one line that says so when there is nothing.

    Args:
        torch: the examined torch: ``version``, and ``python`` and ``numpy`` of its interpreter.
        system: as ``system_facts`` tells it.
    """
    found = version(torch["version"]) if torch else None
    if torch is None or found is None:
        return
    mac = version(system["release"]) if system["system"] == "Darwin" else None
    lacking = [*_operating_system(found, mac), *_mps(found, mac), *_python(found, torch), *_numpy(found, torch)]
    yield from lacking
    if not lacking:
        beside = " and ".join(text for text in (_named("Python", torch), _named("NumPy", torch)) if text)
        yield Finding("versions", Status.OK, f"torch {torch['version']} works with {beside or 'what is beside it'}")


def _operating_system(torch: Version, mac: Version | None) -> Iterator[Finding]:
    for warning in preflight(LaunchPlan(device="mps", torch_version=torch, macos_version=mac)):
        yield Finding(f"versions_{warning.id}", Status.WARNING, warning.sentence, warning.remedy.text)


def _mps(torch: Version, mac: Version | None) -> Iterator[Finding]:
    if mac is None:
        return
    missing = [what for needed, macos, what in _ON_MPS if torch < needed or mac < macos]
    if missing:
        text = f"on MPS, torch {_dotted(torch)} on macOS {_dotted(mac)} has no {', no '.join(missing)}"
        advice = f"upgrade to torch {RECOMMENDED_TORCH} or newer (bfloat16 and torch.compile: macOS 14), or do without"
        yield Finding("versions_mps", Status.NOTE, text, advice)


def _python(torch: Version, facts: Mapping[str, Any]) -> Iterator[Finding]:
    python = version(facts.get("python"))
    needed = next((needed for since, needed in _COMPILES if python and python >= since), None)
    if python and needed and torch < needed:
        text = f"torch {_dotted(torch)} cannot compile on Python {_dotted(python[:2])}: torch.compile raises there"
        advice = f"upgrade to torch {_dotted(needed)}, take an older Python, or launch with TORCH_COMPILE_DISABLE=1"
        yield Finding("versions_compile", Status.NOTE, text, advice)


def _numpy(torch: Version, facts: Mapping[str, Any]) -> Iterator[Finding]:
    numpy = version(facts.get("numpy"))
    if numpy and numpy >= (2,) and torch < _NUMPY_2_NEEDS:
        text = f"torch {_dotted(torch)} was built for NumPy 1 and NumPy {_dotted(numpy)} is installed"
        yield Finding("versions_numpy", Status.WARNING, text, "install 'numpy<2', or torch 2.3 or newer")


def _named(name: str, facts: Mapping[str, Any]) -> str:
    found = facts.get(name.lower())
    return f"{name} {found}" if found else ""


def _dotted(numbers: Version) -> str:
    return ".".join(str(number) for number in numbers)
