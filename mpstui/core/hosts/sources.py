"""The code that is sent for a launch on another machine: which files of a folder go along, and which stay.

In a git repository, these are the files that git tracks or does not ignore, in their present state, uncommitted changes
included; elsewhere, the folder without environments and caches. Secrets, checkpoints that git does not track, large
files and special files stay; each is named, with the reason, before anything is sent.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple

from ...wire import storage
from ...wire.checkpoints import matching
from ...wire.records import Provenance
from ...wire.secrets import token_line
from ..launching.provenance import BROUGHT, ask_git, take
from ..model.errors import OperationError
from ..model.home import Home
from ..profiles.model import Profile
from .parcel import Item, items_of
from .relocation import needs_code

MOST_FILE_BYTES = 32 << 20
"""Larger files are data or checkpoints, which have a place of their own over there."""
MOST_TREE_BYTES, MOST_FILES = 512 << 20, 20_000
_SCANNED_BYTES = 1 << 20
"""How much of a file is searched for tokens."""
LISTING_SECONDS = 20.0

_SECRET_FILES = [
    ".env",
    ".env.*",
    "*.env",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".pypirc",
    ".npmrc",
    ".htpasswd",
    ".git-credentials",
    ".vault-token",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.kdbx",
    "*.ovpn",
    "credentials",
    "credentials.*",
    "*_credentials.json",
    "client_secret*.json",
    "service_account*.json",
    "kaggle.json",
    "secret.*",
    "secrets.*",
    "token",
    "*.token",
    "wandb_key*",
    "api_key*",
]
_EXAMPLES = ("*.example", "*.sample", "*.template", "*.dist", "*.pub", "secrets.py")
"""Files named like secrets, but kept in repositories on purpose."""
_PLACES = frozenset({".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure"})
_PASSED_BY = frozenset(
    {".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv", "venv", ".tox", ".ipynb_checkpoints"}
)
_WEIGHTS = frozenset({".pt", ".pth", ".ckpt", ".safetensors"})
"""Suffixes of checkpoints. One that a launch names is its starting point, and is sent."""
_PASSED_BY_SUFFIXES = ("_cache", ".egg-info", ".dist-info")


_REASONS = {
    "secret": "a secret by its name",
    "token": "holds a token or a private key",
    "checkpoint": "a checkpoint",
    "large": "no code by its size",
    "outside": "a link that leads out of the folder",
    "special": "no regular file",
}
"""Why a file stays, in words for people."""
_MOST_NAMED = 8


class Staying(NamedTuple):
    """One file that is not sent."""

    name: str
    why: str
    """secret, token, checkpoint, large, outside (a link out of the folder) or special (not a file)."""
    line: int | None = None
    """Number of the line that holds the token."""


def stays(where: str, staying: Sequence[Staying], beside: Sequence[str] = ()) -> list[str]:
    """One line that names what is not sent; none if everything is.

    Args:
        where: where it stays: ``here``, ``behind``.
        beside: other things that stay, to be named first.
    """
    named = [
        f"{one.name} ({_REASONS[one.why]}{f', line {one.line}' if one.line else ''})" for one in staying[:_MOST_NAMED]
    ]
    more = len(staying) - len(named)
    told = ", ".join((*beside, *named))
    return [f"stays {where}: {told}" + (f" and {more} more" if more else "")] if told else []


@dataclass(frozen=True, slots=True)
class SourceTree:
    """A folder as it would be sent."""

    root: Path
    files: tuple[Item, ...]
    staying: tuple[Staying, ...]
    provenance: Provenance = field(default_factory=Provenance)
    diff: str = ""
    """The difference from the commit, secrets masked."""

    @property
    def size_bytes(self) -> int:
        return sum(one.size for one in self.files)

    def paths(self) -> Iterator[tuple[Item, Path]]:
        """Every file with its path here."""
        return ((one, self.root / one.name) for one in self.files)

    @property
    def digest(self) -> str:
        """A digest that is the same for the same files, wherever they are."""
        return hashlib.sha256(storage.dump_bytes(list(self.files))).hexdigest()


def code_of(
    profile: Profile, home: Home, sets: Mapping[str, str] = MappingProxyType({}), written: Collection[Path] = ()
) -> SourceTree | None:
    """The code of a launch, as it is sent; None if its program is mpstui's own, which is on every machine.

    Args:
        sets: arguments of this launch.
        written: checkpoints that the run has written; they stay even if the launch names them.

    Raises:
        OperationError: it cannot be sent, or its script is among the files that stay.
    """
    if not needs_code(profile):
        return None
    cwd = profile.cwd.resolve()
    if cwd == Path.home().resolve():
        raise OperationError(
            f"{profile.name} runs in your home folder, which is not sent", "give its code a folder of its own"
        )
    saved = {*map(str, matching(cwd, profile.checkpoints))} if profile.checkpoints else set[str]()
    named = {str(cwd / word) for word in _words(profile, sets)} - {str(path.resolve()) for path in written}
    tree = source_tree(cwd, left_out=(home.state, home.config), saved=saved, named=named)
    for one in tree.staying:
        if str(tree.root / one.name) in {str(cwd / word) for word in profile.command}:
            raise OperationError(
                f"{one.name} stays here ({one.why}), and is what the launch runs", "see docs/moving.md"
            )
    return tree


def _words(profile: Profile, sets: Mapping[str, str]) -> Iterator[str]:
    """Yield the words of a launch: a path among them is not taken for an output of the training."""
    for value in (*profile.command, *profile.args.values(), *sets.values()):
        for one in value if isinstance(value, tuple) else (value,):
            text = str(one)
            yield from (text, text.rpartition("=")[2])


def source_tree(
    folder: Path, *, left_out: Iterable[Path] = (), saved: Collection[str] = (), named: Collection[str] = ()
) -> SourceTree:
    """The files to be sent of ``folder``, or of the repository that it belongs to.

    Args:
        left_out: mpstui's own folders, in case they lie inside.
        saved: paths that a training writes; they are sent with its run.
        named: paths that the launch names.

    Raises:
        OperationError: it is too large to be code, or cannot be read.
    """
    folder = folder.resolve()
    brought = next((parent for parent in (folder, *folder.parents) if (parent / BROUGHT).is_file()), None)
    told = ask_git(folder, LISTING_SECONDS, "rev-parse", "--show-toplevel") if brought is None else None
    root = brought or (Path(os.fsdecode(told.removesuffix(b"\n"))) if told else folder)
    listed = dict(_brought(root) if brought else _listed(root) if told else _walked(root))
    # Code that was brought here lies in a folder of mpstui's own, and may be passed on all the same.
    apart = [path.resolve() for path in left_out if not root.resolve().is_relative_to(path.resolve())]
    files: list[Item] = []
    staying: list[Staying] = []
    total = 0
    try:
        for path in sorted(listed):
            if any(path.is_relative_to(one) for one in apart):
                continue
            is_code = listed[path] or str(path) in named or not _is_saved(path, saved)
            found = _looked_at(path, root) if is_code else Staying(path.relative_to(root).as_posix(), "checkpoint")
            if isinstance(found, Item):
                files.append(found)
                total += found.size
            elif found is not None:
                staying.append(found)
            if total > MOST_TREE_BYTES or len(files) > MOST_FILES:
                hint = "have git ignore data and outputs; [hosts.NAME.paths] of the settings says where data lies there"
                most = f"{MOST_FILES:,} files or {MOST_TREE_BYTES >> 20} MiB"
                raise OperationError(f"{root} is not sent: it has more than {most}", hint)
    except OSError as error:
        raise OperationError(
            f"{error.filename or root} cannot be read: {error.strerror}", "nothing was sent"
        ) from error
    provenance, diff = take(folder, "", {})
    return SourceTree(root, tuple(files), tuple(staying), provenance, diff)


def _is_saved(path: Path, saved: Collection[str]) -> bool:
    """True if a file is a checkpoint, or part of one."""
    return path.suffix in _WEIGHTS or not {str(path), *map(str, path.parents)}.isdisjoint(saved)


def _listed(root: Path) -> Iterator[tuple[Path, bool]]:
    """Yield files that git tracks (True) and others that it does not ignore; nested repositories are listed apart."""
    told = ask_git(root, LISTING_SECONDS, "ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard")
    if told is None:
        raise OperationError(f"git did not list the files of {root}", f"try `git -C {root} ls-files`")
    for line in dict.fromkeys(told.split(b"\0")):
        kind, _, name = line.partition(b" ")
        path = root / os.fsdecode(name)
        if not name or ".git" in path.relative_to(root).parts:
            continue
        if path.is_dir() and not path.is_symlink():  # a submodule, or a nested repository
            yield from _listed(path) if (path / ".git").exists() else ()
        elif path.is_symlink() or path.exists():  # a deleted file is still tracked
            yield path, kind != b"?"


def _brought(root: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the files that another machine sent here, without those written beside them since."""
    for one in items_of(storage.read_json(root / BROUGHT) or {}):
        if (root / one.name).is_symlink() or (root / one.name).exists():
            yield root / one.name, True


