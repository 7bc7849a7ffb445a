"""Hints for a word of the wrong kind: a profile where a run is expected, or a run where a profile is."""

from __future__ import annotations

import os
from pathlib import Path

from ..core.model.errors import UsageError
from ..core.model.home import resolve_home


def hint_of(error: UsageError) -> str:
    """Return an error's hint; if the name that was not found is of the other kind, what to do with that."""
    if error.field == "run":
        return _of_a_profile(error) or error.hint
    return (_of_a_run(error) or error.hint) if error.field == "profile" else error.hint


def _of_a_profile(error: UsageError) -> str:
    from ..core.profiles.library import profile_called
    from ..core.runs.find import NoSuchRun, is_path

    if not isinstance(error, NoSuchRun) or is_path(error.word):
        return ""
    name = profile_called(error.word, resolve_home(os.environ), Path.cwd())
    return f"{name!r} is a profile: start a run of it with `mpstui launch {name}`" if name else ""


def _of_a_run(error: UsageError) -> str:
    from ..core.profiles.library import NoSuchProfile
    from ..core.runs.find import find_runs

    if not isinstance(error, NoSuchProfile):
        return ""
    try:
        run = find_runs(resolve_home(os.environ), error.word)[0].run
    except UsageError:
        return ""
    again = f"`mpstui restart {run}` starts it again, `mpstui profiles save {run} NAME` makes a profile of it"
    return f"{error.word!r} is a run: {again}"
