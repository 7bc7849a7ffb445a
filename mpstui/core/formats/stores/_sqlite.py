"""Databases of SQLite that another program writes: read without a lock, without a trace, and without trust.

A reader in rollback mode holds up whoever writes, and one of a write-ahead log makes files beside it. So a database
without such a log is read as if nobody wrote, and what was read counts if it was still the same file afterwards. Where
a log is there, its writer has made the shared files already, and readers disturb nobody.
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
"""Of processor time: a busy machine cuts no query short."""
LONGEST_VALUE_BYTES = 1 << 24
"""A generated column can make a gigabyte of a few letters, before anybody looks at the time."""
MOST_BYTES = 1 << 28
"""Of all texts that one query gives."""
_STEPS_BETWEEN_LOOKS = 100_000
_PATIENCE_SECONDS, _LONGER_PATIENCE_SECONDS = 0.1, 2.0
"""A writer holds the lock while its bytes go to the disk; on a busy machine nearly all the time."""
_MOST_MISSES, _MOST_LOCKED = 3, 30
"""A database that is written all the time is asked with a lock then, for as long as one short query takes. One that is
locked all the time cannot be read."""


class NotNow(OSError):
    """Somebody writes: there is more to read, and soon. After any other error there is, when a file has changed."""


class Database:
    """One database file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._misses = 0

    @property
    def is_one(self) -> bool:
        """Whether the file is a database at all."""
        try:
            with storage.open_file(self.path) as file:
                return file.read(len(SIGNATURE)) == SIGNATURE
        except OSError:
            return False

    def files(self) -> tuple[Path, ...]:
        """What changes when something is written."""
        return self.path, self._beside("-wal")

    def tables(self) -> frozenset[str]:
        """The names of its plain tables; none where it is no database. Raises OSError."""
        if not self.is_one:
            return frozenset()
        found = self.read_now("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
        return frozenset(str(name) for name, made in found if "VIRTUAL" not in str(made).upper())

    def read(
        self, statement: str, arguments: Sequence[Any] = (), *, patience: float | None = None
    ) -> list[tuple[Any, ...]]:
        """All rows of a query; ``patience``: how many seconds to wait for the lock, if one has to be taken.

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
            # UnicodeError: the library decodes names of columns itself, strictly.
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
        """Like :meth:`read`, for who does not come again soon: what is written all the time is asked with a lock."""
        for _ in range(_MOST_MISSES):
            with suppress(NotNow):
                return self.read(statement, arguments)
        return self.read(statement, arguments, patience=_LONGER_PATIENCE_SECONDS)

    def _is_being_written(self, before: tuple[object, object]) -> bool:
        return before[1] is not None or self._stamps() != before

    def _require_files(self) -> None:
        """The library would wait for ever for the writer of a pipe."""
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
