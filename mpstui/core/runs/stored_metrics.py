"""The curves of stored runs: which file to follow for changes, and which reader to use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..follow import FollowedFile, FollowedFiles
from ..formats.stores import StoredRun, find_runs
from ..series.series import SeriesStore
from .external import ExternalMetrics
from .sources import MetricSource


def followed(stored: StoredRun) -> FollowedFile:
    """Return the file, or files, that change when a run progresses."""
    files = stored.files()
    return (
        FollowedFile(files[0])
        if len(files) == 1 and len(stored.parts) == 1
        else FollowedFiles(stored.path, stored.files)
    )


def metrics_of_run(stored: StoredRun, clock: Callable[[], float], store: SeriesStore) -> ExternalMetrics:
    """Return a reader that puts the curves of a run into ``store``."""

    def opened(file: FollowedFile) -> MetricSource | None:
        try:
            found = stored.open()
        except OSError:
            return None
        return None if found is None else MetricSource(file, found)

    return ExternalMetrics(stored.path, clock, store=store, file=followed(stored), opened=opened)


def metrics_of(key: Path, clock: Callable[[], float], store: SeriesStore) -> list[ExternalMetrics]:
    """Return readers for the curves of the run with a key; none if it is gone, or its folder is read like any other."""
    found = (run for run in find_runs(key, lambda _: False) if run.key == str(key) and not run.is_folder)
    return [metrics_of_run(run, clock, store) for run in found]
