"""Technical indicators of one symbol, independent of its price level, so that symbols and years can be compared.

Definitions are the usual ones. Recursive averages start from the first value, and nothing before ``WARM_UP`` is used.
Each indicator at time t is computed only from rows up to t.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .candles import Candles, Floats
from .rolling import (
    before,
    deviation,
    exponential,
    highest,
    lowest,
    mean,
    ratio,
    total,
    wilder,
    windows,
)

WARM_UP = 100
"""Rows until the longest average has forgotten its first value."""
VERSION = 1
"""Part of the cache's key: raise it when a definition changes."""


def rsi(candles: Candles, length: int = 14) -> Floats:
    """Relative strength index, 0 to 100 (Wilder, 1978); 50 where nothing moved."""
    change = candles.close - before(candles.close, 1)
    gain, loss = wilder(change.clip(min=0), length), wilder((-change).clip(min=0), length)
    return np.where(gain + loss > 0, 100 * ratio(gain, gain + loss), 50.0)


def macd(candles: Candles, fast: int = 12, slow: int = 26) -> Floats:
    """Difference of two exponential averages of the close (Appel, 1979), as a share of the close."""
    return (exponential(candles.close, fast) - exponential(candles.close, slow)) / candles.close


def macd_signal(candles: Candles, length: int = 9) -> Floats:
    """Exponential average of the MACD line in price units, as a share of the close."""
    return exponential(macd(candles) * candles.close, length) / candles.close


def true_range(candles: Candles) -> Floats:
    """The largest of high - low and the distances of both from the previous close (Wilder, 1978)."""
    previous = before(candles.close, 1)
    spans = (candles.high - candles.low, abs(candles.high - previous), abs(candles.low - previous))
    found: Floats = np.maximum.reduce(spans)
    return found


def atr(candles: Candles, length: int = 14) -> Floats:
    """Average true range, as a share of the close."""
    return wilder(true_range(candles), length) / candles.close


def bollinger_position(candles: Candles, length: int = 20) -> Floats:
    """Where the close lies between the bands at 2 standard deviations: 0 the lower, 1 the upper."""
    middle, spread = mean(candles.close, length), deviation(candles.close, length)
    return 0.5 + ratio(candles.close - middle, 4 * spread)


def bollinger_width(candles: Candles, length: int = 20) -> Floats:
    """Distance of the bands at 2 standard deviations, as a share of the average."""
    return 4 * deviation(candles.close, length) / mean(candles.close, length)


def obv_trend(candles: Candles, length: int = 20) -> Floats:
    """On-balance volume (Granville, 1963) gained over a window, as a share of the volume traded in it.

    On-balance volume itself, the running sum of volumes signed by the close's direction, cannot be compared.
    """
    signed = np.sign(candles.close - before(candles.close, 1)) * candles.volume
    return ratio(total(signed, length), total(candles.volume, length))


def _directional(candles: Candles, length: int) -> tuple[Floats, Floats]:
    up = candles.high - before(candles.high, 1)
    down = before(candles.low, 1) - candles.low
    span = wilder(true_range(candles), length)
    plus = wilder(np.where((up > down) & (up > 0), up, 0.0), length)
    minus = wilder(np.where((down > up) & (down > 0), down, 0.0), length)
    return 100 * ratio(plus, span), 100 * ratio(minus, span)


def plus_di(candles: Candles, length: int = 14) -> Floats:
    """Positive directional indicator (Wilder, 1978), 0 to 100."""
    return _directional(candles, length)[0]


def minus_di(candles: Candles, length: int = 14) -> Floats:
    """Negative directional indicator (Wilder, 1978), 0 to 100."""
    return _directional(candles, length)[1]


def adx(candles: Candles, length: int = 14) -> Floats:
    """Average directional index (Wilder, 1978), 0 to 100: how strong a trend is, whichever its direction."""
    plus, minus = _directional(candles, length)
    return wilder(100 * ratio(abs(plus - minus), plus + minus), length)


def stochastic_k(candles: Candles, length: int = 14) -> Floats:
    """Where the close lies in the range of the window, 0 to 100 (Lane, 1950s)."""
    low, high = lowest(candles.low, length), highest(candles.high, length)
    return 100 * ratio(candles.close - low, high - low)


def stochastic_d(candles: Candles, length: int = 3) -> Floats:
    """Simple average of stochastic %K."""
    return mean(stochastic_k(candles), length)


def _typical(candles: Candles) -> Floats:
    return (candles.high + candles.low + candles.close) / 3


def vwap_distance(candles: Candles, length: int = 20) -> Floats:
    """How far the close is above the window's volume-weighted average price, as a share of that."""
    typical = _typical(candles)
    traded = total(candles.volume, length)
    price = np.where(traded > 0, ratio(total(typical * candles.volume, length), traded), typical)
    return candles.close / price - 1


def cci(candles: Candles, length: int = 20) -> Floats:
    """Commodity channel index (Lambert, 1980)."""
    typical = _typical(candles)
    average = mean(typical, length)
    spread = abs(windows(typical, length) - average[:, None]).mean(axis=1)
    return ratio(typical - average, 0.015 * spread)


