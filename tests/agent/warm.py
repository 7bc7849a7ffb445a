"""A Python that has loaded torch already, and becomes one program after the other: each is a fork of it.

Loading torch takes a second of the processor, most programs of these tests some milliseconds. A program has a process
of its own, with its own files, environment, signals and exit code; ``import torch`` goes through all finders and
loaders, as in any Python, only that the module is there already, and what is left behind the last exit function is not
taken apart. The tests of the import itself start Pythons that load it.

As a program: ``python -S warm.py FD TORCH_FOLDER`` serves the socket of that number.
"""

from __future__ import annotations

import atexit
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any


class Warm:
    """One such Python, started when it is first asked for a program."""

    def __init__(self, torch_folder: Path) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self._socket = ours
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-S", __file__, str(theirs.fileno()), str(torch_folder)],
                env=environ | {"OPENBLAS_NUM_THREADS": "1"},  # a thread would not be there behind a fork
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def run(
        self, program: Path, *, env: Mapping[str, str], cwd: Path, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """What ``python -S PROGRAM`` does.

        Raises:
            TimeoutError: it did not end, and was killed.
        """
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, Path(os.devnull).open() as nothing:
            wish = json.dumps({"program": str(program), "env": dict(env), "cwd": str(cwd)}).encode()
            self._socket.settimeout(timeout)
            socket.send_fds(self._socket, [wish], [nothing.fileno(), out.fileno(), err.fileno()])
            try:
                answer = self._socket.recv(64)
            except TimeoutError:
                os.killpg(self._server.pid, signal.SIGKILL)
                raise
            assert answer, "the warm Python is gone"
            for file in (out, err):
                file.seek(0)
            return subprocess.CompletedProcess([str(program)], int(answer), out.read().decode(), err.read().decode())

    def close(self) -> None:
        """No more programs."""
        self._socket.close()
        self._server.wait(timeout=60)


class _Again(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and loads a module that is there already, though nobody seems to have imported it."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._module.__name__:
            return None
        spec = importlib.util.spec_from_file_location(fullname, self._module.__file__, loader=self)
        assert spec is not None
        spec.submodule_search_locations = list(self._module.__path__)
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        pass


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


def _become(program: str, environ: Mapping[str, str], cwd: str) -> tuple[CodeType, dict[str, Any]]:
    """What Python's start makes of a command line and an environment: code and names of the main module."""
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(cwd)
    sys.argv, sys.orig_argv = [program], [sys.executable, "-S", program]
    sys.path[:0] = [os.path.dirname(program), *environ.get("PYTHONPATH", "").split(os.pathsep)]  # noqa: PTH120
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__file__ = program
    return compile(Path(program).read_bytes(), program, "exec", dont_inherit=True), vars(main)


def _main(channel: int, torch_folder: str) -> None:
    del sys.path[0]  # this folder
    plain = list(sys.path)
    sys.path.append(torch_folder)
    loaded = importlib.import_module("torch")
    sys.path[:] = plain
    del sys.modules["torch"]
    names = set(sys.modules)
    gc.collect()
    gc.freeze()
    wish = _serve(socket.socket(fileno=channel))
    assert set(sys.modules) == names
    sys.meta_path.insert(0, _Again(loaded))
    code, own = _become(wish["program"], wish["env"], wish["cwd"])
    status = _run(code, own)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(status)


def _run(code: CodeType, own: dict[str, Any]) -> int:
    try:
        exec(code, own)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:  # noqa: BLE001 - told as Python tells the end of a program
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # without this function
        told = sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
        sys.excepthook(*told)
        return 1
    return 0


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2])
