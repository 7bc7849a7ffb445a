"""The worker that reads the image in view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.model.errors import ReportedError
from ...core.runs.logged import Seen
from ..messages import ImageRead
from .worker import Post, Worker

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from ...core.runs.logged import Wanted
    from ..services import Services


class ImageWorker(Worker):
    """Reads the image requested last; earlier requests that have not begun are dropped."""

    name = "images"

    def __init__(self, services: Services, post: Post) -> None:
        super().__init__(post)
        self._services = services
        self._asked: tuple[RunSnapshot, Wanted] | None = None

    def read(self, snapshot: RunSnapshot, wanted: Wanted) -> None:
        """Read this image; the first call starts the worker."""
        self._asked = snapshot, wanted
        self.start()
        self.wake()

    def stop(self) -> None:
        """Stop after the image being read. Leaving does not wait for it, as it may come from another machine."""
        self._stopped.set()
        self.wake()

    def _work(self) -> float | None:
        asked, self._asked = self._asked, None
        if asked is not None:
            try:
                self._post(ImageRead(asked[1], self._services.image(*asked)))
            except ReportedError as error:
                self._post(ImageRead(asked[1], Seen(), error.sentence))
        return None
