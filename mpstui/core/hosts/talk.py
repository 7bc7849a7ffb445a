"""Questions and answers over a line, one after the other, with files in between.

Everything is sent as pieces. Both ends give a sign of life every few seconds, the far one while it works on an answer;
a line that is silent for longer hangs. Files stop being sent as soon as the other end says that it wants no more.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

from ...wire import storage
from ..model.errors import OperationError, UsageError
from .line import HostError, Line
from .pieces import HEAD, piece

SIGN_SECONDS = 5.0
SILENT_SECONDS = 30.0
"""Without a frame for this long, the line hangs: the far process then ends, and releases what it holds."""
TRIES, PAUSE_SECONDS = 5, 2.0
"""How often a broken line is reopened, and the pause between attempts."""
_LOOK_SECONDS = 0.1
"""How often to check whether an answer is still wanted."""
_NOTHING = "nothing"
"""A question whose answer marks the end of whatever was still in transit."""
_MESSAGE, _DATA, _END, _SIGN = b"m", b"d", b"e", b"s"
_CHUNK_BYTES = 1 << 16
_MOST_FRAME_BYTES = 64 << 20


class _Frame(NamedTuple):
    kind: bytes
    data: bytes


class _Answered(Exception):
    """A message arrived in the middle of files: the other end has given up on them."""

    def __init__(self, ends: Ends, message: dict[str, Any]) -> None:
        """``ends``: our end of the line that it came over; when files are relayed, two lines are in use."""
        super().__init__("the files end early")
        self.ends, self.message = ends, message


class Ends(ABC):
    """One end of a line."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @abstractmethod
    def _read(self, count: int) -> bytes:
        """Read exactly this many bytes; raise EOFError or :class:`HostError` if the line ends."""

    @abstractmethod
    def _write(self, data: bytes) -> None:
        """Write all of it."""

    @abstractmethod
    def _has_come(self) -> bool:
        """True if there is something to read, or the line has ended."""

    def put(self, kind: bytes, data: bytes = b"") -> None:
        """Send one frame."""
        with self._lock:
            self._write(piece(kind, data))

    def get(self) -> _Frame:
        """The next frame that is not a sign of life.

        Raises:
            UnreadableRecord: what was received is not a frame.
        """
        while True:
            self._await()
            if (frame := self._next()).kind != _SIGN:
                return frame

    def _await(self) -> None:
        """Wait for the next frame; anything may interrupt this, since no frame has been read in part."""
        return

    def require_wanted(self) -> None:
        """Require that the files being sent, or the answer being worked on, are still wanted.

        Raises:
            _Answered: they are not.
        """
        while self._has_come():
            if (frame := self._next()).kind == _MESSAGE:
                raise _Answered(self, storage.load_object(frame.data))

    def _next(self) -> _Frame:
        kind, length = HEAD.unpack(self._read(HEAD.size))
        if kind not in (_MESSAGE, _DATA, _END, _SIGN) or length > _MOST_FRAME_BYTES:
            raise storage.UnreadableRecord("it is no frame")
        return _Frame(kind, self._read(length))

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send one message."""
        self.put(_MESSAGE, storage.dump_bytes(message))

    def hear(self) -> dict[str, Any]:
        """The next message; files that nobody has read are skipped."""
        while (frame := self.get()).kind != _MESSAGE:
            pass
        return storage.load_object(frame.data)

    @contextlib.contextmanager
    def sending(self) -> Iterator[BinaryIO]:
        """A file whose content is sent over the line; leaving the context sends its end, unless an error does."""
        with io.BufferedWriter(_Sending(self), _CHUNK_BYTES) as out:
            yield out
        self.put(_END)

    def receiving(self) -> BinaryIO:
        """The file that the other end is sending."""
        return io.BufferedReader(_Receiving(self), _CHUNK_BYTES)


class _Sending(io.RawIOBase):
    def __init__(self, ends: Ends) -> None:
        self._ends = ends

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        part = bytes(memoryview(data)[:_CHUNK_BYTES])
        self._ends.require_wanted()
        self._ends.put(_DATA, part)
        return len(part)


class _Receiving(io.RawIOBase):
    def __init__(self, ends: Ends) -> None:
        self._ends, self._here, self._over = ends, memoryview(b""), False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._here and not self._over:
            frame = self._ends.get()
            if frame.kind == _MESSAGE:
                raise _Answered(self._ends, storage.load_object(frame.data))
            self._here, self._over = memoryview(frame.data), frame.kind == _END
        count = min(len(self._here), len(buffer))
        buffer[:count] = self._here[:count]
        self._here = self._here[count:]
        return count


class _Near(Ends):
    def __init__(self, line: Line, silent_seconds: float) -> None:
        super().__init__()
        self._line, self._silent = line, silent_seconds
        self.require_wanted_here: Callable[[], None] = lambda: None

    def _await(self) -> None:
        deadline = time.monotonic() + self._silent
        while not self._has_come() and time.monotonic() < deadline:
            self.require_wanted_here()
            self._is_ready([self._line.reads], [], _LOOK_SECONDS)

    def _read(self, count: int) -> bytes:
        found = bytearray()
        while len(found) < count:
            self._wait([self._line.reads], [])
            if not (part := self._line.reads.read(min(count - len(found), _CHUNK_BYTES))):
                raise self._line.failure()
            found += part
        return bytes(found)

    def _write(self, data: bytes) -> None:
        for start in range(0, len(data), select.PIPE_BUF):  # a ready pipe accepts this much without waiting
            self._wait([], [self._line.writes])
            self._line.send(data[start : start + select.PIPE_BUF])

    def _has_come(self) -> bool:
        return self._is_ready([self._line.reads], [], 0)

    def _is_ready(self, reads: list[Any], writes: list[Any], seconds: float) -> bool:
        try:
            return any(select.select(reads, writes, [], seconds))
        except ValueError as error:  # it was closed here
            raise self._line.failure() from error

    def _wait(self, reads: list[Any], writes: list[Any]) -> None:
        if not self._is_ready(reads, writes, self._silent):
            text = f"nothing has moved on the connection for {self._silent:.0f} s: it hangs"
            raise HostError(self._line.host, "frozen", text)


class _Far(Ends):
    """This process's standard input and output, which nothing else can use from now on."""

    def __init__(self) -> None:
        super().__init__()
        self._reads, self._writes = os.dup(0), os.dup(1)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(2, 1)

    def _read(self, count: int) -> bytes:
        found = bytearray()
        while len(found) < count:
            if not select.select([self._reads], [], [], SILENT_SECONDS)[0]:
                raise EOFError
            if not (part := os.read(self._reads, min(count - len(found), _CHUNK_BYTES))):
                raise EOFError
            found += part
        return bytes(found)

    def _write(self, data: bytes) -> None:
        while data:
            if not select.select([], [self._writes], [], SILENT_SECONDS)[1]:
                raise BrokenPipeError
            data = data[os.write(self._writes, data[: select.PIPE_BUF]) :]

    def _has_come(self) -> bool:
        return bool(select.select([self._reads], [], [], 0)[0])


