"""The names inside a run directory, and the requests and answers in it."""

from __future__ import annotations

import contextlib
import getpass
import itertools
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from . import liveness, storage
from .jobs import EngineRule
from .records import ENDS, OF_THIS_MACHINE, Ack, Request
from .storage import UnreadableRecord

RUN_VARIABLES = ("MPSTUI_RUN_ID", "MPSTUI_RUN_DIR", "MPSTUI_ATTEMPT")
"""These tell a program, and everything it starts, which run it is part of."""
AGENT_VARIABLE = "MPSTUI_AGENT"
"""``1`` switches the agent on in every Python that has its folder on PYTHONPATH."""
AGENT_DEVICE_VARIABLE = "MPSTUI_AGENT_DEVICE"
"""Read by the agent before torch looks for devices: a program then gets the CPU, whatever device it names."""
EACH = "--each"
"""Supervisor option in place of a run directory: start one supervisor per directory named on standard input."""
ALREADY_SUPERVISED = 100
"""Exit code of a supervisor that finds the run already supervised."""
_asked = itertools.count()
_NAMES_OF_ENDS = tuple(f"-{action}.json" for action in ENDS)
_UNSAFE = re.compile(r"[^a-z0-9]+")
_RANK_HEARTBEAT = re.compile(r"heartbeat\.rank(\d+)\.json")


class _File:
    """Descriptor for a file name: gives its path in the folder it is read from."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: _Run | _Attempt, kind: object = None) -> Path:
        return folder.path / self._name


class _Attempt(NamedTuple):
    path: Path
    number: int


class AttemptDir(_Attempt):
    """One attempt's files: ``attempts/<n>/``."""

    launch = _File("launch.json")
    """What was really started: argv, environment delta, device, checkpoint, time."""
    output = _File("output.log")
    """Standard output and standard error of the attempt, one append-only file."""
    config = _File("config.json")
    """The configuration that the training code reports, as JSON of any depth."""
    rehearsal = _File("rehearsal")
    """The run directory of a rehearsal: the metrics and checkpoints in it are not the run's."""
    exit = _File("exit.json")
    """Written once, when the attempt has ended. If it is missing, that never means success."""
    stack_signal = _File("stack_signal")
    """Processes that dump their stacks on a signal, one per line: signal number, pid, start time."""

    def heartbeat(self, rank: int = 0) -> Path:
        """The newest heartbeat of one rank."""
        return self.path / ("heartbeat.json" if rank == 0 else f"heartbeat.rank{rank}.json")

    def rank_lock(self, rank: int) -> Path:
        """Held by the process that writes this rank's heartbeat, if that is the agent."""
        return self.path / f"rank{rank}.lock"

    def rank_heartbeats(self) -> dict[int, Path]:
        """Heartbeat files of the ranks above 0 that exist now."""
        found = ((_RANK_HEARTBEAT.fullmatch(entry.name), entry) for entry in self.path.glob("heartbeat.rank*.json"))
        return {int(match[1]): entry for match, entry in found if match}


class _Run(NamedTuple):
    path: Path


