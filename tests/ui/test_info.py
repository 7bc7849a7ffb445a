"""The page of a run, opened by ``i``."""

from __future__ import annotations

import pytest

from mpstui.core.runs.details import Section
from mpstui.ui.rows import width_of
from mpstui.ui.screens.info import info_rows

SECTIONS = (
    Section("run", (("id", "20261123-0101-digits"), ("note", "the \x1b]0;evil\x07 one"))),
    Section("arguments", (("lr", "0.1"), ("a-name-that-is-longer-than-any-column", "x" * 300)), ("python t.py",)),
    Section("code", (("commit", "1f3a9c2b5d10 on main, 1 file changed"),), ("@@ -1 +1 @@", "-lr = 0.1", "+lr = 0.2")),
)  # fmt: skip


@pytest.mark.parametrize("width", [12, 20, 56, 76, 116, 136])
def test_it_fits_every_window_and_steers_none(width: int) -> None:
    lines = info_rows("digits \u202e", SECTIONS, width)
    for line in lines:
        assert line.width <= width
        assert not set("\x1b\x07\u202e") & set(line.text)
    assert max(width_of(line.text) for line in lines) <= width


def test_changes_of_the_code_are_told_apart() -> None:
    roles = {span.text.strip(): span.role for line in info_rows("d", SECTIONS, 80) for span in line.spans}
    assert (roles["-lr = 0.1"], roles["+lr = 0.2"], roles["@@ -1 +1 @@"]) == ("bad", "good", "mark")


def test_without_anything_known_it_is_the_name() -> None:
    assert info_rows("d", (), 80)[0].text == "d"
