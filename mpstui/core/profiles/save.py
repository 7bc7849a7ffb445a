"""Saving a launch as a profile of one's own: the text it came from, comments kept, with this launch's differences."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...wire import atomic
from ...wire.secrets import HIDDEN
from ..model.errors import OperationError, UsageError
from ..model.home import Home
from .lookup import SUFFIX
from .model import ArgumentValue

_FILE_NAME = re.compile(r"[\w][\w. -]{0,63}")


def save_profile_text(text: str, name: str, home: Home, changes: Mapping[str, Any], *, replace: bool = False) -> Path:
    """Write a profile into the user's folder and return its path.

    Args:
        text: the TOML it starts from; its comments and order are kept.
        name: what it will be launched by.
        changes: top-level keys and tables to set; a table's keys are set one by one, None takes a key out.

    Raises:
        UsageError: the name is no file name, or there is a profile of that name and ``replace`` was not said.
        OperationError: it cannot be written.
    """
    path = home.user_profiles / f"{_checked(name)}{SUFFIX}"
    data = _changed(text, changes).encode()
    try:
        atomic.make_private_folder(home.user_profiles)
        if replace:
            atomic.write_bytes(path, data)
        else:
            _create(path, data)
    except FileExistsError:
        raise UsageError(
            f"there is a profile {name!r} already: {path}", "choose another name, or say --replace", field="name"
        ) from None
    except OSError as error:
        raise OperationError(f"{path} cannot be written: {error.strerror}") from error
    return path


def _checked(name: str) -> str:
    stem = name.removesuffix(SUFFIX)
    if not _FILE_NAME.fullmatch(stem) or stem in ("check", "save"):
        raise UsageError(
            f"{name!r} cannot be a profile's name", "letters, digits, dots, dashes and blanks, 64 at most", field="name"
        )
    return stem


def _create(path: Path, data: bytes) -> None:
    """Whole or not at all, and never over another file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    atomic.write_bytes(temporary, data)
    try:
        os.link(temporary, path)
    finally:
        temporary.unlink()


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
                    document[key][inner] = _plain(item)
                elif key in document:
                    document[key].pop(inner, None)
            if key == "sweep" and key in document and not document[key]:
                document.pop(key)
        elif value is None:
            document.pop(key, None)
        else:
            document[key] = _plain(value)
    return tomlkit.dumps(document)


def _plain(value: ArgumentValue) -> Any:
    return list(value) if isinstance(value, tuple) else value
