"""Numbers, sizes, durations and moments as short text of a known greatest width.

Unknown is ``n/a``, never 0; what is NaN or infinite is ``NaN/inf``, in a sentence "NaN or infinite".
"""

from __future__ import annotations

import math
import time

UNKNOWN = "n/a"
NOT_FINITE = "NaN/inf"
"""One word for what was measured and is no finite number: records keep no more of it than that."""
_SIZE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_LONGEST_SECONDS = 1000 * _DAY


def number(value: float | None, *, digits: int = 4) -> str:
    """``digits`` significant digits in at most ``digits + 5`` cells: ``0.5312``, ``1234``, ``1.204e-05``."""
    if value is None:
        return UNKNOWN
    if not math.isfinite(value):
        return NOT_FINITE
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if not -4 <= magnitude < 6:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(0, digits - 1 - magnitude)}f}"


def whole(value: float | None) -> str:
    """A count with thousands set apart: ``22,301``. A fraction keeps one decimal: ``4.5``."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def short_count(value: float | None) -> str:
    """A count in at most 5 cells (a minus sign and ``1e+100`` take one more): ``391``, ``22.3k``, ``1.20M``."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if abs(value) < 9999.5:
        return f"{value:.{0 if value == int(value) or abs(value) >= 999.95 else 1}f}"
    for unit, scale in (("k", 1e3), ("M", 1e6), ("G", 1e9)):
        amount = value / scale
        if abs(amount) < 999.5:  # what is rounded up to a thousand is one of the next unit
            return f"{amount:.{2 if abs(amount) < 9.995 else 1 if abs(amount) < 99.95 else 0}f}{unit}"
    return f"{value:.0e}"


def size(value: float | None) -> str:
    """Bytes in at most 9 cells, powers of 1024: ``5.9 GiB``, ``512 MiB``, ``0 B``."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    amount, unit = float(value), 0
    while abs(amount) >= 999.5 and unit < len(_SIZE_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.{0 if unit == 0 or abs(amount) >= 99.5 else 1}f} {_SIZE_UNITS[unit]}"


def settled(seconds: float) -> float:
    """An age that grows, in whole tens after the first minute: a line that changes every second is no information."""
    return seconds if seconds < 60 else seconds // 10 * 10


def duration(seconds: float | None) -> str:
    """Two units at most, in at most 7 cells: ``45s``, ``3m 20s``, ``1h 22m``, ``12d 4h``."""
    if seconds is None or not math.isfinite(seconds) or seconds < 0:
        return UNKNOWN
    if seconds >= _LONGEST_SECONDS:
        return ">999d"
    whole_seconds = int(seconds)
    if whole_seconds < _MINUTE:
        return f"{whole_seconds}s"
    if whole_seconds < _HOUR:
        return f"{whole_seconds // _MINUTE}m {whole_seconds % _MINUTE:02d}s"
    if whole_seconds < _DAY:
        return f"{whole_seconds // _HOUR}h {whole_seconds % _HOUR // _MINUTE:02d}m"
    return f"{whole_seconds // _DAY}d {whole_seconds % _DAY // _HOUR:02d}h"


def rate(value: float | None) -> str:
    """A speed per second in at most 5 cells: ``0.42``, ``31.2``, ``3994``, ``12.5k``."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if abs(value) < 1000:
        return f"{value:.{2 if abs(value) < 10 else 1}f}" if abs(value) < 100 else f"{value:.0f}"
    return short_count(round(value))


def percent(fraction: float | None) -> str:
    """A share of one in at most 6 cells: ``28.5 %``, ``100 %``."""
    if fraction is None or not math.isfinite(fraction):
        return UNKNOWN
    value = fraction * 100
    return f"{value:.0f} %" if value >= 99.95 or value == 0 else f"{value:.1f} %"


def clock(moment: float | None) -> str:
    """Local wall-clock time, ``14:03:07``."""
    return UNKNOWN if moment is None else time.strftime("%H:%M:%S", time.localtime(moment))


def moment_of_day(moment: float | None, now: float) -> str:
    """``14:03:07`` for the last day, ``Nov 18 14:03`` for what is older."""
    if moment is None:
        return UNKNOWN
    if abs(now - moment) < _DAY:
        return clock(moment)
    return time.strftime("%b %d %H:%M", time.localtime(moment))


def ratio(part: float | None, total: float | None) -> float | None:
    """``part / total`` between 0 and 1, None where it cannot be known."""
    if part is None or total is None or total <= 0 or not math.isfinite(part) or not math.isfinite(total):
        return None
    return min(1.0, max(0.0, part / total))
