"""The worker that reads again, in detail, what a chart was zoomed into."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..messages import WindowRead
from .worker import Post, Worker

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from ...core.runs.window import Window, WindowReader
    from ..services import Services

_SLICE_SECONDS, _BREATH_SECONDS = 0.015, 0.002
"""Between the slices, keys and frames have their turn."""


class WindowWorker(Worker):
    """Reads one window of a chart at a time, always the last one requested; starts with the first request."""

    name = "window"

    def __init__(self, services: Services, post: Post) -> None:
        super().__init__(post)
        self._services = services
        self._asked: tuple[RunSnapshot, Window] | None = None
        self._reader: WindowReader | None = None

    def read(self, snapshot: RunSnapshot, window: Window) -> None:
        """Read this window instead of any other."""
        self._asked = snapshot, window
        self.start()
        self.wake()

    def _work(self) -> float | None:
        from ...core.follow import Budget

        asked, self._asked = self._asked, None
        if asked is not None:
            self._reader = self._services.window_reader(*asked)
        reader = self._reader
        if reader is None:
            return None
        reader.read(Budget(_SLICE_SECONDS))
        if not reader.done:
            return _BREATH_SECONDS
        self._reader = None
        self._post(WindowRead(reader.window, reader.curves))
        return None
