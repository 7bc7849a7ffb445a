"""An offline folder of Weights & Biases, as ``wandb sync`` takes it: the transaction log of one run.

The framing of the log and its field numbers are those of :mod:`mpstui.core.formats.files.wandb`, which reads such logs.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from ... import __version__
from ..formats.files.wandb import (
    BLOCK_BYTES,
    CHUNK_HEADER,
    HEADER_BYTES,
    SIGNATURE,
    Item,
    Piece,
    Record,
)
from ..formats.protobuf import block, text, whole
from ..model.snapshot import State
from .export import whole_file
from .trackers import PROJECT, LoggedRow, TrackedRun, details_of, number_text
from .wandb_media import Described, rows_with_media

_MIN_CONSUMER = "0.40.0"
"""The oldest wandb that must be able to read it."""
_UPDATE, _ITEM, _STEP, _INFO, _NUMBER = 1, 1, 2, 200, 1
_METRIC_GLOB, _METRIC_STEP = 2, 4
_ARTIFACT = 8
_GOOD = frozenset({State.FINISHED, State.STOPPED})
_STORAGE_POLICY = "wandb-storage-policy-v1"


def write_wandb(run: TrackedRun, folder: Path) -> Path:
    """Write ``offline-run-TIME-ID/run-ID.wandb``, with images in ``files`` beside it; return that folder."""
    stamp = time.strftime("%Y%m%d_%H%M%S", time.gmtime(run.started))
    made = folder / f"offline-run-{stamp}-{run.id}"
    (made / "files").mkdir(parents=True, exist_ok=True)
    with whole_file(made / f"run-{run.id}.wandb") as file:
        log = _Log(file)
        info = block(_INFO, text(1, run.id))
        for number, record in enumerate(_records(run, made / "files"), 1):
            log.write(whole(1, number) + record + info)
    return made


def _records(run: TrackedRun, files: Path) -> Iterator[bytes]:
    version = text(1, f"mpstui {__version__}") + text(2, _MIN_CONSUMER)
    yield block(Record.HEADER, block(1, version))
    config = b"".join(_setting(name, value) for name, value in {**run.config, "argv": list(run.argv)}.items())
    told = text(1, run.id) + text(3, PROJECT) + block(4, config) + text(8, run.name)
    told += (text(9, run.note) if run.note else b"") + b"".join(text(10, tag) for tag in run.tags)
    yield block(Record.RUN, told + block(17, _moment(run.started)))
    if run.counts_rows:
        yield block(Record.METRIC, text(_METRIC_GLOB, "*") + text(_METRIC_STEP, "step"))
    for row, described in rows_with_media(run, files):
        yield block(Record.HISTORY, _history(row, described, run.started))
    summary = {**run.newest, **({"_step": run.rows[-1].step} if run.rows else {})}
    texts = {name: number_text(value) for name, value in summary.items()} | {"state": json.dumps(run.state)}
    yield block(Record.SUMMARY, b"".join(block(_UPDATE, _item(name, value)) for name, value in texts.items()))
    yield from (block(_ARTIFACT, one) for one in _artifacts(run))
    if run.ended is not None:
        code = run.code if run.code is not None else int(run.state not in _GOOD)
        yield block(Record.EXIT, whole(1, code) + whole(2, max(0, round(run.ended - run.started))))


def _history(row: LoggedRow, described: Described, started: float) -> bytes:
    own: dict[str, float] = {"_step": row.step}
    own |= {"_timestamp": row.time, "_runtime": row.time - started} if row.time is not None else {}
    items = [block(_ITEM, _item(name, number_text(value))) for name, value in {**row.values, **own}.items()]
    for names, told in described.items():
        items.append(block(_ITEM, b"".join(text(Item.NESTED_KEY, one) for one in names) + text(Item.VALUE_JSON, told)))
    return b"".join(items) + block(_STEP, whole(_NUMBER, row.step))


def _item(name: str, value: str) -> bytes:
    return text(Item.NESTED_KEY, name) + text(Item.VALUE_JSON, value)


def _setting(name: str, value: object) -> bytes:
    return block(_UPDATE, text(Item.KEY, name) + text(Item.VALUE_JSON, json.dumps(value)))


def _moment(seconds: float) -> bytes:
    return whole(1, int(seconds)) + whole(2, round(seconds % 1 * 1e9))


def _artifacts(run: TrackedRun) -> Iterator[bytes]:
    """Yield all checkpoints as one artifact of references: nothing is copied or uploaded."""
    if not run.checkpoints:
        return
    entries = {one.path.name: one for one in run.checkpoints}
    digests = {name: _digest(one.path.as_uri()) for name, one in sorted(entries.items())}
    whole_digest = hashlib.md5(b"wandb-artifact-manifest-v1\n", usedforsecurity=False)
    for name, digest in digests.items():
        whole_digest.update(f"{name}:{digest}\n".encode())
    manifest = whole(1, 1) + text(2, _STORAGE_POLICY) + block(3, text(1, "storageLayout") + text(2, '"V2"'))
    for name, digest in digests.items():
        one = entries[name]
        entry = text(1, name) + text(2, digest) + text(3, one.path.as_uri()) + whole(4, one.size_bytes)
        manifest += block(4, entry)
    kept: Mapping[str, object] = {"checkpoints": [details_of(one) for one in run.checkpoints]}
    yield b"".join(
        (
            text(1, run.id) + text(2, PROJECT) + text(4, "model") + text(5, f"checkpoints-{run.id}"),
            text(6, whole_digest.hexdigest()) + text(8, json.dumps(kept)) + text(11, "latest") + block(12, manifest),
            whole(14, 1) + text(15, _token(run.id, "client")) + text(16, _token(run.id, "sequence")),
            text(20, "MANIFEST_MD5"),
        )
    )


def _digest(uri: str) -> str:
    """The digest of a reference, whose content is not read: that of its URI."""
    return base64.b64encode(hashlib.md5(uri.encode("utf-8", "replace"), usedforsecurity=False).digest()).decode()


def _token(run: str, use: str) -> str:
    """A token that is the same each time, so that a run synchronised twice has one artifact."""
    return hashlib.sha512(f"{use} {run}".encode()).hexdigest()


class _Log:
    """Writes records in chunks that never cross a block boundary."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        file.write(SIGNATURE.ljust(HEADER_BYTES, b"\0"))
        self._offset = HEADER_BYTES

    def write(self, record: bytes) -> None:
        """Write a record in as many pieces as it takes."""
        at, begun = 0, False
        while at < len(record) or not begun:
            left = BLOCK_BYTES - self._offset % BLOCK_BYTES
            if left < CHUNK_HEADER.size:
                self._put(bytes(left))
                left = BLOCK_BYTES
            data = record[at : at + left - CHUNK_HEADER.size]
            at += len(data)
            ends = at == len(record)
            kind = (Piece.LAST if ends else Piece.MIDDLE) if begun else (Piece.FULL if ends else Piece.FIRST)
            checked = bytes([kind]) + data
            self._put(CHUNK_HEADER.pack(zlib.crc32(checked), len(data), kind) + data)
            begun = True

    def _put(self, data: bytes) -> None:
        self._file.write(data)
        self._offset += len(data)
