"""The help page, made from the table of keys, in columns; those of the screen it was opened on come first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement, zip_longest

from ...core.present import legend
from ..bindings import KEYS, Scope
from ..panels import panels
from ..rows import EMPTY, Row, Span, clip, cut, fit, row, wrap
from .dialogs import Page

_LEAST_COLUMN, _WIDEST_COLUMN, _MOST_COLUMNS, _GAP = 56, 78, 3, 2
_KEY_CELLS, _LABEL_CELLS = 5, 11
_LEAST_BESIDE, _INDENT_BELOW = 12, 4
_FRAME = 4
_CLOSING = "esc closes this page; trainings keep running when you leave the screen"
Block = list[Row]


class Help(Page):
    """Every key, grouped by where it works."""

    def __init__(self, here: Sequence[Scope]) -> None:
        """``here``: the scopes of the screen that it is opened on."""
        super().__init__()
        self._here = here

    def made(self, width: int) -> tuple[list[Row], int]:
        taken = min(width, _columns(width - _FRAME) * _WIDEST_COLUMN)
        return help_rows(taken - _FRAME, self.app.size.height - 2, self._here), taken


def help_rows(width: int, height: int, here: Sequence[Scope] = ()) -> list[Row]:
    """Return the page in lines of at most ``width`` cells: as many blocks side by side as fit into ``height`` lines,
    and the others below them in the same way.
    """
    count = _columns(width)
    cells = (width - _GAP * (count - 1)) // count
    lines: list[Row] = []
    group: list[Block] = []
    for block in _blocks(cells, here, count):
        if group and _least([*group, block], count) > max(height - 1, _least(group, count)):
            lines += _beside(_split(group, count), cells)
            group = []
        group.append(block)
    lines += _beside(_split(group, count), cells)
    return lines + [row((line, "dim")) for line in wrap(_CLOSING, width, 6)]


def _columns(width: int) -> int:
    return max(1, min(_MOST_COLUMNS, (width + _GAP) // (_LEAST_COLUMN + _GAP)))


def _blocks(cells: int, here: Sequence[Scope], count: int) -> list[Block]:
    """The keys of the screen, then those of other screens; panels and states are inserted after the first ones,
    where the page becomes shortest.
    """
    own = tuple(dict.fromkeys((Scope.EVERYWHERE, *here)))
    blocks = []
    for scope in (*own, *(scope for scope in Scope if scope not in own)):
        keys = [(one.shown, "key", one.label, "strong", one.help) for one in KEYS if one.scope is scope and one.shown]
        blocks.append(_block(scope.value, keys, cells))
    numbered = enumerate(panels().items(), start=1)
    places = [(str(number), "key", name, "strong", panel.help) for number, (name, panel) in numbered]
    numbers = _block("panels of a run", places, cells)
    badges = [(one.glyph, one.tone, one.word, "", one.meaning) for one in legend()]
    states = _block("what a run is doing", badges, cells)
    anywhere = range(len(own), len(blocks) + 1)
    orders = (
        [*blocks[:first], one, *blocks[first:second], other, *blocks[second:]]
        for one, other in ((numbers, states), (states, numbers))
        for first, second in combinations_with_replacement(anywhere, 2)
    )
    return min(orders, key=lambda order: _least(order, count))


def _split(blocks: Sequence[Block], count: int) -> list[list[Block]]:
    """Split the blocks, in order, into at most this many columns such that the tallest is as short as possible."""
    highest = _least(blocks, count)
    columns: list[list[Block]] = [[]]
    height = 0
    for block in blocks:
        height += len(block)
        if height > highest:
            columns.append([])
            height = len(block)
        columns[-1].append(block)
    return columns


def _least(blocks: Sequence[Block], count: int) -> int:
    """Return the height of the blocks in this many columns."""
    heights = [len(block) for block in blocks]
    highest = max(max(heights), -(-sum(heights) // count))
    while _columns_of(heights, highest) > count:
        highest += 1
    return highest


def _columns_of(heights: Iterable[int], highest: int) -> int:
    """Return the number of columns for blocks of these heights, none of them higher than ``highest``."""
    columns, height = 1, 0
    for one in heights:
        height += one
        if height > highest:
            columns, height = columns + 1, one
    return columns


def _beside(columns: Sequence[Sequence[Block]], cells: int) -> list[Row]:
    below = [[line for block in column for line in block] for column in columns]
    lines = []
    for parts in zip_longest(*below, fillvalue=EMPTY):
        spans: list[Span | str] = []
        for part in parts[:-1]:
            spans += [*part.spans, " " * (cells + _GAP - part.width)]
        lines.append(row(*spans, *parts[-1].spans))
    return lines


def _block(title: str, entries: Iterable[tuple[str, str, str, str, str]], width: int) -> Block:
    """Entries below a title: a key or glyph and a word, each with its role, and the meaning beside or below them."""
    name = cut(title, max(1, width - 4))
    lines = [row(("─ ", "track"), (name, "title"), (" ", ""), ("─" * (width - len(name) - 3), "track"))]
    for sign, sign_role, word, role, text in entries:
        named = row((fit(sign, _KEY_CELLS, "right"), sign_role), "  ", (fit(word, _LABEL_CELLS), role), "  ")
        beside = width >= named.width + _LEAST_BESIDE
        indent = " " * (named.width if beside else _INDENT_BELOW)
        texts = wrap(text, width - len(indent), 12)
        below = [row(indent, (line, "dim")) for line in texts]
        first = row(*named.spans, (texts[0], "dim")) if beside else row(*clip(named.spans, width))
        lines += [first, *(below[1:] if beside else below)]
    return lines
