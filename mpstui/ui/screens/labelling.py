"""Editing the note, tags or name of runs: typed in a line, stored with the runs, undone with one key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from ..messages import Toast
from ..rows import clean

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from .acting import ActingScreen

Label = Literal["note", "tags", "name"]


def edit_label(screen: ActingScreen, targets: Sequence[RunSnapshot], what: Label) -> None:
    """Ask for a label for some runs and save it; a value that all of them share is offered for editing."""
    context = screen.context
    runs = [item for item in targets if item.state != "watched"]
    if what == "name" and len(targets) > 1:
        context.say(f"rename: works on one run, not on {len(targets)}", "warning")
        return
    if not runs:
        context.say(f"{what}: mpstui did not start it, and keeps no records of it", "warning")
        return
    shared = [tag for tag in runs[0].tags if all(tag in item.tags for item in runs)]
    of = clean(runs[0].name, 40) if len(runs) == 1 else f"{len(runs)} runs"
    titles = {"note": f"note on {of}", "tags": f"tags of {of}, one word each", "name": f"another name for {of}"}
    note = runs[0].note.replace("\n", " ") if len({one.note for one in runs}) == 1 else ""
    before = {"note": note, "tags": " ".join(shared), "name": runs[0].name}[what]
    about, label = runs[0].run if len(runs) == 1 else None, context.services.label

    def typed(text: str | None) -> None:
        if text is None or text == before:
            return

        def keep() -> Toast:
            label(runs, what, before, text)
            return Toast(f"{what} saved · U undoes it", run=about)

        def back() -> Toast:
            for one in runs:
                had = {"note": one.note, "tags": " ".join(one.tags), "name": one.name}[what]
                now = " ".join(dict.fromkeys([*one.tags, *text.split()])) if what == "tags" else text
                label([one], what, now, had)
            return Toast(f"{what} restored", run=about)

        context.requests.do(what, keep)
        context.undo.did(lambda: context.requests.do(what, back))

    from .dialogs import Prompt

    screen.app.push_screen(Prompt(titles[what], before, goes_on=True), typed)
