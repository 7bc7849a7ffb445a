"""Look-alikes: one cell for one cell, and every glyph of a state has one of its own kind."""

from __future__ import annotations

import io

from mpstui.core.present.plain import alike, write_what_can_be
from mpstui.core.present.states import HEALTH_FACES, STATE_FACES


def test_every_state_has_a_look_alike_of_one_character() -> None:
    glyphs = {face.glyph for face in (*STATE_FACES.values(), *HEALTH_FACES.values())}
    assert all(alike(glyph).isascii() and len(alike(glyph)) == 1 for glyph in glyphs)
    assert "?" not in {alike(glyph) for glyph in glyphs if glyph != "?" and not glyph.isascii()}


def test_a_stream_of_few_characters_keeps_its_columns() -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="ascii")
    write_what_can_be(stream)
    stream.write("\u2717 failed \u2501\u2578\u2500 \u28ff\u2800 \u00e9")
    stream.flush()
    assert written.getvalue() == b"x failed ==- *  ?"


def test_what_can_be_written_is_not_touched() -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="utf-8")
    write_what_can_be(stream)
    stream.write("\u2717")
    stream.flush()
    assert written.getvalue().decode() == "\u2717"
