"""The worst that a file can hold, shown to every reader: ``python -m tests.bench.worst_reading [READER] [CASE]``.

For each reader and case: megabytes a second of processor time at two sizes, and the memory that the larger one took.
Each reading is a process of its own, which is given 20 s of processor time. ``--size 1000`` reads files of one size, in
megabytes. Not a test: the figures belong to the machine; the ratios of one run are what counts.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count, repeat
from pathlib import Path

MEGABYTE = 1_000_000
SIZES = (8, 64)
SECONDS = 20
BLOCK = 1 << 16
Parts = Iterable[bytes]


def block_of(unit: bytes) -> Iterator[bytes]:
    """One unit without end, in blocks."""
    return repeat(unit * (BLOCK // len(unit) + 1))


def numbered(*lines: str) -> Iterator[bytes]:
    """Lines that differ by their numbers, in turn, a thousand numbers at a time."""
    return (
        "".join(line % number for number in range(first, first + 1000) for line in lines).encode()
        for first in count(0, 1000)
    )


def opened(start: bytes, then: Parts) -> Iterator[bytes]:
    yield start
    yield from then


def words() -> Iterator[bytes]:
    """Lines of which no two have one shape."""
    return (
        "".join(f"{i * 7919 % 9973:x} a{i} took{i % 77}x {i}.5 {i:o}z\n" for i in range(n, n + 1000)).encode()
        for n in count(0, 1000)
    )


def rows(size: int) -> Iterator[bytes]:
    """JSON lines, each with a text of ``size`` bytes."""
    return (b'{"step": %d, "loss": 0.5, "text": "%s"}\n' % (step, b"x" * size) for step in count())


def wide_table(columns: int) -> Iterator[bytes]:
    yield b"step,loss," + b",".join(b"c%d" % n for n in range(columns)) + b"\n"
    yield from (b"%d,0.5," % step + b",".join([b"1.25"] * columns) + b"\n" for step in count())


def history(end: str) -> Iterator[bytes]:
    """``trainer_state.json`` of any length, on one line or on many."""
    yield f'{{{end}"log_history": [{end}'.encode()
    entry = f'{{{end}"loss": 1.5,{end}"epoch": 0.25,{end}"step": %d{end}}},{end}'
    yield from numbered(entry.replace("%d", "%07d"))


BAR = "Epoch 1:  50%%|#####     | %06d/900000 [00:01<00:01, 4.0it/s, loss=0.5]"
CASES: dict[str, Callable[[], Parts]] = {
    "plain.log": lambda: numbered("[2026-11-21 12:00:00] step %d loss 0.5312 lr 0.001\n"),
    "three_shapes.log": lambda: numbered(
        "step %d loss 0.5312 lr 0.001\n", "  loss of the head: 0.%04d\n", "time: 0.%04d s, data: 0.01 s\n"
    ),
    "eight_shapes.log": lambda: numbered(
        "step %d loss 0.5312\n",
        *(f"  loss of head {head}: 0.%04d\n" for head in "abcd"),
        *(f"[%d] {name}: 0.5\n" for name in ("accuracy", "norm", "lr")),
    ),
    "mixed.log": lambda: numbered("step %d loss 0.5312\n[INFO] copied 12 files of 3.5 GB\n"),
    "unlike.log": words,
    "newlines.log": lambda: block_of(b"\n"),
    "digits.log": lambda: block_of(b"1\n"),
    "returns.log": lambda: block_of(b"\r"),
    "redrawn.log": lambda: block_of(b"7\r"),
    "bars.log": lambda: numbered(BAR + "\r"),
    "bars_up.log": lambda: numbered(BAR + "\x1b[A\r"),
    "two_bars.log": lambda: numbered("\r" + BAR + "\n\r" + BAR.replace("%06d", "000007") + "\x1b[A"),
    "backspaces.log": lambda: block_of(b"\x08"),
    "struck.log": lambda: block_of(b"7\x08"),
    "up.log": lambda: block_of(b"\x1b[A"),
    "drawn_up.log": lambda: block_of(b"7\x1b[A"),
    "placed.log": lambda: block_of(b"\x1b[3;4Hloss"),
    "coloured.log": lambda: block_of(b"\x1b[31mx"),
    "titles.log": lambda: block_of(b"\x1b]0;x"),
    "escapes.log": lambda: block_of(b"\x1b"),
    "half_escapes.log": lambda: block_of(b"\x1b\x1b["),
    "one_line.log": lambda: block_of(b"x"),
    "one_line_of_losses.log": lambda: block_of(b"step 5 loss: 1.5 "),
    "words_of_one_line.log": lambda: block_of(b"a b "),
    "nul.log": lambda: block_of(b"\0"),
    "nul_lines.log": lambda: block_of(b"\0step 1 loss 2\0\n"),
    "no_utf8.log": lambda: block_of(b"\xff\xfe loss"),
    "no_utf8_lines.log": lambda: block_of(b"\xc8\xd5\xff 1 loss\n"),
    "utf16.log": lambda: opened(b"\xff\xfe", block_of("step 1 loss 2\n".encode("utf-16-le"))),
    "nested.log": lambda: block_of(b"["),
    "nested_lines.log": lambda: block_of(b'{"a": ' * 2000 + b"\n"),
    "digits_of_one_line.log": lambda: block_of(b"9"),
    "traceback.log": lambda: block_of(b"Traceback (most recent call last):\n  File \"a.py\", line 3, in b\n    c()\n"),
    "errors.log": lambda: block_of(b"RuntimeError: out of memory 12\n"),
    "cells.log": lambda: block_of(b"| a | 1 |\n"),
    "rows.jsonl": lambda: numbered('{"step": %d, "loss": 0.5, "lr": 0.001}\n'),
    "giant_rows.jsonl": lambda: rows(4 * MEGABYTE),
    "long_rows.jsonl": lambda: rows(MEGABYTE // 2),
    "huge_integers.jsonl": lambda: (b'{"step": %d, "loss": %s}\n' % (step, b"9" * 100_000) for step in count()),
    "nested.jsonl": lambda: opened(b'{"step": 1, "loss": 2}\n', block_of(b'{"a": ' * 100_000 + b"\n")),
    "names.jsonl": lambda: (b'{"step": %d, "loss": 0.5, "m%d": 1, "n%d": 2}\n' % (n, n, n + 1) for n in count()),
    "rows.csv": lambda: opened(b"epoch,step,loss,lr\n", numbered("1,%d,0.5,0.001\n")),
    "giant_rows.csv": lambda: opened(b"step,loss,text\n", (b"%d,0.5,%s\n" % (n, b"x" * 4 * MEGABYTE) for n in count())),
    "wide.csv": lambda: wide_table(100_000),
    "wide_enough.csv": lambda: wide_table(990),
    "one_line.json": lambda: history(""),
    "many_lines.json": lambda: history("\n  "),
    "deep.json": lambda: opened(b'{"log_history":', block_of(b"[")),
}  # fmt: skip
SPARSE = "sparse.log"


def make(path: Path, size: int) -> None:
    """The file of a case, ``size`` bytes of it."""
    with path.open("wb") as file:
        if path.name == SPARSE:
            file.write(b"step 1 loss 2\n")
            file.truncate(size - 100)
            file.seek(0, os.SEEK_END)
            file.write(b"\nstep 2 loss 1\n")
            return
        parts = iter(CASES[path.name]())
        while file.tell() < size:
            file.write(next(parts))
        if path.suffix == ".json":
            file.write(b'{"loss": 1}]}')
        else:
            file.truncate(size)


def parse(path: Path) -> object:
    from mpstui.core.formats.files import read_log

    return read_log(path)


def curves(path: Path) -> object:
    from mpstui.core.follow import Budget
    from mpstui.core.runs.external import ExternalMetrics

    points = ExternalMetrics(path, time.time)
    points.poll()
    while not points.complete:
        before = points.file.offset
        points.read(Budget(1.0))
        if points.file.offset == before:
            break
    return points.views()


def pane(path: Path) -> object:
    """The run screen's log: its end, its middle, its start, and the count of lines."""
    from mpstui.core.logview.document import LogDocument

    document = LogDocument(path)
    document.refresh()
    while document.line_count is None:
        document.refresh()
    for offset in (0, document.size_bytes // 2):
        document.window(offset, 50)
        document.before(offset, 50)
    return document.tail(50)


def search(path: Path) -> object:
    from mpstui.core.logview.document import LogDocument

    document = LogDocument(path)
    document.refresh()
    return document.search("no such word", 0, seconds=1e9), document.search("no such word", 1 << 62, True, 1e9)


def pattern(path: Path) -> object:
    from mpstui.core.logview.document import LogDocument

    document = LogDocument(path)
    document.refresh()
    return document.search(r"no \w{1,9}such", 0, seconds=1e9)


def next_error(path: Path) -> object:
    from mpstui.core.logview.document import LogDocument

    document, at = LogDocument(path), 0
    document.refresh()
    for _ in range(20):
        line = document.next_error(at, seconds=1e9)
        if line is None:
            break
        at = line.end
    return at


def logs(path: Path) -> object:
    """``mpstui logs`` on a terminal."""
    from mpstui.cli.logs import print_new
    from mpstui.core.follow import FollowedFile

    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        print_new(FollowedFile(path), on_terminal=True, whole=True)
    return None


def newest_logs(path: Path) -> object:
    """``mpstui logs -n 100``."""
    from mpstui.cli.logs import _offset_of_last

    return _offset_of_last(path, 100)


def diagnosis(path: Path) -> object:
    from mpstui.core.diagnosis.engine import diagnose
    from mpstui.core.diagnosis.evidence import log_lines
    from mpstui.core.diagnosis.model import Evidence

    return diagnose(Evidence(lines=log_lines(path)))


def records(path: Path) -> object:
    """Our own ``metrics.jsonl``."""
    from mpstui.core.follow import Budget
    from mpstui.core.runs.files import PointReader

    points = PointReader(path)
    points.read_newest()
    points.sketch()
    points.read_history(Budget(1e9))
    return points.views()


def heartbeat(path: Path) -> object:
    from mpstui.core.follow import RecordFile

    return RecordFile(path, dict).read()


def first_frame(path: Path) -> object:
    from mpstui.cli.screen import last_lines
    from mpstui.core.runs.watched import _exception

    return last_lines(path, 50), _exception(path)


_ALL: tuple[Callable[[Path], object], ...] = (
    *(parse, curves, pane, search, pattern, next_error, logs, newest_logs, diagnosis),
    *(records, heartbeat, first_frame),
)
READERS = {reader.__name__: reader for reader in _ALL}
ONLY_RECORDS = ("records", "heartbeat")


def measure(reader: str, path: Path) -> None:
    """In the process of one reading: print what it cost."""
    read = READERS[reader]
    small = path.with_name("warm-up")
    small.write_bytes(b'step 1 loss 0.5\n{"step": 1}\n')
    read(small)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with contextlib.redirect_stderr(io.StringIO()):
        read(path)
    took = time.process_time() - start
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps([took, grown]))


