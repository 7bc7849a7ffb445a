"""The images and texts that a run has logged."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.events import ScreenResume, ScreenSuspend

from ...core.model.patterns import PatternMistake, line_pattern
from ..bindings import Scope, bindings, footer_keys
from ..messages import ImageRead
from ..rows import clean
from ..widgets.image_view import ImageView
from ..widgets.lines import KeyLine
from ..widgets.search_line import SearchLine
from ..workers.images import ImageWorker
from .following import FollowingScreen

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from ..context import Context
    from ..graphics import Picture


class ImagesScreen(FollowingScreen):
    """When the user leaves, the run's panels go to the step of the image that was in view."""

    CSS_PATH = "../styles/images.tcss"
    SCOPES = (Scope.IMAGES,)
    BINDINGS = bindings(*SCOPES)

    def __init__(
        self, context: Context, snapshot: RunSnapshot, step: float | None, left: Callable[[float | None], None]
    ) -> None:
        """``step``: where to start, None for the newest. ``left`` is called at the end, with the chosen step if any."""
        super().__init__(context, snapshot)
        self._left = left
        self._worker = ImageWorker(context.services, self.post_message)
        read = lambda wanted: self._worker.read(self.snapshot, wanted)  # noqa: E731
        self.view = ImageView(read, step, remote=context.services.remote)
        left_search = partial(self.view.filter, "")
        self._search = SearchLine(self._filter, self._filter, left_search, self.view.turn)
        self.view.TITLE = f"logged by {clean(snapshot.name, 60)}"

    def compose(self) -> ComposeResult:
        yield self.view
        yield self._search
        yield KeyLine(footer_keys(Scope.IMAGES, Scope.EVERYWHERE))

    def on_mount(self) -> None:
        self.view.graphics = self.context.state.graphics
        self.view.show(self.snapshot)

    def on_unmount(self) -> None:
        self._worker.stop()
        if self.view.graphics is not None:
            self.view.graphics.next = 0.0  # charts need not wait for a picture that is gone

    @property
    def pictures(self) -> tuple[Picture, ...]:
        return (self.view.picture,) if self.view.picture is not None else ()

    def make_room(self, lines: int) -> None:
        if self.can_draw:
            self.view.make_room(lines)

    @on(ScreenSuspend)
    @on(ScreenResume)
    def _stand_behind(self) -> None:
        """Redraw: behind a dialog, an image is drawn in characters."""
        self.view.redraw()

    def draw(self) -> None:
        if self.view.graphics is not self.context.state.graphics:
            self.view.graphics = self.context.state.graphics
            self.view.redraw()
        self.view.show(self.snapshot)

    @on(ImageRead)
    def _show_image(self, message: ImageRead) -> None:
        if self.can_draw:
            self.view.take(message)

    # -- keys

    def _filter(self, pattern: str) -> None:
        try:
            line_pattern(pattern)
        except PatternMistake as mistake:
            self.context.say(f"{mistake}: {mistake.hint}", "warning")
            return
        self.view.filter(pattern)

    def action_filter(self) -> None:
        self._search.open(self.view.pattern)

    def action_scroll(self, by: int) -> None:
        self.view.scroll(by)

    def action_back(self) -> None:
        """Drop a filter; otherwise return to the run."""
        if self.view.pattern:
            self.view.filter("")
            return
        self.app.pop_screen()
        if self.view.moved:
            self._left(None if self.view.follows else self.view.step)

    def action_turn(self, by: int) -> None:
        self.view.turn(by)

    def action_choose(self, by: int) -> None:
        self.view.choose(by)

    def action_first(self) -> None:
        self.view.to_edge(-1)

    def action_newest(self) -> None:
        self.view.to_edge(1)

    def action_copy(self) -> None:
        """Copy the path of an image's file, or the text."""
        image = self.view.seen.item if self.view.seen is not None else None
        if image is not None and image.text is not None:
            self.app.copy_to_clipboard(image.text)
            self.context.say("sent the text to the terminal's clipboard (OSC 52)")
        elif image is not None:
            self.app.copy_to_clipboard(str(self.snapshot.dir / "images" / image.file))
            self.context.say("sent the path of the image to the terminal's clipboard (OSC 52)")
