"""The question before a run is removed: what is deleted, how large, and whether its checkpoints stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from textual.app import ComposeResult
from textual.screen import ModalScreen

from ...core.actions import BY_ID
from ...core.present import format as shown
from ..messages import RemovalExamined, RunRemoved
from ..rows import EMPTY, Row, clean, row, wrap
from .dialogs import WIDTH, Sheet

if TYPE_CHECKING:
    from ...core.runs.removal import Removable
    from ..app import MpstuiApp

Answer = Literal["all", "keep", "no"]
_NO_CHECKPOINTS = "It has no checkpoints in its folder."


class ConfirmRemoval(ModalScreen[Answer]):
    """Only ``y`` and ``k`` remove anything."""

    CSS_PATH = "../styles/dialogs.tcss"
    BINDINGS = [  # noqa: RUF012 - Textual's name and kind
        ("y", "answer('all')"),
        ("k", "answer('keep')"),
        ("n,escape,q", "answer('no')"),
    ]

    def __init__(self, found: Removable, now: float) -> None:
        super().__init__()
        self._found, self._now = found, now

    def compose(self) -> ComposeResult:
        """The sheet."""
        width = min(WIDTH, self.app.size.width - 4)
        sheet = Sheet.fitting(removal_rows(self._found, self._now, width - 4), width, self.app.size.height)
        sheet.add_class("-dangerous")
        yield sheet

    def action_answer(self, answer: Answer) -> None:
        """Leave with the answer; there may be nothing to keep."""
        if answer != "keep" or self._found.checkpoints:
            self.dismiss(answer)


def removal_rows(found: Removable, now: float, width: int) -> list[Row]:
    """The question, what would be deleted, and the keys."""
    ago = shown.duration(max(0.0, now - found.ended))
    texts = [f"{found.run.run}, ended {ago} ago.", *_contents(found), "Nothing outside its own folder is touched."]
    body = [row(line) for text in texts for line in wrap(clean(text), width, 4)]
    keys = [row(("y", "key strong"), f" delete {shown.size(found.size_bytes)}")]
    if found.checkpoints:
        keys.append(
            row(("k", "key strong"), f" keep the checkpoints, delete {shown.size(_without_checkpoints(found))}")
        )
    keys.append(row(("esc", "key strong"), (" leave it as it is", "dim")))
    return [row((clean(f"Remove {found.name}?", width), "title")), EMPTY, *body, EMPTY, *keys]


def _contents(found: Removable) -> tuple[str, str]:
    held = f"Its log, metrics and records: {shown.size(_without_checkpoints(found))}."
    files = f"{found.checkpoints} checkpoint{'' if found.checkpoints == 1 else 's'}"
    return held, f"{files}: {shown.size(found.checkpoint_bytes)}." if found.checkpoints else _NO_CHECKPOINTS


def _without_checkpoints(found: Removable) -> int:
    return found.size_bytes - found.checkpoint_bytes


def ask_removal(app: MpstuiApp, message: RemovalExamined) -> None:
    """Ask, and remove the run where the answer says so."""
    snapshot, remover = message.snapshot, app.services.remover

    def answered(answer: Answer | None) -> None:
        if answer in ("all", "keep"):
            keep = answer == "keep"
            app.courier.do(BY_ID["remove"].name, lambda: RunRemoved(snapshot.name, remover.remove(snapshot, keep)))

    app.push_screen(ConfirmRemoval(message.found, app.services.clock()), answered)
