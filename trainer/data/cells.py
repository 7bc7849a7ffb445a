"""Numbers and dates from the cells of a CSV file. The format of most cells decides how all are read."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.datetime64]

_COMMA_IS_DECIMAL = re.compile(r"\.\d+,|,(\d{1,2}|\d{4,})\D*$|^\D*0,")
"""With commas between thousands, three digits follow each comma and the number does not begin with 0."""
_COMMA_IS_THOUSANDS = re.compile(r",\d+\.\d")
_POINTS_ARE_THOUSANDS = re.compile(r"-?\d{1,3}(\.\d{3})+(,\d*)?")
_FORMS = ("%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%m/%d/%y", "%Y/%m/%d", "%Y.%m.%d", "%d-%b-%Y", "%b %d, %Y")
_LARGEST_SECONDS = 1e11
"""Unix times above this count milliseconds, microseconds or nanoseconds: as seconds they would lie beyond year 5000."""
_SMALLEST_SECONDS = 1e7
"""Numbers below this are not Unix times but years, or days as spreadsheets count them."""
_DAY_DIGITS = 8


def decimal_commas(columns: Sequence[Sequence[str]]) -> bool:
    """Whether a file writes 12,5 for twelve and a half: some cell can mean nothing else, and none contradicts it."""
    cells = [cell for column in columns for cell in column if "," in cell]
    return any(map(_COMMA_IS_DECIMAL.search, cells)) and not any(map(_COMMA_IS_THOUSANDS.search, cells))


def numbers(cells: Sequence[str], *, decimal_comma: bool) -> npt.NDArray[np.float64]:
    """Floats; NaN where a cell is not a number in the file's style."""
    if not decimal_comma:
        try:
            return np.array(cells, np.float64)
        except ValueError:
            pass
    return np.array([_number(cell.strip(), decimal_comma) for cell in cells], np.float64)


def times(cells: Sequence[str]) -> Times:
    """Times to the second; NaT where a cell is not a time."""
    if _most(cells, _is_day):
        cells = [f"{cell[:4]}-{cell[4:6]}-{cell[6:]}" if _is_day(cell) else "" for cell in cells]
    elif _most(cells, _is_number):
        return _from_unix(cells)
    try:
        return _from_iso(cells)
    except ValueError:
        form = _form(cells)
        return np.array([_time(cell, form) for cell in cells], "datetime64[s]")


def _number(cell: str, decimal_comma: bool) -> float:
    text = cell.replace("$", "").replace("_", "x")
    if decimal_comma:
        if "." in text and not _POINTS_ARE_THOUSANDS.fullmatch(text):
            return math.nan
        text = text.replace(".", "").replace(",", ".")
    elif _COMMA_IS_DECIMAL.search(text):
        return math.nan
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return math.nan


def _most(cells: Sequence[str], holds: Callable[[str], bool]) -> bool:
    return 2 * sum(map(holds, cells)) > len(cells)


def _is_day(cell: str) -> bool:
    """True for a cell like ``20240131``."""
    return len(cell) == _DAY_DIGITS and cell.isdigit()


def _is_number(cell: str) -> bool:
    return cell.removeprefix("-").replace(".", "", 1).isdecimal()


def _from_unix(cells: Sequence[str]) -> Times:
    seconds = np.array([float(cell) if _is_number(cell) else math.nan for cell in cells])
    for _ in range(3):
        seconds = np.where(np.abs(seconds) > _LARGEST_SECONDS, seconds / 1000, seconds)
    known = np.abs(seconds) >= _SMALLEST_SECONDS
    found: Times = np.where(known, seconds, 0).astype(np.int64).astype("datetime64[s]")
    found[~known] = np.datetime64("NaT")
    return found


def _from_iso(cells: Sequence[str]) -> Times:
    """numpy's parser is a hundred times faster, but it knows no time zones, takes any number for a year and accepts the
    words today and now."""
    if any(len(cell) > 10 and (cell[-1] in "zZ" or "+" in cell or "-" in cell[10:]) for cell in cells):
        return np.array([_time(cell, None) for cell in cells], "datetime64[s]")
    if any(_is_number(cell) or cell[:1].isalpha() for cell in cells):
        raise ValueError("a number or a word among dates")
    return np.array(cells, "datetime64[s]")


def _form(cells: Sequence[str]) -> str | None:
    """The format of most cells, on a tie the first; None: ISO."""
    counts = dict.fromkeys(_FORMS, 0)
    for form in counts:
        counts[form] = sum(_fits(cell, form) for cell in cells)
        if counts[form] == len(cells):
            return form
    best = max(_FORMS, key=counts.__getitem__)
    return best if 2 * counts[best] > len(cells) else None


def _fits(cell: str, form: str) -> bool:
    try:
        datetime.datetime.strptime(cell, form)
    except ValueError:
        return False
    return True


def _time(cell: str, form: str | None) -> np.datetime64:
    try:
        found = datetime.datetime.strptime(cell, form) if form else datetime.datetime.fromisoformat(cell)
    except ValueError:
        return np.datetime64("NaT", "s")
    if found.tzinfo:
        found = found.astimezone(datetime.UTC).replace(tzinfo=None)
    return np.datetime64(found, "s")
