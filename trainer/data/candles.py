"""Open, high, low, close and volume of one or many symbols, out of CSV files with any usual header."""

from __future__ import annotations

import csv
import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UsageError

Floats = npt.NDArray[np.float64]

_ALIASES = {
    "date": ("date", "datetime", "timestamp", "time", "day", "opentime", "dateutc", "unix"),
    "open": ("open", "o", "openprice", "priceopen"),
    "high": ("high", "h", "highprice", "pricehigh", "max"),
    "low": ("low", "l", "lowprice", "pricelow", "min"),
    "close": ("close", "c", "closeprice", "priceclose", "closelast", "last", "adjclose", "adjustedclose", "price"),
    "volume": ("volume", "vol", "v", "basevolume", "totalvolume", "tradedvolume"),
    "symbol": ("symbol", "ticker", "sym", "code", "instrument", "asset"),
}
"""Header names in lower case, letters and digits only; where several are there the first one counts."""
_PRICES = ("open", "high", "low", "close")
_SLASHED = ("%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%m/%d/%y")
_MILLISECONDS = 1e11
"""Unix times above this are milliseconds: as seconds they would lie beyond the year 5000."""


@dataclass(frozen=True)
class Candles:
    """The history of one symbol, oldest first; every array has shape (n,)."""

    symbol: str
    time: npt.NDArray[np.datetime64]
    open: Floats
    high: Floats
    low: Floats
    close: Floats
    volume: Floats

    def __len__(self) -> int:
        return len(self.close)


@dataclass(frozen=True)
class Reading:
    """Everything read, with a sentence for each row that cannot be used."""

    symbols: tuple[Candles, ...]
    problems: tuple[str, ...] = ()


def read(path: Path) -> Reading:
    """Read a CSV file, or all of a folder. A symbol is what the symbol column says, else the name of the file.

    Raises:
        UsageError: nothing is there, or a file has no usable header.
    """
    files = sorted(file for file in path.iterdir() if file.suffix.lower() == ".csv") if path.is_dir() else [path]
    if not files or not files[0].is_file():
        raise UsageError(f"--data {path}: no CSV file there; name a file, or a folder with *.csv, of OHLCV rows")
    problems: list[str] = []
    tables: dict[str, list[_Table]] = {}
    for file in files:
        for symbol, table in _read_file(file, problems):
            tables.setdefault(symbol, []).append(table)
    found = [_candles(symbol, parts, problems) for symbol, parts in sorted(tables.items())]
    return Reading(tuple(candles for candles in found if len(candles)), tuple(problems))


@dataclass(frozen=True)
class _Table:
    """Rows of one symbol in one file: numbers (n, 5) in the order of Candles, and where each row was."""

    file: Path
    time: npt.NDArray[np.datetime64]
    numbers: Floats
    lines: npt.NDArray[np.int64]


def _read_file(file: Path, problems: list[str]) -> Iterable[tuple[str, _Table]]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as text:
            first = text.readline()
            delimiter = max(",;\t|", key=first.count)
            header = next(csv.reader([first], delimiter=delimiter), [])
            rows = [
                (number, row) for number, row in enumerate(csv.reader(text, delimiter=delimiter), start=2) if any(row)
            ]
            header, rows, symbol = _flattened(file, header, rows)
            columns = _columns(file, header)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"--data {file}: {reason}; it must be a CSV file of OHLCV rows in UTF-8") from error
    widest = max(columns.values())
    problems.extend(
        f"{file}, line {number}: it has fewer cells than the header; complete or remove it"
        for number, row in rows
        if len(row) <= widest
    )
    return _by_symbol(file, symbol, columns, [(number, row) for number, row in rows if len(row) > widest], problems)


def _flattened(
    file: Path, header: list[str], rows: list[tuple[int, list[str]]]
) -> tuple[list[str], list[tuple[int, list[str]]], str]:
    """Header, rows and symbol; the three header lines of yfinance (Price, Ticker, Date) become one."""
    if len(rows) < 2 or header[:1] != ["Price"] or rows[0][1][:1] != ["Ticker"]:
        return header, rows, file.stem
    tickers = set(rows[0][1][1:])
    if len(tickers) != 1:
        raise UsageError(f"--data {file}: it holds {len(tickers)} tickers side by side; save each to a file of its own")
    return [rows[1][1][0], *header[1:]], rows[2:], tickers.pop()


def _columns(file: Path, header: Sequence[str]) -> dict[str, int]:
    names = ["".join(letter for letter in cell.lower() if letter.isalnum()) for cell in header]
    found = {
        key: names.index(next(alias for alias in aliases if alias in names))
        for key, aliases in _ALIASES.items()
        if any(alias in names for alias in aliases)
    }
    missing = [key for key in ("date", *_PRICES, "volume") if key not in found]
    if missing:
        raise UsageError(
            f"--data {file}: its header ({', '.join(header)[:120]}) has no column for {', '.join(missing)}; name the"
            " columns Date, Open, High, Low, Close and Volume"
        )
    return found


