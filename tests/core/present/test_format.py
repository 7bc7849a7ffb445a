"""Formatters: fixed widths, nothing invented for what is unknown."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import mpstui
from mpstui.core import present as shown
from mpstui.core.model.snapshot import Numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5312, "0.5312"),
        (22.801, "22.80"),
        (1234.0, "1234"),
        (0.0, "0"),
        (1e-7, "1.000e-07"),
        (-0.25, "-0.2500"),
        (math.nan, "NaN/inf"),
        (-math.inf, "NaN/inf"),
        (None, "n/a"),
    ],
)
def test_numbers_keep_four_digits(value: float | None, text: str) -> None:
    assert shown.number(value) == text


@pytest.mark.parametrize(
    ("epoch", "epochs", "text"), [(57, 200, "57/200"), (57, None, "57/?"), (None, 200, "?/200"), (None, None, "n/a")]
)
def test_an_epoch_and_how_many_there_are(epoch: int | None, epochs: int | None, text: str) -> None:
    assert shown.epoch_text(Numbers(epoch=epoch, epochs=epochs)) == text


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_a_number_never_outgrows_its_column(value: float) -> None:
    assert len(shown.number(value)) <= 11
    assert len(shown.rate(value)) <= 7


@given(st.floats(min_value=0, max_value=1e99))
@example(999.97)
@example(9999.5)
@example(99_960)
@example(999_600)
@example(9_999_999)
def test_a_count_never_outgrows_its_column(value: float) -> None:
    assert len(shown.short_count(value)) <= 5
    assert len(shown.short_count(-value)) <= 6
    assert len(shown.rate(value)) <= 5


@given(st.floats(min_value=0, max_value=1e15))
def test_a_size_and_a_duration_fit_their_columns(value: float) -> None:
    assert len(shown.size(value)) <= 9
    assert len(shown.duration(value)) <= 8


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1024, "1.0 KiB"),
        (int(5.9 * 2**30), "5.9 GiB"),
        (512 * 2**20, "512 MiB"),
        (None, "n/a"),
    ],
)
def test_sizes_are_powers_of_1024(value: int | None, text: str) -> None:
    assert shown.size(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (59.9, "59s"),
        (61, "1m 01s"),
        (4920, "1h 22m"),
        (90000, "1d 01h"),
        (1e12, ">999d"),
        (-1, "n/a"),
        (None, "n/a"),
    ],
)
def test_durations_have_two_units(seconds: float | None, text: str) -> None:
    assert shown.duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((9999, "9999"), (22301, "22.3k"), (1_200_000, "1.20M"), (4.5, "4.5"), (None, "n/a")),
        *((9999.5, "10.0k"), (1234.5, "1234"), (99_960, "100k"), (999_999, "1.00M"), (-99_995_000, "-100M")),
    ],
)
def test_short_counts(value: float | None, text: str) -> None:
    assert shown.short_count(value) == text


def test_a_ratio_needs_both_parts() -> None:
    assert shown.ratio(5, 10) == 0.5
    assert shown.ratio(11, 10) == 1.0
    assert shown.ratio(None, 10) is None
    assert shown.ratio(5, 0) is None
    assert shown.ratio(math.nan, 10) is None


def test_an_old_moment_names_its_day() -> None:
    now = 1_795_262_400.0
    assert len(shown.moment_of_day(now - 60, now)) == 8
    assert len(shown.moment_of_day(now - 7 * 86400, now)) == 12
    assert shown.moment_of_day(None, now) == "n/a"


def test_sizes_have_one_family_of_units_on_every_screen_and_in_every_sentence() -> None:
    package = Path(mpstui.__file__).parent
    decimal = re.compile(r"\}\s?[kKMGT]B\b")
    found = [path.name for path in package.rglob("*.py") if decimal.search(path.read_text(encoding="utf-8"))]
    assert not found, "sizes are shown by core/present/format.size: KiB, MiB, GiB"
