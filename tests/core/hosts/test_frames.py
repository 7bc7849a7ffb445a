"""What comes over a line and is none of our messages: refused, bounded, and a sentence."""

from __future__ import annotations

import io
import zlib
from typing import Any

import pytest

from mpstui.core.hosts.desk import signature_of
from mpstui.core.hosts.forms import Rules
from mpstui.core.hosts.frames import Frames, Garbled
from mpstui.core.hosts.link import _read_answer
from mpstui.core.model.errors import OperationError


def packed(text: bytes) -> bytes:
    stream = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = (stream.compress(text) + stream.flush(zlib.Z_SYNC_FLUSH)).removesuffix(b"\x00\x00\xff\xff")
    length = bytes([len(data) & 0x7F | 0x80, len(data) >> 7])
    return length + data


@pytest.mark.parametrize(
    "data",
    [b"\x80" * 100 + b"\x01", b"\xff" * 6, b"\x02\xff\xff", packed(b"{"), packed(b"[" * 100_000)],
    ids=["a length without end", "too long", "no stream", "no message", "deeper than anything"],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(Garbled):
        Frames(io.BytesIO(data).read, lambda sent: None).receive()


@pytest.mark.parametrize("answer", ["x", {"fail": "x"}, {"fail": {}}, {"ok": 3}])
def test_an_answer_that_cannot_be_read_is_a_sentence(answer: Any) -> None:
    with pytest.raises(OperationError, match=r"gpu1: .*cannot be read"):
        _read_answer("gpu1", answer, signature_of("details"), Rules())
