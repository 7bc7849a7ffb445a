"""Real runs for tests: a run directory, a tiny trainer, a real supervisor, and waiting for conditions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from mpstui.core.launching.actions import Actions
from mpstui.core.model.snapshot import RunSnapshot
from mpstui.core.runs.files import WitnessReader
from mpstui.core.runs.local_machine import LocalMachine
from mpstui.wire import liveness, queues, rundir, storage
from mpstui.wire.liveness import ProcessIdentity, boot_id, system_process_table
from mpstui.wire.records import Ack, ExitRecord, LaunchTemplate, Request, Spec, Status, StopRule, Variant
from mpstui.wire.rundir import RunDir, create_run_dir
from mpstui.wire.storage import UnreadableRecord

SUPERVISOR = Path(__file__).parents[2] / "mpstui" / "supervisor" / "__main__.py"
AMONG_MANY = bool(os.environ.get("MPSTUI_TEST_AMONG_MANY"))
"""Start every supervisor by the process that starts many (Linux), not alone."""
T = TypeVar("T")
PATIENCE_SECONDS = 60.0
"""A machine with other things to do starts a process in seconds; only a test that fails waits so long."""


def wait_for(condition: Callable[[], T | None], what: str = "condition", seconds: float = PATIENCE_SECONDS) -> T:
    """Poll until ``condition`` is true, and give back what it returned. A file that is not there yet is a no."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with suppress(FileNotFoundError):
            found = condition()
            if found:
                return found
        time.sleep(0.02)
    raise AssertionError(f"waited {seconds} s in vain for {what}")


def python(code: str) -> list[str]:
    """A command line that runs a few lines of Python."""
    return [sys.executable, "-I", "-S", "-u", "-c", code]


class Run:
    """One run under test."""

    def __init__(
        self, home: Path, code: str | None = None, *, argv: list[str] | None = None, name: str = "t", **spec: Any
    ) -> None:
        self.home = home
        self.among_many = AMONG_MANY
        self.dir: RunDir = create_run_dir(home / "runs", name, time.time())
        command = argv if argv is not None else python(code or "")
        template = LaunchTemplate(
            device="auto",
            variants={"auto": Variant(command), "cpu": Variant([*command, "--device", "cpu"])},
            cwd=str(home),
            resume_args=["--resume", "{checkpoint}"],
            checkpoints="checkpoints/*.pt",
        )
        spec = {"launch": template, "stop": StopRule(grace_seconds=5.0), **spec}
        self.spec = Spec(self.dir.run, name, time.time(), **spec)
        storage.write_json(self.dir.spec, self.spec)

    def start(self, main: Path = SUPERVISOR, *arguments: str, env: Mapping[str, str] | None = None) -> int:
        """Start a supervisor as core does, and return the exit code of the process that was started."""
        if self.among_many and main.name in (SUPERVISOR.name, "wrapped.py"):
            return self._start_among_many(main, arguments, env or {})
        with self.dir.supervisor_log.open("ab") as log:
            return subprocess.run(
                [sys.executable, "-I", "-S", str(main), str(self.dir.path), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **(env or {})},
                timeout=PATIENCE_SECONDS,
                check=False,
            ).returncode

    def _start_among_many(self, main: Path, arguments: tuple[str, ...], env: Mapping[str, str]) -> int:
        named = () if main == SUPERVISOR else (str(self.dir.path),)
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(main), *named, *arguments, "--each", "/" * len(str(self.dir.path))],
            input=os.fsencode(self.dir.path) + b"\0",
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, **env},
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        return done.stdout[0] if done.stdout else done.returncode

    @property
    def status(self) -> Status:
        found = storage.read(Status, self.dir.status)
        assert found is not None
        return found

    def exit(self, attempt: int = 1) -> ExitRecord | None:
        return storage.read(ExitRecord, self.dir.attempt(attempt).exit)

    def wait_exit(self, attempt: int = 1, seconds: float = PATIENCE_SECONDS) -> ExitRecord:
        return wait_for(lambda: self.exit(attempt), f"exit record {attempt}: {self.log()}", seconds)

    def wait_phase(self, *phases: str, seconds: float = PATIENCE_SECONDS) -> Status:
        def reached() -> Status | None:
            return self.status if self.dir.status.exists() and self.status.phase in phases else None

        return wait_for(reached, f"phase {phases}: {self.log()}", seconds)

    def wait_waiting_for(self, what: str) -> None:
        wait_for(lambda: self.dir.status.exists() and self.status.waiting_for == what, f"it to wait for a {what}")

    def wait_output(self, text: str, attempt: int = 1, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait for a whole line with ``text``: an unbuffered ``print`` writes a line and its end one by one."""

        def written() -> bool:
            output = self.output(attempt)
            return text in output[: output.rfind("\n") + 1]

        wait_for(written, f"{text!r} in the output: {self.log()}", seconds)

    def look_twice(self) -> None:
        """Let the supervisor look at everything once more, whole."""
        for _ in range(2):
            self.wait_ack(self.ask("dump_stacks"))

    def wait_unsupervised(self, seconds: float = PATIENCE_SECONDS) -> None:
        wait_for(lambda: not liveness.is_held(self.dir.supervisor_lock), "the supervisor to leave", seconds)

    def output(self, attempt: int = 1) -> str:
        path = self.dir.attempt(attempt).output
        return path.read_bytes().decode("utf-8", "replace") if path.exists() else ""

    def log(self) -> str:
        return self.dir.supervisor_log.read_text() if self.dir.supervisor_log.exists() else ""

    def events(self, name: str | None = None) -> list[dict[str, Any]]:
        from mpstui.wire import storage

        lines = self.dir.events.read_text().splitlines() if self.dir.events.exists() else []
        return [event for line in lines if name in (None, (event := storage.load_object(line))["event"])]

    def ask(
        self, action: str, attempt: int = 1, by: str = "test@here:1", source: str | None = None, **options: Any
    ) -> Request:
        """Write a request; nobody is started for it. ``source`` is the option "from"."""
        chosen = {**options, "from": source} if source else options
        return rundir.submit(self.dir, rundir.new_request(action, attempt, time.time(), by=by, options=chosen))

    def wait_ack(self, request: Request, seconds: float = PATIENCE_SECONDS) -> Ack:
        return wait_for(
            lambda: rundir.answer_to(self.dir, request.id), f"the answer to {request.action}: {self.log()}", seconds
        )

    def kill_supervisor(self) -> None:
        assert self.status.supervisor is not None
        os.kill(self.status.supervisor[0], signal.SIGKILL)
        self.wait_unsupervised()

    def beat(self, attempt: int = 1, **fields: Any) -> None:
        """Write a heartbeat in the trainer's place."""
        record = {"schema": 1, "time": time.time(), "seq": 1, **fields}
        storage.write_json(self.dir.attempt(attempt).heartbeat(), record)

    def checkpoint(self, name: str, data: bytes | None = None) -> Path:
        """A file that looks like a whole ``torch.save`` archive, unless told otherwise."""
        path = self.dir.checkpoints / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"PK\x03\x04 body PK\x05\x06" + b"\0" * 18 if data is None else data)
        return path

    def respec(self, **changes: Any) -> None:
        self.spec = self.spec._replace(**changes)
        storage.write_json(self.dir.spec, self.spec)

    def clean_up(self) -> None:
        """Kill what this run left behind: the supervisor first, then everything that carries its mark."""
        from mpstui.supervisor.family import linux_heirs

        if self.dir.status.exists():
            try:
                supervisor = self.status.supervisor
            except UnreadableRecord:
                supervisor = None
            if supervisor and supervisor[0] != os.getpid() and alive(ProcessIdentity(*supervisor)):
                os.kill(supervisor[0], signal.SIGKILL)
        for pid in linux_heirs(self.dir.run_lock, b"MPSTUI_RUN_DIR=" + os.fsencode(self.dir.path)):
            if pid > 1:
                os.kill(pid, signal.SIGKILL)


