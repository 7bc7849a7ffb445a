"""What a program's own parser made of its arguments: defaults and abbreviations too, which no command line shows."""

from __future__ import annotations

import re
import weakref
from typing import Any, Optional

_EPOCHS = re.compile(r"(?i)(?:(?:max|maximum|num|n|nb|number|of|total|train|training)_?){0,4}epochs")
"""Names that say no more than "so many epochs": ``num_epochs``, ``nEpochs``; no ``warmup_epochs``."""
_LAST_EPOCH = re.compile(r"(?i)(?:(?:max|maximum|num|n|nb|number|of|total|train|training|stop|end|final)_?){1,4}epoch")
"""Names of the epoch to end with (``stop_epoch``, next to a ``start_epoch``), or of their number (``nepoch``)."""
_STEPS = re.compile(
    r"(?i)(?:(?:max|maximum|total)_?(?:num_?)?(?:train(?:ing)?_?)?(?:steps|iter|iters|iterations|updates)"
    r"|(?:num_|n_)?(?:train|training)_?(?:steps|iters|iterations)|(?:num_?|n_?)?iterations)"
)
"""Names of the steps of the whole training; no ``num_steps``, which are often those of a rollout."""
_BATCH_SIZE = re.compile(r"(?i)(?:(?:train|training|mini)_?)?(?:batch_?size|bsz?)")
"""Names of the size of a training's batches; no ``test_batch_size``."""


class ParsedArguments:
    """Remembers what ``argparse`` returned, for as long as the program keeps it, and looks at it anew each time: many
    programs change it once they have read a configuration."""

    def __init__(self) -> None:
        self._parsed: list[weakref.ref[Any]] = []
        self._known: dict[re.Pattern[str], Optional[int]] = {}
        """The last that was known: at its end a program has forgotten its arguments."""

    def after_parse(self, result: Any, *args: Any, **kwargs: Any) -> None:
        """After ``ArgumentParser.parse_known_args``, which returns the arguments and those that it did not know."""
        if isinstance(result, tuple) and result:
            self._parsed.append(weakref.ref(result[0]))

    @property
    def epochs(self) -> Optional[int]:
        """The epochs that are planned; None if nothing or several numbers are called so."""
        return self._called(_EPOCHS, _LAST_EPOCH)

    @property
    def steps(self) -> Optional[int]:
        """The steps that are planned, where no epochs are; None if nothing or several numbers are called so."""
        return None if self.epochs else self._called(_STEPS)

    @property
    def batch_size(self) -> Optional[int]:
        """The size of a batch; None if nothing or several numbers are called so."""
        return self._called(_BATCH_SIZE)

    def _called(self, *names: re.Pattern[str]) -> Optional[int]:
        """The number that is called so; a later name counts where no argument has an earlier one."""
        named = [vars(one) for one in (ref() for ref in self._parsed) if hasattr(one, "__dict__")]
        if not named:
            return self._known.get(names[0])
        told = [(word, value) for each in named for word, value in each.items()]
        called = next((name for name in names if any(name.fullmatch(word) for word, _ in told)), names[0])
        found = {
            int(value)
            for word, value in told
            if type(value) in (int, float) and value > 0 and value == int(value) and called.fullmatch(word)
        }
        self._known[names[0]] = found.pop() if len(found) == 1 else None
        return self._known[names[0]]
