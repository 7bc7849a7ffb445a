"""Checks of the installed schedulers: whether they answer, and whether their nodes can see the home."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...wire import storage
from ..engines.engine import ENGINES, ask, engine_named
from ..model.errors import OperationError
from ..model.home import Home
from .report import CheckResult, Status

OF_ONE_MACHINE = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "tmpfs", "overlay", "apfs"})
"""File systems local to this machine. Other machines would see an exported one as another kind, such as nfs."""


def cluster_facts(home: Home, mounts: Path = Path("/proc/self/mounts")) -> list[dict[str, Any]]:
    """Return one entry for each scheduler that is installed here."""
    found = []
    for name in ENGINES:
        engine, jobs, error = engine_named(name), None, None
        if shutil.which(engine.program) is None:
            continue
        try:
            jobs = len(engine.listed(ask(engine, engine.listing())))
        except OperationError as failure:
            error = failure.sentence
        except ValueError as failure:
            error = f"{engine.title}: its list of jobs cannot be read: {failure}"
        facts = {"engine": name, "title": engine.title, "jobs": jobs, "error": error}
        found.append({**facts, "home": str(home.state), "file_system": _kind_of(home.state, mounts)})
    return found


def judge_clusters(facts: Sequence[Mapping[str, Any]]) -> Iterator[CheckResult]:
    """Warn about a scheduler that does not answer, and a home that its nodes may not see."""
    for one in facts:
        title, kind = one["title"], one["file_system"]
        if one["error"] is not None:
            yield CheckResult(one["engine"], Status.WARNING, one["error"], f"runs here do not need {title}")
        elif kind in OF_ONE_MACHINE:
            text = f"{title} answers, but {one['home']} lies on {kind}: its nodes may not see it"
            yield CheckResult(one["engine"], Status.NOTE, text, "set MPSTUI_HOME to a folder that the nodes share")
        else:
            where = f", {one['home']} lies on {kind}" if kind else ""
            yield CheckResult(one["engine"], Status.OK, f"{title} answers: {one['jobs']} jobs of yours{where}")


def _kind_of(path: Path, mounts: Path) -> str | None:
    """Return the type of the file system that holds a path, as Linux names it; None on other systems."""
    try:
        rows = [line.split() for line in storage.read_text(mounts).splitlines()]
    except OSError:
        return None
    own = path.resolve()
    under = [(len(row[1]), row[2]) for row in rows if len(row) > 2 and own.is_relative_to(row[1])]
    return max(under)[1] if under else None
