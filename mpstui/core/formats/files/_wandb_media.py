"""Non-numeric values in a row of Weights & Biases: texts, and the files of images and tables that it names.

Such a value is described by separate named items (``_type``, ``path``, ...), by older clients in one JSON object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from ..media import Media
from ..protobuf import fields
from ._wandb_tables import KINDS, table_text

# A non-numeric value of an item (field 16): a text, or an older client's description.
_BESIDE_NUMBERS = re.compile(rb'\x82\x01[\x80-\xff]{0,4}[\x00-\x7f](?:"(?!-?Infinity"|NaN")|\{)')
_ITEMS, _KEYS, _VALUE_JSON = 1, (1, 2), 16
_LONGEST = 1 << 18
_SEVERAL = "images/separated"
_MOST_OF_ONE = 100


def may_hold_media(payload: bytes) -> bool:
    """True if a row may hold more than numbers."""
    return _BESIDE_NUMBERS.search(payload) is not None


def take_media(media: Media, payload: bytes, folder: Path, step: float, time: float) -> None:
    """Add the non-numeric values of a row to ``media``.

    Args:
        folder: the folder that paths in the values are relative to; paths that lead outside are ignored.

    Raises:
        IndexError: the row is damaged.
    """
    texts: dict[tuple[str, ...], str] = {}
    described: dict[tuple[str, ...], dict[str, Any]] = {}
    for names, text in _values(payload):
        if names[0].startswith("_") or text[:1] not in b'"{[' or len(text) > _LONGEST:
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and isinstance(value.get("_type"), str):
            described[names] = value
        elif names[1:] and (names[-1] == "_type" or names[-1] in ("path", "filenames")):
            described.setdefault(names[:-1], {})[names[-1]] = value
        elif isinstance(value, str):
            texts[names] = value
    is_described = {names for names, one in described.items() if "_type" in one}
    for names, value in texts.items():
        if not any(names[:depth] in is_described for depth in range(1, len(names))):
            media.add_text(_name(names), step, time, value)
    for names, one in described.items():
        if one.get("_type") in KINDS:
            media.add_text(_name(names), step, time, table_text(_inside(folder, one.get("path"))))
        for path in _images(one):
            if (inside := _inside(folder, path)) is not None:
                media.add_image(_name(names), step, time, str(inside))


def _values(payload: bytes) -> Iterator[tuple[tuple[str, ...], bytes]]:
    """Yield each value of a row as its names (the parts of its key) and JSON text."""
    for number, item in fields(payload):
        if number == _ITEMS and isinstance(item, bytes):
            parts = [(kind, part) for kind, part in fields(item) if isinstance(part, bytes)]
            names = tuple(part.decode("utf-8", "replace") for kind, part in parts if kind in _KEYS)
            if names:
                yield from ((names, part) for kind, part in parts if kind == _VALUE_JSON)


def _name(names: tuple[str, ...]) -> str:
    return ".".join(part for part in names if part)


def _images(described: dict[str, Any]) -> list[object]:
    """Return the paths of the images that a value describes."""
    if described.get("_type") == _SEVERAL:
        several = described.get("filenames")
        return several[:_MOST_OF_ONE] if isinstance(several, list) else []
    return [described.get("path")] if described.get("_type") == "image-file" else []


def _inside(folder: Path, path: object) -> Path | None:
    if not isinstance(path, str) or not path or "\0" in path:
        return None
    told = PurePosixPath(path.replace("\\", "/"))
    return None if told.is_absolute() or ".." in told.parts else folder / told
