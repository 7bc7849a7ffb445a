"""JSON lines: LLaMA-Factory's trainer_log.jsonl, mmcv's .log.json, mmengine's vis_data, detectron2's metrics.json,
NVIDIA's DLLogger, mpstui's own metrics.jsonl."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from . import SNIFF_BYTES, GrowingLines

_LOOKED_AT = 20


class JsonLines(GrowingLines):
    """One flat object per line."""

    name = "json lines"
    suffixes = (".jsonl", ".log.json")

    @classmethod
    def recognises(cls, path: Path, start: bytes) -> bool:
        """True if every line in ``start`` begins a JSON object and the first one is complete."""
        lines = [line for line in start.removeprefix(b"\xef\xbb\xbf").split(b"\n")[:_LOOKED_AT] if line.strip()]
        if not lines or not all(line.lstrip().startswith((b"{", b"DLLL {")) for line in lines):
            return False
        if len(start) >= SNIFF_BYTES and b"\n" not in start:
            return path.suffix == ".jsonl"  # a first line longer than `start`
        first = parse_object(lines[0])
        return first is not None and (len(lines) > 1 or b"\n" in start or path.suffix == ".jsonl")

    def record(self, line: bytes) -> Mapping[str, object] | None:
        """Return the object; DLLogger's ``step`` is ``[epoch, iteration]``, or ``[epoch]`` at the end of an epoch."""
        record = parse_object(line) or {}
        step = record.get("step")
        if isinstance(step, list):
            record = {key: value for key, value in record.items() if key != "step"}
            record |= dict(zip(("epoch", "step"), step, strict=False))
        return record

    def is_whole(self, line: bytes) -> bool:
        return parse_object(line) is not None


def parse_object(line: bytes) -> dict[str, object] | None:
    """Return the JSON object of a line (NaN and Infinity allowed), None for anything else."""
    text = line.strip().removeprefix(b"\xef\xbb\xbf").removeprefix(b"DLLL ")
    if not text.startswith(b"{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


FILE = JsonLines
