"""Moving averages and windows over a series, vectorised. No value depends on later ones."""

from __future__ import annotations

import numpy as np

from .candles import Floats


def windows(x: Floats, length: int) -> Floats:
    """The last ``length`` values at every position: (n, length); NaN before the first."""
    padded = np.concatenate([np.full(length - 1, np.nan), x])
    return np.lib.stride_tricks.sliding_window_view(padded, length)


def mean(x: Floats, length: int) -> Floats:
    """Simple moving average; NaN until the window is full."""
    found: Floats = windows(x, length).mean(axis=1)
    return found


def total(x: Floats, length: int) -> Floats:
    """Moving sum; NaN until the window is full."""
    found: Floats = windows(x, length).sum(axis=1)
    return found


def deviation(x: Floats, length: int) -> Floats:
    """Moving standard deviation of the population; NaN until the window is full."""
    found: Floats = windows(x, length).std(axis=1)
    return found


def highest(x: Floats, length: int) -> Floats:
    """Moving maximum; NaN until the window is full."""
    found: Floats = windows(x, length).max(axis=1)
    return found


def lowest(x: Floats, length: int) -> Floats:
    """Moving minimum; NaN until the window is full."""
    found: Floats = windows(x, length).min(axis=1)
    return found


def smoothed(x: Floats, alpha: float) -> Floats:
    """y[0] = x[0], y[t] = (1 - alpha) * y[t-1] + alpha * x[t]; log2(n) steps instead of n (Hillis and Steele, 1986)."""
    y = alpha * x
    y[:1] = x[:1]
    shift, decay = 1, 1 - alpha
    while shift < len(y) and decay > 0:
        y[shift:] += decay * y[:-shift].copy()
        shift, decay = 2 * shift, decay * decay
    return y


def exponential(x: Floats, length: int) -> Floats:
    """Exponential moving average with alpha = 2 / (length + 1)."""
    return smoothed(x, 2 / (length + 1))


def wilder(x: Floats, length: int) -> Floats:
    """Wilder's moving average: alpha = 1 / length (New Concepts in Technical Trading Systems, 1978)."""
    return smoothed(x, 1 / length)


def before(x: Floats, steps: int) -> Floats:
    """The value ``steps`` earlier; the first value where there is none."""
    if steps == 0:
        return x
    return np.concatenate([np.full(min(steps, len(x)), x[0]), x[:-steps]])


def ratio(above: Floats, below: Floats) -> Floats:
    """above / below; 0 where ``below`` is 0, since a market that stood still says nothing."""
    return np.divide(above, below, out=np.zeros_like(above), where=below != 0)
