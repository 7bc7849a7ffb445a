"""The parts of a launch form: its fields, how their texts are read, and what they would start."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ...wire.secrets import HIDDEN
from ..machine import DEVICES
from ..model.checks import environment_name
from ..model.errors import OperationError, UsageError
from ..profiles.model import ArgumentValue, Profile
from ..profiles.written import written_options
from .choice import LaunchChoice, parse_environment

if TYPE_CHECKING:
    from .command import EnvLine
    from .planning import LaunchPlan

Words = TypeVar("Words")

ARGUMENT = "arg:"
"""Prefix of the key of a field for one of the program's own arguments."""
SWEEP = "sweep:"
"""Prefix of the key of a field for several values of an argument, one run for each."""
COMMAND, MORE, VARIABLES, MORE_SWEPT, AFTER, QUEUE = "command", "more", "env", "swept", "queue.after", "queue"
"""Fields for the command itself, for what has no field of its own, and for when to start."""

ENGINE, JOB, MORE_JOB = "on", "job:", "job"
"""Fields for the scheduler, for one of its options (``job:slurm:nodes``), and for further options."""
MACHINE = "machine"
"""The field for the machine on which it starts."""

_A_PATH = re.compile(
    r"(?:^|_)(?:data|dataset|dir|directory|path|file|folder|root|cache|checkpoint|fasta|bed|npz|csv)(?:_|$)"
)


@dataclass(frozen=True, slots=True)
class Field:
    """One line of the launch form: a choice if it has ``choices``, else text."""

    key: str
    label: str
    value: str
    choices: tuple[str, ...] = ()
    hint: str = ""
    """Shown in an empty field: what it may contain. An argument left empty is not passed."""
    when: tuple[str, tuple[str, ...]] | None = None
    """Show the field only while another one (by its key) has one of these values; None: always."""


def device_field(choice: LaunchChoice, plan: Callable[[], LaunchPlan]) -> Field:
    """Return a field with the devices that the program can use, by its arguments or by hiding the others from it."""
    asked = choice.device or choice.profile.device
    try:
        known: Collection[str] = plan().template.variants
    except (OperationError, UsageError):  # the form says what is wrong
        known = DEVICES
    return Field("device", "device", asked, tuple(one for one in DEVICES if one in known or one == asked))


@dataclass(frozen=True, slots=True)
class Preview:
    """What exactly would be started."""

    command: str
    environment: tuple[EnvLine, ...] = ()
    warnings: tuple[str, ...] = ()
    cwd: str = ""
    runs: tuple[str, ...] = ()
    """Names of all runs if there are several; ``command`` is that of the first."""
    changes: tuple[str, ...] | None = None
    """The differences from an earlier launch, each as ``name before -> after``; None: there is no earlier one."""
    profile: str | None = None
    epochs: float | None = None
    waits_for: tuple[str, ...] = ()
    """What must be true before it starts: a slot in a queue, the end of other runs."""
    host: str | None = None
    """The other machine that it is sent to; ``command`` is empty until that has answered what it would start."""
    travels: tuple[str, ...] = ()
    """Sentences about what is sent there, and what stays here."""
    sends: bool = False
    """Whether anything has to be sent: it may be there already."""

    @property
    def is_asked_for(self) -> bool:
        """Whether another machine still has to be asked what it would start."""
        return self.host is not None and not self.command


def command_line(words: Sequence[str]) -> str:
    """Return a command as one line, without quotation marks around the dots of a secret."""
    return shlex.join(words).replace(f"'{HIDDEN}'", HIDDEN)


def named(profile: Profile) -> dict[str, str]:
    """Return the arguments to which a profile gives a value, in its command or on its own."""
    written = {one.key: "true" if one.value is None else one.value for one in written_options(profile.command)}
    return {**written, **{key: _text(value) for key, value in profile.args.items()}}


def _text(value: ArgumentValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(_text(part) for part in value) if isinstance(value, tuple) else str(value)


def split(text: str, field: str) -> tuple[str, ...]:
    """Return the values of a swept argument; having none is a mistake in that field."""
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not found:
        raise UsageError("a sweep needs at least one value of each argument", "such as 1, 2, 3", field=field)
    return found


def read(values: Mapping[str, str], field: str, parse: Callable[[list[str]], Words]) -> Words:
    """Parse the words in a field; a mistake is reported at that field."""
    try:
        return parse(shlex.split(values.get(field, "")))
    except ValueError:
        raise UsageError("a quotation mark is not closed", "write it as in a shell", field=field) from None
    except UsageError as error:
        raise UsageError(error.sentence, error.hint, field=field, near=error.near) from error


def at_field(error: UsageError, values: Mapping[str, str]) -> UsageError:
    """Return the error with the form's field instead of the profile's key; None as field if the form has none."""
    wrong = error.field or ""
    argument = wrong.removeprefix("args.")
    typed = [MORE_SWEPT] if f"{argument}=" in values.get(MORE_SWEPT, "") else []
    fields = (*typed, ARGUMENT + argument, SWEEP + argument, MORE) if argument != wrong else (wrong,)
    field = next((key for key in fields if key in values), None)
    return UsageError(error.sentence, error.hint, field=field, near=error.near)


def variables_of(words: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Read ``NAME=VALUE``, and ``-NAME`` for variables to leave out."""
    dropped = tuple(word[1:] for word in words if word.startswith("-"))
    for name in dropped:
        if why := environment_name(name):
            raise UsageError(f"-{name} leaves out no variable: {why}", "write it as -NAME", field="env")
    return parse_environment(word for word in words if not word.startswith("-")), dropped


def resuming(profile: Profile, checkpoint: str | None) -> str:
    """Return the arguments by which a new attempt resumes; the supervisor appends them when it starts the attempt."""
    words = profile.resume_args if checkpoint else None
    return f" {command_line([word.replace('{checkpoint}', checkpoint or '') for word in words])}" if words else ""


def completed_path(cwd: Path, key: str, text: str) -> str | None:
    """Return ``text`` completed to a file or folder that begins like it, if the field may hold a path; else None."""
    named = _A_PATH.search(key.removeprefix(ARGUMENT).replace("-", "_"))
    if not text or not (named or "/" in text or text.startswith("~")):
        return None
    folder, slash, begun = text.rpartition("/")
    try:
        with os.scandir(cwd / Path(folder + slash).expanduser()) as entries:
            found = sorted(
                (entry.name.startswith("."), entry.name + ("/" if entry.is_dir() else ""))
                for entry in entries
                if entry.name.startswith(begun) and entry.name != begun and entry.name.isprintable()
            )
    except OSError:
        return None
    return folder + slash + found[0][1] if found else None