Answer = Callable[[dict[str, Any], Ends], Mapping[str, Any]]


def serve(answers: Mapping[str, Answer]) -> None:
    """Answer questions that come over standard input until the line ends; a failure is an answer too."""
    ends = _Far()
    with contextlib.suppress(EOFError, BrokenPipeError):
        asked = ends.hear()
        while True:
            over = threading.Event()
            signs = threading.Thread(target=_give_signs, args=(ends, over), daemon=True)
            signs.start()
            try:
                answer = {_NOTHING: _nothing, **answers}.get(str(asked.get("ask")), _not_understood)
                told: Mapping[str, Any] = {"ok": True, **answer(asked, ends)}
            except (OperationError, UsageError) as error:
                told = {"ok": False, "sentence": error.sentence, "hint": error.hint, "field": error.field}
                told = {**told, "use": isinstance(error, UsageError)}
            except _Answered as early:  # nobody waits for this answer any more
                asked = early.message
                continue
            except (EOFError, BrokenPipeError):
                raise
            except (
                OSError,
                LookupError,
                TypeError,
                ValueError,
                ArithmeticError,
            ) as error:  # its disk fails, or the question is malformed
                said = f"{asked.get('ask')} failed there: {type(error).__name__}: {error}"
                told = {
                    "ok": False,
                    "sentence": said,
                    "hint": "both sides need the same mpstui, and room on their disks",
                }
            finally:
                over.set()
                signs.join()
            ends.tell({**told, "number": asked.get("number")})
            asked = ends.hear()