class RunDir(_Run):
    """One run's directory: ``runs/<run-id>/``."""

    spec = _File("spec.json")
    """What was asked for, frozen."""
    status = _File("status.json")
    """The supervisor's own record: phase, attempt, pids."""
    job = _File("job.json")
    """The scheduler's job last submitted for the run."""
    supervisor_lock = _File("supervisor.lock")
    """Held by the supervisor as long as it lives."""
    run_lock = _File("run.lock")
    """Held by the trainer and every process that inherits its descriptors."""
    supervisor_log = _File("supervisor.log")
    """The supervisor's own messages."""
    alerts_log = _File("alerts.log")
    """The outcome of each alert, and what the user's hook printed."""
    reserve = _File("reserve")
    """A few kilobytes and an inode, given up so that an exit record fits on a full disk."""
    request_reserve = _File("reserve.request")
    """The same, for a request to end the run."""
    answer_reserve = _File("reserve.answer")
    """The same, for the answer to that request."""
    metrics = _File("metrics.jsonl")
    """Every metric point reported by any attempt, append only."""
    events = _File("events.jsonl")
    """What happened, append only."""
    provenance = _File("provenance.json")
    """The code, the packages and the machine the run was launched with."""
    source_diff = _File("source.diff")
    """How the code differed from its commit."""
    moving_lock = _File("moving.lock")
    """Held by whoever moves the run to another machine, from before the run is asked to end until the move is final."""
    moving = _File("moving.json")
    """How far the move has come; valid only while the lock is held."""
    moved = _File("moved.json")
    """Where the run continues, if that is another machine."""
    arrived = _File("arrived.json")
    """The move that brought the run here."""
    labels = _File("labels.json")
    """What people add to the run: another name, tags, a note."""
    labels_lock = _File("labels.lock")
    """Held while the labels are changed."""
    images = _File("images")
    """Images logged by the training code: ``<number>-<attempt>-<step>-<name>.png``, the name encoded as in a URL."""
    telemetry = _File("telemetry.jsonl")
    """Memory, power and load over time, written by an open screen; limited in size."""
    telemetry_lock = _File("telemetry.lock")
    """Held by the screen that writes :attr:`telemetry`."""
    requests = _File("requests")
    """One file per request, its answer beside it."""
    brought = _File("brought")
    """The checkpoint from another machine that the run began from."""
    checkpoints = _File("checkpoints")
    """Where the shipped trainers save."""

    @property
    def run(self) -> str:
        """The run id, which is the directory's name."""
        return self.path.name

    def attempt(self, number: int) -> AttemptDir:
        """The files of attempt ``number`` (from 1), whether they exist or not."""
        return AttemptDir(self.path / "attempts" / str(number), number)

    def attempt_numbers(self) -> list[int]:
        """Attempts that have a folder, in order."""
        try:
            names = [entry.name for entry in (self.path / "attempts").iterdir()]
        except OSError:
            return []
        return sorted(int(name) for name in names if name.isdigit() and name != "0")

    def request(self, request_id: str) -> Path:
        """The file of one request."""
        return self.requests / f"{request_id}.json"

    def ack(self, request_id: str) -> Path:
        """The file of one request's answer."""
        return self.requests / f"{request_id}.ack.json"


def mark_of(run: RunDir) -> bytes:
    """Return the environment entry that every descendant of this run carries, whoever its parent is now."""
    return b"MPSTUI_RUN_DIR=" + os.fsencode(run.path)


def is_marked(run: RunDir, pid: int) -> bool:
    """True if the environment, lock or output of a recorded process proves that it belongs to this run.

    A pid and a start time in a file prove little: the file may be forged, restored or copied. Also True if it cannot
    be checked: on macOS, and for a process that we may not inspect.
    """
    try:
        if mark_of(run) in liveness.environment_of(pid):
            return True
        outputs = [run.attempt(number).output for number in run.attempt_numbers()]
        return liveness.has_open(pid, run.run_lock, *outputs)
    except OSError:
        return True


