"""The formulas of technical indicators, once more: one day after another, in plain Python, as a book has them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from trainer.data.candles import Candles

Series = list[float]


def _ema(x: Sequence[float], alpha: float) -> Series:
    out = [x[0]]
    for value in x[1:]:
        out.append(out[-1] + alpha * (value - out[-1]))
    return out


def _exponential(x: Sequence[float], n: int) -> Series:
    return _ema(x, 2 / (n + 1))


def _wilder(x: Sequence[float], n: int) -> Series:
    return _ema(x, 1 / n)


def _last(x: Sequence[float], t: int, n: int) -> Sequence[float]:
    return x[t - n + 1 : t + 1] if t >= n - 1 else [math.nan] * n


def _mean(x: Sequence[float]) -> float:
    return math.fsum(x) / len(x)


def _deviation(x: Sequence[float]) -> float:
    middle = _mean(x)
    return math.sqrt(_mean([(value - middle) ** 2 for value in x]))


def _lists(c: Candles) -> tuple[Series, Series, Series, Series]:
    return c.high.tolist(), c.low.tolist(), c.close.tolist(), c.volume.tolist()


def _typical(c: Candles) -> Series:
    high, low, close, _ = _lists(c)
    return [(h + lo + cl) / 3 for h, lo, cl in zip(high, low, close, strict=True)]


def _every_day(c: Candles, day: Callable[[int], float]) -> Series:
    return [day(t) for t in range(len(c))]


def rsi(c: Candles, n: int = 14) -> Series:
    close = c.close.tolist()
    moves = [0.0] + [b - a for a, b in pairwise(close)]
    gains, losses = _wilder([max(m, 0) for m in moves], n), _wilder([max(-m, 0) for m in moves], n)
    return [
        50.0 if g + lo == 0 else 100.0 if lo == 0 else 100 - 100 / (1 + g / lo)
        for g, lo in zip(gains, losses, strict=True)
    ]


def macd_lines(c: Candles) -> tuple[Series, Series]:
    close = c.close.tolist()
    line = [a - b for a, b in zip(_exponential(close, 12), _exponential(close, 26), strict=True)]
    return line, _exponential(line, 9)


def per_close(c: Candles, x: Sequence[float]) -> Series:
    return [value / close for value, close in zip(x, c.close.tolist(), strict=True)]


def true_range(c: Candles) -> Series:
    high, low, close, _ = _lists(c)
    out = [high[0] - low[0]]
    for t in range(1, len(c)):
        out.append(max(high[t], close[t - 1]) - min(low[t], close[t - 1]))
    return [max(out[0], high[0] - close[0], close[0] - low[0]), *out[1:]]


def atr(c: Candles, n: int = 14) -> Series:
    return _wilder(true_range(c), n)


def bollinger(c: Candles) -> tuple[Series, Series]:
    close = c.close.tolist()
    position, width = [], []
    for t in range(len(c)):
        window = _last(close, t, 20)
        middle, spread = _mean(window), _deviation(window)
        lower, upper = middle - 2 * spread, middle + 2 * spread
        position.append((close[t] - lower) / (upper - lower))
        width.append((upper - lower) / middle)
    return position, width


def obv(c: Candles) -> Series:
    close, volume, out = c.close.tolist(), c.volume.tolist(), [0.0]
    for t in range(1, len(c)):
        out.append(out[-1] + (volume[t] if close[t] > close[t - 1] else -volume[t] if close[t] < close[t - 1] else 0))
    return out


def obv_trend(c: Candles) -> Series:
    total, volume = obv(c), c.volume.tolist()
    return _every_day(c, lambda t: (total[t] - total[t - 20]) / sum(_last(volume, t, 20)) if t >= 20 else math.nan)


def directional(c: Candles, n: int = 14) -> tuple[Series, Series, Series]:
    high, low, _, _ = _lists(c)
    plus, minus = [0.0], [0.0]
    for t in range(1, len(c)):
        up, down = high[t] - high[t - 1], low[t - 1] - low[t]
        plus.append(up if up > down and up > 0 else 0.0)
        minus.append(down if down > up and down > 0 else 0.0)
    span = atr(c, n)
    pdi = [100 * a / b for a, b in zip(_wilder(plus, n), span, strict=True)]
    mdi = [100 * a / b for a, b in zip(_wilder(minus, n), span, strict=True)]
    dx = [100 * abs(a - b) / (a + b) if a + b else 0.0 for a, b in zip(pdi, mdi, strict=True)]
    return pdi, mdi, _wilder(dx, n)


def stochastic(c: Candles, n: int = 14) -> Series:
    high, low, close, _ = _lists(c)

    def day(t: int) -> float:
        bottom, top = min(_last(low, t, n)), max(_last(high, t, n))
        return 100 * (close[t] - bottom) / (top - bottom)

    return _every_day(c, day)


def stochastic_d(c: Candles) -> Series:
    k = stochastic(c)
    return _every_day(c, lambda t: _mean(_last(k, t, 3)))


def vwap_distance(c: Candles) -> Series:
    typical, volume, close = _typical(c), c.volume.tolist(), c.close.tolist()

    def day(t: int) -> float:
        prices, amounts = _last(typical, t, 20), _last(volume, t, 20)
        average = math.fsum(p * a for p, a in zip(prices, amounts, strict=True)) / math.fsum(amounts)
        return float(close[t] / average - 1)

    return _every_day(c, day)


def cci(c: Candles) -> Series:
    typical = _typical(c)

    def day(t: int) -> float:
        window = _last(typical, t, 20)
        middle = _mean(window)
        return (typical[t] - middle) / (0.015 * _mean([abs(value - middle) for value in window]))

    return _every_day(c, day)


def roc(c: Candles, n: int) -> Series:
    close = c.close.tolist()
    return _every_day(c, lambda t: (close[t] - close[t - n]) / close[t - n] if t >= n else math.nan)


def mfi(c: Candles, n: int = 14) -> Series:
    typical, volume = _typical(c), c.volume.tolist()

    def day(t: int) -> float:
        if t < n:
            return math.nan
        up = sum(typical[s] * volume[s] for s in range(t - n + 1, t + 1) if typical[s] > typical[s - 1])
        down = sum(typical[s] * volume[s] for s in range(t - n + 1, t + 1) if typical[s] < typical[s - 1])
        return 100 - 100 / (1 + up / down) if down else 100.0

    return _every_day(c, day)


def above(c: Candles, average: Sequence[float]) -> Series:
    return [close / middle - 1 for close, middle in zip(c.close.tolist(), average, strict=True)]


def sma(c: Candles, n: int) -> Series:
    close = c.close.tolist()
    return _every_day(c, lambda t: _mean(_last(close, t, n)))


def volatility(c: Candles) -> Series:
    close = c.close.tolist()
    moves = [0.0] + [math.log(b / a) for a, b in pairwise(close)]
    return _every_day(c, lambda t: _deviation(_last(moves, t, 20)))


def volume_ratio(c: Candles) -> Series:
    volume = c.volume.tolist()
    return _every_day(c, lambda t: math.log(1 + volume[t] / _mean(_last(volume, t, 20))))


def chaikin(c: Candles) -> Series:
    high, low, close, volume = _lists(c)
    flow = [((cl - lo) - (h - cl)) / (h - lo) * v for h, lo, cl, v in zip(high, low, close, volume, strict=True)]
    return _every_day(c, lambda t: math.fsum(_last(flow, t, 20)) / math.fsum(_last(volume, t, 20)))


def aroon(c: Candles) -> Series:
    high, low, _, _ = _lists(c)

    def day(t: int) -> float:
        if t < 25:
            return math.nan
        days = range(t - 25, t + 1)
        since_high = t - max(days, key=lambda s: (high[s], s))
        since_low = t - min(days, key=lambda s: (low[s], -s))
        return 100 * (25 - since_high) / 25 - 100 * (25 - since_low) / 25

    return _every_day(c, day)


def trix(c: Candles) -> Series:
    third = c.close.tolist()
    for _ in range(3):
        third = _exponential(third, 15)
    return _every_day(c, lambda t: (third[t] - third[t - 1]) / third[t - 1] if t else 0.0)


def keltner(c: Candles) -> Series:
    middle, span, close = _exponential(c.close.tolist(), 20), atr(c), c.close.tolist()
    return _every_day(c, lambda t: (close[t] - middle[t]) / span[t])


SLOW: dict[str, Callable[[Candles], Series]] = {
    "rsi_7": lambda c: rsi(c, 7),
    "rsi_14": rsi,
    "macd": lambda c: per_close(c, macd_lines(c)[0]),
    "macd_signal": lambda c: per_close(c, macd_lines(c)[1]),
    "macd_histogram": lambda c: per_close(c, [a - b for a, b in zip(*macd_lines(c), strict=True)]),
    "atr_14": lambda c: per_close(c, atr(c)),
    "bollinger_position": lambda c: bollinger(c)[0],
    "bollinger_width": lambda c: bollinger(c)[1],
    "obv_trend": obv_trend,
    "adx_14": lambda c: directional(c)[2],
    "plus_di_14": lambda c: directional(c)[0],
    "minus_di_14": lambda c: directional(c)[1],
    "stochastic_k": stochastic,
    "stochastic_d": stochastic_d,
    "vwap_distance": vwap_distance,
    "cci_20": cci,
    "williams_r_14": lambda c: [k - 100 for k in stochastic(c)],
    "roc_1": lambda c: roc(c, 1),
    "roc_5": lambda c: roc(c, 5),
    "roc_10": lambda c: roc(c, 10),
    "roc_20": lambda c: roc(c, 20),
    "mfi_14": mfi,
    "ema_ratio_12": lambda c: above(c, _exponential(c.close.tolist(), 12)),
    "ema_ratio_26": lambda c: above(c, _exponential(c.close.tolist(), 26)),
    "sma_ratio_10": lambda c: above(c, sma(c, 10)),
    "sma_ratio_50": lambda c: above(c, sma(c, 50)),
    "volatility_20": volatility,
    "volume_ratio": volume_ratio,
    "chaikin_flow": chaikin,
    "aroon_25": aroon,
    "trix_15": trix,
    "keltner_position": keltner,
}
