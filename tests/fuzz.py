"""Looks for what the quick tests do not reach: ``python -m tests.fuzz TARGET [--seconds N] [--seed N]``.

Targets: ``records`` puts every poison into every field of every record and asks every command; ``bytes`` feeds every
decoder and reader random changes of what it reads. Ends with 1 at the first thing that raises, hangs or steers the
terminal, and says how to see it again.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import os
import random
import sqlite3
import struct
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from mpstui.cli.main import main as mpstui
from mpstui.core.follow import Budget
from mpstui.core.formats.files import read_log
from mpstui.core.formats.reader import LogReader
from mpstui.core.formats.stores import find_runs
from mpstui.core.model.errors import ReportedError
from mpstui.core.model.home import Home
from mpstui.core.profiles.parse import parse_profile
from mpstui.core.runs.images import image_in
from mpstui.core.runs.local_machine import LocalMachine
from mpstui.core.runs.png import decoded, in_few_colours
from mpstui.core.runs.reader import RunReader
from mpstui.core.runs.stored import reader_of
from mpstui.core.runs.summaries import Summaries
from mpstui.core.settings import parse_settings
from mpstui.wire import heartbeat, labels, queues, rundir, storage
from mpstui.wire.jobs import JobRecord
from mpstui.wire.liveness import system_process_table
from mpstui.wire.moves import Leaving, Move
from mpstui.wire.records import Ack, ExitRecord, LaunchRecord, Request, Spec, Status
from mpstui.wire.rundir import RunDir
from mpstui.wire.storage import UnreadableRecord
from tests import wandb_files as w
from tests.core.runs.build import RunBuilder
from tests.damage import STEERING, damages, records_of, run_with_everything

COMMANDS = (
    *("ps", "ps --json", "show RUN", "show RUN --json", "diagnose RUN", "remove RUN --dry-run", "queue", "results"),
    "wait RUN --timeout 0",
)
SLOW_SECONDS = 2.0
_STEERS = set("\x1b\x9b\u202e\u2028\u200b")


def records(seconds: float, chance: random.Random) -> Iterator[str]:
    """Each change of each record, in an order of chance, under each command."""
    with tempfile.TemporaryDirectory(prefix="mpstui-fuzz-") as folder:
        os.environ["MPSTUI_HOME"] = folder
        home = Home(state=Path(folder), config=Path(folder))
        home.runs.mkdir()
        healthy = RunBuilder(home, "healthy", created=time.time()).status("ended").launch().exit(code=0)
        runs = [run_with_everything(home, healthy.run.run, live=live) for live in (False, True)]
        tries = [(run, path, *one) for run in runs for path in _files_of(run) for one in damages(path.read_text())]
        chance.shuffle(tries)
        end = time.monotonic() + seconds
        for run, path, place, poison, text in tries:
            whole = path.read_text()
            path.write_text(text)
            for command in COMMANDS:
                wrong = _ask(command.replace("RUN", run.run).split())
                if wrong:
                    yield f"{command}: {wrong}: {path.name} {place} {str(poison)[:60]!r}"
            path.write_text(whole)
            if time.monotonic() > end:
                return


def _files_of(run: RunDir) -> list[Path]:
    """Its records, a request with its answer, and what was decided for its queue."""
    request = rundir.submit(run, rundir.new_request("restart", 1, 1.0, options={"from": "best", "device": "cpu"}))
    storage.write_json(run.ack(request.id), Ack(request.id, True, "supervisor", 2.0, "done", 3, 2, 1))
    group = queues.files_of(run, "g")
    queues.edit(group, lambda found: found._replace(slots=2, decided=True, devices=["0"], order=[run.run]))
    return [*records_of(run), run.request(request.id), run.ack(request.id), group.state]


def _ask(words: list[str]) -> str:
    printed, began = io.StringIO(), time.monotonic()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = mpstui(words)
    except Exception:  # noqa: BLE001 - what it looks for
        return traceback.format_exc(limit=-3)
    if code not in (0, 1, 2) or (words[0] == "ps" and "healthy" not in printed.getvalue()):
        return f"exit code {code}, or the other run is missing"
    if _STEERS & set(printed.getvalue()):
        return "steers the terminal"
    return "reading it failed" if "reading it failed" in printed.getvalue() else _slow(began)


def _slow(began: float) -> str:
    took = time.monotonic() - began
    return f"took {took:.1f} s" if took > SLOW_SECONDS else ""


def changed_bytes(seconds: float, chance: random.Random) -> Iterator[str]:
    """Random changes of a sample of each kind of file, for whatever reads such bytes."""
    with tempfile.TemporaryDirectory(prefix="mpstui-fuzz-") as folder:
        end, readers = time.monotonic() + seconds, list(_readers(Path(folder)))
        for name, sample, read in itertools.cycle(readers):
            data, began = _changed(sample, chance), time.monotonic()
            try:
                read(data)
            except (UnreadableRecord, ReportedError):
                pass
            except Exception:  # noqa: BLE001 - what it looks for
                yield f"{name}: {traceback.format_exc(limit=-3)}: {data[:2000]!r}"
            if slow := _slow(began):
                yield f"{name}: {slow}: {data[:2000]!r}"
            if time.monotonic() > end:
                return


Reader = Callable[[bytes], object]


def _readers(folder: Path) -> Iterator[tuple[str, bytes, Reader]]:
    home = Home(state=folder, config=folder)
    home.runs.mkdir()
    run = run_with_everything(home, "x", live=False)
    kinds = {run.spec: Spec, run.status: Status, run.attempt(1).launch: LaunchRecord, run.attempt(1).exit: ExitRecord}
    for path, kind in kinds.items():
        yield kind.__name__, path.read_bytes(), partial(_read_record, kind)
    request = storage.dump_bytes(Request("1", "stop", 1, "me", 1.0, {"a": [1]}))
    yield "Request", request, partial(_read_record, Request)
    beat = run.attempt(1).heartbeat().read_bytes()
    yield "heartbeat", beat, lambda data: heartbeat.from_json(storage.load_object(data))
    log = "\n".join(
        f"\x1b[32mEpoch {i}/9\x1b[0m: 50%|##   | {i}/9 [00:01<00:02, 3.1it/s, loss={1 / i:.3f}]\r" for i in range(1, 9)
    )
    yield "log", log.encode(), _read_log
    for name, text in {
        "x.csv": "epoch,step,loss,val_loss\n1,10,0.5,0.6\n2,20,0.4,\n",
        "x.jsonl": '{"step": 1, "loss": 0.5}\n{"step": 2, "loss": NaN}\n',
        "trainer_state.json": json.dumps({"log_history": [{"step": 1, "loss": 0.5, "epoch": 0.1}], "max_steps": 9}),
    }.items():
        yield name, text.encode(), partial(_read_file, folder / name)
    profile = 'name = "x"\ncommand = ["{python}", "t.py"]\n[args]\nlr = 0.1\n[watch]\npattern = "loss (.*)"\n'
    yield "profile", profile.encode(), lambda data: parse_profile(_text(data), path=None, default_cwd=folder)
    yield from _of_stores(folder / "stores")
    pixels = zlib.compress(b"".join(b"\0" + bytes(range(24)) for _ in range(8)))
    pieces = [(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)), (b"IDAT", pixels), (b"IEND", b"")]
    png = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in pieces
    )
    yield "png", b"\x89PNG\r\n\x1a\n" + png, _read_picture
    jpeg = b"\xff\xd8\xff\xe0\0\4xx\xff\xc0\0\x0b\x08\0\x10\0\x10\1\1\x11\0\xff\xda\0\2\1\2\3\xff\xd9"
    yield "jpeg", jpeg, _read_picture
    kept = folder / "summaries"
    snapshot = RunReader(run, LocalMachine(table=system_process_table(), boot_id="")).refresh(
        full=False, budget=Budget(1.0)
    )
    Summaries(kept).keep(run, "x", {}, snapshot)
    yield "summaries", kept.read_bytes(), partial(_read_summaries, kept, run)
    for record in (
        Move("t", "there", 1.0, 1, "cpu"),
        Leaving("there", "send", 1.0),
        JobRecord("slurm", 1.0, "7", ["sbatch"], ["6"]),
        queues.Queue("g", slots=2, decided=True, devices=["0"], order=["x"]),
    ):
        yield type(record).__name__, storage.dump_bytes(record), partial(_read_record, type(record))
    yield "labels", b'{"name": "a", "tags": ["b"], "note": "c"}', lambda data: labels.parse(storage.load_object(data))
    settings = '[alerts]\nhook = ["a"]\non = ["crash"]\n[energy]\nprice = 0.3\ncurrency = "EUR"\n'
    yield "settings", settings.encode(), lambda data: parse_settings(_text(data), folder / "settings.toml")


def _of_stores(folder: Path) -> Iterator[tuple[str, bytes, Reader]]:
    """A run of each tracker, as the only one of its folder."""
    wandb = w.write(
        folder / "wandb" / "offline-run-20261123_134700-x" / "run-x.wandb",
        [w.run("x", {"lr": 0.1}, ["a"], "n"), w.environment("t.py", ["--a"]), w.history(1, {"loss": 0.5}), w.exited(0)],
    )
    events = folder / "tensorboard" / "events.out.tfevents.1.host"
    w.events(events, range(5))
    mlflow, trackio = folder / "mlflow" / "mlflow.db", folder / "trackio" / "x.db"
    text = folder / "text" / "mlruns" / "1" / "x" / "meta.yaml"
    for path in (mlflow, trackio, text, text.parent / "metrics" / "loss", text.parent / "params" / "lr"):
        path.parent.mkdir(parents=True, exist_ok=True)
    for path, script in ((mlflow, _MLFLOW), (trackio, _TRACKIO)):
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.executescript(script)
    text.write_text("run_id: x\nrun_name: 'a'\nstatus: 3\nstart_time: 1700000000000\n")
    metric = text.parent / "metrics" / "loss"
    metric.write_text("1700000000000 0.5 1\n1700000001000 0.4 2\n")
    hydra = folder / "hydra" / ".hydra" / "config.yaml"
    hydra.parent.mkdir(parents=True)
    hydra.write_text("model:\n  depth: 3\n  sizes: [1, 2]\nname: 'a'\n")
    state = folder / "trainer" / "checkpoint-9" / "trainer_state.json"
    state.parent.mkdir(parents=True)
    state.write_text('{"log_history": [{"step": 1, "loss": 0.5, "epoch": 0.1}], "max_steps": 9, "global_step": 1}')
    for path in (wandb, events, mlflow, trackio, text, metric, hydra, state):
        of = folder / path.relative_to(folder).parts[0]
        yield f"store {path.name}", path.read_bytes(), partial(_read_store, of, path)


_MLFLOW = """
CREATE TABLE experiments (experiment_id INT, name TEXT, lifecycle_stage TEXT);
CREATE TABLE runs (
    run_uuid TEXT, name TEXT, status TEXT, start_time INT, end_time INT, lifecycle_stage TEXT, experiment_id INT
);
CREATE TABLE metrics (key TEXT, value FLOAT, timestamp INT, run_uuid TEXT, step INT, is_nan BOOLEAN);
CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT);
CREATE TABLE tags (key TEXT, value TEXT, run_uuid TEXT);
INSERT INTO experiments VALUES (1, 'cifar', 'active');
INSERT INTO runs VALUES ('a', 'b', 'FINISHED', 1700000000000, 1700000001000, 'active', 1);
INSERT INTO metrics VALUES ('loss', 0.5, 1700000000000, 'a', 1, 0), ('loss', 0.4, 1700000000000, 'a', 2, 0);
INSERT INTO params VALUES ('lr', '0.1', 'a');
"""
_TRACKIO = """
CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step INTEGER, metrics TEXT);
CREATE TABLE configs (run_name TEXT, config TEXT);
INSERT INTO metrics VALUES (1, '2026-11-23T13:47:00', 'a', 1, '{"loss": 0.5, "val": {"loss": 0.6}}');
INSERT INTO configs VALUES ('a', '{"lr": 0.1, "_Group": "g"}');
"""


def _read_store(folder: Path, path: Path, data: bytes) -> None:
    whole = path.read_bytes()
    path.write_bytes(data)
    try:
        for found in find_runs(folder):
            reader = reader_of(found, LocalMachine(table=system_process_table(), boot_id=""))
            for full in (False, True):
                reader.refresh(full=full, budget=Budget(1.0))
    finally:
        path.write_bytes(whole)


def _read_picture(data: bytes) -> None:
    with contextlib.suppress(ValueError):  # says why it is not shown
        found = image_in(data)
        if found.kind == "png":
            in_few_colours(decoded(found.data, (20, 20), (0, 0, 0)))


def _read_summaries(path: Path, run: RunDir, data: bytes) -> None:
    path.write_bytes(data)
    kept = Summaries(path)
    kept.find(run, 2.0)
    kept.forget([run.run])


def _read_record(kind: type[Any], data: bytes) -> None:
    storage.from_json(kind, storage.load_object(data))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _read_log(data: bytes) -> None:
    reader = LogReader()
    reader.feed(data)
    reader.close()
    reader.summary()


def _read_file(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    read_log(path)


_SPLICES = (
    b"\0",
    b"\r",
    b"\x08",
    b"\x1b[A",
    b"[" * 500,
    b'"',
    b"NaN",
    b"1e999",
    b"9" * 400,
    b"\xff\xfe",
    STEERING.encode(),
)


def _changed(sample: bytes, chance: random.Random) -> bytes:
    data = bytearray(sample)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(5):
            case 0:
                data[at : at + chance.randint(1, 20)] = b""
            case 1:
                data[at:at] = chance.choice(_SPLICES) * chance.choice((1, 1, 1, 50))
            case 2:
                data[at : at + 1] = chance.randbytes(1)
            case 3:
                data[at:at] = data[: chance.randrange(len(data) + 1)]
            case _:
                data[at:] = data[at:][::-1] if chance.random() < 0.1 else data[at:]
        if len(data) > 1 << 20:
            del data[1 << 20 :]
    return bytes(data)


TARGETS = {"records": records, "bytes": changed_bytes}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    args = parser.parse_args()
    sys.stderr.write(f"{args.target}, {args.seconds:g} s, --seed {args.seed}\n")
    wrong = next(TARGETS[args.target](args.seconds, random.Random(args.seed)), "")
    sys.stderr.write(wrong + "\n" if wrong else "nothing found\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
