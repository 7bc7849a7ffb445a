"""``--check-data``: how much there is of what, and what is wrong with it. Every task has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_MOST_SHOWN = 20


@dataclass(frozen=True)
class Inspection:
    """The state of a data set."""

    name: str
    """What is looked at; generated data says "synthetic"."""
    counts: Mapping[str, int]
    """Samples of each split, and whatever else is worth counting."""
    problems: tuple[str, ...] = ()
    """A sentence for each bad file or row: where, what, and what to do."""

    def text(self) -> str:
        """Lines for a person; of many problems the first ones."""
        lines = [f"data: {self.name}", *(f"  {name}: {count:,}" for name, count in self.counts.items())]
        lines += [f"problem: {sentence}" for sentence in self.problems[:_MOST_SHOWN]]
        hidden = len(self.problems) - _MOST_SHOWN
        if hidden > 0:
            lines.append(f"and {hidden:,} more problems")
        lines.append(f"{len(self.problems):,} problems found" if self.problems else "the data can be used")
        return "\n".join(lines)
