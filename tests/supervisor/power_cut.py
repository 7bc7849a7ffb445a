"""A disk that may lose its power at any moment: it records what is done to it, and makes every state it may be in then.

The disk promises no more than POSIX does. Bytes that were not fsynced may be there, be gone, be torn or read as zeros.
A name that was created, linked, renamed or removed since the last fsync of its *folder* may or may not be as it was
made, each on its own, whatever happened to the file in it; a rename within one folder happens whole or not at all.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from mpstui.wire import storage

Tree = Mapping[str, bytes | None]
"""Files by their path below the root; a folder is None."""
_SYNCS = ("sync", "content")


class Recorder:
    """Notes every change below ``root`` in ``trace``, also those of processes that are forked while it records."""

    def __init__(self, root: Path, trace: Path) -> None:
        self._root = f"{root}/"
        self._trace = os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._open: dict[int, str] = {}
        self._unseen: set[int] = set()
        """Descriptors of files that nothing was seen written to: what is, is by a library."""
        self._serial = itertools.count()
        self._real: dict[str, Any] = {}
        self._write = os.write

    def note(self, *words: Any) -> None:
        """One line of the trace."""
        self._write(self._trace, (json.dumps(words) + "\n").encode())

    def note_what_is_there(self) -> None:
        """What lies below the root already counts as safe."""
        for path in sorted(Path(self._root).rglob("*")):
            data = base64.b64encode(path.read_bytes()).decode() if path.is_file() else None
            if path.is_dir() or data is not None:
                self.note("there", path.relative_to(self._root).as_posix(), data)

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Record until left; in a process that never leaves, for good."""
        wrappers: dict[str, Callable[..., Any]] = {
            "open": self._opened,
            "close": self._closed,
            "write": self._written,
            "fsync": self._synced,
            "rename": self._renamed,
            "replace": self._renamed,
            "link": self._linked,
            "unlink": self._unlinked,
            "mkdir": self._made,
        }
        self._real = {name: getattr(os, name) for name in wrappers}
        written = {name: getattr(storage, name) for name in ("write_json", "create_json")}
        try:
            for name, wrapper in wrappers.items():
                setattr(os, name, wrapper)
            for name, write in written.items():
                setattr(storage, name, self._promising(write))
            yield
        finally:
            for name, original in self._real.items():
                setattr(os, name, original)
            for name, write in written.items():
                setattr(storage, name, write)

    def _promising(self, write: Callable[..., Any]) -> Callable[..., Any]:
        """Whoever writes a record goes on when this returns: from then on it is a promise."""

        def promise(path: Path, value: Any, **named: Any) -> Any:
            name = self._inside(path)
            if name is None or "heartbeat" in name:
                return write(path, value, **named)
            self.note("begin", name, storage.plain(value))
            made = write(path, value, **named)
            self.note("promise", name, storage.plain(value), made is not False)
            return made

        return promise

    def _inside(self, path: Any) -> str | None:
        name = os.path.abspath(os.fspath(path))  # noqa: PTH100
        if name == self._root[:-1]:
            return ""
        return name.removeprefix(self._root) if name.startswith(self._root) else None

    def _opened(self, path: Any, flags: int, *rest: Any, **named: Any) -> int:
        name = self._inside(path)
        descriptor: int = self._real["open"](path, flags, *rest, **named)
        if name is not None:
            handle = f"{os.getpid()}.{next(self._serial)}"
            self._open[descriptor] = handle
            self._unseen.discard(descriptor)
            if flags & os.O_CREAT:
                self._unseen.add(descriptor)
            self.note("open", handle, name, bool(flags & os.O_TRUNC), bool(flags & os.O_CREAT))
        return descriptor

    def _closed(self, descriptor: int) -> None:
        self._open.pop(descriptor, None)
        self._real["close"](descriptor)

    def _written(self, descriptor: int, data: Any) -> int:
        count: int = self._real["write"](descriptor, data)
        self._unseen.discard(descriptor)
        if descriptor in self._open:
            self.note("write", self._open[descriptor], base64.b64encode(bytes(data)[:count]).decode())
        return count

    def _synced(self, file: Any) -> None:
        descriptor = file if isinstance(file, int) else file.fileno()
        self._real["fsync"](descriptor)
        if descriptor in self._open and descriptor not in self._unseen:
            self.note("sync", self._open[descriptor], _site())
        elif (name := self._inside(os.readlink(f"/proc/self/fd/{descriptor}"))) is not None:  # noqa: PTH115
            self.note("content", name, base64.b64encode(Path(self._root, name).read_bytes()).decode(), _site())

    def _renamed(self, source: Any, target: Any, **named: Any) -> None:
        self._moved("rename", source, target)
        self._real["rename"](source, target, **named)

    def _linked(self, source: Any, target: Any, **named: Any) -> None:
        if not os.path.lexists(target):
            self._moved("link", source, target)
        self._real["link"](source, target, **named)

    def _moved(self, kind: str, source: Any, target: Any) -> None:
        before, after = self._inside(source), self._inside(target)
        if before is not None and after is not None and os.path.isfile(source):  # noqa: PTH113
            self.note(kind, before, after)

    def _unlinked(self, path: Any, **named: Any) -> None:
        if (name := self._inside(path)) is not None:
            self.note("unlink", name)
        self._real["unlink"](path, **named)

    def _made(self, path: Any, *rest: Any, **named: Any) -> None:
        self._real["mkdir"](path, *rest, **named)
        if (name := self._inside(path)) is not None:
            self.note("mkdir", name)


