"""Which of a program's arguments give the epochs of the whole training: one rule for the agent, which sees what the
program parsed, and for the command of a launch."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Optional

LAST_EPOCH = re.compile(r"(?i)(?:(?:max|maximum|num|n|nb|number|of|total|train|training|stop|end|final)_?){1,4}epoch")
"""Names of the last epoch (``stop_epoch``, beside a ``start_epoch``), or of the number of epochs (``nepoch``): it
counts if nothing is called epochs."""
_NAMES = re.compile(
    r"(?i)(?P<sure>(?:comm|communication|global|federated|fed|fl)_?rounds?)"
    r"|(?P<rounds>(?:(?:num|n|max|total|training)_?)?rounds?)"
    r"|(?P<decay>(?:(?:max|maximum|num|n|nb|number|of|total|train|training)_?){0,4}epochs_?decay)"
    r"|(?P<clients>.{0,40}clients?(?:_.{0,40})?|local_ep.{0,20})"
)


@functools.lru_cache(4096)
def _kind_of(name: str) -> Optional[str]:
    found = _NAMES.fullmatch(name)
    return None if found is None else found.lastgroup


def instead_of_epochs(names: Iterable[str]) -> Optional[list[str]]:
    """Return the names that give the epochs of the training where those called epochs do not; None where they do.

    If several clients train in each round, the epochs are theirs, and the rounds are the epochs of the training. Beside
    epochs of a falling learning rate (``n_epochs_decay``) no name gives them: some programs add the two, some do not.
    """
    kinds = {name: _kind_of(name) for name in names}
    found = set(kinds.values())
    if "decay" in found:
        return []
    rounds = [name for name, kind in kinds.items() if kind in ("sure", "rounds")]
    return rounds if rounds and not found.isdisjoint(("sure", "clients")) else None
