"""Finding and saving profiles: by path, in ./profiles/, the user's folder or the shipped ones. The first match wins."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...wire import storage
from ...wire.rundir import slug
from ...wire.secrets import HIDDEN
from ..model.checks import Problem, ProfileError, nearest
from ..model.errors import OperationError, UsageError
from ..model.home import Home
from ..model.toml import TomlMistake, load_toml
from .model import Profile
from .parse import parse_profile

SUFFIX = ".toml"
MAX_PROFILE_BYTES = 1 << 20
FIRST = "quickstart"
"""The profile preselected for a new user."""


class NoSuchProfile(UsageError):
    """No profile has this name or title; ``word`` is the requested name."""

    def __init__(self, word: str, sentence: str, hint: str, *, near: str | None) -> None:
        super().__init__(sentence, hint, field="profile", near=near)
        self.word = word


@dataclass(frozen=True, slots=True)
class ProfileEntry:
    """One entry of the list of profiles."""

    name: str
    """The name it is launched by."""
    title: str
    path: Path
    origin: str
    """``folder``, ``yours`` or ``shipped``."""
    error: str | None = None
    """Why it cannot be launched, one mistake per line."""
    description: str = ""
    command: str = ""
    """Its command on one line, with plain ``python`` and ``trainer`` for the placeholders."""
    arguments: str = ""
    """``epochs=8 lr=0.002``: the arguments it sets."""
    sweep: str = ""
    """``lr=0.1,0.01``: arguments with several values; one run per combination."""


def shipped_folder() -> Path:
    """Return the folder of the profiles that ship with mpstui: in the package in a wheel, beside it in a checkout."""
    package = Path(__file__).resolve().parents[2]
    inside = package / "profiles"
    return inside if inside.is_dir() else package.parent / "profiles"


def list_profiles(home: Home, cwd: Path) -> tuple[ProfileEntry, ...]:
    """Return every profile that can be named from ``cwd``, by origin and name, with the quick start first.

    If two have the same name, only the one that takes precedence is listed.
    """
    found: dict[str, ProfileEntry] = {}
    for path, origin in _files(home, cwd):
        if path.stem not in found:
            try:
                profile = read_profile(path, cwd)
                entry = ProfileEntry(path.stem, profile.name, path, origin, None, *_told(profile))
            except UsageError as error:
                entry = ProfileEntry(path.stem, path.stem, path, origin, error.sentence)
            found[path.stem] = entry
    return tuple(found.values())


def _told(profile: Profile) -> tuple[str, str, str, str]:
    """Return description, command, arguments and sweep as the list shows them."""
    swept = (f"{name}={','.join(map(str, values))}" for name, values in profile.sweep.items())
    set_to = (f"{name}={value}" for name, value in profile.args.items() if name not in profile.sweep)
    command = " ".join(profile.command).replace("{python}", "python").replace("{trainer}", "trainer")
    return profile.description, command, " ".join(set_to), " ".join(swept)


def shipped_profile(name: str, cwd: Path) -> Profile:
    """Return the shipped profile of that name, even if the current folder has one of the same name."""
    return read_profile(shipped_folder() / f"{name}{SUFFIX}", cwd)


def names_profile(word: str, home: Home, cwd: Path) -> bool:
    """True if a word is a profile's name, or the path of a TOML file with a ``command``."""
    path = cwd / Path(word).expanduser()
    if word.endswith(SUFFIX) and path.is_file():
        try:
            return "command" in load_toml(_read(path))
        except (UsageError, TomlMistake):
            return False
    return any(file.stem == word.removesuffix(SUFFIX) for file, _ in _files(home, cwd))


def profile_called(word: str, home: Home, cwd: Path) -> str | None:
    """Return the name of the profile that a word means, ignoring punctuation: ``my_net`` and ``my-net`` are alike."""
    wanted = slug(word.removesuffix(SUFFIX))
    return next((file.stem for file, _ in _files(home, cwd) if slug(file.stem) == wanted), None)


