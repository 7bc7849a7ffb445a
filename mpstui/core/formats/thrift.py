"""Decides which lines are read one by one: all lines of a plausible log; of any other, as many as its size allows.

Reading a line costs a thousand times as much as scanning its bytes. The cost is therefore budgeted, identically on
every machine: a reserve for about a hundred thousand lines, topped up a little with every byte. Lines of a learned
shape, or of a kind known to say nothing, hardly draw on it.
"""

from __future__ import annotations

from collections.abc import Iterator

RESERVE = 10_000_000
"""The initial and largest budget, in units of about a microsecond."""
_LINE, _PLACED, _KNOWN = 40, 60, 1
"""The cost of reading a line (plus 1 per byte), of placing a line that was read in bulk, and of a line whose kind is
known to say nothing."""
_SHORT, _SHORT_BYTE = 16, 4
"""Lines shorter than ``_SHORT`` cost ``_SHORT_BYTE`` extra per missing byte: a million of them is no real log."""
_EARNED_BYTES = 40
"""Bytes of input that add one unit to the budget."""
_NEWEST_BYTES, _NEWEST_LINES = 1 << 13, 64
"""The end of each new chunk is always read; a log that grows slowly consists of nothing else."""
_MOST_KINDS = 1 << 12
_LONGEST_OF_A_KIND = 400
_NEVER = -(1 << 60)
_DIGITS = bytes.maketrans(b"0123456789", b"0000000000")


def kind_of(line: bytes) -> bytes:
    """Return a key that is the same for lines that differ only in digits; empty for a long line, which has no kind."""
    return line.translate(_DIGITS) if len(line) <= _LONGEST_OF_A_KIND else b""


class SilentKinds:
    """Remembers the kinds of lines that have never yielded a reading."""

    _ENOUGH = 16

    def __init__(self) -> None:
        self._times: dict[bytes, int] = {}

    def has(self, kind: bytes) -> bool:
        """True if a line of that kind need not be read."""
        return self._times.get(kind, 0) >= self._ENOUGH

    def note(self, kind: bytes, *, silent: bool) -> None:
        """Record that a line of this kind was read, and whether it said nothing."""
        if len(self._times) >= _MOST_KINDS:
            self._times.clear()
        if kind:
            self._times[kind] = self._times.get(kind, 0) + 1 if silent else _NEVER


class LineChoice:
    """Chooses which lines of one log are read."""

    def __init__(self) -> None:
        self.passed_over = 0
        """Number of lines that were not read."""
        self.gap = False
        """True if lines have just been skipped; reset by the code that joins lines to those above."""
        self._left = float(RESERVE)
        self._newest = False

    @property
    def exhausted(self) -> bool:
        """True while lines are skipped."""
        return self._left <= 0 and not self._newest

    def parts(self, text: bytes) -> Iterator[bytes]:
        """Yield ``text`` whole, or, when the budget is exhausted, the older part and then the newest lines."""
        if not self.exhausted:
            yield text
            return
        lowest, border = max(0, len(text) - _NEWEST_BYTES), len(text)
        for _ in range(_NEWEST_LINES):
            border = text.rfind(b"\n", lowest, border - 1) + 1
            if not border:  # fewer lines than that: leave out one that begins before `lowest`
                border = text.find(b"\n", lowest) + 1 if lowest else 0
                break
        yield text[:border]
        self._newest = True
        yield text[border:]
        self._newest = False

    def of(self, text: bytes) -> Iterator[bytes]:
        """Yield the lines of ``text`` to be read; the caller reports their cost (`spend_on`, `spend`)."""
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
        """Add to the budget for ``size`` more bytes."""
        self._left = min(RESERVE, self._left + size / _EARNED_BYTES)

    def each(self, text: bytes) -> Iterator[bytes]:
        """Yield the lines of ``text`` to be read, charging each as one line read on its own."""
        for part in self.parts(text):
            for line in self.of(part):
                if line:
                    self.spend_on(line, silent=False)
                    yield line

    def spend_on(self, line: bytes, *, silent: bool) -> None:
        """Charge for a line that was read, or (``silent``) recognised as a kind that says nothing."""
        length = len(line)
        cost = _KNOWN if silent else _LINE + length
        self._left -= cost if length >= _SHORT else cost + (_SHORT - length) * _SHORT_BYTE

    def spend(self, lines: int) -> None:
        """Charge for lines that were read in bulk and placed one by one."""
        self._left -= _PLACED * lines

    def pass_over(self, lines: int) -> None:
        """Count lines as skipped."""
        self.passed_over += lines
        self.gap = True


def passed_over(lines: int, too_long: int) -> str:
    """Return in words how many lines were skipped and how many were too long; empty if none."""
    return ", ".join(
        f"{count:,} {'line' if count == 1 else 'lines'} {why}"
        for count, why in ((lines, "passed over"), (too_long, "too long to be read"))
        if count
    )
