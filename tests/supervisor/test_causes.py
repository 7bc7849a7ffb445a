"""Causes, conclusions and the wait status."""

from __future__ import annotations

from pathlib import Path

from mpstui.supervisor.attempt import Ending, ExitNote, ending_of
from mpstui.supervisor.conclusion import LONGEST_LINE, find_cause
from mpstui.supervisor.witnesses import TAIL_BYTES, read_tail
from mpstui.wire.records import CauseRule

RULES = [
    CauseRule("mps_oom", patterns=[r"MPS backend out of memory"]),
    CauseRule("killed_os", signals=[9]),
    CauseRule("usage", codes=[2]),
    CauseRule("torn", patterns=["("]),
]


def test_words_before_signals_before_codes() -> None:
    output = "step 1\nRuntimeError: MPS backend out of memory (MPS allocated: 1 GB)\nmore\n"
    found = find_cause(RULES, Ending(signal=9), output)
    assert found == ("mps_oom", "RuntimeError: MPS backend out of memory (MPS allocated: 1 GB)")
    assert find_cause(RULES, Ending(signal=9), "") == ("killed_os", "signal 9")
    assert find_cause(RULES, Ending(code=2), "") == ("usage", "exit code 2")
    assert find_cause(RULES, Ending(code=3), "") is None
    assert find_cause(RULES, Ending(code=0), "") is None


def test_a_carriage_return_ends_a_line_and_a_long_line_is_searched_at_its_end() -> None:
    line = "x" * 1_000_000 + "MPS backend out of memory"
    assert find_cause(RULES, Ending(code=1), f"10%\r20%\r{line}\r30%") == ("mps_oom", line[-LONGEST_LINE:])
    assert find_cause(RULES, Ending(code=1), "MPS backend out of memory" + "x" * LONGEST_LINE) is None


def test_only_the_tail_is_read_and_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    path.write_bytes(b"early MPS\n" + b"\xff\xfe\x1b]0;" * TAIL_BYTES)
    tail = read_tail(path)
    assert "early" not in tail
    assert "�" in tail
    assert read_tail(tmp_path / "none") == ""


def test_a_wait_status_is_a_code_or_a_signal() -> None:
    assert ending_of(3 << 8) == Ending(code=3)
    assert ending_of(9) == Ending(signal=9)
    assert ending_of(0x80 | 6) == Ending(signal=6, core=True)
    assert Ending().unknown
    assert not Ending(code=0).unknown


class Kernel:
    """kqueue as far as it is used."""

    KQ_FILTER_PROC, KQ_EV_ADD, KQ_NOTE_EXIT = -5, 1, 0x80000000

    def __init__(self, *, gone: bool = False) -> None:
        self.gone = gone
        self.come = False
        self.wishes: list[tuple[int, int]] = []

    def kqueue(self) -> Kernel:
        return self

    def kevent(self, pid: int, *, filter: int, flags: int, fflags: int) -> tuple[int, int]:  # noqa: A002
        assert (filter, flags) == (self.KQ_FILTER_PROC, self.KQ_EV_ADD)
        return pid, fflags

    def control(self, changes: list[tuple[int, int]] | None, count: int, timeout: float) -> list[str]:
        if changes and self.gone:
            raise ProcessLookupError
        self.wishes += changes or []
        return ["exit"][: count * self.come]


def test_the_kernels_note_of_an_exit_is_remembered() -> None:
    kernel = Kernel()
    note = ExitNote(7, kernel)
    seen = [note.has_come()]
    kernel.come = True
    seen.append(note.has_come())
    kernel.come = False
    seen.append(note.has_come())
    assert seen == [False, True, True]
    assert kernel.wishes == [(7, Kernel.KQ_NOTE_EXIT)]
    assert ExitNote(7, Kernel(gone=True)).has_come()
