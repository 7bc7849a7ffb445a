"""What a shared page hides about its author: home folders, and user names in paths."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ...wire import storage
from ...wire.records import Spec
from ...wire.rundir import RunDir
from ..model.snapshot import RunSnapshot

SOMEBODY = "user"
_HOMES = ("/home/", "/Users/")


def without_the_user(text: str, snapshots: Sequence[RunSnapshot]) -> str:
    """The text with ``~`` for home folders and ``user`` for the names of those who started the runs.

    Names are replaced in paths and before an ``@``, together with the host that follows it.
    """
    homes = {os.path.normpath(one) for one in _homes(snapshots) if len(one) > 1 and one.startswith("/")}
    for home in sorted(homes, key=len, reverse=True):
        text = re.sub(rf"(?<![\w.~-]){re.escape(home)}(?![\w.-])", "~", text)
    users = {Path(home).name for home in homes if home.startswith(_HOMES)} | {*_starters(snapshots)}
    text = re.sub(rf"(?<![\w.~-])(?:{'|'.join(_HOMES)})[\w.-]+", "~", text)
    named = "|".join(map(re.escape, sorted(filter(None, users), key=len, reverse=True)))
    if named:
        text = re.sub(rf"(?<![\w.-])(?:{named})@[\w.-]+(?::\d+)?", SOMEBODY, text)
        text = re.sub(rf"(?<=/)(?:{named})(?=/)", SOMEBODY, text)
    return text


def _homes(snapshots: Iterable[RunSnapshot]) -> Iterable[str]:
    """Yield the homes of the page's author and of those who started the runs, perhaps on another machine."""
    yield str(Path("~").expanduser())
    for one in snapshots:
        yield one.env.get("HOME", "")


def _starters(snapshots: Iterable[RunSnapshot]) -> Iterable[str]:
    """Yield the users who started the runs: ``alice`` of ``alice@box:4711``."""
    for one in snapshots:
        spec = storage.read_or_none(Spec, RunDir(one.dir).spec) if one.is_ours else None
        yield (spec.by or "").partition("@")[0] if spec is not None else ""
