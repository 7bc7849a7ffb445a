"""Exactly what a launch would start: command, environment with its reasons, doubts and warnings."""

from __future__ import annotations

from ...core.model.errors import UsageError
from ..form import Preview
from ..rows import EMPTY, Row, clean, cut, row, wrap
from .lines import LinePanel

_LONGEST_COMMAND_LINES = 12
_MOST_RUNS_NAMED = 3


def preview_rows(preview: Preview | None, error: UsageError | None, width: int) -> list[Row]:
    """The preview; a mistake in the form stands before it, in place of what cannot be known."""
    lines = _mistake(error, width) if error else []
    if preview is None:
        return lines
    lines += _warnings(preview, width)
    lines += _runs(preview, width)
    lines.append(
        row(
            ("the first will run" if preview.runs else "will run", "heading"),
            ("  in ", "faint"),
            (cut(clean(preview.cwd, 300), width - (24 if preview.runs else 14)), "dim"),
        )
    )
    command = wrap(clean(preview.command, 4000), width - 3, _LONGEST_COMMAND_LINES)
    lines += [row(("$ " if place == 0 else "  ", "faint"), line) for place, line in enumerate(command)]
    lines += [EMPTY, row(("with environment", "heading"))]
    if not preview.environment:
        lines.append(row(("  nothing added", "dim")))
    for line in preview.environment:
        lines.append(row("  ", (cut(f"{clean(line.name, 80)}={clean(line.value, 300)}", width - 2), "strong")))
        lines += [row("    ", (text, "dim")) for text in wrap(clean(line.reason), width - 5, 3)]
        if line.doubtful:
            doubt = wrap(clean(line.doubtful), width - 15, 4)
            lines += [
                row("    ", ("! doubtful " if place == 0 else " " * 11, "warn"), text)
                for place, text in enumerate(doubt)
            ]
    return lines


def _mistake(error: UsageError, width: int) -> list[Row]:
    told = [
        row(("✗ " if place == 0 else "  ", "bad"), (text, "bad"))
        for place, text in enumerate(wrap(clean(error.sentence), width - 3, 4))
    ]
    hint = [row("  ", (text, "dim")) for text in wrap(clean(error.hint), width - 3, 2)]
    return [*told, *hint, EMPTY]


def _runs(preview: Preview, width: int) -> list[Row]:
    """How many runs a sweep makes, and what they are called."""
    if not preview.runs:
        return []
    shown = preview.runs[:_MOST_RUNS_NAMED]
    hidden = len(preview.runs) - len(shown)
    lines = [row((f"{len(preview.runs)} runs", "heading"), ("  queued, one at a time on each accelerator", "faint"))]
    lines += [row("  ", (cut(clean(name, 300), width - 3), "dim")) for name in shown]
    return [*lines, *([row((f"  and {hidden} more", "dim"))] if hidden else []), EMPTY]


def _warnings(preview: Preview, width: int) -> list[Row]:
    lines = []
    for warning in preview.warnings:
        told = wrap(clean(warning), width - 3, 3)
        lines += [row(("! " if place == 0 else "  ", "warn"), (text, "warn")) for place, text in enumerate(told)]
    return [*lines, EMPTY] if lines else []


class LaunchPreview(LinePanel):
    """The preview as a panel that can be scrolled."""

    TITLE = "preview"

    def __init__(self) -> None:
        super().__init__()
        self.titled = True
        self.preview: Preview | None = None
        self.error: UsageError | None = None
        self._top = 0

    def show(self, preview: Preview | None, error: UsageError | None = None) -> None:
        """A new preview; with an error the last good one stays below it."""
        self.preview = preview or self.preview
        self.error = error
        self.repaint()

    @property
    def runs(self) -> int:
        """How many runs the values make."""
        return max(1, len(self.preview.runs)) if self.preview else 1

    def scroll_rows(self, by: int) -> None:
        """Move the view."""
        self._top += by
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        """The part in view."""
        lines = [row(" ", *line.spans) for line in preview_rows(self.preview, self.error, width - 2)]
        self._top = max(0, min(self._top, len(lines) - height))
        more = len(lines) - self._top > height
        shown = lines[self._top : self._top + height]
        return [*shown[:-1], row((" … page down for more", "faint"))] if more else shown
