"""Every indicator equals its formula, nothing looks ahead, and prices are read from any usual file."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.trainer.slow_indicators import SLOW
from trainer.data import candles, indicators, markets, rolling
from trainer.data.candles import Candles
from trainer.data.indicator_cache import IndicatorCache
from trainer.errors import UsageError

DAYS = 400
NO_CACHE = IndicatorCache(None)
HISTORY = markets.synthetic(5, symbols=1, days=DAYS)[0]


def _changed_after(history: Candles, row: int) -> Candles:
    """The same past, another future."""
    series = {name: getattr(history, name).copy() for name in ("open", "high", "low", "close", "volume")}
    for values in series.values():
        values[row + 1 :] *= 3.0
    return replace(history, **series)


def test_there_is_a_slow_formula_for_every_indicator() -> None:
    assert SLOW.keys() == indicators.INDICATORS.keys()


@pytest.mark.parametrize("name", list(indicators.INDICATORS))
def test_an_indicator_equals_its_formula(name: str) -> None:
    found, expected = indicators.INDICATORS[name](HISTORY), SLOW[name](HISTORY)
    np.testing.assert_allclose(found[indicators.WARM_UP :], expected[indicators.WARM_UP :], rtol=1e-7, atol=1e-9)
    assert np.std(expected[indicators.WARM_UP :]) > 0


def test_a_market_that_stands_still_gives_numbers() -> None:
    flat = np.full(200, 10.0)
    still = Candles("STILL", HISTORY.time[:200], flat, flat, flat, flat, np.zeros(200))
    found = indicators.table(still)[indicators.WARM_UP :]
    assert np.isfinite(found).all()
    assert np.isfinite(indicators.market_context(still)[indicators.WARM_UP :]).all()
    assert found[0, list(indicators.INDICATORS).index("rsi_14")] == 50


@pytest.mark.parametrize("row", [indicators.WARM_UP, 250, DAYS - 2])
def test_changing_the_future_changes_no_past_feature(row: int) -> None:
    other = _changed_after(HISTORY, row)
    for make in (indicators.table, indicators.market_context):
        past, same = make(HISTORY)[: row + 1], make(other)[: row + 1]
        np.testing.assert_array_equal(past, same)
        assert not np.array_equal(make(HISTORY)[row + 1 :], make(other)[row + 1 :], equal_nan=True)


def test_a_smoothed_series_is_the_recurrence_at_any_length() -> None:
    for length in (1, 2, 3, 100, 1000):
        series = np.random.default_rng(length).standard_normal(length)
        state, expected = series[0], [series[0]]
        for value in series[1:]:
            state = 0.9 * state + 0.1 * value
            expected.append(state)
        np.testing.assert_allclose(rolling.smoothed(series, 0.1), expected)


def test_training_targets_are_known_before_validation_begins() -> None:
    market = markets.market(markets.synthetic(0, symbols=2, days=500), horizon=7, window=4, cache=NO_CACHE)
    ends = []
    for fold in (1, 2, 3):
        split = markets.walk_forward(market, folds=3, fold=fold)
        assert market.known_at[split.train].max() < split.validation_from
        assert market.time[split.validation].min() == split.validation_from
        assert market.usable[split.train].all()
        assert set(market.symbol[split.validation]) == {0, 1}
        ends.append((split.validation_from, split.validation_to, len(split.train)))
    assert ends == sorted(ends)
    assert all(earlier[1] < later[0] for earlier, later in pairwise(ends))
    assert ends[-1][1] == market.time[market.usable].max()


def test_a_target_is_the_return_over_the_horizon() -> None:
    market = markets.market((HISTORY,), horizon=3, window=4, cache=NO_CACHE)
    np.testing.assert_allclose(market.target[150], np.log(HISTORY.close[153] / HISTORY.close[150]))
    assert market.known_at[150] == HISTORY.time[153]
    np.testing.assert_allclose(market.past[150], np.log(HISTORY.close[150] / HISTORY.close[147]))
    assert market.usable.tolist() == [indicators.WARM_UP + 3 <= row < DAYS - 3 for row in range(DAYS)]
    assert market.context.shape == (DAYS, markets.CONTEXT_FEATURES)


def test_a_cache_gives_back_what_was_computed_and_survives_damage(tmp_path: Path) -> None:
    computed: list[str] = []

    def compute(history: Candles) -> candles.Floats:
        computed.append(history.symbol)
        return history.close[:, None] * 2

    cache = IndicatorCache(tmp_path / "cache")
    first = cache.get(HISTORY, "double", compute)
    np.testing.assert_array_equal(cache.get(HISTORY, "double", compute), first)
    assert len(computed) == 1
    cache.get(HISTORY, "another", compute)
    cache.get(_changed_after(HISTORY, 10), "double", compute)
    assert len(computed) == 3
    for file in (tmp_path / "cache").iterdir():
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 0xFF
        file.write_bytes(content)
    np.testing.assert_array_equal(cache.get(HISTORY, "double", compute), first)
    assert len(computed) == 4
    np.testing.assert_array_equal(cache.get(HISTORY, "double", compute), first)
    assert len(computed) == 4
    assert all(file.suffix == ".npz" for file in (tmp_path / "cache").iterdir())


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    found = IndicatorCache(tmp_path / "file" / "cache").get(HISTORY, "k", lambda history: history.close[:, None])
    np.testing.assert_array_equal(found[:, 0], HISTORY.close)


@pytest.mark.parametrize(
    ("header", "row", "time"),
    [
        ("Date,Open,High,Low,Close,Adj Close,Volume", "2024-01-31,10,12,9,11,10.5,1000", "2024-01-31"),
        ("\ufeffdate;OPEN;HIGH;LOW;CLOSE;VOL", "20240131;10;12;9;11;1000", "2024-01-31"),
        ("Timestamp,open,high,low,close,volume", "1706659200,10,12,9,11,1000", "2024-01-31"),
        ("Open time,Open,High,Low,Close,Volume", "1706659200000,10,12,9,11,1000", "2024-01-31"),
        (
            "time\topen price\tHigh Price\tlow_price\tclose_price\ttotal volume",
            "2024-01-31T00:00:00Z\t10\t12\t9\t11\t1000",
            "2024-01-31",
        ),
        ("Date,Close/Last,Volume,Open,High,Low", '01/31/2024,$11.00,"1,000",$10,$12,$9', "2024-01-31"),
        ("DATETIME,O,H,L,C,V", "2024-01-31 09:30:00+02:00,10,12,9,11,1000", "2024-01-31T07:30"),
    ],
)
def test_usual_headers_dates_and_numbers_are_understood(tmp_path: Path, header: str, row: str, time: str) -> None:
    path = tmp_path / "ACME.csv"
    path.write_text(f"{header}\n{row}\n", encoding="utf-8")
    reading = candles.read(path)
    assert reading.problems == ()
    (found,) = reading.symbols
    assert found.symbol == "ACME"
    assert found.time[0] == np.datetime64(time)
    numbers = [series[0] for series in (found.open, found.high, found.low, found.close, found.volume)]
    assert numbers == [10, 12, 9, 11, 1000]


def test_the_three_header_lines_of_yfinance_are_understood(tmp_path: Path) -> None:
    path = tmp_path / "download.csv"
    header = "Price,Close,High,Low,Open,Volume\nTicker,X,X,X,X,X\nDate,,,,,\n"
    path.write_text(f"{header}2024-01-31,11,12,9,10,1000\n2024-02-01,0,1,1,1,1\n")
    reading = candles.read(path)
    assert [(one.symbol, one.close.tolist(), one.open.tolist()) for one in reading.symbols] == [("X", [11], [10])]
    assert reading.problems == (f"{path}, line 5: a price is not a number above 0; correct or remove it",)
    path.write_text("Price,Close,Close\nTicker,X,Y\nDate,,\n2024-01-31,1,2\n")
    with pytest.raises(UsageError, match="2 tickers side by side"):
        candles.read(path)


def test_symbols_come_from_a_column_or_from_file_names_oldest_row_first(tmp_path: Path) -> None:
    (tmp_path / "many.csv").write_text(
        "Ticker,Date,Open,High,Low,Close,Volume\nB,2024-01-02,2,2,2,2,1\nA,2024-01-02,1,1,1,1,1\nB,2024-01-01,3,3,3,3,1\n"
    )
    (tmp_path / "C.CSV").write_text("Date,Open,High,Low,Close,Volume\n2024-01-01,4,4,4,4,1\n")
    found = candles.read(tmp_path).symbols
    assert [(one.symbol, one.close.tolist()) for one in found] == [("A", [1]), ("B", [3, 2]), ("C", [4])]


def test_bad_rows_are_named_by_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    rows = [
        "2024-01-01,1,1,1,1,5",
        "yesterday,1,1,1,1,5",
        "2024-01-03,1,1,1,null,5",
        "2024-01-04,1,1,1,-1,5",
        "2024-01-05,1,1,2,1,5",
        "2024-01-06,1,1,1,1,-5",
        "2024-01-01,1,1,1,1,5",
        "2024-01-08,1",
    ]
    path.write_text("\n".join(["Date,Open,High,Low,Close,Volume", *rows]))
    reading = candles.read(path)
    assert [len(one) for one in reading.symbols] == [1]
    told = "\n".join(reading.problems)
    for line, what in (
        (3, "the date is not one"),
        (4, "a price is not a number"),
        (5, "a price is not a number"),
        (6, "high is below low"),
        (7, "the volume is not a number"),
        (8, "bad has this date twice"),
        (9, "it has fewer cells"),
    ):
        assert f"{path}, line {line}: {what}" in told
    assert len(reading.problems) == 7


OF_A_FILE = "Date;Open;High;Low;Close;Volume"


def _reading(folder: Path, *rows: str, header: str = OF_A_FILE) -> candles.Reading:
    path = folder / "A.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return candles.read(path)


def test_decimal_commas_are_not_taken_for_thousands(tmp_path: Path) -> None:
    """A price of 12,5 beside one of 12,25 would be 125 beside 1225."""
    reading = _reading(tmp_path, "2024-01-02;12,5;12,75;12;12,25;1.234.567", "2024-01-03;1.012,5;1.013;999,5;1.000;5")
    assert reading.problems == ()
    (found,) = reading.symbols
    assert found.open.tolist() == [12.5, 1012.5]
    assert found.close.tolist() == [12.25, 1000]
    assert found.low.tolist() == [12, 999.5]
    assert found.volume.tolist() == [1234567, 5]


def test_a_number_that_is_none_in_the_style_of_its_file_is_named(tmp_path: Path) -> None:
    mixed = _reading(tmp_path, "2024-01-02;1,012.5;1,013.5;999.5;1,000.5;5", "2024-01-03;12,5;13;12;12;5")
    assert [problem.partition(", ")[2].partition(";")[0] for problem in mixed.problems] == [
        "line 3: a price is not a number above 0"
    ]
    comma = _reading(tmp_path, "2024-01-02;12,5;13,5;12;12;5", "2024-01-03;12,5;13.5;12;12;5")
    assert "line 3: a price is not a number" in comma.problems[0]
    assert [found.open.tolist() for found in comma.symbols] == [[12.5]]


def test_a_row_with_more_cells_than_the_header_is_named(tmp_path: Path) -> None:
    """Decimal commas in a file separated by commas would shift every column after the first."""
    header = OF_A_FILE.replace(";", ",")
    reading = _reading(tmp_path, "2024-01-02,12,5,13,0,11,9,12,1,1000", "2024-01-03,5,6,4,5,1000,", header=header)
    assert len(reading.problems) == 1
    assert "line 2: it has more cells than the header" in reading.problems[0]
    assert [found.close.tolist() for found in reading.symbols] == [[5]]


@pytest.mark.parametrize(
    "dates",
    [
        ["01/30/2024", "01/31/2024", "02/01/2024"],
        ["30.01.2024", "31.01.2024", "01.02.2024"],
        ["1706572800", "1706659200", "1706745600"],
        ["1706572800000", "1706659200000", "1706745600000"],
        ["1706572800000000", "1706659200000000", "1706745600000000"],
        ["1706572800000000000", "1706659200000000000", "1706745600000000000"],
        ["20240130", "20240131", "20240201"],
        ["2024/01/30", "2024/01/31", "2024/02/01"],
        ["30-Jan-2024", "31-Jan-2024", "01-Feb-2024"],
        ["Jan 30, 2024", "Jan 31, 2024", "Feb 01, 2024"],
        ["2024-01-30", "2024-01-31", "2024-02-01"],
        ["2024-01-30T00:00:00Z", "2024-01-31T00:00:00Z", "2024-02-01T00:00:00Z"],
    ],
)
@pytest.mark.parametrize("bad", ["", "soon", "today", "2024", "45321", "²"])
def test_one_bad_date_is_named_alone_and_changes_no_other(tmp_path: Path, dates: list[str], bad: str) -> None:
    cells = [dates[0], bad, *dates[1:]]
    reading = _reading(tmp_path, *(f"{cell};1;1;1;1;5" for cell in cells))
    assert [problem.rpartition(" (")[0] for problem in reading.problems] == [
        f"{tmp_path / 'A.csv'}, line 3: the date is not one"
    ]
    assert [str(day)[:10] for day in reading.symbols[0].time] == ["2024-01-30", "2024-01-31", "2024-02-01"]


def test_unix_times_before_1970_are_dates(tmp_path: Path) -> None:
    reading = _reading(tmp_path, "-252374400;1;1;1;1;5", "1706659200;1;1;1;1;5")
    assert [str(day)[:10] for day in reading.symbols[0].time] == ["1962-01-02", "2024-01-31"]


def test_the_unnamed_index_of_a_pandas_frame_is_the_date(tmp_path: Path) -> None:
    path = tmp_path / "A.csv"
    path.write_text(",Open,High,Low,Close,Volume\n2024-01-30,1,1,1,1,5\n2024-01-31,1,1,1,1,5\n")
    reading = candles.read(path)
    assert [str(day)[:10] for day in reading.symbols[0].time] == ["2024-01-30", "2024-01-31"]
    path.write_text(",Date,Open,High,Low,Close,Volume\n0,2024-01-30,1,1,1,1,5\n1,2024-01-31,1,1,1,1,5\n")
    assert [str(day)[:10] for day in candles.read(path).symbols[0].time] == ["2024-01-30", "2024-01-31"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (",Open,High,Low,Close,Volume\n0,1,1,1,1,5\n", "has no column for date"),
        ("Date,Open,High,Low,Volume\n", "has no column for close"),
        ("", "has no column for date, open"),
        (None, "no CSV file there"),
    ],
)
def test_a_file_that_is_no_price_history_is_refused(tmp_path: Path, content: str | None, sentence: str) -> None:
    path = tmp_path / "x.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=rf"--data .*x\.csv: .*{sentence}"):
        candles.read(path)


def test_synthetic_prices_are_the_same_for_a_seed_only_and_possible() -> None:
    one, same, other = (markets.synthetic(seed, symbols=1, days=50)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.close, same.close)
    assert not np.array_equal(one.close, other.close)
    assert (one.high >= np.maximum(one.open, one.close)).all()
    assert (one.low <= np.minimum(one.open, one.close)).all()
