"""The images and texts of a page's runs, in the page itself: as many as there is room for, spread over the training."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, TypeVar

from ...wire.rundir import RunDir
from ..model.snapshot import RunSnapshot
from ..runs.images import Logged, images_of, read_image
from ..runs.texts import LoggedText, texts_of

BYTES_ON_A_PAGE, TEXTS_ON_A_PAGE = 12 << 20, 1 << 20
"""All images together, and all texts: bytes, and characters."""
T = TypeVar("T", Logged, LoggedText)


def images_on_a_page(snapshots: Sequence[RunSnapshot], text: Callable[[str], str]) -> list[dict[str, Any]]:
    """For each run and name the images as addresses with their data in them, and how many there are in all.

    Args:
        text: makes a word of a run one for others' eyes.
    """
    found = []
    for place, one in enumerate(snapshots):
        logged = images_of(RunDir(one.dir)) if one.is_ours else ()
        named = [(name, list(of)) for name, of in groupby(logged, key=lambda image: image.name)]
        for name, of in named:
            room = BYTES_ON_A_PAGE // (len(snapshots) * len(named))
            spread = _spread(of, room, lambda one: one.bytes)
            shown = [shot for image in spread if (shot := _shot(one, image)) is not None]
            found.append({"run": place, "name": text(name), "count": len(of), "shots": shown})
        said = texts_of(RunDir(one.dir)) if one.is_ours else {}
        for name, texts in said.items():
            room = TEXTS_ON_A_PAGE // (len(snapshots) * len(said))
            told = [_told(one, logged, text) for logged in _spread(texts, room, lambda one: len(one.text))]
            found.append({"run": place, "name": text(name), "count": len(texts), "shots": told, "text": True})
    return found


def _spread(images: list[T], room: int, size: Callable[[T], int]) -> list[T]:
    """The newest one and every so many-th before it, in their order."""
    every = 1
    while len(images) > every and sum(map(size, images[::-every])) > room:
        every += 1
    kept = images[::-every][::-1]
    return kept if sum(map(size, kept)) <= room else []


def _told(run: RunSnapshot, logged: LoggedText, text: Callable[[str], str]) -> dict[str, Any]:
    attempt = logged.attempt if run.attempts > 1 else None
    return {"step": logged.step, "attempt": attempt, "text": "\n".join(map(text, logged.text.splitlines()))}


def _shot(run: RunSnapshot, image: Logged) -> dict[str, Any] | None:
    try:
        found = read_image(RunDir(run.dir), image.file)
    except (OSError, ValueError):
        return None
    data = base64.standard_b64encode(found.data).decode()
    attempt = image.attempt if run.attempts > 1 else None
    return {"step": image.step, "attempt": attempt, "src": f"data:image/{found.kind};base64,{data}"}