def _walked(root: Path) -> Iterator[tuple[Path, bool]]:
    for base, folders, names in os.walk(root):
        here = Path(base)
        folders[:] = [
            name
            for name in folders
            if name not in _PASSED_BY
            and not name.endswith(_PASSED_BY_SUFFIXES)
            and not (here / name / "pyvenv.cfg").exists()
        ]
        yield from ((here / name, False) for name in names)
        yield from ((here / name, False) for name in folders if (here / name).is_symlink())


def _looked_at(path: Path, root: Path) -> Item | Staying | None:
    name = path.relative_to(root).as_posix()
    if name == BROUGHT:
        return None
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        target = path.readlink()
        inside = not target.is_absolute() and (path.parent / target).resolve().is_relative_to(root)
        return Item(name, "", link=str(target)) if inside else Staying(name, "outside")
    if not stat.S_ISREG(found.st_mode):
        return Staying(name, "special")
    if _is_secret(PurePosixPath(name)):
        return Staying(name, "secret")
    if found.st_size > MOST_FILE_BYTES:
        return Staying(name, "large")
    data = storage.read_bytes(path, MOST_FILE_BYTES)
    if line := token_line(data[:_SCANNED_BYTES].decode("utf-8", "replace")) if b"\0" not in data[:4096] else None:
        return Staying(name, "token", line)
    return Item(name, hashlib.sha256(data).hexdigest(), len(data), bool(found.st_mode & 0o100))


def _is_secret(name: PurePosixPath) -> bool:
    if _PLACES & set(name.parts[:-1]):
        return True
    last = name.name.lower()
    return any(fnmatch(last, one) for one in _SECRET_FILES) and not any(fnmatch(last, one) for one in _EXAMPLES)


def manifest_of(tree: SourceTree) -> dict[str, Any]:
    """What the far side receives before any file is sent; :func:`mpstui.core.hosts.stowing.stow` reads it."""
    return {
        "name": tree.root.name,
        "digest": tree.digest,
        "files": [list(one) for one in tree.files],
        "provenance": storage.to_json(tree.provenance),
        "diff": tree.diff,
    }
