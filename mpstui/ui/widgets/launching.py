"""Parts of the launch form: a field with a few values, path completion, the preview of what would start."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.events import Blur, Click, Focus
from textual.message import Message
from textual.suggester import Suggester
from textual.widget import Widget

from ...core.launching.form_fields import Preview
from ...core.model.errors import ReportedError
from ..rows import EMPTY, Row, clean, cut, fit, row, visible, wrap
from .lines import LinePanel, WheelScrolled

_LABEL_CELLS = 18
_LONGEST_COMMAND_LINES = 12
_MOST_RUNS_NAMED = 3


class Choice(LinePanel, can_focus=True):
    """A one-line field with a few possible values; arrows or space change it."""

    BINDINGS = [  # noqa: RUF012 - Textual's name and kind
        Binding("right,space", "turn(1)", show=False),
        Binding("left", "turn(-1)", show=False),
    ]

    class Changed(Message):
        """The value has changed."""

    def __init__(self, value: str, choices: tuple[str, ...], *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.choices = choices if value in choices else (value, *choices)
        self.value = value

    def action_turn(self, by: int) -> None:
        """Select the next value; after the last comes the first."""
        self.value = self.choices[(self.choices.index(self.value) + by) % len(self.choices)]
        self.repaint()
        self.post_message(self.Changed())

    def on_click(self, event: Click) -> None:
        self.focus()
        self.action_turn(1)

    def on_focus(self, event: Focus) -> None:
        self.repaint()

    def on_blur(self, event: Blur) -> None:
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        arrows = "key" if self.has_focus else "faint"
        place = self.choices.index(self.value)
        first = 0  # index of the first one in view: as many before the chosen one as fit
        while first < place and sum(len(one) + 3 for one in self.choices[first : place + 1]) > width:
            first += 1
        parts: list[tuple[str, str]] = []
        for choice in self.choices[first:]:
            chosen = choice == self.value
            parts += [("‹" if chosen else " ", arrows), (clean(choice, 60), "strong" if chosen else "faint")]
            parts += [("›" if chosen else " ", arrows), (" ", "")]
        return [row(*parts, base="selected" if self.has_focus else "")]


class Completion(Suggester):
    """Suggests the rest of a path after what was typed; → accepts it."""

    def __init__(self, complete: Callable[[str], Awaitable[str | None]]) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._complete = complete

    async def get_suggestion(self, value: str) -> str | None:
        return await self._complete(value)


class LaunchPreview(WheelScrolled, LinePanel):
    """Exactly what a launch would start, in a scrollable panel."""

    TITLE = "preview"

    def __init__(self, earlier: Callable[[str, int, int], list[Row]] = lambda profile, width, height: []) -> None:
        """``earlier`` returns the lines about earlier runs of the profile, for a width and a maximum height."""
        super().__init__()
        self.titled = True
        self._earlier = earlier
        self.preview: Preview | None = None
        self.error: ReportedError | None = None
        self._asking = ""
        self._top = 0

    def show(self, preview: Preview | None, error: ReportedError | None = None) -> None:
        """Show a new preview; with an error, or while its machine is being asked, the last good one stays below."""
        self._asking = preview.host or "" if preview is not None and preview.is_asked_for else ""
        if self._asking and self.preview is not None and self.preview.host != self._asking:
            self.preview = None
        self.preview = self.preview if self._asking else preview or self.preview
        self.error = error
        self.repaint()

    @property
    def runs(self) -> int:
        """How many runs these values would start: several if an argument is swept."""
        return max(1, len(self.preview.runs)) if self.preview else 1

    def scroll_rows(self, by: int) -> None:
        self._top += by
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        lines = self._lines(width)
        self._top = max(0, min(self._top, len(lines) - height))
        if not self._top and len(lines) > height:
            lines = self._lines(width, reasons=False)
        more = len(lines) - self._top > height
        shown = lines[self._top : self._top + height]
        if more:
            return [*shown[:-1], row((" … page down for more", "faint"))]
        profile = self.preview.profile if self.preview is not None else None
        earlier = self._earlier(profile, width, height - len(shown) - 1) if profile else []
        return [*shown, EMPTY, *earlier] if earlier else shown

    def _lines(self, width: int, *, reasons: bool = True) -> list[Row]:
        shown = preview_rows(self.preview, self.error, width - 2, asking=self._asking, reasons=reasons)
        return [row(" ", *line.spans) for line in shown]


def preview_rows(
    preview: Preview | None, error: ReportedError | None, width: int, *, asking: str = "", reasons: bool = True
) -> list[Row]:
    """Return command, environment with reasons, doubts and warnings; a mistake in the form comes before all that.

    Args:
        asking: the machine that has not answered yet for these values; the preview is of earlier ones.
        reasons: give them; without, in little room, only what is doubtful is explained.
    """
    lines: list[Row] = []
    if error:
        lines += _marked("✗ ", "bad", error.sentence, "bad", width, 4)
        lines += [*_marked("  ", "", error.hint, "dim", width, 2), EMPTY]
    if asking:
        earlier = "" if preview is None else "; as it was before"
        lines += [*_marked("", "", f"asking {asking} what it would start …{earlier}", "dim", width, 2), EMPTY]
    if preview is None:
        return lines
    warnings = [line for text in preview.warnings for line in _marked("! ", "warn", text, "warn", width, 3)]
    lines += [*warnings, EMPTY] if warnings else []
    if preview.changes is not None:
        lines.append(row(("changed", "heading"), ("" if preview.changes else "  nothing: it starts as before", "dim")))
        lines += [row("  ", (cut(clean(text, 500), width - 3), "good")) for text in preview.changes]
        lines.append(EMPTY)
    if preview.runs:
        count, named = len(preview.runs), preview.runs[:_MOST_RUNS_NAMED]
        lines.append(row((f"{count} runs", "heading"), ("  queued, one at a time on each accelerator", "faint")))
        lines += [row("  ", (cut(clean(name, 300), width - 3), "dim")) for name in named]
        hidden = row((f"  and {count - len(named)} more", "dim"))
        lines += [hidden, EMPTY] if count > len(named) else [EMPTY]
    for place, text in enumerate(preview.waits_for):
        lines += _marked("waits for " if place == 0 else "and for ", "heading", text, "", width, 2)
    lines += _elsewhere(preview, width)
    title = "the first will run" if preview.runs else "will run"
    folder = cut(clean(preview.cwd, 300), width - len(title) - 6)
    lines.append(row((title, "heading"), ("  in ", "faint"), (folder, "dim")))
    # The command is shown with its invisible characters, which everything else leaves out.
    lines += _marked("$ ", "faint", visible(preview.command), "", width, _LONGEST_COMMAND_LINES)
    return [*lines, EMPTY, *_environment(preview, width, reasons=reasons)]


def _environment(preview: Preview, width: int, *, reasons: bool) -> list[Row]:
    folded = "" if reasons or not preview.environment else "  reasons: page down"
    lines = [row(("with environment", "heading"), (folded, "faint"))]
    if not preview.environment:
        lines.append(row(("  nothing added", "dim")))
    plain = [] if reasons else [line for line in preview.environment if not line.doubtful]
    if plain:
        lines += _marked("  ", "", "  ".join(f"{line.name}={line.value}" for line in plain), "strong", width, 8)
    for line in preview.environment:
        if line in plain:
            continue
        lines.append(row("  ", (cut(f"{clean(line.name, 80)}={clean(line.value, 300)}", width - 2), "strong")))
        lines += _marked("    ", "", line.reason, "dim", width, 3) if reasons else []
        lines += _marked("    ! doubtful ", "warn", line.doubtful or "", "", width, 4)
    return lines


def _elsewhere(preview: Preview, width: int) -> list[Row]:
    """Return the lines about the other machine on which it starts, and what is sent there."""
    if preview.host is None:
        return []
    told = [line for text in preview.travels for line in _marked("  ", "", text, "dim", width, 4)]
    return [row(("starts on ", "heading"), (clean(preview.host, 60), "strong")), *told, EMPTY]


def _marked(mark: str, mark_role: str, text: str, role: str, width: int, most: int) -> list[Row]:
    """Wrap ``text`` into at most ``most`` lines, the first one after a mark, the others indented."""
    lines = wrap(clean(text, 4000), width - len(mark) - 1, most)
    return [row((" " * len(mark) if place else mark, mark_role), (line, role)) for place, line in enumerate(lines)]


class FieldNote(LinePanel):
    """The line below a field that says what is wrong with its value."""

    text = ""

    def rows(self, width: int, height: int) -> list[Row]:
        lines = wrap(clean(self.text), width - _LABEL_CELLS - 2, 2)
        return [
            row(" " * (_LABEL_CELLS + 1), ("✗ " if place == 0 else "  ", "bad"), (text, "bad"))
            for place, text in enumerate(lines)
        ]

    def tell(self, text: str) -> None:
        self.text = text
        self.display = bool(text)
        self.styles.height = max(1, len(wrap(clean(text), max(10, self.app.size.width // 2 - _LABEL_CELLS), 2)))
        self.repaint()


class FieldLabel(LinePanel):
    """The name of a field, marked if something is entered there."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = clean(text, 100)
        self.changed = False
        """True if the field has been changed."""

    def rows(self, width: int, height: int) -> list[Row]:
        here = isinstance(self.parent, Widget) and self.parent.has_focus_within
        text = fit(("● " if self.changed else "") + self._text, width - 1, "right")
        return [row((text, "key" if here else "good" if self.changed else "dim"), ("▌" if here else " ", "key"))]


class Fields(VerticalScroll, can_focus=False, inherit_bindings=False):
    """As many fields as there is room for; its keys are those of the form: arrows go to the next field."""
