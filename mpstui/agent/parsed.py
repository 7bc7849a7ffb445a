"""What a program's own parser made of its arguments, with defaults and abbreviations that no command line shows."""

from __future__ import annotations

import re
import weakref
from typing import Any, Optional

from ..wire.heartbeat import integer
from ..wire.planned_epochs import LAST_EPOCH, instead_of_epochs

_EPOCHS = re.compile(r"(?i)(?:(?:max|maximum|num|n|nb|number|of|total|train|training)_?){0,4}epochs")
"""Names of the number of epochs: ``num_epochs``, ``nEpochs``; not ``warmup_epochs``."""
_STEPS = re.compile(
    r"(?i)(?:(?:max|maximum|total)_?(?:num_?)?(?:train(?:ing)?_?)?(?:steps|iter|iters|iterations|updates)"
    r"|(?:num_|n_)?(?:train|training)_?(?:steps|iters|iterations)|(?:num_?|n_?)?iterations)"
)
"""Names of the number of steps of the whole training; not ``num_steps``, which are often those of a rollout."""
_BATCH_SIZE = re.compile(r"(?i)(?:(?:train|training|mini)_?)?(?:batch_?size|bsz?)")
"""Names of the batch size of the training; not ``test_batch_size``."""


class ParsedArguments:
    """Remembers what ``argparse`` returned, for as long as the program keeps it, and reads it anew each time: many
    programs change it after reading a configuration file."""

    def __init__(self) -> None:
        self._parsed: list[weakref.ref[Any]] = []
        self._known: dict[re.Pattern[str], Optional[int]] = {}
        """The numbers known last: by the time a program ends, its arguments may be gone."""

    def after_parse(self, result: Any, *args: Any, **kwargs: Any) -> None:
        """After ``ArgumentParser.parse_known_args``, which returns the parsed arguments and those it does not know."""
        if isinstance(result, tuple) and result:
            self._parsed.append(weakref.ref(result[0]))

    @property
    def epochs(self) -> Optional[int]:
        """The number of planned epochs; None if no argument gives it, or several give different ones."""
        instead = instead_of_epochs({word for one in self._alive() for word in vars(one)})
        if instead is None:
            return self._called(_EPOCHS, LAST_EPOCH)
        self._known[_EPOCHS] = self._only(instead)
        return self._known[_EPOCHS]

    @property
    def steps(self) -> Optional[int]:
        """The number of planned steps, if no epochs are planned; None as for these."""
        return None if self.epochs else self._called(_STEPS)

    @property
    def batch_size(self) -> Optional[int]:
        """The batch size; None if no argument gives it, or several give different ones."""
        return self._called(_BATCH_SIZE)

    def _alive(self) -> list[Any]:
        return [one for one in (ref() for ref in self._parsed) if hasattr(one, "__dict__")]

    def _called(self, *names: re.Pattern[str]) -> Optional[int]:
        """Return the number of such a name; a later pattern counts only if no argument matches an earlier one."""
        named = [vars(one) for one in self._alive()]
        if not named:
            return self._known.get(names[0])
        words = [word for each in named for word in each]
        called = next((name for name in names if any(map(name.fullmatch, words))), names[0])
        self._known[names[0]] = self._only([word for word in words if called.fullmatch(word)])
        return self._known[names[0]]

    def _only(self, names: list[str]) -> Optional[int]:
        """Return the number that arguments of these names have; None if they have none, or different ones."""
        # A limit may be infinite by default (``--max_iters inf``), which is no number of steps.
        whole = (integer(vars(one).get(name)) for one in self._alive() for name in names)
        found = {value for value in whole if value is not None and value > 0}
        return found.pop() if len(found) == 1 else None