def _nothing(asked: dict[str, Any], ends: Ends) -> Mapping[str, Any]:
    return {}


def _not_understood(asked: dict[str, Any], ends: Ends) -> Mapping[str, Any]:
    raise OperationError(f"{asked.get('ask')!r} is not understood there", "update mpstui")


def _give_signs(ends: Ends, over: threading.Event) -> None:
    with contextlib.suppress(OSError, HostError):
        while not over.wait(SIGN_SECONDS):
            ends.put(_SIGN)


class Place:
    """One machine that can be asked questions. It may take any time to answer, but not stay silent for long."""

    def __init__(self, line: Line, silent_seconds: float = SILENT_SECONDS) -> None:
        self.host = line.host
        self._asked = 0
        self._is_unread = False
        """True if files that nobody wants any more may still be in transit."""
        self._line, self._ends, self._over = line, _Near(line, silent_seconds), threading.Event()
        threading.Thread(target=_give_signs, args=(self._ends, self._over), daemon=True).start()

    def ask(
        self,
        what: str,
        fields: Mapping[str, Any],
        send: Callable[[BinaryIO], None] | None = None,
        receive: Callable[[BinaryIO], None] | None = None,
    ) -> dict[str, Any]:
        """Ask a question and return the answer.

        Args:
            send: writes the files that accompany the question.
            receive: reads the files that precede the answer.

        Raises:
            OperationError, UsageError: why it cannot be done there.
            HostError: the line broke; whether it was done is unknown.
        """
        try:
            if receive is not None and self._is_unread:
                self.ask(_NOTHING, {})
            self._asked += 1
            self._ends.tell({**fields, "ask": what, "number": self._asked})
            told = self._heard(send, receive)
        except storage.UnreadableRecord as error:
            raise HostError(self.host, "noise", f"what came back is no answer: {error}") from error
        if told.get("ok"):
            return told
        kind = UsageError if told.get("use") else OperationError
        sentence, hint = str(told.get("sentence", "no reason was given")), str(told.get("hint", ""))
        raise kind(f"{self.host}: {sentence}", hint, field=told.get("field"))

    def _heard(
        self, send: Callable[[BinaryIO], None] | None, receive: Callable[[BinaryIO], None] | None
    ) -> dict[str, Any]:
        try:
            if send is not None:
                with self._ends.sending() as out:
                    send(out)
            if receive is not None:
                self._is_unread = True
                receive(self._ends.receiving())
            told = self._ends.hear()
        except _Answered as early:
            if early.ends is not self._ends:
                raise
            told = early.message
        while told.get("number") != self._asked:  # an answer that nobody waits for any more
            told = self._ends.hear()
        self._is_unread = False
        return told

    def cancel_by(self, require_wanted: Callable[[], None]) -> None:
        """Call ``require_wanted`` repeatedly while waiting for answers; if it raises, the line stays usable."""
        self._ends.require_wanted_here = require_wanted

    def close(self) -> None:
        """End the far process."""
        self._over.set()
        self._line.close()

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def opened_again(broken: Place, open_place: Callable[[], Place], pause_seconds: float = PAUSE_SECONDS) -> Place:
    """Open another line to a machine, in place of one that broke.

    Raises:
        HostError: even the last attempt failed.
    """
    broken.close()  # one that only hung must not keep its far end waiting for us
    for _ in range(TRIES - 1):
        with contextlib.suppress(HostError):
            return open_place()
        time.sleep(pause_seconds)
    return open_place()