def cost(reader: str, path: Path) -> tuple[float, float] | None:
    """Seconds and bytes of memory; None when it took too long."""
    command = [sys.executable, "-m", "tests.bench.worst_reading", "--measure", reader, str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE)
    if not done.stdout:
        return None
    took, grown = json.loads(done.stdout)
    return took, grown


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("only", nargs="*", help="readers and cases")
    asked.add_argument("--size", type=int, nargs="+", default=SIZES, metavar="MB")
    asked.add_argument("--measure", nargs=2)
    args = asked.parse_args()
    if args.measure:
        measure(args.measure[0], Path(args.measure[1]))
        return
    readers = [name for name in READERS if name in args.only] or list(READERS)
    cases = [name for name in (*CASES, SPARSE) if name in args.only or name.partition(".")[0] in args.only]
    print("MB/s of processor time at", " and ".join(f"{size} MB" for size in args.size), "and memory at the larger")
    with tempfile.TemporaryDirectory() as folder:
        for case in cases or (*CASES, SPARSE):
            paths = []
            for size in args.size:
                paths.append(Path(folder, str(size), case))
                paths[-1].parent.mkdir(exist_ok=True)
                make(paths[-1], size * MEGABYTE)
            for reader in readers:
                if reader in ONLY_RECORDS and path_is_log(paths[0]):
                    continue
                shown, grown = [], 0.0
                for size, path in zip(args.size, paths, strict=True):
                    took = cost(reader, path)
                    shown.append(f"under {size / SECONDS:.1f}" if took is None else f"{size / max(took[0], 1e-3):.0f}")
                    if took is None:
                        break
                    grown = took[1]
                print(
                    f"{case:<26}{reader:<13}" + "".join(f"{one:>12}" for one in shown) + f"{grown / MEGABYTE:10.0f} MB",
                    flush=True,
                )
            for path in paths:
                path.unlink()


def path_is_log(path: Path) -> bool:
    return path.suffix == ".log"


if __name__ == "__main__":
    main()
