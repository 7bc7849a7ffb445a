"""The NVIDIA GPUs of this machine, and which of them a value of ``CUDA_VISIBLE_DEVICES`` leaves to be seen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..wire.records import GPU_VARIABLE
from .telemetry.source import Request, SourceError
from .telemetry.sources.nvml import Nvml

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
    try:
        cards = nvml.read(Request()).gpus
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
    numbers = _numbers(names, uuids)
    return VisibleGpus(tuple(numbers), BUS_ORDER) if numbers else VisibleGpus(tuple(names), {})


def _known(word: str, uuids: Sequence[str]) -> str | None:
    """The word, a UUID in full; None where it names no card."""
    if word.isdecimal():
        return str(int(word)) if not uuids or int(word) < len(uuids) else None
    if word.startswith("GPU-") and uuids:
        meant = [uuid for uuid in uuids if uuid.lower().startswith(word.lower())]
        return meant[0] if len(meant) == 1 else None
    return word if word.startswith(("GPU-", "MIG-")) else None


def _numbers(names: Sequence[str], uuids: Sequence[str]) -> list[str]:
    """UUIDs as the numbers of their cards, so that two ways to name a card are one; empty for any other list."""
    return [str(uuids.index(name)) for name in names] if names and all(name in uuids for name in names) else []
