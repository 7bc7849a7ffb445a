"""Asks an interpreter about its torch, each device in a process of its own: one that aborts ends only that."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..diagnosis.evidence import signal_name
from .report import Finding, Status

PROBE = Path(__file__).with_name("torch_probe.py")
TIMEOUT_SECONDS = 120.0
_LAST_WORDS = 300


@dataclass(frozen=True, slots=True)
class TorchExamination:
    """``torch`` and ``devices`` as the report shows them, and what follows from them."""

    torch: Mapping[str, Any] | None
    devices: Mapping[str, Mapping[str, Any]]
    findings: tuple[Finding, ...]


def examine_torch(python: str, environ: Mapping[str, str], *, system: str, train: bool) -> TorchExamination:
    """Import torch in ``python``, compute on every device it finds, with ``train`` also train there.

    Args:
        system: as ``platform.system()``: a Mac without MPS is worth a word, a Linux machine is not.
    """
    facts, failure = _probe(python, environ, "facts")
    if facts is None or "missing" in facts:
        return TorchExamination(None, {}, (_no_torch(python, facts, failure, train=train),))
    devices: dict[str, Mapping[str, Any]] = {}
    for device, found in facts.pop("devices").items():
        devices[device] = found
        if found["available"]:
            result, failure = _probe(python, environ, "test", device, *(["train"] if train else []))
            devices[device] = {**found, **(result or {"works": False, "error": failure})}
    findings = [Finding("torch", Status.OK, f"torch {facts['version']} in {python}")]
    findings += [finding for device in devices for finding in _judge(device, devices[device], system)]
    return TorchExamination(facts, devices, tuple(findings))


def _judge(device: str, found: Mapping[str, Any], system: str) -> Iterator[Finding]:
    if not found["available"]:
        yield from _unavailable(device, built=found["built"], system=system)
        return
    if not found["works"]:
        why = found.get("error") or f"its result is off by {found['largest_error']:.3g}"
        yield Finding(device, Status.PROBLEM, f"{device} is there and does not compute: {why}", _DEVICE_ADVICE[device])
        return
    name = f" ({found['name']})" if found["name"] else ""
    yield Finding(device, Status.OK, f"{device}{name} computes: a matrix product agrees with the CPU's")
    if "losses" in found:
        losses = " -> ".join(f"{loss:.4f}" for loss in found["losses"])
        status = Status.OK if found["loss_falls"] else Status.PROBLEM
        text = f"training on {device}: loss {losses}" + ("" if found["loss_falls"] else ", which does not fall")
        yield Finding(f"train_{device}", status, text, "" if found["loss_falls"] else _DEVICE_ADVICE[device])


def _unavailable(device: str, *, built: bool, system: str) -> Iterator[Finding]:
    if device == "mps" and system == "Darwin":
        if not built:
            yield Finding(
                "mps", Status.WARNING, "this torch was built without MPS", "use an arm64 Python and its wheel"
            )
        else:
            text = "torch was built with MPS and finds no device"
            yield Finding("mps", Status.WARNING, text, "macOS 14 is needed; virtual machines have no Metal device")
    elif device == "cuda" and built:
        text = "torch was built for CUDA and finds no device"
        yield Finding("cuda", Status.NOTE, text, "see `nvidia-smi`: a driver older than this CUDA is the usual reason")


_DEVICE_ADVICE = {
    "mps": "launch with --device cpu, and try another torch version",
    "cuda": "launch with --device cpu; see `nvidia-smi` for the driver",
    "cpu": "install torch again: this one cannot be trusted",
}


def _no_torch(python: str, facts: Mapping[str, Any] | None, failure: str, *, train: bool) -> Finding:
    status = Status.PROBLEM if train or facts is None else Status.WARNING
    if facts is None:
        return Finding("torch", status, f"torch cannot be imported in {python}: {failure}", "install it again")
    advice = f"{python} -m pip install 'mpstui[train]'; other programs may bring their own"
    return Finding("torch", status, f"{python} has no {facts['missing']}: the shipped trainers need it", advice)


def _probe(python: str, environ: Mapping[str, str], *words: str) -> tuple[dict[str, Any] | None, str]:
    """The probe's answer, or None and how it ended."""
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
    return (answer, "") if isinstance(answer, dict) else (None, _how_it_ended(done))


def _how_it_ended(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    last = lines[-1].strip()[:_LAST_WORDS] if lines else "no message"
    if done.returncode < 0:
        return f"ended by {signal_name(-done.returncode)}: {last}"
    return last if done.returncode else "its answer was not understood"
