"""Open, high, low, close and volume of one or many symbols, from CSV files with any usual header."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from . import cells

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
"""Header names in lower case, letters and digits only; if several are present the first one is used."""
_NAMED = 12
"""A sentence names at most this many symbols."""
_PRICES = ("open", "high", "low", "close")


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

    def __getitem__(self, rows: npt.NDArray[np.bool_]) -> Candles:
        prices = (column[rows] for column in (self.open, self.high, self.low, self.close, self.volume))
        return Candles(self.symbol, self.time[rows], *prices)


@dataclass(frozen=True)
class Reading:
    """Everything read, with a sentence for each row that cannot be used."""

    symbols: tuple[Candles, ...]
    problems: tuple[str, ...] = ()


def read(path: Path) -> Reading:
    """Read a CSV file, or all of a folder. The symbol comes from the symbol column, else from the file's name.

    Raises:
        UsageError: nothing is there, or a file has no usable header.
    """
    files = sorted(path.glob("[!.]*.[cC][sS][vV]")) if path.is_dir() else [path]
    if not files or not files[0].is_file():
        raise UsageError(f"--data {path}: no CSV file there; name a file, or a folder with *.csv, of OHLCV rows")
    problems: list[str] = []
    tables: dict[str, list[_Table]] = {}
    for file in files:
        for symbol, table in _read_file(file, problems):
            tables.setdefault(symbol, []).append(table)
    found = [_candles(symbol, parts, problems) for symbol, parts in sorted(tables.items())]
    return Reading(tuple(candles for candles in found if len(candles)), tuple(problems))


def narrowed(
    reading: Reading, *, symbols: Sequence[str] = (), days: int | None = None, bar: int | None = None
) -> Reading:
    """The requested part of a reading: some symbols, the newest days, rows merged into longer bars (seconds).

    Raises:
        UsageError: there is no such symbol.
    """
    found = {one.symbol: one for one in reading.symbols}
    missing = [name for name in symbols if name not in found]
    if missing:
        known = ", ".join(list(found)[:_NAMED]) + (", ..." if len(found) > _NAMED else "")
        raise UsageError(f"--symbols {missing[0]}: there is no such symbol; the data has {known}")
    kept = [found[name] for name in dict.fromkeys(symbols or found)]
    if days is not None and kept:
        first = max(one.time[-1] for one in kept).astype("datetime64[D]") - np.timedelta64(days - 1, "D")
        kept = [one[one.time >= first] for one in kept]
    return Reading(tuple(_barred(one, bar) if bar else one for one in kept if len(one)), reading.problems)


def _barred(candles: Candles, seconds: int) -> Candles:
    """The same history in bars of this many seconds, each stamped with its start; bars without rows are left out."""
    bars = candles.time.astype("datetime64[s]").astype(np.int64) // seconds
    first = np.flatnonzero(np.diff(bars, prepend=bars[0] - 1))
    last = np.append(first[1:], len(bars)) - 1
    return Candles(
        candles.symbol,
        (bars[first] * seconds).astype("datetime64[s]"),
        candles.open[first],
        np.maximum.reduceat(candles.high, first),
        np.minimum.reduceat(candles.low, first),
        candles.close[last],
        np.add.reduceat(candles.volume, first),
    )


@dataclass(frozen=True)
class _Table:
    """Rows of one symbol in one file: numbers (n, 5) in the order of Candles, and the line of each row."""

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
            if header[:1] == [""] and rows and not rows[0][1][0].isdecimal():
                header = ["Date", *header[1:]]  # the index of a pandas frame, unless it merely counts the rows
            columns = _columns(file, header)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"--data {file}: {reason}; it must be a CSV file of OHLCV rows in UTF-8") from error
    return _by_symbol(
        file, symbol, columns, _complete(file, rows, max(columns.values()), len(header), problems), problems
    )


def _complete(
    file: Path, rows: list[tuple[int, list[str]]], widest: int, cells_of_header: int, problems: list[str]
) -> list[tuple[int, list[str]]]:
    """Rows with as many cells as the header allows; every other row is reported."""
    found = []
    for number, row in rows:
        if len(row) <= widest:
            problems.append(f"{file}, line {number}: it has fewer cells than the header; complete or remove it")
        elif any(row[cells_of_header:]):
            problems.append(f"{file}, line {number}: it has more cells than the header; name them, or quote the commas")
        else:
            found.append((number, row))
    return found


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
    time = cells.times([row[columns["date"]].strip() for _, row in rows])
    texts = [[row[columns[key]] for _, row in rows] for key in (*_PRICES, "volume")]
    comma = cells.decimal_commas(texts)
    numbers = np.stack([cells.numbers(column, decimal_comma=comma) for column in texts], axis=1)
    sound = _sound(file, lines, time, numbers, problems)
    names = np.array(
        [row[columns["symbol"]].strip() if "symbol" in columns else symbol_of_file for _, row in rows], object
    )
    for symbol in sorted(set(names[sound].tolist())):
        mine = sound & (names == symbol)
        yield symbol, _Table(file, time[mine], numbers[mine], lines[mine])


def _sound(
    file: Path, lines: npt.NDArray[np.int64], time: npt.NDArray[Any], numbers: Floats, problems: list[str]
) -> npt.NDArray[np.bool_]:
    """Which rows can be used; every other row is reported."""
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
