"""Images and texts as Weights & Biases keeps them: files beside the log, and their descriptions in the rows."""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..runs.gallery import Item
from .trackers import LoggedRow, TrackedRun, image_of

Described = Mapping[tuple[str, ...], str]
"""JSON values by their nested names."""
_FOLDER = "media/images"
_ODD = re.compile(r"[^\w.-]+")


def rows_with_media(run: TrackedRun, files: Path) -> Iterator[tuple[LoggedRow, Described]]:
    """Yield the rows of a run, each with what was logged at its step; images are written below ``files``."""
    rows = {row.step: row for row in run.rows}
    told = [int(row.values.get("step", row.step)) if run.counts_rows else row.step for row in run.rows]
    held: dict[int, dict[tuple[str, bool], list[Item]]] = {}
    for item in run.gallery.items():
        at = _row_of(run, item, told)
        rows.setdefault(at, LoggedRow(at, item.time or None, {}))
        held.setdefault(at, {}).setdefault((item.name, item.text is not None), []).append(item)
    known = {name for row in run.rows for name in row.values}
    for step in sorted(rows):
        described: dict[tuple[str, ...], str] = {}
        for (name, is_text), items in held.get(step, {}).items():
            own = f"{name} (logged)" if name in known else name
            if is_text:
                described[own,] = json.dumps("\n".join(item.text or "" for item in items))
            else:
                described |= _images(run, own, step, items, files)
        yield rows[step], described


def _row_of(run: TrackedRun, item: Item, told: Sequence[int]) -> int:
    """The step of the row that an item belongs to; a new row if rows stand for steps and none has this one."""
    if item.step is None:
        times = [row.time or 0.0 for row in run.rows]
        return run.rows[max(0, bisect_right(times, item.time) - 1)].step if run.rows else 0
    if not run.counts_rows:
        return item.step
    return max((at for at, step in enumerate(told) if step <= item.step), default=0)


def _images(run: TrackedRun, name: str, step: int, items: Sequence[Item], files: Path) -> dict[tuple[str, ...], str]:
    """Write the images of one name, and return the fields that describe them."""
    (files / _FOLDER).mkdir(parents=True, exist_ok=True)
    told: list[dict[str, object]] = []
    for found in filter(None, (image_of(run, item) for item in items)):
        digest = hashlib.sha256(found.data).hexdigest()
        ending = {"jpeg": "jpg"}.get(found.kind, found.kind)
        file = f"{_FOLDER}/{_ODD.sub('_', name)[:80]}_{step}_{digest[:20]}.{ending}"
        (files / file).write_bytes(found.data)
        size = {"width": found.width, "height": found.height, "format": ending}
        told.append({**size, "path": file, "sha256": digest, "size": len(found.data)})
    if not told:
        return {}
    described = {**told[0], "_type": "image-file"}
    if len(told) > 1:
        described = {name: told[0][name] for name in ("width", "height", "format")}
        described |= {"_type": "images/separated", "count": len(told), "filenames": [one["path"] for one in told]}
    return {(name, part): json.dumps(value) for part, value in described.items()}