def decide(run: Run, group: str, **decided: Any) -> None:
    """Change a queue group as a person does; whoever edits it at this moment is waited for."""

    def changed() -> bool:
        try:
            queues.edit(queues.files_of(run.dir, group), lambda queue: queue._replace(**decided))
        except queues.QueueBusy:
            return False
        return True

    wait_for(changed, f"queue group {group} to be free")


CAN_MOUNT = sys.platform.startswith("linux") and os.geteuid() == 0


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of its own, small enough to be filled; needs root."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,nr_inodes=400,mode=0700", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """Without a byte left."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(b"\0" * 4096):
            pass
    try:
        yield
    finally:
        ballast.unlink()


@contextmanager
def crowded(disk: Path) -> Iterator[None]:
    """With bytes, but without an inode left."""
    ballast = [disk / f"ballast-{number}" for number in range(400)]
    with suppress(OSError):
        for file in ballast:
            file.touch()
    try:
        yield
    finally:
        for file in ballast:
            file.unlink(missing_ok=True)


def snapshot_of(run: Run) -> RunSnapshot:
    """What a command knows of the run."""
    reader = WitnessReader(run.dir, LocalMachine(system_process_table(), boot_id()))
    reader.poll()
    state, reason = reader.judge(None)
    return RunSnapshot(
        run=run.dir.run, name="t", dir=run.dir.path, state=state, reason=reason, seen=time.time(), attempt=1
    )


def act(run: Run, action: str, **known: Any) -> Ack:
    """Ask for an action as a command does, and wait for what comes of it. ``known``: what its snapshot says besides."""
    actions = Actions(os.environ)
    request = actions.send(replace(snapshot_of(run), **known), action)
    return wait_for(lambda: actions.answer(run.dir.path, request.id), f"an answer: {run.log()}")


def alive(identity: ProcessIdentity) -> bool:
    found = system_process_table().find(identity.pid)
    return found is not None and found.start == identity.start and found.alive


def wait_begun(*processes: subprocess.Popen[bytes]) -> None:
    """Wait until each has its environment: ``Popen`` returns a moment before the new program has one (Linux)."""
    for process in processes if sys.platform.startswith("linux") else ():
        wait_for(lambda pid=process.pid: any(liveness.environment_of(pid)), "a program to begin")  # type: ignore[misc]


def identity(pid: int) -> ProcessIdentity:
    found = system_process_table().find(pid)
    assert found is not None
    return found.identity
