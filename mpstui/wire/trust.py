"""File ownership: only files that belong to this user, and that nobody else can write, are run or used as settings."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path


def distrusted(path: Path | str, *, strict: bool = False, groups: bool = False) -> str:
    """Return why a path must not be trusted, as the end of a sentence; empty if it may be, or does not exist.

    Args:
        strict: do not accept root's files either: a run is started only by whoever made it.
        groups: accept what a group may write, as in a shared project.
    """
    try:
        looked_at = [Path(path).lstat(), Path(path).stat()]
    except (OSError, ValueError):
        return ""  # whoever reads it will report that
    ours = {os.geteuid()} if strict else {os.geteuid(), 0}
    for found in looked_at:
        if found.st_uid not in ours:
            return f"belongs to {user_name(found.st_uid)}, not to you"
    mode, is_sticky = looked_at[1].st_mode, stat.S_ISDIR(looked_at[1].st_mode) and looked_at[1].st_mode & stat.S_ISVTX
    if mode & stat.S_IWOTH and not is_sticky:
        return "can be written by everybody"
    if mode & stat.S_IWGRP and not (groups or is_sticky) and not _is_private_group(looked_at[1].st_gid):
        return f"can be written by the group {_group_name(looked_at[1].st_gid)}"
    return ""


def distrust_of_any(*paths: Path, strict: bool = False) -> str:
    """Return a sentence about the first path that must not be trusted; empty if all may be."""
    return next((f"{path} {why}" for path in paths if (why := distrusted(path, strict=strict))), "")


def user_name(uid: int) -> str:
    """Return ``user ada``, or ``user 1234`` if the system knows no name."""
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def _is_private_group(gid: int) -> bool:
    """True if a group is the user's own, as many systems create it: named like the user, with nobody else in it."""
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return group.gr_gid == user.pw_gid and group.gr_name == user.pw_name and not set(group.gr_mem) - {user.pw_name}
