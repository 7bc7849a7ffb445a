"""The difference between two trees of JSON, as a tree of JSON: the size of a patch depends on what is new.

A list keeps its common beginning, however it ends: a curve that has grown costs its last columns, the end of a log its
new lines. Patching changes nothing in place: unchanged parts are the same objects in the old tree and in the new one.
"""

from __future__ import annotations

from typing import Any

from .codec import FIELD
from .forms import Tree

SAME: Any = object()
"""The trees are equal: there is nothing to send."""
_PUT, _TABLE, _LIST, _SLIDE = 0, 1, 2, 3
_SHORT = 4
"""If a list of the same length differs in at most a quarter of its entries, or this many, only those are sent."""


class DoesNotFit(ValueError):
    """A patch for some other tree."""


def difference(old: Tree, new: Tree) -> Tree:
    """The patch that turns ``old`` into ``new``; ``SAME`` if they are equal."""
    if old is new:
        return SAME
    if isinstance(old, dict) and isinstance(new, dict):
        changed = {}
        for key, value in new.items():
            patch = difference(old[key], value) if key in old else [_PUT, value]
            if patch is not SAME:
                changed[key] = patch
        gone = [key for key in old if key not in new]
        order = [*(key for key in old if key in new), *(key for key in new if key not in old)]
        if order != list(new) and not all(key.startswith(FIELD) for key in new):
            return [_TABLE, changed, gone, list(new)]
        if not changed and not gone:
            return SAME
        return [_TABLE, changed, gone] if gone else [_TABLE, changed]
    if isinstance(old, list) and isinstance(new, list):
        return _list_difference(old, new)
    return SAME if type(old) is type(new) and old == new else [_PUT, new]


def _list_difference(old: list[Tree], new: list[Tree]) -> Tree:
    shared = min(len(old), len(new))
    changed: dict[str, Tree] = {}
    for place in range(shared):
        patch = difference(old[place], new[place])
        if patch is not SAME:
            changed[str(place)] = patch
    if len(old) == len(new) and not changed:
        return SAME
    if len(changed) > max(_SHORT, shared // 4):
        slid = _slid(old, new)
        if slid:
            return [_SLIDE, slid, new[len(old) - slid :]]
        begin, end = _ends(old, new)
        return [_PUT, new] if not begin and not end else [_LIST, begin, len(old) - end, new[begin : len(new) - end]]
    return [_LIST, shared, len(old), new[shared:], changed] if changed else [_LIST, shared, len(old), new[shared:]]


def _ends(old: list[Tree], new: list[Tree]) -> tuple[int, int]:
    """Number of equal entries at the beginning, and of equal ones among the rest at the end."""
    shared = min(len(old), len(new))
    begin = next((place for place in range(shared) if old[place] != new[place]), shared)
    most = shared - begin
    return begin, next((place for place in range(most) if old[-1 - place] != new[-1 - place]), most)


def _slid(old: list[Tree], new: list[Tree]) -> int:
    """How many entries were dropped at the beginning, if the only other change is additions at the end; otherwise 0."""
    starts = (place for place in range(1, len(old)) if old[place] == new[0]) if new else iter(())
    return next((start for start in starts if old[start:] == new[: len(old) - start]), 0)


def patched(tree: Tree, patch: Tree) -> Tree:
    """The tree that results from applying a patch to another, which stays unchanged.

    Raises:
        DoesNotFit: it is no patch for this tree.
    """
    try:
        kind = patch[0]
        if kind == _PUT:
            return patch[1]
        if kind == _TABLE and isinstance(tree, dict):
            out = {**tree}
            for key in patch[2] if len(patch) > 2 else ():
                del out[key]
            for key, change in patch[1].items():
                out[key] = change[1] if key not in tree and change[0] == _PUT else patched(tree[key], change)
            return {key: out[key] for key in patch[3]} if len(patch) > 3 else out
        if kind == _LIST and isinstance(tree, list) and 0 <= patch[1] <= patch[2] <= len(tree):
            kept = tree[: patch[1]]
            for place, change in (patch[4] if len(patch) > 4 else {}).items():
                kept[int(place)] = patched(kept[int(place)], change)
            return [*kept, *patch[3], *tree[patch[2] :]]
        if kind == _SLIDE and isinstance(tree, list) and 0 < patch[1] <= len(tree):
            return [*tree[patch[1] :], *patch[2]]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise DoesNotFit(f"a patch that does not fit: {error}") from error
    raise DoesNotFit("a patch that does not fit")
