"""Screens with panels that may show pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import on
from textual.events import ScreenResume, ScreenSuspend
from textual.screen import Screen

if TYPE_CHECKING:
    from ..context import Context
    from ..graphics import Picture
    from ..widgets.lines import PixelPanel


class PictureScreen(Screen[None]):
    """Tells its panels how the terminal shows pixels, and which part of them is covered."""

    context: Context

    @property
    def can_draw(self) -> bool:
        """True if its widgets exist and it is the screen in view."""
        raise NotImplementedError

    @property
    def pixel_panels(self) -> Sequence[PixelPanel]:
        """The panels that may show pixels."""
        return ()

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """What it shows in pixels."""
        return tuple(one for panel in self.pixel_panels for one in panel.pictures)

    def take_graphics(self) -> None:
        """Switch to the way the terminal shows pixels now, if any."""
        for panel in self.pixel_panels:
            if panel.graphics is not self.context.state.graphics:
                panel.graphics = self.context.state.graphics
                panel.repaint()

    def make_room(self, lines: int) -> None:
        """Note that this many lines above the footer are covered for now; the newest lines are drawn above them."""
        if self.can_draw:
            for panel in self.pixel_panels:
                panel.make_room(lines)

    @on(ScreenResume)
    def _paint_once(self) -> None:
        """Keep Textual from painting a screen twice when it is first laid out: 4 ms of a start's 260, and 5 kB."""
        if self.outer_size != self.app.size:
            self.call_next(self._forget_repaint)

    def _forget_repaint(self) -> None:
        self._repaint_required = False

    @on(ScreenSuspend)
    @on(ScreenResume)
    def _stand_behind(self) -> None:
        """Redraw: behind a dialog, charts are drawn in characters."""
        for panel in self.pixel_panels:
            panel.repaint()
