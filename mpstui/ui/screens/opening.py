"""From a key to the launch form or the profiles, which may first have to be requested from another machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from textual.message_pump import MessagePump
from textual.screen import Screen

from ...core.model.errors import ReportedError
from ...core.model.snapshot import RunSnapshot
from ..rows import clean
from ..workers.requests import aside, attend
from .launch import LaunchForm, ProfilesScreen

if TYPE_CHECKING:
    from ...core.launching.drafts import Draft, Launcher
    from ..context import Context

T = TypeVar("T")
_AT_ONCE_SECONDS = 0.3
"""An answer that takes no longer than this needs no message."""


def open_profiles(pump: MessagePump, context: Context) -> None:
    """Show the profiles, to choose one."""
    _open(pump, context, lambda launcher: launcher.entries(), lambda launcher, _: ProfilesScreen(context, launcher))


def open_form(
    pump: MessagePump, context: Context, make: Callable[[Launcher], Draft], restarting: RunSnapshot | None = None
) -> None:
    """Show a launch form, for a new attempt if a run is given; or say why there is none."""
    _open(pump, context, make, lambda _, draft: LaunchForm(context, draft, restarting))


def _open(
    pump: MessagePump,
    context: Context,
    ask: Callable[[Launcher], T],
    show: Callable[[Launcher, T], Screen[None]],
) -> None:
    """Show a screen at once if everything it needs is here; otherwise as soon as its machine has answered.

    It is not shown if the user has gone to another screen by then.
    """
    app, before = pump.app, pump.app.screen

    def failed(error: ReportedError) -> None:
        context.say(clean(f"{error.sentence}. {error.hint}".rstrip(". "), 400), "error")

    async def opened(launcher: Launcher) -> None:
        said = app.set_timer(_AT_ONCE_SECONDS, lambda: context.say(f"asking {clean(launcher.asks, 60)} …"))
        try:
            found = await aside(ask, launcher)
        except ReportedError as error:
            failed(error)
        else:
            if app.screen is before:
                app.push_screen(show(launcher, found))
        finally:
            said.stop()

    try:
        launcher = context.services.placed_launcher()
        if launcher.asks:
            attend(app, opened(launcher))
        else:
            app.push_screen(show(launcher, ask(launcher)))
    except ReportedError as error:
        failed(error)
