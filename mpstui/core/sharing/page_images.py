"""The images and texts of a page's runs, embedded in the page: as many as fit, spread over the training."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

from ..model.snapshot import RunSnapshot
from ..runs.gallery import Gallery, Item, gallery_of

BYTES_ON_A_PAGE, TEXTS_ON_A_PAGE = 12 << 20, 1 << 20
"""The most bytes of all images together, and the most characters of all texts."""


def images_on_a_page(snapshots: Sequence[RunSnapshot], text: Callable[[str], str]) -> list[dict[str, Any]]:
    """For each run and name: the images as data URLs, or the texts, and how many there are in all.

    Args:
        text: makes a run's text fit for others to see.
    """
    found = []
    for place, one in enumerate(snapshots):
        gallery = gallery_of(one)
        kinds: dict[bool, dict[str, list[Item]]] = {False: {}, True: {}}
        for item in gallery.items():
            kinds[item.text is not None].setdefault(item.name, []).append(item)
        for name, of in kinds[False].items():
            room = BYTES_ON_A_PAGE // (len(snapshots) * len(kinds[False]))
            spread = _spread(of, room, lambda item: item.bytes)
            shown = [shot for image in spread if (shot := _shot(one, gallery, image)) is not None]
            found.append({"run": place, "name": text(name), "count": len(of), "shots": shown})
        for name, of in kinds[True].items():
            room = TEXTS_ON_A_PAGE // (len(snapshots) * len(kinds[True]))
            told = [_told(one, item, text) for item in _spread(of, room, lambda item: len(item.text or ""))]
            found.append({"run": place, "name": text(name), "count": len(of), "shots": told, "text": True})
    return found


def _spread(images: list[Item], room: int, size: Callable[[Item], int]) -> list[Item]:
    """The newest one and every n-th before it, in their order, such that all fit into ``room``."""
    every = 1
    while len(images) > every and sum(map(size, images[::-every])) > room:
        every += 1
    kept = images[::-every][::-1]
    return kept if sum(map(size, kept)) <= room else []


def _told(run: RunSnapshot, logged: Item, text: Callable[[str], str]) -> dict[str, Any]:
    attempt = logged.attempt if run.attempts > 1 else None
    return {"step": logged.step, "attempt": attempt, "text": "\n".join(map(text, (logged.text or "").splitlines()))}


def _shot(run: RunSnapshot, gallery: Gallery, image: Item) -> dict[str, Any] | None:
    try:
        found = gallery.image(image)
    except (OSError, ValueError):
        return None
    data = base64.standard_b64encode(found.data).decode()
    attempt = image.attempt if run.attempts > 1 else None
    return {"step": image.step, "attempt": attempt, "src": f"data:image/{found.kind};base64,{data}"}