def _site() -> str:
    """Who asks for this sync: the functions of the product that led to it, the nearest first."""
    names: list[str] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and len(names) < 6:
        if set(Path(frame.f_code.co_filename).parts[-3:-1]) & {"mpstui", "trainer"}:
            names.append(frame.f_code.co_name)
        frame = frame.f_back
    return " < ".join(names)


@dataclass
class _File:
    now: bytes = b""
    safe: bytes | None = None
    """As of the last fsync; None: there was none."""

    def faces(self) -> list[bytes]:
        """What may be found in it: as it was synced, as it is, torn, zeros."""
        safe = self.safe or b""
        if safe == self.now:
            return [self.now]
        return list(dict.fromkeys((safe, self.now, self.now[: len(self.now) // 2], b"\0" * len(self.now))))


Change = tuple[tuple[str, "_File | str | None"], ...]
"""Names of one folder that change together: to a file, to a folder (its path), or to nothing."""


@dataclass
class _Folder:
    safe: dict[str, _File | str] = field(default_factory=dict)
    pending: list[Change] = field(default_factory=list)

    def names(self, chosen: tuple[int, ...] | None = None) -> dict[str, _File | str]:
        found = dict(self.safe)
        for index, change in enumerate(self.pending):
            if chosen is None or index in chosen:
                for name, what in change:
                    found.pop(name, None)
                    if what is not None:
                        found[name] = what
        return found

    def choices(self) -> list[tuple[int, ...]]:
        """Which of the changes may have come through."""
        every = range(len(self.pending))
        if len(every) <= 3:
            return [chosen for size in range(len(every) + 1) for chosen in itertools.combinations(every, size)]
        but_one = [tuple(index for index in every if index != left) for left in every]
        return [(), tuple(every), *((index,) for index in every), *but_one]


class Promise(NamedTuple):
    """A record whose writer went on: it is there, or one that was written later."""

    name: str
    value: Any
    created: bool


@dataclass
class Outage:
    """The disk after a power cut, and what was known before it."""

    tree: Tree
    promises: list[Promise]
    begun: Mapping[str, list[Any]]
    """Every value that was ever to be written into a record, in order."""
    moment: int


class Disk:
    """Replays a trace.

    Args:
        without: a site whose syncs are left out, as if that line had been forgotten in the product.
    """

    def __init__(self, trace: Path, *, without: str | None = None) -> None:
        self._folders: dict[str, _Folder] = {"": _Folder()}
        self._handles: dict[str, _File | str] = {}
        self.promises: list[Promise] = []
        self.begun: dict[str, list[Any]] = {}
        lines = (json.loads(line) for line in trace.read_text().splitlines())
        self._lines = [line for line in lines if line[0] not in _SYNCS or line[-1] != without]

    @property
    def sites(self) -> list[str]:
        """Who synced something."""
        return sorted({line[-1] for line in self._lines if line[0] in _SYNCS})

    def outages(self, seed: int = 0, samples: int = 6) -> Iterator[Outage]:
        """Every different state after a cut at every moment that matters: just before a sync, and behind a promise."""
        chance, seen = random.Random(seed), set[Any]()
        for moment, (kind, *words) in enumerate(self._lines):
            if kind in _SYNCS:
                yield from self._cut(moment, seen, chance, samples)
            getattr(self, f"_{kind}")(*words)
            if kind == "promise":
                yield from self._cut(moment, seen, chance, samples)
        yield from self._cut(len(self._lines), seen, chance, samples)

    def _cut(self, moment: int, seen: set[Any], chance: random.Random, samples: int) -> Iterator[Outage]:
        for tree in self._trees(chance, samples):
            mark = (hash(frozenset(tree.items())), len(self.promises))
            if mark not in seen:
                seen.add(mark)
                begun = {name: list(values) for name, values in self.begun.items()}
                yield Outage(tree, list(self.promises), begun, moment)

    def _trees(self, chance: random.Random, samples: int) -> Iterator[Tree]:
        """All or none of everything; each folder and each file for itself; and some at random."""
        open_folders = [path for path, folder in self._folders.items() if folder.pending]
        every = {path: tuple(range(len(self._folders[path].pending))) for path in open_folders}
        for face in range(4):
            yield self._tree(every, lambda file, face=face: face)  # type: ignore[misc]
            yield self._tree(dict.fromkeys(open_folders, ()), lambda file, face=face: face)  # type: ignore[misc]
        for path in open_folders:
            for chosen in self._folders[path].choices():
                for rest in (every, dict.fromkeys(open_folders, ())):
                    yield self._tree({**rest, path: chosen}, lambda file: 1)
                    yield self._tree({**rest, path: chosen}, lambda file: 0)
        for _ in range(samples):
            drawn = {path: chance.choice(self._folders[path].choices()) for path in open_folders}
            yield self._tree(drawn, lambda file: chance.randrange(4))

    def _tree(self, chosen: Mapping[str, tuple[int, ...]], face: Callable[[_File], int]) -> Tree:
        tree: dict[str, bytes | None] = {}

        def walk(path: str) -> None:
            folder = self._folders[path]
            for name, what in folder.names(chosen.get(path, ())).items():
                place = f"{path}/{name}" if path else name
                if isinstance(what, str):
                    tree[place] = None
                    walk(what)
                else:
                    faces = what.faces()
                    tree[place] = faces[min(face(what), len(faces) - 1)]

        walk("")
        return tree

    # -- one line of the trace each -----------------------------------------------------------------------------------

    def _there(self, name: str, data: str | None) -> None:
        safe = base64.b64decode(data or "")
        self._folder_of(name).safe[os.path.basename(name)] = _File(safe, safe) if data is not None else name  # noqa: PTH119
        if data is None:
            self._folders[name] = _Folder()

    def _begin(self, name: str, value: Any) -> None:
        self.begun.setdefault(name, []).append(value)

    def _promise(self, name: str, value: Any, created: bool) -> None:
        self.promises.append(Promise(name, value, created))

    def _open(self, handle: str, name: str, truncates: bool, creates: bool) -> None:
        what = name if name in self._folders else self._find(name)
        if what is None and creates:
            what = _File()
            self._change(name, what)
        if what is not None:
            self._handles[handle] = what
            if truncates and isinstance(what, _File):
                what.now = b""

    def _write(self, handle: str, data: str) -> None:
        what = self._handles.get(handle)
        if isinstance(what, _File):
            what.now += base64.b64decode(data)

    def _sync(self, handle: str, site: str) -> None:
        what = self._handles.get(handle)
        if isinstance(what, _File):
            what.safe = what.now
        elif what is not None:
            folder = self._folders[what]
            folder.safe, folder.pending = folder.names(), []

    def _content(self, name: str, data: str, site: str) -> None:
        """A file that was written by other means, as found when it was synced."""
        file = self._find(name)
        if not isinstance(file, _File):
            file = _File()
            self._change(name, file)
        file.now = file.safe = base64.b64decode(data)

    def _rename(self, source: str, target: str) -> None:
        what = self._find(source) or _File()
        if os.path.dirname(source) == os.path.dirname(target):  # noqa: PTH120
            folder, (old, new) = self._folder_of(target), (os.path.basename(source), os.path.basename(target))  # noqa: PTH119
            folder.pending.append(((old, None), (new, what)))
        else:
            self._change(target, what)
            self._change(source, None)

    def _link(self, source: str, target: str) -> None:
        self._change(target, self._find(source) or _File())

    def _unlink(self, name: str) -> None:
        if self._find(name) is not None:
            self._change(name, None)

    def _mkdir(self, name: str) -> None:
        self._change(name, name)
        self._folders[name] = _Folder()

    def _find(self, name: str) -> _File | str | None:
        return self._folder_of(name).names().get(os.path.basename(name))  # noqa: PTH119

    def _change(self, name: str, what: _File | str | None) -> None:
        self._folder_of(name).pending.append(((os.path.basename(name), what),))  # noqa: PTH119

    def _folder_of(self, name: str) -> _Folder:
        return self._folders.setdefault(os.path.dirname(name), _Folder())  # noqa: PTH120


def lay_out(tree: Tree, root: Path) -> None:
    """Make a tree real, below an empty folder."""
    for name, data in tree.items():
        path = root / name
        if data is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
