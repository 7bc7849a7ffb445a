"""``--check-data``, which every task has: how much data there is, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Inspection:
    """The state of a data set."""

    name: str
    """What was checked; for generated data it says "synthetic"."""
    counts: Mapping[str, int]
    """Samples of each split, and whatever else is worth counting."""
    problems: tuple[str, ...] = ()
    """A sentence for each bad file or row: where, what, and what to do."""

    def text(self) -> str:
        """Lines for the user: every problem, since repairing a file takes all of them, and last their number."""
        lines = [f"data: {self.name}", *(f"  {name}: {count:,}" for name, count in self.counts.items())]
        lines += [f"problem: {sentence}" for sentence in self.problems]
        count = len(self.problems)
        lines.append(f"{count:,} problem{'' if count == 1 else 's'} found" if count else "the data can be used")
        return "\n".join(lines)
