"""Parse command-line arguments: every mistake becomes one sentence, and a hint at what was probably meant."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from ..core.model.errors import UsageError

INSTEAD = {
    "compare": "`mpstui results`, `mpstui report RUN RUN`, or `C` on the screen",
    "list": "`mpstui ps`",
    "ls": "`mpstui ps`",
    "runs": "`mpstui ps`",
    "status": "`mpstui ps` or `mpstui show RUN`",
    "info": "`mpstui show RUN`",
    "inspect": "`mpstui show RUN`",
    "describe": "`mpstui show RUN`",
    "start": "`mpstui launch PROFILE` or `mpstui run -- COMMAND`",
    "train": "`mpstui launch PROFILE` or `mpstui run -- COMMAND`",
    "exec": "`mpstui run -- COMMAND`",
    "sweep": "`mpstui launch PROFILE --sweep KEY=A,B`",
    "resume": "`mpstui restart RUN`, or `mpstui continue RUN` after a pause",
    "unpause": "`mpstui continue RUN`",
    "retry": "`mpstui restart RUN`",
    "cancel": "`mpstui stop RUN`",
    "terminate": "`mpstui stop RUN`",
    "delete": "`mpstui remove RUN`",
    "rm": "`mpstui remove RUN`",
    "clean": "`mpstui remove --older-than 30d`",
    "prune": "`mpstui remove --older-than 30d`",
    "tail": "`mpstui logs -f RUN`",
    "output": "`mpstui logs RUN`",
    "plot": "`mpstui report RUN` or `mpstui export RUN --to svg`",
    "chart": "`mpstui report RUN` or `mpstui export RUN --to svg`",
    "explain": "`mpstui diagnose RUN`",
    "fix": "`mpstui restart RUN --fix`",
    "checkpoint": "`mpstui save RUN`",
    "eval": "`mpstui evaluate RUN`",
    "devices": "`mpstui doctor`",
    "attach": "`mpstui RUN`",
    "open": "`mpstui RUN`",
    "monitor": "`mpstui` or `mpstui watch PATH`",
    "help": "`mpstui --help`",
    "version": "`mpstui --version`",
}
"""What to write instead of words that other programs use."""
_SAME = {
    "state": "filter",
    "status": "filter",
    "tag": "filter",
    "name": "filter",
    "lines": "tail",
    "format": "to",
    "out": "output",
    "to": "output",
    "checkpoint": "from",
    "arg": "set",
    "parameter": "set",
    "environment": "env",
    "gpu": "device",
    "colour": "color",
}
"""Options by other words for them; a hint names one only if the command has it."""
_LISTED = {"RUN": "`mpstui ps` lists the runs", "PROFILE": "`mpstui profiles` lists them"}
"""Where to find values for these metavars."""


class CommandParser(argparse.ArgumentParser):
    """A parser that raises a :class:`UsageError` for every mistake."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        words = sys.argv[1:] if args is None else list(args)
        needed = [action for action in self._actions if action.required]
        for action in needed:
            action.required = False  # argparse would report missing ones without saying which field
        try:
            found, unknown = self.parse_known_args(words, namespace)
        finally:
            for action in needed:
                action.required = True
        none_will_do = (argparse.ZERO_OR_MORE, argparse.REMAINDER)
        missing = [one for one in needed if getattr(found, one.dest) is None and one.nargs not in none_will_do]
        if missing:
            raise self._missing(missing)
        if unknown:
            option = next((word for word in unknown if word.startswith("-")), None)
            raise self._left_over(unknown[0]) if option is None else self._unknown(option, words)
        return found

    def error(self, message: str) -> NoReturn:
        raise self._wrong(self._about(message))

    def _match_argument(self, action: argparse.Action, arg_strings_pattern: str) -> int:
        try:
            return super()._match_argument(action, arg_strings_pattern)
        except argparse.ArgumentError:
            raise self._wrong(self._about(f"{_name_of(action)} needs a value")) from None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is not among an argument's choices, and name the nearest one."""
        if action.choices is None or value in action.choices:
            return
        from ..core.model.checks import nearest

        shown = action.metavar.split("|") if isinstance(action.metavar, str) else [*map(str, action.choices)]
        option = action.option_strings[-1] if action.option_strings else ""
        close = nearest(str(value), shown)
        hint = f"did you mean `{' '.join(filter(None, (option, close)))}`?" if close else f"one of {', '.join(shown)}"
        raise UsageError(self._about(f"there is no {option} {value!r}" if option else f"there is no {value!r}"), hint)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError:
            kind = {int: "a whole number", float: "a number"}.get(action.type)  # type: ignore[call-overload]
            if kind is None:
                raise
            raise self._wrong(self._about(f"{_name_of(action)} takes {kind}, not {arg_string!r}")) from None

    @property
    def _command(self) -> str:
        return self.prog.removeprefix("mpstui").lstrip()

    def _about(self, message: str) -> str:
        return f"{self._command}: {message}" if self._command else message

    def _wrong(self, sentence: str) -> UsageError:
        # If the usage ends in a command to run, its options were probably taken for ours.
        usage = f"write `{self.usage}`; " if self.usage and " -- " in self.usage else ""
        return UsageError(sentence, f"{usage}see `{self.prog} --help`")

    def _missing(self, missing: Sequence[argparse.Action]) -> UsageError:
        names = [_name_of(action) for action in missing]
        sentence = f"{self._command or 'the screen'} needs {' and '.join(names)}"
        if missing[0].choices is not None and missing[0].option_strings:
            return UsageError(sentence, f"{names[0]} is one of {', '.join(map(str, missing[0].choices))}")
        where = [_LISTED[name] for name in names if name in _LISTED]
        return UsageError(sentence, "; ".join([*where, f"see `{self.prog} --help`"]))

    def _unknown(self, word: str, words: Sequence[str]) -> UsageError:
        """Return the error for an unknown option, with what it and its value probably mean."""
        name, _, value = word.partition("=")
        value = value or next(iter(words[words.index(word) + 1 :]), "")
        sentence = f"{self._command or 'the screen'} has no option {name}"
        if close := self._option_like(name):
            takes_value = self._option_string_actions[close].nargs != 0
            return UsageError(sentence, f"did you mean `{f'{close} {value}'.strip() if takes_value else close}`?")
        if "--set" in self._option_string_actions and name.startswith("--"):
            return UsageError(sentence, f"for an argument of the program, write `--set {name[2:]}={value or 'VALUE'}`")
        return self._wrong(sentence)

    def _option_like(self, name: str) -> str | None:
        from ..core.model.checks import nearest

        known = {option for option, action in self._option_string_actions.items() if action.help != argparse.SUPPRESS}
        same = f"--{_SAME.get(name.lstrip('-'), '')}"
        return same if same in known else nearest(name, {one for one in known if one.startswith("--")}, cutoff=0.75)

    def _left_over(self, word: str) -> UsageError:
        taken = [action for action in self._actions if not action.option_strings and action.help != argparse.SUPPRESS]
        if not taken:
            return self._wrong(f"{self._command or 'the screen'} takes no {word!r}, only options")
        named = " ".join(str(action.metavar) for action in taken)
        return self._wrong(f"{self._command or 'the screen'} takes one {named} at a time: {word!r} is too much")


def _name_of(action: argparse.Action) -> str:
    return action.option_strings[-1] if action.option_strings else str(action.metavar or action.dest)


def meaning_of(word: str, commands: Sequence[str]) -> str | None:
    """Return what to write in place of a first word that is not a command; None if nothing is near."""
    from ..core.model.checks import nearest

    if word in INSTEAD:
        return INSTEAD[word]
    close = nearest(word, [*commands, *INSTEAD])
    return INSTEAD.get(close, f"`mpstui {close}`") if close else None
