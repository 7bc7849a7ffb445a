"""What a run was started with: the settings named by its command, its environment and its code."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from ..model.snapshot import RunSnapshot

FLAG = "yes"
"""The value recorded for an option that has none."""
_SURROUNDINGS = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|PWD|HOSTNAME|LANG|LC_\w+|TZ|TMPDIR|VIRTUAL_ENV|CONDA_\w+|XDG_\w+|MPSTUI_\w+"
)
"""Variables that depend on where a run was started, or that we set: they are not settings of the training."""
_OUR_FOLDER = "mpstui/agent/boot"


def settings_of(snapshot: RunSnapshot) -> Mapping[str, str]:
    """Return what a run was started with: profile, recipe, device, arguments, and the environment that affects it.

    A setting reported by its code replaces the argument of the same name; the others follow after the arguments.
    """
    plain = (snapshot.profile, snapshot.recipe, snapshot.numbers.device.type)
    return _settings(plain, snapshot.argv, _Same(snapshot.settings), _Same(snapshot.env))


def named_settings(snapshot: RunSnapshot) -> dict[str, str]:
    """Return the named settings of :func:`settings_of`, without the words of the command that only have a position."""
    return {name: value for name, value in settings_of(snapshot).items() if is_named(name)}


class _Same:
    """A mapping compared and hashed by identity, for use as a cache key: it may hold hundreds of settings."""

    def __init__(self, of: Mapping[str, str]) -> None:
        self.of = of

    def __hash__(self) -> int:
        return id(self.of)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.of is self.of


@lru_cache(4096)
def _settings(plain: tuple[str | None, ...], argv: tuple[str, ...], told: _Same, env: _Same) -> Mapping[str, str]:
    """Cached, because a list repeatedly asks for the settings of all its runs."""
    known = {name: value for name, value in zip(("profile", "recipe", "device"), plain, strict=True) if value}
    said = {name: value for name, value in told.of.items() if value and name not in known}
    return known | arguments_in(argv) | said | shaping(env.of)


def shaping(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a launch that affect the training, without those about who started it and where."""
    found = {name: value for name, value in env.items() if not _SURROUNDINGS.fullmatch(name)}
    folders = [one for one in found.pop("PYTHONPATH", "").split(":") if one and not one.endswith(_OUR_FOLDER)]
    return found | ({"PYTHONPATH": ":".join(folders)} if folders else {})


def is_named(setting: str) -> bool:
    """True if a setting has a name, rather than only a position among the words of the command."""
    return not setting.startswith("word ")


def with_arguments(settings: Mapping[str, str], argv: Sequence[str]) -> dict[str, str]:
    """Return the settings of an earlier command, with their values updated from this command."""
    told = arguments_in(argv)
    return {name: told.get(name, value) for name, value in settings.items()}


def arguments_in(argv: Sequence[str]) -> dict[str, str]:
    """Parse ``--key value``, ``--key=value``, ``--flag`` and ``key=value``; other words are named by position.

    Names are spelled as in the Python code that uses them: ``--batch-size 8`` becomes ``batch_size``.
    """
    found: dict[str, str] = {}
    words = list(argv)
    place = 0
    while words:
        word = words.pop(0)
        name, equals, value = word.lstrip("-+").partition("=")
        name = name.replace("-", "_")
        if equals and name.replace("_", "").replace(".", "").isalnum():
            found[name] = value
        elif word.startswith("--") and name:
            found[name] = words.pop(0) if words and not words[0].startswith("--") else FLAG
        else:
            found[f"word {place}"] = word
            place += 1
    return found
