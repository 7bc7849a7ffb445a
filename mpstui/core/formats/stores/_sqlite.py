"""SQLite databases that another program writes: read without a lock, without a trace, and without trust.

In rollback mode a reader blocks the writer, and with a write-ahead log it may create files. So a database without a
write-ahead log is read as if nobody wrote it, and the result counts only if the file is unchanged afterwards. If there
is a log, its writer has already created the shared files, and readers disturb nobody.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ....wire import storage

SIGNATURE = b"SQLite format 3\0"
LONGEST_QUERY_SECONDS = 2.0
"""Processor time, so that a busy machine cuts no query short."""
LONGEST_VALUE_BYTES = 1 << 24
"""A generated column can make a gigabyte out of a few letters before the time limit is checked."""
MOST_BYTES = 1 << 28
"""Total size of the texts that one query may return."""
_STEPS_BETWEEN_LOOKS = 100_000
_PATIENCE_SECONDS, _LONGER_PATIENCE_SECONDS = 0.1, 2.0
"""How long to wait for a lock: a writer holds it while data goes to disk, on a busy machine nearly all the time."""
_MOST_MISSES, _MOST_LOCKED = 3, 30
"""After so many misses, a database that is written all the time is queried with a lock, held for one short query. One
that stays locked through the second number cannot be read."""


class NotNow(OSError):
    """The database is being written: try again soon. After any other OSError, try again once a file has changed."""


class Database:
    """One database file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._misses = 0

    @property
    def is_one(self) -> bool:
        """True if the file is an SQLite database."""
        try:
            with storage.open_file(self.path) as file:
                return file.read(len(SIGNATURE)) == SIGNATURE
        except OSError:
            return False

    def files(self) -> tuple[Path, ...]:
        """Return the files that change when something is written."""
        return self.path, self._beside("-wal")

    def tables(self) -> frozenset[str]:
        """Return the names of its ordinary tables; empty if it is not a database. Raises OSError."""
        if not self.is_one:
            return frozenset()
        found = self.read_now("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
        return frozenset(str(name) for name, made in found if "VIRTUAL" not in str(made).upper())

    def read(
        self, statement: str, arguments: Sequence[Any] = (), *, patience: float | None = None
    ) -> list[tuple[Any, ...]]:
        """Return all rows of a query; ``patience``: seconds to wait for a lock, if one has to be taken.

        Raises:
            NotNow: it is being written. OSError: it cannot be read.
        """
        self._require_files()
        logged = storage.stamp(self._beside("-wal")) is not None
        alone = not logged and self._misses < _MOST_MISSES
        before = self._stamps()
        try:
            seconds = _PATIENCE_SECONDS if patience is None else patience
            found = self._asked("immutable=1" if alone else "mode=ro", statement, arguments, seconds)
        except (sqlite3.Error, OverflowError, MemoryError, UnicodeError) as error:
            # UnicodeError: sqlite3 itself decodes the names of columns, strictly.
            self._misses += 1
            busy = getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            busy = busy and self._misses < _MOST_LOCKED
            kind = NotNow if busy or (alone and self._is_being_written(before)) else OSError
            raise kind(f"{self.path.name}: {error}") from error
        if alone and self._is_being_written(before):
            self._misses += 1
            raise NotNow(f"{self.path.name} was being written")
        self._misses = 0
        return found

    def read_now(self, statement: str, arguments: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Like :meth:`read`, for callers that do not retry: a database that is written all the time is locked."""
        for _ in range(_MOST_MISSES):
            with suppress(NotNow):
                return self.read(statement, arguments)
        return self.read(statement, arguments, patience=_LONGER_PATIENCE_SECONDS)

    def _is_being_written(self, before: tuple[object, object]) -> bool:
        return before[1] is not None or self._stamps() != before

    def _require_files(self) -> None:
        """Raise OSError if a file beside it is a pipe or the like: SQLite would wait for its writer for ever."""
        for ending in ("-wal", "-shm", "-journal"):
            there = storage.stat_of(self._beside(ending))
            if there is not None and not stat.S_ISREG(there.st_mode):
                raise OSError(f"{self.path.name}{ending} is no file")

    def _asked(self, mode: str, statement: str, arguments: Sequence[Any], patience: float) -> list[tuple[Any, ...]]:
        end = time.thread_time() + LONGEST_QUERY_SECONDS
        address = f"file:{quote(os.fsencode(self.path.absolute()))}?{mode}"
        with closing(sqlite3.connect(address, uri=True, timeout=patience)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE_BYTES)
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            connection.set_progress_handler(lambda: int(time.thread_time() > end), _STEPS_BETWEEN_LOOKS)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA query_only = ON")
            found, left = list[tuple[Any, ...]](), MOST_BYTES
            for row in connection.execute(statement, tuple(arguments)):
                left -= sum(len(value) for value in row if isinstance(value, (str, bytes)))
                if left < 0:
                    raise sqlite3.DataError("its texts are too long")
                found.append(row)
            return found

    def _stamps(self) -> tuple[object, object]:
        return storage.stamp(self.path), storage.stamp(self._beside("-journal"))

    def _beside(self, ending: str) -> Path:
        return self.path.with_name(self.path.name + ending)
