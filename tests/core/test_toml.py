"""TOML that nobody wrote by hand is one mistake, found at once."""

from __future__ import annotations

import pytest

from mpstui.core.model.toml import TomlMistake, load_toml


@pytest.mark.parametrize(
    ("text", "what", "line"),
    [
        ("a = 1\nb = [", "this is not TOML", 2),
        ("a = " + "[" * 20_000, "nested too deeply", None),
        ("a = " + "9" * 5_000, "a number in it is too long", None),
        ("a = 1\n" + "b." * 100_000 + "c = 1\n", "a key of more than 64 parts", 2),
        ("[" + "'b'." * 3_000 + "c]\n", "a key of more than 64 parts", 1),
    ],
)
def test_what_is_wrong_and_where(text: str, what: str, line: int | None) -> None:
    with pytest.raises(TomlMistake) as caught:
        load_toml(text)
    assert what in caught.value.what
    assert caught.value.line == line


def test_a_long_text_with_dots_is_no_long_key() -> None:
    assert load_toml('a = "' + "x." * 200 + '"') == {"a": "x." * 200}
