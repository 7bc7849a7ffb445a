"""Name, tag and annotate runs. Requests are checked, and simultaneous edits by two people both take effect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...wire import labels
from ...wire.labels import LONGEST_NAME, LONGEST_NOTE, LONGEST_TAG, MOST_TAGS, Labels, LabelsBusy
from ...wire.rundir import RunDir
from ..formats.console import strip_controls
from ..model.errors import UsageError
from .editing import edited


def rename(run: RunDir, name: str) -> Labels:
    """Rename a run; an empty name restores the one it was launched under.

    Raises:
        UsageError: it is too long. OperationError: it could not be saved.
    """
    name = " ".join(strip_controls(name).split())
    if len(name) > LONGEST_NAME:
        raise UsageError(f"a name has at most {LONGEST_NAME} characters, not {len(name)}", field="name")
    return _edit(run, lambda found: found._replace(name=name))


def annotate(run: RunDir, note: str) -> Labels:
    """Replace the note of a run; an empty one removes it.

    Raises:
        UsageError: it is too long. OperationError: it could not be saved.
    """
    note = strip_controls(note).strip()
    if len(note) > LONGEST_NOTE:
        raise UsageError(f"a note has at most {LONGEST_NOTE:,} characters, not {len(note):,}", field="note")
    return _edit(run, lambda found: found._replace(note=note))


def tag(run: RunDir, add: Iterable[str], drop: Iterable[str] = ()) -> Labels:
    """Add tags to a run and remove others.

    Raises:
        UsageError: a word cannot be a tag, or there are too many. OperationError: they could not be saved.
    """
    added, dropped = list(dict.fromkeys(add)), set(drop)
    for word in added:
        if not labels.is_tag(word):
            what = f"{word!r} cannot be a tag"
            hint = f"a tag is one word of at most {LONGEST_TAG} characters, without blanks, commas and #"
            raise UsageError(what, hint, field="tags")

    def change(found: Labels) -> Labels:
        tags = tuple(dict.fromkeys([*(word for word in found.tags if word not in dropped), *added]))
        if len(tags) > MOST_TAGS:
            raise UsageError(f"a run has at most {MOST_TAGS} tags, not {len(tags)}", field="tags")
        return found._replace(tags=tags)

    return _edit(run, change)


def tag_changes(words: Sequence[str], before: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """Return the tags that the words typed by a user add and drop: ``+keep`` or ``keep``, ``-draft``.

    Args:
        before: the tags that were offered for editing; those no longer among the words are dropped.
    """
    plain = [word.lstrip("#") for word in words if word[:1] not in ("+", "-")]
    added = [word for word in plain if word not in before] + [word[1:] for word in words if word[:1] == "+"]
    return added, [word for word in before if word not in plain] + [word[1:] for word in words if word[:1] == "-"]


def _edit(run: RunDir, change: Callable[[Labels], Labels]) -> Labels:
    what, folders = f"the labels of run {run.run}", (run.path,)
    return edited(what, run.labels, lambda: labels.edit(run, change), folders=folders, busy=LabelsBusy)
