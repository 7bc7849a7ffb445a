"""What the screen tells in a toast, and how loudly. No widgets."""

from __future__ import annotations

from functools import singledispatch
from typing import Literal

from textual.message import Message

from ..core.present import format as shown
from .asking import answer_text
from .messages import (
    JobFailed,
    ProfileSaved,
    PumpFailed,
    QueueChanged,
    RequestAnswered,
    RequestSent,
    RunRemoved,
    SettingsMistaken,
)
from .rows import clean

Severity = Literal["information", "warning", "error"]
TOAST_SECONDS = {"information": 4.0, "warning": 6.0, "error": 9.0}
_LONGEST = 300
_SETTINGS = "settings.toml"
"""The file's name: a toast has no room for its folder."""


@singledispatch
def news(message: Message) -> tuple[str, Severity]:
    """One sentence for a message, and its severity."""
    return clean(str(message), _LONGEST), "information"


@news.register
def _(message: RequestSent) -> tuple[str, Severity]:
    return f"{message.label}: asked for", "information"


@news.register
def _(message: RequestAnswered) -> tuple[str, Severity]:
    text, good = answer_text(message.label, message.ack)
    return text, "information" if good else "warning"


@news.register
def _(message: JobFailed) -> tuple[str, Severity]:
    hint = f" · {clean(message.hint, _LONGEST)}" if message.hint else ""
    return f"{message.what}: {clean(message.sentence, _LONGEST)}{hint}", "error"


@news.register
def _(message: PumpFailed) -> tuple[str, Severity]:
    return f"reading {message.what} failed, trying again: {clean(message.sentence, _LONGEST)}", "error"


@news.register
def _(message: SettingsMistaken) -> tuple[str, Severity]:
    first, *more = (line[max(0, line.find(_SETTINGS)) :] for line in message.sentence.splitlines())
    told = clean(first, _LONGEST) + (f" (and {len(more)} more)" if more else "")
    return f"{told} · the screen ignores the whole file; `mpstui alerts` checks it", "error"


@news.register
def _(message: QueueChanged) -> tuple[str, Severity]:
    return message.text, "information"


@news.register
def _(message: RunRemoved) -> tuple[str, Severity]:
    done = message.done
    kept = f"; checkpoints: {clean(str(done.kept), _LONGEST)}" if done.kept else ""
    text = f"removed {clean(message.name, 40)}, freed {shown.size(done.freed_bytes)}{kept}"
    return (f"{text}; {clean(done.left, _LONGEST)}", "warning") if done.left else (text, "information")


@news.register
def _(message: ProfileSaved) -> tuple[str, Severity]:
    return f"saved as {clean(message.path, _LONGEST)}", "information"
