"""What TensorBoard's events hold besides scalars: images, texts, and the arguments of a run (hparams).

Messages: tensorflow/core/framework/summary.proto, tensor.proto, and api.proto of the hparams plugin. Older writers keep
an image as such, newer ones as a tensor of strings: width, height, then one file per image.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from pathlib import Path

from .media import Media
from .protobuf import fields
from .told import MOST_SETTINGS, setting_text

OF_ARGUMENTS = re.compile(r"\d{9,11}\.\d{1,9}")
"""A folder beside a run's event files, named after the time: PyTorch puts its arguments there (``add_hparams``)."""
LARGEST_RECORD = 9 << 20
"""In bytes; larger images are not shown."""
_TAG, _IMAGE, _TENSOR, _METADATA = 1, 4, 8, 9
_STRINGS, _STRING_VALUE = 7, 8
_SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8", b"GIF8")
_MOST_OF_ONE = 100
_OF_TEXTS = "/text_summary"
"""The suffix that PyTorch adds to the names of texts."""


class Beside:
    """What the event files of one run hold besides scalars."""

    def __init__(self) -> None:
        self.media = Media()
        self.settings: dict[str, str] = {}

    def take(self, event: bytes, value: bytes, file: Path, at: int, step: int, time: float) -> None:
        """Take in one value that is not a scalar.

        Args:
            value: a part of ``event``, which begins in ``file`` at ``at``.

        Raises:
            IndexError, struct.error: the value is damaged.
        """
        parts = {number: part for number, part in fields(value) if isinstance(part, bytes)}
        name = parts.get(_TAG, b"").decode("utf-8", "replace")
        plugin, content = _plugin(parts.get(_METADATA, b""))
        if plugin == "hparams":
            self.settings |= _arguments(content, MOST_SETTINGS - len(self.settings))
            return
        strings = _strings(parts.get(_TENSOR, b""))
        images = [part for number, part in fields(parts.get(_IMAGE, b"")) if number == _IMAGE]
        images += [one for one in strings if one.startswith(_SIGNATURES)]
        for image in images[:_MOST_OF_ONE]:
            if isinstance(image, bytes) and image:  # an earlier copy of the same bytes is the same image
                self.media.add_image(name, step, time, str(file), at + event.find(image), len(image))
        if strings and not images and plugin in ("", "text"):
            said = b"\n".join(strings[:_MOST_OF_ONE]).decode("utf-8", "replace")
            self.media.add_text(name.removesuffix(_OF_TEXTS), step, time, said)


def _plugin(metadata: bytes) -> tuple[str, bytes]:
    """Return the name of the plugin that shows a value, and the content it keeps there."""
    told = next((part for number, part in fields(metadata) if number == 1), b"")
    parts = dict(fields(told if isinstance(told, bytes) else b""))
    name, content = parts.get(1, b""), parts.get(2, b"")
    if not isinstance(name, bytes) or not isinstance(content, bytes):
        return "", b""
    return name.decode("utf-8", "replace"), content


def _strings(tensor: bytes) -> list[bytes]:
    """Return the strings of a tensor, if it is one of strings."""
    found = list(fields(tensor))
    is_text = (1, _STRINGS) in found
    return [part for number, part in found if is_text and number == _STRING_VALUE and isinstance(part, bytes)]


def _arguments(content: bytes, most: int) -> Mapping[str, str]:
    """Return the arguments of a run from the message that starts its session."""
    found: dict[str, str] = {}
    for number, start in fields(content):
        for kind, pair in fields(start) if number == 3 and isinstance(start, bytes) else ():
            if kind == 1 and isinstance(pair, bytes) and len(found) < most:
                parts = dict(fields(pair))
                name, value = parts.get(1, b""), parts.get(2, b"")
                if isinstance(name, bytes) and isinstance(value, bytes):
                    found[name.decode("utf-8", "replace")] = _setting(value)
    return found


def _setting(value: bytes) -> str:
    """Return the text of a ``google.protobuf.Value``."""
    number, held = next(fields(value), (1, 0))
    if number == 2 and isinstance(held, bytes):
        found = struct.unpack("<d", held)[0]
        return setting_text(int(found) if math.isfinite(found) and found == int(found) else found)
    if number == 3 and isinstance(held, bytes):
        return setting_text(held.decode("utf-8", "replace"))
    return setting_text(bool(held) if number == 4 else None)