def load_profile(name_or_path: str, home: Home, cwd: Path) -> Profile:
    """Find and read one profile, by path, by the file's name, or by its title.

    Raises:
        UsageError: there is none of that name (the closest is suggested), or it has mistakes (all are listed).
    """
    path = Path(name_or_path).expanduser()
    if "/" in name_or_path or (name_or_path.endswith(SUFFIX) and (cwd / path).is_file()):
        return read_profile((cwd / path).absolute(), cwd)
    wanted = name_or_path.removesuffix(SUFFIX)
    known: dict[str, Path] = {}
    for file, _ in _files(home, cwd):
        known.setdefault(file.stem, file)
    if wanted in known:
        return read_profile(known[wanted], cwd)
    if name_or_path.endswith(SUFFIX):
        raise UsageError(f"there is no file {cwd / path}, and no profile {wanted!r}", "`mpstui profiles` lists them")
    entries = list_profiles(home, cwd)
    for entry in entries:
        if entry.title.casefold() == wanted.casefold() and not entry.error:
            return read_profile(entry.path, cwd)
    names = [entry.name for entry in entries]
    likely = nearest(wanted, names)
    hint = f"did you mean `{likely}`?" if likely else f"there are: {', '.join(names) or 'none yet'}"
    raise NoSuchProfile(wanted, f"there is no profile {wanted!r}", hint, near=likely)


def read_profile(path: Path, cwd: Path) -> Profile:
    """Read one file. Without a ``cwd`` key, a profile runs in its own folder, a shipped one where it is launched.

    Raises:
        UsageError: it cannot be read, or has mistakes.
    """
    text = _read(path)
    shipped = path.parent.resolve() == shipped_folder().resolve()
    return parse_profile(text, path=path, default_cwd=(cwd if shipped else path.parent).resolve())


def _read(path: Path) -> str:
    try:
        with storage.open_file(path) as file:
            data = file.read(MAX_PROFILE_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be read: {error.strerror}", "`mpstui profiles` lists what there is"
        ) from error
    if len(data) > MAX_PROFILE_BYTES:
        raise UsageError(f"{path}: is larger than 1 MiB, which no profile is")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ProfileError(path, [Problem("", "this is not UTF-8 text", line)]) from error


def _files(home: Home, cwd: Path) -> Iterator[tuple[Path, str]]:
    for folder, origin in ((cwd / "profiles", "folder"), (home.user_profiles, "yours"), (shipped_folder(), "shipped")):
        try:
            files = sorted(folder.glob(f"*{SUFFIX}"), key=lambda file: (file.stem != FIRST, file.name))
        except OSError:
            continue
        yield from ((file, origin) for file in files if not file.name.startswith("."))


def save_profile_text(
    text: str, name: str, home: Home, changes: Mapping[str, Any], *, replace: bool = False, again: bool = False
) -> Path:
    """Write a profile to the user's folder and return its path.

    Args:
        text: the TOML to start from; its comments and order are kept.
        name: the name to launch it by.
        changes: top-level keys and tables to set; a table's keys are set one by one, None removes a key.
        replace: overwrite a profile of the same name.
        again: an earlier attempt of the same request may have saved it already.

    Raises:
        UsageError: the name is no valid file name, or there is a profile of that name and ``replace`` is False.
        OperationError: it cannot be written.
    """
    stem = name.removesuffix(SUFFIX)
    if not re.fullmatch(r"[\w][\w. -]{0,63}", stem) or stem in ("check", "save"):
        hint = "letters, digits, dots, dashes and blanks, 64 at most"
        raise UsageError(f"{name!r} cannot be a profile's name", hint, field="name")
    path = home.user_profiles / f"{stem}{SUFFIX}"
    data = _changed(text, changes).encode()
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        storage.make_private_folder(home.user_profiles)
        if replace:
            storage.write_bytes(path, data)
        else:
            storage.write_bytes(temporary, data)
            try:
                os.link(temporary, path)  # all or nothing, and never over an existing file
                storage.sync_folder(path.parent)
            finally:
                temporary.unlink()
    except FileExistsError:
        if again and storage.read_bytes(path) == data:
            return path
        raise UsageError(
            f"there is a profile {name!r} already: {path}", "choose another name, or say --replace", field="name"
        ) from None
    except OSError as error:
        raise OperationError(f"{path} cannot be written: {error.strerror}") from error
    return path


def _changed(text: str, changes: Mapping[str, Any]) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    environment = document.get("env", {})
    for name in [name for name, value in environment.items() if value == HIDDEN]:
        del environment[name]
    if not environment:
        document.pop("env", None)
    for key, value in changes.items():
        if isinstance(value, Mapping):
            if value and key not in document:
                document[key] = tomlkit.table()
            for inner, item in value.items():
                if item is not None:
                    document[key][inner] = list(item) if isinstance(item, tuple) else item
                elif key in document:
                    document[key].pop(inner, None)
            if key == "sweep" and key in document and not document[key]:
                document.pop(key)
        elif value is None:
            document.pop(key, None)
        else:
            document[key] = list(value) if isinstance(value, tuple) else value
    return tomlkit.dumps(document)