def williams_r(candles: Candles, length: int = 14) -> Floats:
    """Williams %R, -100 to 0."""
    low, high = lowest(candles.low, length), highest(candles.high, length)
    return -100 * ratio(high - candles.close, high - low)


def roc(candles: Candles, length: int = 10) -> Floats:
    """Rate of change of the close, as a share."""
    return candles.close / before(candles.close, length) - 1


def mfi(candles: Candles, length: int = 14) -> Floats:
    """Money flow index, 0 to 100: the relative strength of volume-weighted moves (Quong and Soudack, 1989)."""
    typical = _typical(candles)
    change, flow = typical - before(typical, 1), typical * candles.volume
    gain = total(np.where(change > 0, flow, 0.0), length)
    loss = total(np.where(change < 0, flow, 0.0), length)
    return np.where(gain + loss > 0, 100 * ratio(gain, gain + loss), 50.0)


def ema_ratio(candles: Candles, length: int = 12) -> Floats:
    """How far the close is above its exponential average, as a share of that."""
    return candles.close / exponential(candles.close, length) - 1


def sma_ratio(candles: Candles, length: int = 20) -> Floats:
    """How far the close is above its simple average, as a share of that."""
    return candles.close / mean(candles.close, length) - 1


def volatility(candles: Candles, length: int = 20) -> Floats:
    """Standard deviation of the logarithmic returns of the window."""
    return deviation(np.log(candles.close / before(candles.close, 1)), length)


def volume_ratio(candles: Candles, length: int = 20) -> Floats:
    """Logarithm of 1 + volume / average volume."""
    found: Floats = np.log1p(ratio(candles.volume, mean(candles.volume, length)))
    return found


def chaikin_flow(candles: Candles, length: int = 20) -> Floats:
    """Chaikin money flow, -1 to 1: volume weighted by where the close lies in its day's range."""
    span = candles.high - candles.low
    place = ratio(2 * candles.close - candles.high - candles.low, span)
    return ratio(total(place * candles.volume, length), total(candles.volume, length))


def aroon(candles: Candles, length: int = 25) -> Floats:
    """Aroon oscillator, -100 to 100 (Chande, 1995): whether the high or the low of the window is the later one."""
    latest_high = windows(candles.high, length + 1)[:, ::-1].argmax(axis=1)
    latest_low = windows(candles.low, length + 1)[:, ::-1].argmin(axis=1)
    found: Floats = 100.0 * (latest_low - latest_high) / length
    return found


def trix(candles: Candles, length: int = 15) -> Floats:
    """Change of the close's triple exponential average, as a share (Hutson, 1983)."""
    third = exponential(exponential(exponential(candles.close, length), length), length)
    return third / before(third, 1) - 1


def keltner_position(candles: Candles, length: int = 20) -> Floats:
    """How far the close is above its exponential average, in average true ranges."""
    return ratio(candles.close - exponential(candles.close, length), wilder(true_range(candles), 14))


INDICATORS: dict[str, Callable[[Candles], Floats]] = {
    "rsi_7": lambda candles: rsi(candles, 7),
    "rsi_14": rsi,
    "macd": macd,
    "macd_signal": macd_signal,
    "macd_histogram": lambda candles: macd(candles) - macd_signal(candles),
    "atr_14": atr,
    "bollinger_position": bollinger_position,
    "bollinger_width": bollinger_width,
    "obv_trend": obv_trend,
    "adx_14": adx,
    "plus_di_14": plus_di,
    "minus_di_14": minus_di,
    "stochastic_k": stochastic_k,
    "stochastic_d": stochastic_d,
    "vwap_distance": vwap_distance,
    "cci_20": cci,
    "williams_r_14": williams_r,
    "roc_1": lambda candles: roc(candles, 1),
    "roc_5": lambda candles: roc(candles, 5),
    "roc_10": roc,
    "roc_20": lambda candles: roc(candles, 20),
    "mfi_14": mfi,
    "ema_ratio_12": ema_ratio,
    "ema_ratio_26": lambda candles: ema_ratio(candles, 26),
    "sma_ratio_10": lambda candles: sma_ratio(candles, 10),
    "sma_ratio_50": lambda candles: sma_ratio(candles, 50),
    "volatility_20": volatility,
    "volume_ratio": volume_ratio,
    "chaikin_flow": chaikin_flow,
    "aroon_25": aroon,
    "trix_15": trix,
    "keltner_position": keltner_position,
}
"""What the model chooses from."""


def table(candles: Candles) -> Floats:
    """All indicators: (n, len(INDICATORS)); NaN where a window is not full yet."""
    return np.stack([make(candles) for make in INDICATORS.values()], axis=1)


def market_context(candles: Candles) -> Floats:
    """Nine of the ten features of the market's state, (n, 9); the tenth needs all symbols, see markets.py."""
    returns = np.log(candles.close / before(candles.close, 1))
    gap = np.log(candles.open / before(candles.close, 1))
    body = np.log(candles.close / candles.open)
    span = np.log(candles.high / candles.low)
    logarithm = np.log(candles.close)
    moves = [logarithm - before(logarithm, steps) for steps in (1, 5, 20)]
    spreads = [deviation(returns, length) for length in (5, 20)]
    return np.stack([*moves, *spreads, span, gap, body, volume_ratio(candles)], axis=1)
