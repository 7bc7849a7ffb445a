"""Aim: a folder ``.aim`` with two RocksDB databases per run, and an SQLite database that names the runs."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..points import Priority
from ..told import RunTold, flattened
from . import SEPARATOR, Store, StoredRun
from ._rocksdb import RocksFolder
from ._sqlite import Database

if TYPE_CHECKING:
    from ..files import MetricFile

FOLDER = ".aim"
_OWN = "__system_params"
"""What Aim adds to the settings: the command, all environment variables, all packages."""
_MOST_RUNS = 20_000
_RUNS = f"SELECT hash, name FROM run ORDER BY id DESC LIMIT {_MOST_RUNS}"
_RUN = """
SELECT r.name, e.name, r.description, r.created_at FROM run r
LEFT JOIN experiment e ON e.id = r.experiment_id WHERE r.hash = ?
"""
_TAGS = "SELECT t.name FROM run r JOIN run_tag b ON b.run_id = r.id JOIN tag t ON t.id = b.tag_id WHERE r.hash = ?"
_UNNAMED = "Run: "
_BEHIND_TEXT, _ARRAY, _OBJECT = b"\xfe", object(), object()
Word = str | int


class AimRun(StoredRun):
    """One run: its description and its metrics."""

    store = "Aim"
    is_shared = True

    def __init__(self, folder: Path, run: str, name: str) -> None:
        super().__init__(folder / "meta" / "chunks" / run, name or run, f"{folder}{SEPARATOR}{run}")
        self._folder = folder
        self._run = run
        self._database = Database(folder / "run_metadata.sqlite")

    @property
    def words(self) -> RocksFolder:
        """The database with its settings, contexts and newest values."""
        return RocksFolder(self.path)

    def files(self) -> Sequence[Path]:
        return [*self.own_files(), *self._database.files()]

    def own_files(self) -> Sequence[Path]:
        return [*RocksFolder(self._folder / "seqs" / "chunks" / self._run).files(), *self.words.files()]

    def open(self) -> MetricFile | None:
        from ._aim_curves import AimCurves

        return AimCurves(self._folder, self._run, self.files)

    def told(self, reader: MetricFile | None) -> RunTold:
        """Return what Aim says; it records when the run ended, but not how."""
        found = words_of(self._folder, self._run)
        config = {name: value for name, value in mapping(found.get("attrs")).items() if name != _OWN}
        argv = mapping(mapping(mapping(found.get("attrs")).get(_OWN)).get("arguments"))
        ended = found.get("end_time")
        told = RunTold(
            name=self.name,
            config=flattened("", _plain(config)) if config else {},
            argv=tuple(str(word) for _, word in sorted(argv.items()) if isinstance(word, str)),
            ended=ended if isinstance(ended, float) else None,
            says="closed; Aim does not record how it ended" if isinstance(ended, float) else "",
        )
        with suppress(OSError):
            for name, project, note, began in self._database.read(_RUN, [self._run]):
                tags = [str(tag) for (tag,) in self._database.read(_TAGS, [self._run])]
                told = told._replace(
                    name=_name(name) or self.name,
                    project=str(project or ""),
                    note=str(note or ""),
                    started=_moment(began),
                    tags=tuple(tags),
                )
        return told


def words_of(folder: Path, run: str) -> dict[Word, Any]:
    """Return the description of a run as Aim's tree, arrays as mappings from their indices. Raises OSError."""
    begin = f"meta\xfechunks\xfe{run}\xfe".encode("latin-1")
    tree: dict[Word, Any] = {}
    for key, value in RocksFolder(folder / "meta" / "chunks" / run).everything(begin).items():
        with suppress(ValueError, struct.error, IndexError):
            *way, last = words_in(key[len(begin) :])
            place = tree
            for word in way:
                inner = place.get(word)
                if not isinstance(inner, dict):
                    inner = place[word] = {}
                place = inner
            decoded = decoded_value(value)
            if decoded is _ARRAY or decoded is _OBJECT:
                place.setdefault(last, {})
            else:
                place[last] = decoded
    return tree


def words_in(key: bytes) -> Iterator[Word]:
    """Yield the parts of a key: texts, and numbers after a mark; raises ValueError, struct.error."""
    position = 0
    while position < len(key):
        if key[position : position + 1] == _BEHIND_TEXT:
            yield struct.unpack_from(">q", key, position + 1)[0]
            position += 10
        else:
            end = key.index(_BEHIND_TEXT, position)
            yield key[position:end].decode()
            position = end + 1


def decoded_value(value: bytes) -> Any:
    """Return a bool, an int, a float or a text; a marker for an array or object; None for anything else."""
    kind, data = value[0], value[1:]
    if kind == 1:
        return data[:1] != b"\0"
    if kind in (2, 3):
        return struct.unpack("<q" if kind == 2 else "<d", data)[0]
    if kind == 4:
        return data.decode("utf-8", "replace")
    return {6: _ARRAY, 7: _OBJECT}.get(kind)


def _plain(value: Any) -> Any:
    """Return the value with mappings whose keys are all numbers turned into lists."""
    if not isinstance(value, dict):
        return value
    if value and all(isinstance(key, int) for key in value):
        return [_plain(value[key]) for key in sorted(value)]
    return {str(key): _plain(inner) for key, inner in value.items()}


def mapping(value: Any) -> dict[Word, Any]:
    return value if isinstance(value, dict) else {}


def _name(name: Any) -> str:
    """Return the name, or an empty text if Aim generated it from the hash."""
    return "" if not name or str(name).startswith(_UNNAMED) else str(name)


def _moment(stamp: Any) -> float | None:
    try:
        return datetime.fromisoformat(stamp).replace(tzinfo=UTC).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


class AimStore:
    """Recognised by the name of the folder and two subfolders."""

    priority: ClassVar[Priority] = Priority.EXACT
    alone: ClassVar[bool] = True
    deeper: ClassVar[bool] = False

    def runs_in(self, folder: Path, names: Collection[str]) -> list[StoredRun] | None:
        if folder.name != FOLDER or not {"meta", "seqs"} <= set(names):
            return None
        known: dict[str, str] = {}
        with suppress(OSError):
            known = {str(run): _name(name) for run, name in Database(folder / "run_metadata.sqlite").read_now(_RUNS)}
        try:
            there = [one.name for one in (folder / "meta" / "chunks").iterdir() if one.is_dir()]
        except OSError:
            return []
        return [AimRun(folder, run, known.get(run, "")) for run in sorted(there)[-_MOST_RUNS:]]

    def runs_of(self, file: Path) -> list[StoredRun]:
        return []


STORE: Store = AimStore()
