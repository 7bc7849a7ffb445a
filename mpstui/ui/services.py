"""The core as the screen uses it, plus the services that need the screen's own code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.hosts.local import LocalServices

if TYPE_CHECKING:
    from ..core.model.snapshot import RunSnapshot
    from .alarms import Alarm


class Services(LocalServices):
    """Everything the screen asks for. Most of it reads files: call it from a worker."""

    def notification(self, found: Sequence[Alarm]) -> str:
        """Return the control sequences that notify the terminal of alarms, according to the settings.

        Raises:
            UsageError: the settings have mistakes.
        """
        from .alarms import words_for

        return words_for(found, self.settings().alerts, self.environ)

    def heard(self, found: Sequence[Alarm]) -> list[Alarm]:
        """Return the alarms that the user wants.

        Raises:
            UsageError: the settings have mistakes.
        """
        from .alarms import heard

        return heard(found, self.settings().alerts)

    def export(self, snapshot: RunSnapshot, metric: str, form: str) -> Path:
        """Write a run's points (``csv``) or a metric's chart (``svg``, ``png``) to a new file.

        Returns its path.

        Raises:
            OperationError: a library it needs is not installed. OSError: the folder cannot be written.
        """
        from ..core.sharing import export

        target = export.unused_path(self._cwd, snapshot.name, form)
        if form == "csv":
            export.write_csv(self.table(snapshot), target)
        else:
            from ..wire import storage
            from .charting.picture import as_png, as_svg

            storage.write_bytes(target, (as_svg if form == "svg" else as_png)(snapshot, metric))
        return target

    def report(self, snapshots: Sequence[RunSnapshot]) -> Path:
        """Write the report of a run, or of several side by side, to a new file; return its path.

        Raises:
            OSError: the folder cannot be written.
        """
        from ..core.sharing import export
        from ..core.sharing.page import page
        from ..wire import storage

        name = snapshots[0].name if len(snapshots) == 1 else f"{len(snapshots)} runs"
        target = export.unused_path(self._cwd, name, "html")
        storage.write_bytes(target, page(self.in_detail(snapshots)).encode("utf-8", "replace"))
        return target
