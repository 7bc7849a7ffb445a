"""The palette: everything that can be done here, by name, with its key. Imported only when its key is pressed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Click, MouseScrollDown, MouseScrollUp
from textual.screen import ModalScreen
from textual.widgets import Input

from ...core.model.errors import ReportedError
from ...core.present import badge
from ..bindings import KEYS, Scope
from ..rows import Row, Span, clean, clip, cut, fit, row, width_of
from ..widgets.lines import LinePanel
from ..widgets.text_field import TextField

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from ...core.profiles.library import ProfileEntry
    from .acting import ActingScreen

_WIDTH, _LEAST_LINES = 124, 22
_KEY_CELLS, _LEAST_NAME, _NAME_CELLS = 8, 12, 30
_MOVES = frozenset("↑↓←→⇟⇞")


class Entry(NamedTuple):
    """One entry to choose."""

    name: str
    about: str
    go: Callable[[], object]
    key: str = ""
    why_not: str = ""
    """Why it cannot work now; choosing it then only says so."""
    writes: bool = False
    """True if it creates a file."""


def entries(screen: ActingScreen, profiles: Sequence[ProfileEntry]) -> Iterator[Entry]:
    """Yield the entries: what can be done on a screen, then panels, metrics, runs and profiles."""
    bound = {binding.action for _, binding, _, _ in screen.active_bindings.values()}
    for key in KEYS:
        if not key.shown or key.action not in bound or _MOVES & set(key.shown) or key.action == "screen.palette":
            continue
        bound.discard(key.action)  # other screens have keys for similar things
        owner = screen.app if key.scope is Scope.EVERYWHERE else screen
        go = partial(screen.call_next, owner.run_action, key.action)
        yield Entry(key.label, key.help, go, key.shown, screen.why_not(key))
    yield from screen.places()
    for run in screen.context.state.snapshots or ():
        look = badge(run)
        yield Entry(clean(run.name), f"run · {look.glyph} {look.word} · {run.run}", partial(_open, screen, run.run))
    for profile in profiles:
        about = f"launch · {clean(profile.title, 200)}"
        yield Entry(
            clean(profile.name, 60), about, partial(_launch, screen, profile.name), why_not=clean(profile.error or "")
        )


def profiles_for(screen: ActingScreen) -> Sequence[ProfileEntry]:
    """Return what can be launched; nothing from an unreachable machine, which the top line mentions."""
    found: Sequence[ProfileEntry] = ()
    with suppress(ReportedError):
        found = screen.context.services.placed_launcher().entries(waits=False)
    return found


def places_of_run(
    snapshot: RunSnapshot | None, show_panel: Callable[[int], object], draw: Callable[[str], object]
) -> Iterator[Entry]:
    """Yield the panels and metrics of a run."""
    from ..charting.data import metric_names
    from ..panels import panels

    for number, (name, panel) in enumerate(panels().items(), start=1):
        yield Entry(name, f"panel · {panel.help}", partial(show_panel, number), str(number))
    for name in metric_names(snapshot) if snapshot is not None else ():
        yield Entry(clean(name, 60), "metric · draw it in the chart", partial(draw, name))


def metrics_of_runs(screen: ActingScreen, runs: Iterable[RunSnapshot]) -> Iterator[Entry]:
    """Yield every metric that any of the runs has, to be drawn for the first run that has it."""
    from ...core.runs.comparison import full_name

    found: dict[str, RunSnapshot] = {}
    known = screen.context.state.snapshots or ()
    for run in runs:
        for name in (*run.extremes, *run.series, *run.numbers.metrics):
            found.setdefault(name, run)
    for name, run in found.items():
        about = f"metric · draw it for {clean(full_name(run, known), 60)}"
        yield Entry(clean(name, 60), about, partial(_open, screen, run.run, name))


def _open(screen: ActingScreen, run: str, metric: str = "") -> None:
    screen.context.close_run()
    screen.context.open_run(run, metric)


def _launch(screen: ActingScreen, name: str) -> None:
    from .opening import open_form

    open_form(screen, screen.context, lambda launcher: launcher.draft(name))


def matching(known: Iterable[Entry], typed: str) -> list[Entry]:
    """Return the entries that contain every word: matches in names first, and what can work before what cannot."""
    words = typed.casefold().split()

    def rank(entry: Entry) -> tuple[bool, int]:
        name = entry.name.casefold()
        begins = bool(words) and name.startswith(words[0])
        return bool(entry.why_not), 0 if begins else 1 if all(word in name for word in words) else 2

    found = [one for one in known if all(word in f"{one.name} {one.about}".casefold() for word in words)]
    return sorted(found, key=rank) if words else found


class Choices(LinePanel):
    """The entries that match, one of them selected."""

    def __init__(self, known: Sequence[Entry]) -> None:
        super().__init__()
        self.known = known
        self.found = list(known)
        self.index = self._top = 0

    @property
    def chosen(self) -> Entry | None:
        return self.found[self.index] if self.found else None

    def search(self, typed: str) -> None:
        self.found = matching(self.known, typed)
        self.index = 0
        self.repaint()

    def renew(self, known: Sequence[Entry], typed: str) -> None:
        """Update the entries: one that the user moved to stays selected, otherwise the best match is."""
        chosen = self.chosen.name if self.chosen is not None and self.index else ""
        self.known, self.found = known, matching(known, typed)
        self.index = next((place for place, one in enumerate(self.found) if one.name == chosen), 0)
        self.repaint()

    def move(self, by: int) -> None:
        self.index = max(0, min(len(self.found) - 1, self.index + by))
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        if not self.found:
            return [row((" nothing has that name", "dim"))]
        self._top = max(0, min(self._top, self.index), self.index - height + 1)
        seen = range(self._top, min(len(self.found), self._top + height))
        most = min(_NAME_CELLS, max(_LEAST_NAME, width // 3))
        name = max(_LEAST_NAME, *(min(most, width_of(self.found[place].name)) for place in seen))
        return [entry_row(self.found[place], width, name, selected=place == self.index) for place in seen]

    def on_click(self, event: Click) -> None:
        if 0 <= self._top + event.y < len(self.found):
            self.index = self._top + event.y
            self.screen.dismiss(self.chosen)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        self.move(1)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        self.move(-1)


def entry_row(entry: Entry, width: int, name: int, *, selected: bool) -> Row:
    """Return key, name in this many cells, and what it does or why it cannot work."""
    able = not entry.why_not
    parts = (
        Span("▌" if selected else " ", "key"),
        Span(fit(entry.key, _KEY_CELLS), "key" if able else "off"),
        Span(fit(cut(entry.name, name), name) + "  ", "strong" if able else "off"),
        Span(entry.about if able else f"not now: {entry.why_not}", "dim" if able else "faint"),
    )
    return row(*clip(parts, width), base="selected" if selected else "")


class Palette(ModalScreen[Entry | None]):
    """An input line above the entries that match."""

    CSS_PATH = "../styles/dialogs.tcss"
    BINDINGS = [  # noqa: RUF012 - Textual's name and kind
        ("escape,ctrl+p", "leave"),
        ("up", "move(-1)"),
        ("down", "move(1)"),
        ("pageup", "move(-10)"),
        ("pagedown", "move(10)"),
    ]

    def __init__(self, known: Sequence[Entry], asks: str) -> None:
        """``asks``: the placeholder of the empty line."""
        super().__init__()
        self._known, self._asks = known, asks

    def compose(self) -> ComposeResult:
        with Vertical(id="palette") as sheet:
            sheet.styles.width = min(_WIDTH, self.app.size.width)
            sheet.styles.height = self._lines
            yield TextField("", self._asks, compact=True)
            yield Choices(self._known)

    @property
    def _lines(self) -> int:
        height = self.app.size.height
        return min(max(_LEAST_LINES, height * 2 // 3), height, len(self._known) + 3)

    def refill(self, known: Sequence[Entry]) -> None:
        """Show what can be chosen now; more may be known than when the palette was opened."""
        told, self._known = self._known, known
        if self.is_mounted and [(*one[:2], *one[3:]) for one in told] != [(*one[:2], *one[3:]) for one in known]:
            self.query_one("#palette").styles.height = self._lines
            self.query_one(Choices).renew(known, self.query_one(TextField).value)

    def on_mount(self) -> None:
        field = self.query_one(TextField)
        field.entered = lambda text: self.dismiss(self.query_one(Choices).chosen)
        self.set_focus(field)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self.query_one(Choices).search(event.value)

    def action_move(self, by: int) -> None:
        self.query_one(Choices).move(by)

    def action_leave(self) -> None:
        self.dismiss(None)


def open_palette(screen: ActingScreen, known: Callable[[], Iterable[Entry]], asks: str) -> Callable[[], None]:
    """Let the user choose one thing and do it; call the returned function to update the palette while it is open."""
    palette = Palette(tuple(known()), asks)
    screen.app.push_screen(palette, lambda chosen: chosen.go() if chosen else None)

    def refill() -> None:
        if screen.app.screen is palette:
            palette.refill(tuple(known()))

    return refill
