"""Small screens over another one: a question, an input line, pages of text."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Click
from textual.screen import ModalScreen

from ...core import present as shown
from ...core.actions import Action, Question
from ...core.stakes import at_stake
from ..rows import EMPTY, Row, clean, row, wrap
from ..widgets.lines import LinePanel, WheelScrolled
from ..widgets.text_field import TextField

if TYPE_CHECKING:
    from ...core.launching.form_fields import Preview
    from ...core.model.snapshot import RunSnapshot
    from ...core.runs.expected import Expected
    from ...core.runs.removal import Removable

_WIDTH = 64
_ANSWER_ROLE = "key strong"
_MOST_LINES = 12
"""Most lines of a sentence in a question."""
MOST_NAMED = 8
"""How many runs a question about several lists by name."""


class Sheet(WheelScrolled, LinePanel):
    """Fixed lines that can be scrolled."""

    def __init__(self, lines: list[Row]) -> None:
        super().__init__()
        self._lines = lines
        self._top = 0

    @classmethod
    def fitting(cls, lines: list[Row], width: int, most_height: int) -> Sheet:
        """Return a sheet in its frame, as high as its lines if the screen allows."""
        sheet = cls(lines)
        sheet.styles.width = width
        sheet.styles.height = min(len(lines) + 2, most_height)
        return sheet

    def scroll_rows(self, by: int) -> None:
        self._top = max(0, min(self._top + by, len(self._lines) - self.size.height))
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        shown = self._lines[self._top : self._top + height]
        more = len(self._lines) - self._top > height
        return [*shown[:-1], row(("↓ more", "key"))] if more else shown

    def line_at(self, event: Click) -> Row:
        """Return the row at the place of a click."""
        place = event.screen_y - self.content_region.y
        shown = self.rows(*self.content_size)
        return shown[place] if 0 <= place < len(shown) else EMPTY


Answer = Literal["yes", "keep", "no"]


class Confirm(ModalScreen[Answer]):
    """A question with its consequences; only ``y`` says yes, and ``k`` chooses the gentler way if there is one."""

    CSS_PATH = "../styles/dialogs.tcss"
    BINDINGS = [  # noqa: RUF012 - Textual's name and kind
        ("y", "answer('yes')"),
        ("k", "answer('keep')"),
        ("n,escape,q", "answer('no')"),
        ("up", "scroll_rows(-1)"),
        ("down", "scroll_rows(1)"),
    ]

    def __init__(self, asked: Question) -> None:
        super().__init__()
        self._asked = asked
        self.asked_at = math.inf
        """When it became readable: letters typed before that are not an answer."""

    def on_mount(self) -> None:
        self.asked_at = time.monotonic()

    def compose(self) -> ComposeResult:
        asked, width = self._asked, min(_WIDTH, self.app.size.width - 4)
        keys = [row(("y", _ANSWER_ROLE), f" {asked.yes}")]
        keys += [row(("k", _ANSWER_ROLE), f" {asked.keep}")] if asked.keep else []
        keys.append(row(("esc", _ANSWER_ROLE), (" cancel", "dim")))
        title = [row((line, "title")) for line in wrap(clean(asked.title), width - 4, 3)]
        body = self._body(width - 4, self.app.size.height - len(title) - len(keys) - 4)
        lines = [*title, EMPTY, *body, EMPTY, *keys]
        yield Sheet.fitting(lines, width, self.app.size.height)

    def _body(self, width: int, height: int) -> list[Row]:
        """What is asked about, uncut as long as the keys stay in view: a truncated remedy is useless."""
        for most in (_MOST_LINES, 4):
            body = [row(line) for text in self._asked.lines for line in wrap(clean(text), width, most)]
            if len(body) <= height:
                break
        return body

    def action_scroll_rows(self, by: int) -> None:
        self.query_one(Sheet).scroll_rows(by)

    def on_click(self, event: Click) -> None:
        """Answer with the clicked key."""
        named = self.query_one(Sheet).line_at(event).spans[:1]
        if named and named[0].role == _ANSWER_ROLE:
            self.app.simulate_key("escape" if named[0].text == "esc" else named[0].text)

    def action_answer(self, answer: Answer) -> None:
        if answer != "keep" or self._asked.keep:
            self.dismiss(answer)


def removal_question(found: Removable, now: float) -> Question:
    """Return the question that says what removing a run would delete."""
    records, size = shown.size(found.size_bytes - found.checkpoint_bytes), shown.size(found.checkpoint_bytes)
    files = f"{found.checkpoints} checkpoint{'' if found.checkpoints == 1 else 's'}"
    lines = (
        f"{found.run.run}, ended {shown.duration(max(0.0, now - found.ended))} ago.",
        f"Its log, metrics and records: {records}.",
        f"{files}: {size}." if found.checkpoints else "It has no checkpoints in its folder.",
        "Nothing outside its own folder is touched.",
    )
    keep = f"keep the checkpoints, delete {records}" if found.checkpoints else ""
    return Question(f"Remove {found.name}?", lines, f"delete {shown.size(found.size_bytes)}", keep)


def removal_of_several(found: Sequence[Removable], refused: Sequence[str]) -> Question:
    """Return the question that says what removing the marked runs would delete."""
    whole, saved = sum(one.size_bytes for one in found), sum(one.checkpoint_bytes for one in found)
    named = _first([f"{clean(one.name, 60)}  {shown.size(one.size_bytes)}" for one in found])
    lines = (*named, f"{shown.size(saved)} of it are checkpoints." if saved else "They have no checkpoints.", *refused)
    keep = f"keep the checkpoints, delete {shown.size(whole - saved)}" if saved else ""
    return Question(f"Remove {_runs(len(found))} ({shown.size(whole)})?", lines, f"delete {shown.size(whole)}", keep)


def question_for_several(action: Action, runs: Sequence[RunSnapshot], refused: Sequence[str]) -> Question:
    """Return the question before an action on the marked runs: their names, and the work that no checkpoint holds."""
    stakes = [at_stake(one, at_once=action.id == "kill") for one in runs]
    lost = [f"  {shown.duration(one.seconds)} of work is in no checkpoint" if one else "" for one in stakes]
    lines = _first([f"{clean(run.name, 60)}{price}" for run, price in zip(runs, lost, strict=True)])
    known = [one.seconds for one in stakes if one is not None and one.seconds is not None]
    if len(known) > 1:
        lines = (*lines, f"Together {shown.duration(sum(known))} of work is in no checkpoint.")
    name = f"{action.name[:1].upper()}{action.name[1:]}"
    return Question(f"{name}: {_runs(len(runs))}?", (*lines, *refused), f"{action.name}, all of them")


def question_of_launch(preview: Preview, known: Expected | None) -> Question:
    """Return the question before several runs are started at once, or code is sent to another machine."""
    from ...core.runs.expected import expected_sentence

    names, sent = preview.runs, preview.travels if preview.sends else ()
    told = [f"{clean(text, 400)}." for text in sent]
    if names:
        told += [*_first([clean(name, 56) for name in names]), "One at a time on each accelerator."]
        told.append(expected_sentence(known, len(names)))
    on = f" on {clean(preview.host or '', 60)}" if sent else ""
    start = "start them" if names else "start it"
    return Question(f"Start {_runs(max(1, len(names)))}{on}?", tuple(told), f"send it and {start}" if sent else start)


def _first(lines: Sequence[str]) -> tuple[str, ...]:
    more = len(lines) - MOST_NAMED
    return (*lines[:MOST_NAMED], *([f"and {more} more"] if more > 0 else []))


def _runs(count: int) -> str:
    return f"{count} run{'' if count == 1 else 's'}"


class Prompt(ModalScreen[str | None]):
    """An input line."""

    CSS_PATH = "../styles/dialogs.tcss"
    BINDINGS = [("escape", "leave")]  # noqa: RUF012 - Textual's name and kind

    def __init__(self, title: str, value: str = "", *, goes_on: bool = False) -> None:
        """``goes_on``: typing appends to the value; otherwise it replaces it."""
        super().__init__()
        self._title, self._value, self._goes_on = title, value, goes_on

    def compose(self) -> ComposeResult:
        title = Sheet([row((self._title, "dim"))])
        title.styles.height = 1
        with Vertical(id="prompt"):
            yield title
            yield TextField(self._value, compact=True, select_on_focus=not self._goes_on)

    def on_mount(self) -> None:
        field = self.query_one(TextField)
        field.entered = self.dismiss
        self.set_focus(field)  # before any key, which may have arrived with the one that opened this

    def action_leave(self) -> None:
        self.dismiss(None)


class Page(ModalScreen[None]):
    """A scrollable page of lines over the screen; any of the usual keys closes it."""

    CSS_PATH = "../styles/dialogs.tcss"
    BINDINGS = [  # noqa: RUF012 - Textual's name and kind
        ("escape,q,question_mark,f1,enter,i,at", "leave"),
        ("up,k", "scroll_rows(-1)"),
        ("down,j", "scroll_rows(1)"),
        ("pageup", "scroll_rows(-10)"),
        ("pagedown,space", "scroll_rows(10)"),
        ("home,g", "scroll_rows(-1000000)"),
        ("end,G", "scroll_rows(1000000)"),
    ]

    def made(self, width: int) -> tuple[list[Row], int]:
        """Return the lines for a window of ``width`` cells, and how many cells the page takes, including its frame."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        lines, taken = self.made(self.app.size.width)
        yield Sheet.fitting(lines, taken, self.app.size.height)

    def action_scroll_rows(self, by: int) -> None:
        self.query_one(Sheet).scroll_rows(by)

    def on_click(self, event: Click) -> None:
        """Close the page on a click beside it."""
        if not self.query_one(Sheet).region.contains(event.screen_x, event.screen_y):
            self.dismiss(None)

    def action_leave(self) -> None:
        self.dismiss(None)
