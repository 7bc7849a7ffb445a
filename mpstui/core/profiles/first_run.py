"""What to tell the user before a profile of the current folder runs: in a cloned folder it is a stranger's program."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...wire import storage
from ...wire.secrets import masked, masked_words
from ...wire.trust import distrusted
from ..model.errors import UsageError
from ..model.home import Home
from .library import shipped_folder
from .model import Profile


class Acquaintance(NamedTuple):
    """What to tell the user about a profile before it is launched."""

    notes: tuple[str, ...] = ()
    """Sentences that are always shown."""
    shown: tuple[str, ...] = ()
    """What it would run, in lines; empty if this user has launched or written a profile of this file before."""


def acquaintance(profile: Profile, home: Home, cwd: Path, *, asked: bool) -> Acquaintance:
    """Return what this user should know about a profile before it runs.

    Args:
        asked: the user gave the path of its file, not a name that might have meant another one.

    Raises:
        UsageError: see :func:`require_own_profile`; never if ``asked``.
    """
    path = profile.path
    if not asked:
        require_own_profile(profile, home, cwd)
    if path is None or path.parent.resolve() in (shipped_folder().resolve(), home.user_profiles.resolve()):
        return Acquaintance()
    where = _where(path, cwd)
    notes = []
    if (shipped_folder() / path.name).is_file() and not asked:
        notes.append(f"{path.stem} is from {where}, not the one that ships with mpstui")
    known = _known(home)
    if _content(profile) in known:
        return Acquaintance(tuple(notes))
    if _place(profile) in known:
        notes.append(
            f"{path.stem} of {where} has changed since you launched it: {shlex.join(masked_words(profile.command))}"
        )
        return Acquaintance(tuple(notes))
    return Acquaintance(tuple(notes), tuple(_told(profile, where)))


def require_own_profile(profile: Profile, home: Home, cwd: Path) -> None:
    """Refuse a profile that another user controls; call this wherever a profile is started by name.

    Raises:
        UsageError: another user wrote it, or could change it.
    """
    path = profile.path
    if path is None or path.parent.resolve() == shipped_folder().resolve():
        return
    for one in (path.parent, path):
        if why := distrusted(one, groups=path.parent.resolve() != home.user_profiles.resolve()):
            raise UsageError(
                f"profile {path.stem} is from {_where(path, cwd)}, and {one} {why}",
                f"read it, then name its path: {path}",
            )


def _where(path: Path, cwd: Path) -> str:
    return f"./{path.parent.name}" if path.parent == cwd / path.parent.name else str(path.parent)


def remember(profile: Profile, home: Home) -> None:
    """Record that this user has launched or written a profile.

    Raises:
        OSError: it cannot be recorded.
    """
    if profile.path is not None and profile.path.parent.resolve() != shipped_folder().resolve():
        marks = {_content(profile), _place(profile)} - _known(home)
        if marks:
            storage.make_private_folder(home.state)
            storage.append_text(home.known_profiles, "".join(f"{mark}\n" for mark in sorted(marks)))


def _told(profile: Profile, where: str) -> Iterator[str]:
    yield f"{profile.slug} of {where} is launched for the first time. It runs, in {profile.cwd}:"
    yield f"  {shlex.join(masked_words(profile.command))}"
    if profile.python:
        yield f"  interpreter: {profile.python}"
    for what, values in (("arguments", profile.args), ("variables", profile.env)):
        told = masked({name: str(value) for name, value in values.items()})
        if told:
            yield f"  {what}: {', '.join(f'{name}={value}' for name, value in told.items())}"


def _known(home: Home) -> set[str]:
    try:
        return set(storage.read_text(home.known_profiles).split())
    except OSError:
        return set()


def _content(profile: Profile) -> str:
    return hashlib.sha256(profile.text.encode("utf-8", "surrogateescape")).hexdigest()


def _place(profile: Profile) -> str:
    return hashlib.sha256(str(profile.path).encode("utf-8", "surrogateescape")).hexdigest()
