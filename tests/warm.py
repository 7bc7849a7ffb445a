"""A Python that has loaded torch, or the command line, and becomes one program after the other: each is a fork of it.

Loading torch takes a second of the processor and the commands a fifth of one, while what they do for a test takes some
milliseconds. A program has a process of its own, with its own files, environment, signals and exit code; ``import
torch`` goes through all finders and loaders, as in any Python, only that the module is there already, and what is left
behind the last exit function is not taken apart. The tests of imports and starts themselves start Pythons.

All workers of a test run share one of each, for as long as one of them is connected.

On Linux alone: Apple's libraries do not bear a fork without a new program in it.

As a program: ``python warm.py NAME WHAT`` listens there; WHAT is a folder with torch, or ``mpstui``.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

CAN_FORK = sys.platform.startswith("linux")


class Warm:
    """One such Python. ``what`` it has loaded: the torch of a folder, without site-packages, or "mpstui"."""

    def __init__(self, what: str | Path) -> None:
        run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
        self._name = f"mpstui-warm-{run}-{hashlib.sha256(str(what).encode()).hexdigest()[:16]}"
        self._what = what
        self._started: subprocess.Popen[bytes] | None = None
        while (met := self._connect()) is None:
            time.sleep(0.02)
        self._socket, self._server = met

    def _connect(self) -> tuple[socket.socket, int] | None:
        """A line to it, and the process at its other end; a start of it where nobody listens."""
        line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            line.connect(f"\0{self._name}")
            if told := line.recv(64):
                return line, int(told)
        except (ConnectionRefusedError, ConnectionResetError):
            ended = self._started and self._started.poll()
            assert not ended, f"a warm Python with {self._what} ended with {ended}"
            if self._started is None or ended == 0:
                self._start()
        line.close()
        return None

    def _start(self) -> None:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        options = [] if self._what == "mpstui" else ["-S"]
        self._started = subprocess.Popen(
            [sys.executable, *options, __file__, self._name, str(self._what)],
            env=environ | {"OPENBLAS_NUM_THREADS": "1"},  # a thread would not be there behind a fork
            start_new_session=True,
        )

    def run(
        self, *words: str, env: Mapping[str, str], cwd: Path, timeout: float = 300
    ) -> subprocess.CompletedProcess[str]:
        """What ``python -S WORDS`` does, or ``python -m mpstui WORDS``; ``PYTHON...`` in ``env`` is not looked at.

        Raises:
            TimeoutError: it did not end, and was killed.
        """
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, Path(os.devnull).open() as nothing:
            wish = json.dumps({"words": words, "env": dict(env), "cwd": str(cwd)}).encode()
            self._socket.settimeout(timeout)
            socket.send_fds(self._socket, [wish], [nothing.fileno(), out.fileno(), err.fileno()])
            try:
                answer = self._socket.recv(64)
            except TimeoutError:
                os.killpg(self._server, signal.SIGKILL)
                warm.cache_clear()  # the next test starts another one
                raise
            assert answer, "the warm Python is gone"
            for file in (out, err):
                file.seek(0)
            return subprocess.CompletedProcess(words, int(answer), out.read().decode(), err.read().decode())

    def close(self) -> None:
        """No more programs."""
        self._socket.close()


@cache
def warm(what: str | Path) -> Warm:
    """The one of this process, ended with it."""
    found = Warm(what)
    atexit.register(found.close)
    return found


class _Again(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and loads a module that is there already, though nobody seems to have imported it."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._module.__name__:
            return None
        loader = _Again(self._module)  # another one for each look, as a file has
        spec = importlib.util.spec_from_file_location(fullname, self._module.__file__, loader=loader)
        assert spec is not None
        spec.submodule_search_locations = list(self._module.__path__)
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        pass


def _listen(name: str) -> socket.socket:
    """Before anything is loaded, so that only one process does so."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        listener.bind(f"\0{name}")
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        sys.exit(0)  # another worker's was quicker
    listener.listen(64)
    listener.settimeout(0.5)
    return listener


def _meet(listener: socket.socket) -> socket.socket:
    """In a process of its own for each worker: the line to it. Ends this one when all of them are gone."""
    while True:
        try:
            line, _ = listener.accept()
        except TimeoutError:
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
                continue
            os._exit(0)
        if not os.fork():
            os.setsid()
            listener.close()
            line.setblocking(True)
            line.send(str(os.getpid()).encode())
            return line
        line.close()


def _serve(channel: socket.socket) -> dict[str, Any]:
    """Answer with exit codes until there is nobody; in a fork: what it is to become."""
    while True:
        wish, files, _, _ = socket.recv_fds(channel, 1 << 20, 3)
        if not wish:
            os._exit(0)
        child = os.fork()
        if not child:
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            channel.close()
            return dict(json.loads(wish))
        for file in files:
            os.close(file)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        channel.send(str(status).encode())


def _become(words: Sequence[str], environ: Mapping[str, str], cwd: str) -> None:
    """What Python's start makes of a command line and an environment."""
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(cwd)
    time.tzset()
    sys.argv = list(words)


def _torch(folder: str) -> Callable[[], None]:
    plain = list(sys.path)
    sys.path.append(folder)
    loaded = importlib.import_module("torch")
    sys.path[:] = plain
    del sys.modules["torch"]

    def run() -> None:
        program = sys.argv[0]
        sys.meta_path.insert(0, _Again(loaded))
        sys.orig_argv = [sys.executable, "-S", *sys.argv]
        sys.path[:0] = [os.path.dirname(program), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]  # noqa: PTH120
        main = sys.modules["__main__"] = ModuleType("__main__")
        main.__file__ = program
        exec(compile(Path(program).read_bytes(), program, "exec", dont_inherit=True), vars(main))

    return run


def _mpstui() -> Callable[[], None]:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    package = importlib.import_module("mpstui.cli")
    for one in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"mpstui.cli.{one.name}")
    del sys.path[0]

    def run() -> None:
        sys.argv.insert(0, "mpstui")
        sys.orig_argv = [sys.executable, "-m", *sys.argv]
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
        sys.exit(sys.modules["mpstui.cli.main"].main())

    return run


def _main(name: str, what: str) -> None:
    del sys.path[0]  # this folder
    listener = _listen(name)
    run = _mpstui() if what == "mpstui" else _torch(what)
    gc.collect()
    gc.freeze()
    wish = _serve(_meet(listener))
    _become(wish["words"], wish["env"], wish["cwd"])
    status = _status(run)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(status)


def _status(run: Callable[[], None]) -> int:
    try:
        run()
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:  # noqa: BLE001 - told as Python tells the end of a program
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_globals is globals():
            trace = trace.tb_next
        error.__traceback__ = trace
        told = sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
        sys.excepthook(*told)
        return 1
    return 0


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2])
