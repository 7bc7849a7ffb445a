"""Names cut to the width of a column so that no two of them look the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import combinations
from os.path import commonprefix

from .rows import fit, width_of

_LEAST_PIECE = 3
"""Least characters of a part that is kept: fewer would say nothing."""
_SEPARATORS = re.compile(r"[\s_./:-]")


@lru_cache(64)
def cut_apart(names: tuple[str, ...], width: int) -> Mapping[str, str]:
    """Return names in ``width`` cells: their beginning and, if several begin alike, the parts in which they differ."""
    others = {name: _cuts(name, names, width) for name in set(names)}
    cut = {name: fit(name, width) for name in others}
    while True:
        times = Counter(cut.values())
        moved = {name: next(others[name], text) for name, text in cut.items() if times[text] > 1}
        if all(cut[name] == text for name, text in moved.items()):
            return cut
        cut.update(moved)


def _cuts(name: str, names: tuple[str, ...], width: int) -> Iterator[str]:
    """Yield other ways to cut it, each keeping two of its parts: those nearest to its beginning first."""
    if width_of(name) <= width:
        return
    alike = {commonprefix((name, other)) for other in names if other != name}  # noqa: RUF071 - no paths
    differs = set(map(len, alike)) - {len(name)}
    words = {0, *(found.end() for found in _SEPARATORS.finditer(name))}
    starts = differs | {max(word for word in words if word <= place) for place in differs}
    for end, start in sorted((end, start) for start, end in combinations(sorted({0, *starts}), 2)):
        in_front, rest = "…" if start else "", name[end:]
        room = max(_LEAST_PIECE, width - len(in_front) - 1 - width_of(rest))
        yield fit(f"{in_front}{name[start : min(start + room, end)]}…{rest}", width)
