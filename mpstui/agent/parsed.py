"""What a program's own parser made of its arguments, with defaults and abbreviations that no command line shows."""

from __future__ import annotations

import re
import weakref
from typing import Any, Optional

from ..wire.heartbeat import integer

_EPOCHS = re.compile(r"(?i)(?:(?:max|maximum|num|n|nb|number|of|total|train|training)_?){0,4}epochs")
"""Names of the number of epochs: ``num_epochs``, ``nEpochs``; not ``warmup_epochs``."""
_DECAY_EPOCHS = re.compile(_EPOCHS.pattern + "_?decay")
"""Names of those with a falling learning rate: some programs add them to the others, some do not."""
_LAST_EPOCH = re.compile(r"(?i)(?:(?:max|maximum|num|n|nb|number|of|total|train|training|stop|end|final)_?){1,4}epoch")
"""Names of the last epoch (``stop_epoch``, beside a ``start_epoch``), or of the number of epochs (``nepoch``)."""
_ROUNDS = re.compile(r"(?i)(?:(?:comm|communication|global|federated|fed|fl|num|n|max|total|training)_?)?rounds?")
"""Names of the number of rounds, in each of which several clients train: its epochs are those of each client."""
_CLIENTS = re.compile(
    r"(?i)(?:comm|communication|global|federated|fed|fl)_?rounds?|.{0,40}clients?(?:_.{0,40})?|local_ep.{0,20}"
)
"""Names that only such programs have."""
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
        """The number of planned epochs; None if no argument gives it, or several give different ones.

        Where the model is trained in rounds by several clients, the number of rounds. None beside epochs of a falling
        learning rate, too: nobody knows whether the program adds them.
        """
        names = {word for one in self._alive() for word in vars(one)}
        if any(map(_DECAY_EPOCHS.fullmatch, names)):
            self._known[_EPOCHS] = None
            return None
        if any(map(_CLIENTS.fullmatch, names)) and any(map(_ROUNDS.fullmatch, names)):
            self._known[_EPOCHS] = self._called(_ROUNDS)
            return self._known[_EPOCHS]
        return self._called(_EPOCHS, _LAST_EPOCH)

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
        told = [(word, value) for each in named for word, value in each.items()]
        called = next((name for name in names if any(name.fullmatch(word) for word, _ in told)), names[0])
        # A limit may be infinite by default (``--max_iters inf``), which is no number of steps.
        whole = (integer(value) for word, value in told if called.fullmatch(word))
        found = {value for value in whole if value is not None and value > 0}
        self._known[names[0]] = found.pop() if len(found) == 1 else None
        return self._known[names[0]]
