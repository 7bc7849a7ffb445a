"""Candles as training samples: features up to a day, the return after it, split by time without looking ahead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from . import indicators
from .candles import Candles, Floats
from .indicator_cache import IndicatorCache

CONTEXT_FEATURES = 10
_LIMIT = 5.0
"""Scaled features are clipped at this many standard deviations."""
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """One walk-forward fold. Rows number all days of all symbols, one symbol after the other."""

    train: Rows
    validation: Rows
    validation_from: np.datetime64
    validation_to: np.datetime64


@dataclass(frozen=True)
class Market:
    """Everything a model may see and must predict, unscaled. Row r of every array is the same day of one symbol."""

    symbols: tuple[str, ...]
    symbol: Rows
    """Index into ``symbols``, (rows,)."""
    time: npt.NDArray[np.datetime64]
    indicators: Floats
    """(rows, indicators)."""
    context: Floats
    """(rows, 10): the state of the market."""
    target: Floats
    """Logarithm of the ratio of the close ``horizon`` rows later to the close; NaN where that is not known yet."""
    known_at: npt.NDArray[np.datetime64]
    """When the target became known; NaT where it is not."""
    past: Floats
    """Logarithmic return over the last ``horizon`` rows: what persistence would predict."""
    usable: npt.NDArray[np.bool_]
    """Whether a sample can end here: every window is full and the target is known."""

    def without_samples(self) -> tuple[str, ...]:
        """Symbols whose history is too short for a single sample."""
        counts = np.bincount(self.symbol[self.usable], minlength=len(self.symbols))
        return tuple(name for name, count in zip(self.symbols, counts, strict=True) if not count)


def market(symbols: tuple[Candles, ...], *, horizon: int, window: int, cache: IndicatorCache) -> Market:
    """Compute features and targets of all symbols.

    Args:
        horizon: rows ahead that are to be predicted.
        window: rows of each indicator that a sample holds.
    """
    key = f"indicators {indicators.VERSION} {','.join(indicators.INDICATORS)}"
    values = np.concatenate([cache.get(candles, key, indicators.table) for candles in symbols])
    own = np.concatenate([indicators.market_context(candles) for candles in symbols])
    time = np.concatenate([candles.time for candles in symbols])
    sizes = [len(candles) for candles in symbols]
    parts = [_outlook(candles, horizon) for candles in symbols]
    target, past, known_at = (np.concatenate([part[item] for part in parts]) for item in range(3))
    age = np.concatenate([np.arange(size) for size in sizes])
    known: npt.NDArray[np.bool_] = np.isfinite(target)
    return Market(
        symbols=tuple(candles.symbol for candles in symbols),
        symbol=np.repeat(np.arange(len(symbols)), sizes),
        time=time,
        indicators=values,
        context=np.column_stack([own, _together(time, own[:, 0])]),
        target=target.astype(np.float64),
        known_at=known_at,
        past=past.astype(np.float64),
        usable=known & (age >= indicators.WARM_UP + window - 1),
    )


def walk_forward(market: Market, *, folds: int, fold: int) -> Split:
    """Days in ``folds`` + 1 equal parts: fold k trains on the first k parts and validates on the one after them.

    A training target must be known before validation begins: samples that overlap are left out.

    Args:
        fold: from 1 to ``folds``.
    """
    days = np.unique(market.time[market.usable])
    if len(days) <= folds:
        nothing = np.zeros(0, np.int64)
        return Split(nothing, nothing, np.datetime64("NaT"), np.datetime64("NaT"))
    edges = np.linspace(0, len(days), folds + 2).astype(int)
    begin, end = days[edges[fold]], days[edges[fold + 1] - 1]
    train = market.usable & (market.known_at < begin)
    validation = market.usable & (market.time >= begin) & (market.time <= end)
    return Split(np.flatnonzero(train), np.flatnonzero(validation), begin, end)


@dataclass(frozen=True)
class Scaling:
    """Means and standard deviations, only of training rows."""

    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, values: Floats) -> Scaling:
        """Statistics over the first dimension."""
        return cls(values.mean(axis=0), values.std(axis=0) + 1e-12)

    def apply(self, values: Floats) -> npt.NDArray[np.float32]:
        """Mean 0, deviation 1, clipped at 5; what is not known yet becomes 0."""
        scaled = np.nan_to_num((values - self.mean) / self.deviation, nan=0.0)
        return scaled.clip(-_LIMIT, _LIMIT).astype(np.float32)


def seen_by(rows: Rows, window: int) -> Rows:
    """All rows that a model sees in the samples that end at ``rows``, each once."""
    return np.unique(rows[:, None] - np.arange(window))


def synthetic(seed: int, *, symbols: int = 8, days: int = 1500) -> tuple[Candles, ...]:
    """Prices whose drift shows in where a day closes within its range and in volume, but hardly in past returns.

    A slow hidden drift moves each price. In past returns noise and short-lived errors hide it, so that persistence
    predicts little; the wicks of the candles show it. Equal seeds give equal prices.
    """
    random = np.random.default_rng([seed, 11])
    calendar = np.arange("2015-01-01", "2100-01-01", dtype="datetime64[D]")
    calendar = calendar[np.is_busday(calendar)][:days].astype("datetime64[s]")
    return tuple(_prices(f"SYN{number + 1}", calendar, random) for number in range(symbols))


def _prices(symbol: str, time: npt.NDArray[np.datetime64], random: np.random.Generator) -> Candles:
    count = len(time)
    drift = _hidden(count, random)
    steps = 0.01 * (0.4 * drift + random.standard_normal(count))
    lasting = np.log(random.uniform(20, 200)) + np.concatenate([[0.0], np.cumsum(steps)[:-1]])
    logarithm = lasting + 0.01 * random.standard_normal(count)
    close = np.exp(logarithm)
    opening = close * np.exp(0.004 * random.standard_normal(count))
    place = 1 / (1 + np.exp(-1.2 * drift - 0.6 * random.standard_normal(count)))
    span = 0.015 * close * np.exp(0.3 * random.standard_normal(count))
    low = np.minimum(close - place * span, np.minimum(opening, close))
    high = np.maximum(close + (1 - place) * span, np.maximum(opening, close))
    volume = 1e6 * np.exp(0.2 * abs(drift) + 0.3 * random.standard_normal(count))
    return Candles(symbol, time, opening, high, low, close, volume.round())


def _hidden(count: int, random: np.random.Generator) -> Floats:
    """A slow process around 0 with deviation 1."""
    noise = random.standard_normal(count)
    found = np.empty(count)
    state = random.standard_normal()
    for step in range(count):
        state = 0.96 * state + 0.28 * noise[step]
        found[step] = state
    return found


def _outlook(candles: Candles, horizon: int) -> tuple[Floats, Floats, npt.NDArray[np.datetime64]]:
    """The future return, the past one, and when the future one becomes known."""
    logarithm = np.log(candles.close)
    ahead = np.full(len(candles), np.nan)
    behind = np.full(len(candles), np.nan)
    known_at = np.full(len(candles), np.datetime64("NaT"), candles.time.dtype)
    if len(candles) > horizon:
        ahead[:-horizon] = behind[horizon:] = logarithm[horizon:] - logarithm[:-horizon]
        known_at[:-horizon] = candles.time[horizon:]
    return ahead, behind, known_at


def _together(time: npt.NDArray[np.datetime64], returns: Floats) -> Floats:
    """The mean return of all symbols on the same day."""
    _, day = np.unique(time, return_inverse=True)
    found: Floats = (np.bincount(day, returns) / np.bincount(day))[day]
    return found


def gaps(candles: Candles) -> int:
    """Gaps between two rows of over ten times the usual one: trading halts, or missing files.

    With several rows a day, a night is compared with other nights.
    """
    steps = np.diff(candles.time).astype("timedelta64[s]").astype(np.int64)
    overnight = np.diff(candles.time.astype("datetime64[D]")).astype(np.int64) > 0
    parts = [part for part in (steps[overnight], steps[~overnight]) if len(part)]
    return sum(int((part > 10 * np.median(part)).sum()) for part in parts)
