"""Files of trackers as these write them, made by hand: transaction logs of Weights & Biases, TensorBoard's events."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpstui.core.formats.files.tensorboard import masked_crc32c

BLOCK = 1 << 15
START = 1_700_000_000


def varint(value: int) -> bytes:
    out = bytearray()
    value &= (1 << 64) - 1
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def item(names: Sequence[str], value: Any, *, plain_key: bool = False) -> bytes:
    keys = [field(1, names[0])] if plain_key else [field(2, name) for name in names]
    return b"".join([*keys, field(16, json.dumps(value))])


def history(step: int, values: Mapping[str, Any], moment: float | None = None) -> bytes:
    """A row; its items begin at another name each time, as the client's do."""
    told = {**values, "_step": step, "_timestamp": START + step if moment is None else moment, "_runtime": step}
    turn = step % len(told)
    pairs = [*told.items()][turn:] + [*told.items()][:turn]
    parts = []
    for name, value in pairs:
        inner = value.items() if isinstance(value, dict) else [(None, value)]
        parts += [field(1, item([name] if key is None else [name, key], one)) for key, one in inner]
    return field(2, b"".join(parts) + field(2, field(1, step) if step else b""))


def stamp(moment: float) -> bytes:
    return field(1, int(moment)) + field(2, int(moment % 1 * 1e9))


def stats(moment: float, values: Mapping[str, float]) -> bytes:
    items = (field(3, field(1, name) + field(16, json.dumps(value))) for name, value in values.items())
    return field(7, field(2, stamp(moment)) + b"".join(items))


def run(
    name: str, config: Mapping[str, Any], tags: Sequence[str] = (), notes: str = "", *, started: float = START
) -> bytes:
    settings = b"".join(field(1, field(1, key) + field(16, json.dumps(value))) for key, value in config.items())
    words = b"".join(field(10, tag) for tag in tags)
    told = field(1, "abc123") + field(3, "cifar") + field(4, settings) + field(8, name) + field(9, notes) + words
    return field(17, told + field(17, stamp(started)))


def exited(code: int, runtime: int = 60) -> bytes:
    return field(18, field(1, code) + field(2, runtime))


def environment(program: str, args: Sequence[str]) -> bytes:
    return field(26, b"".join(field(5, word) for word in args) + field(6, program))


def counted(records: Sequence[bytes], first: int = 1) -> list[bytes]:
    """Records with their numbers in front."""
    return [field(1, number) + record for number, record in enumerate(records, first)]


def framed(records: Sequence[bytes], start: int = 7) -> bytes:
    """Chunks as they follow a place in the file; 7: its header is behind."""
    out = bytearray()
    for record in records:
        rest, first = record, True
        while rest or first:
            left = BLOCK - (start + len(out)) % BLOCK
            if left < 7:
                out += b"\0" * left
                continue
            part, rest = rest[: left - 7], rest[left - 7 :]
            kind = bytes([1 if first and not rest else 2 if first else 3 if rest else 4])
            out += struct.pack("<IH", zlib.crc32(kind + part), len(part)) + kind + part
            first = False
    return bytes(out)


def write(path: Path, records: Sequence[bytes]) -> Path:
    """A whole file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b":W&B\xe1\xbe\x00" + framed(counted(records)))
    return path


def events(path: Path, steps: range, tag: str = "train/loss") -> Path:
    """An event file of TensorBoard with one scalar; returns its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(event(step, scalar(tag, 1 / (step + 1))) for step in steps))
    return path.parent


def scalar(tag: str, value: float) -> bytes:
    """A value of a summary that is a number."""
    return field(1, tag) + b"\x15" + struct.pack("<f", value)


def event(step: int, value: bytes, moment: float | None = None) -> bytes:
    """A record of an event file with one value of a summary."""
    at = struct.pack("<d", 1.7e9 + step if moment is None else moment)
    told = b"\x09" + at + (field(2, step) if step else b"") + field(5, field(1, value))
    head = struct.pack("<Q", len(told))
    return head + struct.pack("<I", masked_crc32c(head)) + told + struct.pack("<I", masked_crc32c(told))


def tensor_of(tag: str, plugin: str, *texts: bytes) -> bytes:
    """A value that is a tensor of texts, as newer writers keep images and all keep texts."""
    strings = field(1, 7) + field(2, b"") + b"".join(field(8, one) for one in texts)
    return field(1, tag) + field(9, field(1, field(1, plugin))) + field(8, strings)


def hparams(**told: float | str | bool) -> bytes:
    """The value that tells the arguments of a run."""

    def value(one: float | str | bool) -> bytes:
        if isinstance(one, bool):
            return field(4, int(one))
        return field(3, one) if isinstance(one, str) else b"\x11" + struct.pack("<d", one)

    session = b"".join(field(1, field(1, name) + field(2, value(one))) for name, one in told.items())
    return field(1, "_hparams_/session_start_info") + field(
        9, field(1, field(1, "hparams") + field(2, field(3, session)))
    )