def run_dirs(runs: Path) -> list[RunDir]:
    """Return every run directory, newest first; none if the folder is missing."""
    try:
        with os.scandir(runs) as entries:
            names = [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
    except OSError:
        return []
    return [RunDir(runs / name) for name in sorted(names, reverse=True) if name.isprintable()]


def slug(name: str, *, longest: int = 32) -> str:
    """Return the readable part of a run id: lower-case ASCII letters, digits and dashes."""
    return _UNSAFE.sub("-", name.lower()).strip("-")[:longest].strip("-") or "run"


def create_run_dir(runs: Path, name: str, now: float) -> RunDir:
    """Create a fresh run directory under ``runs``. Its id is UTC time and name: ``20261121-114700-cifar-10``.

    Ids sort by time and are never reused; two launches in one second get different ones.
    """
    storage.make_private_folder(runs)
    base = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{slug(name)}"
    for number in range(1, 10_000):
        path = runs / (base if number == 1 else f"{base}-{number}")
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue
        run = RunDir(path)
        run.requests.mkdir(mode=0o700)
        (path / "attempts").mkdir(mode=0o700)
        storage.sync_folder(path)
        storage.sync_folder(runs)
        return run
    raise OSError(f"{runs} already holds 10,000 runs named {base}")


def asker() -> str:
    """Return who makes a request, for the record: ``user@host:pid``."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{os.uname().nodename.split('.')[0]}:{os.getpid()}"


def new_request(
    action: str,
    attempt: int,
    now: float,
    *,
    by: str | None = None,
    options: Mapping[str, Any] | None = None,
    name: str = "",
) -> Request:
    """Make a request, not written yet. Ids sort by time, and those of one process sort even within a millisecond.

    The id of a request that ends the run says so, to be found at once among any number of others. ``name`` is an id
    that was assigned elsewhere.
    """
    if name:
        return Request(name, action, attempt, by or asker(), now, dict(options or {}))
    request_id = f"{int(now * 1000):013d}-{next(_asked):06d}-{os.urandom(4).hex()}"
    request_id += f"-{action}" if action in ENDS else ""
    return Request(request_id, action, attempt, by or asker(), now, dict(options or {}))


def submit(run: RunDir, request: Request) -> Request:
    """Write a request where its run will find it. One that ends the run is written even on a full disk.

    Raises:
        OSError: it could not be written (disk full, read-only home).
    """
    found = storage.stat_of(run.requests)
    if run.requests.is_symlink() or (found is not None and not stat.S_ISDIR(found.st_mode)):
        # There may be a link that leads elsewhere, a pipe or a file in its place: it is renamed and kept.
        with contextlib.suppress(FileNotFoundError):
            run.requests.rename(run.path / f"requests.aside-{request.id}")
    storage.make_private_folder(run.requests)
    create_in_reserve(run.request(request.id), request, run.request_reserve if request.action in ENDS else None)
    return request


def open_supervisor_log(run: RunDir) -> int:
    """Open the supervisor's log. If it cannot be opened, the log is lost, but never the run."""
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
        return os.open(run.supervisor_log, flags, storage.FILE_MODE)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


def create_in_reserve(path: Path, record: tuple[Any, ...], reserve: Path | None, *, durable: bool = False) -> bool:
    """Call :func:`.storage.create_json`; on a full disk, turn the reserve itself into the record.

    Freeing the reserve's blocks first would lose them to a program that fills the disk as fast as it can.
    """
    try:
        return storage.create_json(path, record, durable=durable)
    except OSError as error:
        if reserve is None or error.errno not in storage.NO_ROOM:
            raise
        with contextlib.suppress(OSError):
            if _write_over(reserve, storage.dump_bytes(record), durable=durable):
                reserve.rename(path)
                storage.sync_folder(path.parent)
                storage.sync_folder(reserve.parent)
                return True
        reserve.unlink(missing_ok=True)
        return storage.create_json(path, record, durable=durable)


def _write_over(path: Path, line: bytes, *, durable: bool) -> bool:
    """Overwrite a file with a line, padded with blanks to the file's length, so that it keeps its blocks.

    False if it is too small, or has a second hard link, as when a power cut hit a reserve while it became a record.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or found.st_size < len(line):
            return False
        whole = line.rstrip(b"\n").ljust(found.st_size - 1) + b"\n"
        while whole:
            whole = whole[os.write(descriptor, whole) :]
        storage.flush_to_disk(descriptor, drive_cache=durable)
    finally:
        os.close(descriptor)
    return True


def unanswered(run: RunDir, looked_at: set[str] | None = None, most: int | None = None) -> Iterator[Request]:
    """Yield requests without an answer, oldest first; an unreadable or misnamed one is skipped and left where it is.

    Args:
        looked_at: names of files to skip; those read now are added.
        most: how many files to read; if there are more, those that end the run, the oldest and the newest are chosen.
    """
    try:
        names = sorted(os.listdir(run.requests))  # noqa: PTH208 - a path object an entry is what costs
    except OSError:
        return
    passed = {f"{name[: -len('.ack.json')]}.json" for name in names if name.endswith(".ack.json")} | (
        looked_at or set()
    )
    left = [name for name in names if name.endswith(".json") and not name.startswith(".") and name not in passed]
    left = [name for name in left if not name.endswith(".ack.json")]
    if most is not None and len(left) > most:
        ends = [name for name in left if name.endswith(_NAMES_OF_ENDS)][-(most // 2) :]
        each = (most - len(ends)) // 2
        left = sorted({*ends, *left[:each], *left[-each:]})
    for name in left:
        try:
            found = storage.read(Request, run.requests / name)
        except (UnreadableRecord, storage.NotAFile):
            found = None
        except OSError:
            continue  # no file descriptor left, say: the next look may get one
        if looked_at is not None:
            looked_at.add(name)
        if found is not None and found.id == name[: -len(".json")]:
            yield found


def answer(run: RunDir, ack: Ack, reserve: Path | None = None) -> bool:
    """Write an answer; only the first one counts. True if it was ours."""
    return create_in_reserve(run.ack(ack.id), ack, reserve)


def answer_to(run: RunDir, request_id: str) -> Ack | None:
    """The answer to a request; None while there is none."""
    try:
        return storage.read(Ack, run.ack(request_id))
    except UnreadableRecord:
        return None


def for_a_job(rule: EngineRule, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment to hand to a job, without what belongs to one run, machine or job only."""
    gone = (*RUN_VARIABLES, *OF_THIS_MACHINE)
    return {
        name: text for name, text in environ.items() if name not in gone and not re.fullmatch(rule.of_one_job, name)
    }


def event(moment: float, attempt: int, name: str, text: str, **details: Any) -> dict[str, Any]:
    """One line of ``events.jsonl``."""
    return {"time": moment, "attempt": attempt, "event": name, "text": text, **storage.plain(details)}
