"""Which lines are read one by one: all of a log that somebody could have meant, of any other what its size pays for.

A line costs a thousand times what its bytes do. What is spent on lines is therefore counted, the same on every machine:
a reserve for a hundred thousand of them, and a little more with every byte. Lines that all have one shape, or are known
to say nothing, hardly draw on it.
"""

from __future__ import annotations

from collections.abc import Iterator

RESERVE = 10_000_000
"""In units of about a microsecond."""
_LINE, _PLACED, _KNOWN = 40, 60, 1
"""The cost of reading a line, to which that of its bytes comes, of placing one that was read with others, and of one
whose kind is known to say nothing."""
_SHORT, _SHORT_BYTE = 16, 4
"""Lines that lack bytes to be so long cost as much for each of them: a million of these is nothing that was meant."""
_EARNED_BYTES = 40
"""So many bytes earn a unit."""
_NEWEST_BYTES, _NEWEST_LINES = 1 << 13, 64
"""The end of what has just been written is always read; what trickles in is nothing but that."""
_MOST_KINDS = 1 << 12
_LONGEST_OF_A_KIND = 400
_NEVER = -(1 << 60)
_DIGITS = bytes.maketrans(b"0123456789", b"0000000000")


def kind_of(line: bytes) -> bytes:
    """The same for lines that differ by their digits alone; empty for a long line, which is of no kind."""
    return line.translate(_DIGITS) if len(line) <= _LONGEST_OF_A_KIND else b""


class SilentKinds:
    """Remembers the kinds of lines that have never said anything."""

    _ENOUGH = 16

    def __init__(self) -> None:
        self._times: dict[bytes, int] = {}

    def has(self, kind: bytes) -> bool:
        """Whether a line of that kind need not be read."""
        return self._times.get(kind, 0) >= self._ENOUGH

    def note(self, kind: bytes, *, silent: bool) -> None:
        """One was read."""
        if len(self._times) >= _MOST_KINDS:
            self._times.clear()
        if kind:
            self._times[kind] = self._times.get(kind, 0) + 1 if silent else _NEVER


class LineChoice:
    """Chooses the lines of one log."""

    def __init__(self) -> None:
        self.passed_over = 0
        """Lines that were not read."""
        self.gap = False
        """Whether that has just happened; whoever joins lines to those above sets it back."""
        self._left = float(RESERVE)
        self._newest = False

    @property
    def exhausted(self) -> bool:
        """Whether lines are passed over."""
        return self._left <= 0 and not self._newest

    def parts(self, text: bytes) -> Iterator[bytes]:
        """``text``, with its newest lines as a part of their own where they alone are surely read."""
        if not self.exhausted:
            yield text
            return
        lowest, border = max(0, len(text) - _NEWEST_BYTES), len(text)
        for _ in range(_NEWEST_LINES):
            border = text.rfind(b"\n", lowest, border - 1) + 1
            if not border:  # the first of them is cut, unless it is the first of all
                border = text.find(b"\n", lowest) + 1 if lowest else 0
                break
        yield text[:border]
        self._newest = True
        yield text[border:]
        self._newest = False

    def of(self, text: bytes) -> Iterator[bytes]:
        """The lines of ``text`` that are to be read; `spend` is told what they cost."""
        self.earn(len(text))
        position, size = 0, len(text)
        while position < size:
            if self.exhausted:
                self.pass_over(text.count(b"\n", position))
                return
            end = text.find(b"\n", position)
            end = size if end < 0 else end
            line = text[position:end]
            position = end + 1
            yield line

    def earn(self, size: int) -> None:
        """So many bytes have come."""
        self._left = min(RESERVE, self._left + size / _EARNED_BYTES)

    def each(self, text: bytes) -> Iterator[bytes]:
        """The lines of ``text`` that are to be read, where each stands for itself and costs what a line does."""
        for part in self.parts(text):
            for line in self.of(part):
                if line:
                    self.spend_on(line, silent=False)
                    yield line

    def spend_on(self, line: bytes, *, silent: bool) -> None:
        """A line was read, or known to be of a silent kind."""
        length = len(line)
        cost = _KNOWN if silent else _LINE + length
        self._left -= cost if length >= _SHORT else cost + (_SHORT - length) * _SHORT_BYTE

    def spend(self, lines: int) -> None:
        """So many lines were placed one by one."""
        self._left -= _PLACED * lines

    def pass_over(self, lines: int) -> None:
        """So many are not read."""
        self.passed_over += lines
        self.gap = True


def passed_over(lines: int, too_long: int) -> str:
    """What was not read, in words: so many lines, and so many that are too long; empty where there are none."""
    return ", ".join(
        f"{count:,} {'line' if count == 1 else 'lines'} {why}"
        for count, why in ((lines, "passed over"), (too_long, "too long to be read"))
        if count
    )
