"""The images of a page's runs, in the page itself: as many as there is room for, spread over the training."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from ...wire.rundir import RunDir
from ..model.snapshot import RunSnapshot
from ..runs.images import Logged, images_of, read_image

BYTES_ON_A_PAGE = 12 << 20
"""All images together."""


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
            shown = [shot for image in _spread(of, room) if (shot := _shot(one, image)) is not None]
            found.append({"run": place, "name": text(name), "count": len(of), "shots": shown})
    return found


def _spread(images: list[Logged], room: int) -> list[Logged]:
    """The newest one and every so many-th before it, in their order."""
    every = 1
    while len(images) > every and sum(one.bytes for one in images[::-every]) > room:
        every += 1
    kept = images[::-every][::-1]
    return kept if sum(one.bytes for one in kept) <= room else []


def _shot(run: RunSnapshot, image: Logged) -> dict[str, Any] | None:
    try:
        found = read_image(RunDir(run.dir), image.file)
    except (OSError, ValueError):
        return None
    data = base64.standard_b64encode(found.data).decode()
    attempt = image.attempt if run.attempts > 1 else None
    return {"step": image.step, "attempt": attempt, "src": f"data:image/{found.kind};base64,{data}"}