def _by_symbol(
    file: Path, symbol_of_file: str, columns: dict[str, int], rows: list[tuple[int, list[str]]], problems: list[str]
) -> Iterable[tuple[str, _Table]]:
    lines = np.array([number for number, _ in rows], np.int64)
    cells = [row for _, row in rows]
    time = _times([row[columns["date"]].strip() for row in cells])
    numbers = np.stack([_numbers([row[columns[key]] for row in cells]) for key in (*_PRICES, "volume")], axis=1)
    sound = _sound(file, lines, time, numbers, problems)
    names = np.array(
        [row[columns["symbol"]].strip() if "symbol" in columns else symbol_of_file for row in cells], object
    )
    for symbol in sorted(set(names[sound].tolist())):
        mine = sound & (names == symbol)
        yield symbol, _Table(file, time[mine], numbers[mine], lines[mine])


def _sound(
    file: Path, lines: npt.NDArray[np.int64], time: npt.NDArray[Any], numbers: Floats, problems: list[str]
) -> npt.NDArray[np.bool_]:
    """Rows that can be used; tells of each other one."""
    prices, volume = numbers[:, :4], numbers[:, 4]
    faults = (
        (np.isnat(time), "the date is not one (such as 2024-01-31)"),
        (~(np.isfinite(prices) & (prices > 0)).all(axis=1), "a price is not a number above 0"),
        (~(np.isfinite(volume) & (volume >= 0)), "the volume is not a number of at least 0"),
        (prices[:, 1] < prices[:, 2], "high is below low"),
    )
    bad = np.zeros(len(lines), bool)
    for where, what in faults:
        problems.extend(f"{file}, line {line}: {what}; correct or remove it" for line in lines[where & ~bad])
        bad |= where
    return ~bad


def _candles(symbol: str, parts: list[_Table], problems: list[str]) -> Candles:
    time = np.concatenate([part.time for part in parts])
    order = np.argsort(time, kind="stable")
    repeated = order[1:][time[order][1:] == time[order][:-1]]
    if len(repeated):
        files = np.concatenate([np.full(len(part.lines), index) for index, part in enumerate(parts)])
        lines = np.concatenate([part.lines for part in parts])
        problems.extend(
            f"{parts[files[row]].file}, line {lines[row]}: {symbol} has this date twice; remove one of them"
            for row in repeated
        )
        order = order[~np.isin(order, repeated)]
    numbers = np.concatenate([part.numbers for part in parts])[order]
    return Candles(symbol, time[order], *(np.ascontiguousarray(column) for column in numbers.T))


def _numbers(cells: Sequence[str]) -> Floats:
    """Floats, NaN where a cell is none."""
    try:
        return np.array(cells, np.float64)
    except ValueError:
        return np.array([_number(cell) for cell in cells], np.float64)


def _number(cell: str) -> float:
    try:
        return float(cell.replace(",", "").replace("$", "").replace("_", "x"))
    except ValueError:
        return float("nan")


def _times(cells: Sequence[str]) -> npt.NDArray[np.datetime64]:
    """Times to the second, not-a-time where a cell is none."""
    try:
        return _from_numbers(cells) if _all_digits(cells) else _from_iso(cells)
    except ValueError:
        slashed = next((form for form in _SLASHED if all(_fits(cell, form) for cell in cells)), None)
        return np.array([_time(cell, slashed) for cell in cells], "datetime64[s]")


def _all_digits(cells: Sequence[str]) -> bool:
    return all(cell.replace(".", "", 1).isdigit() for cell in cells)


def _from_numbers(cells: Sequence[str]) -> npt.NDArray[np.datetime64]:
    """Unix seconds or milliseconds, or days as 20240131."""
    if all(len(cell) == 8 for cell in cells):
        return np.array([f"{cell[:4]}-{cell[4:6]}-{cell[6:]}" for cell in cells], "datetime64[s]")
    numbers = np.array(cells, np.float64)
    return np.where(numbers > _MILLISECONDS, numbers / 1000, numbers).astype(np.int64).astype("datetime64[s]")


def _from_iso(cells: Sequence[str]) -> npt.NDArray[np.datetime64]:
    """numpy's own parser is a hundred times faster, but knows no time zones."""
    if any(len(cell) > 10 and (cell[-1] in "zZ" or "+" in cell or "-" in cell[10:]) for cell in cells):
        return np.array([_time(cell, None) for cell in cells], "datetime64[s]")
    return np.array(cells, "datetime64[s]")


def _fits(cell: str, form: str) -> bool:
    try:
        datetime.datetime.strptime(cell, form)
    except ValueError:
        return False
    return True


def _time(cell: str, slashed: str | None) -> np.datetime64:
    try:
        found = datetime.datetime.strptime(cell, slashed) if slashed else datetime.datetime.fromisoformat(cell)
    except ValueError:
        return np.datetime64("NaT", "s")
    if found.tzinfo:
        found = found.astimezone(datetime.UTC).replace(tzinfo=None)
    return np.datetime64(found, "s")
