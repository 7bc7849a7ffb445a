"""Children are bounded in time and never outlive the sampler."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest

from mpstui.core.telemetry.source import Commands, Facts, NotYet, SourceError, SourceRequest
from mpstui.core.telemetry.sources.macmon import Macmon
from tests.core.telemetry import recordings
from tests.core.telemetry.stand_ins import FakeClock, children, wait_for

SLEEPER = (sys.executable, "-c", "import time; time.sleep(60)")


def test_output_is_read_in_the_c_locale() -> None:
    argv = (sys.executable, "-c", "import os; print(os.environ['LC_ALL'])")
    assert Commands().run(argv, 10) == "C\n"


def test_a_child_that_does_not_answer_is_killed() -> None:
    before = children()
    with pytest.raises(SourceError, match=r"did not answer within 0\.2 s"):
        Commands().run(SLEEPER, 0.2)
    assert children() <= before


def test_a_failing_or_missing_program_is_named() -> None:
    with pytest.raises(SourceError, match="exit code 3"):
        Commands().run((sys.executable, "-c", "raise SystemExit(3)"), 10)
    with pytest.raises(SourceError, match="cannot be started"):
        Commands().run(("/nowhere/ioreg",), 1)


def test_close_kills_what_runs_and_starts_nothing_more() -> None:
    commands, before = Commands(), children()
    ended: list[str] = []

    def run() -> None:
        try:
            commands.run(SLEEPER, 30)
        except SourceError as error:
            ended.append(str(error))

    caller = threading.Thread(target=run)
    caller.start()
    wait_for(lambda: len(children() - before) == 1)
    commands.close()
    caller.join(60)
    assert "exit code -9" in ended[0]
    with pytest.raises(SourceError, match="closed"):
        commands.start(SLEEPER)


STAND_IN = """#!{python}
import sys, time
for line in {lines!r}:
    sys.stdout.write(line)
    sys.stdout.flush()
time.sleep({sleep})
"""


def stand_in(folder: Path, lines: list[str], sleep: float = 60.0) -> str:
    """A program that prints ``lines`` and then waits."""
    program = folder / "macmon"
    program.write_text(STAND_IN.format(python=sys.executable, lines=lines, sleep=sleep))
    program.chmod(0o755)
    return str(program)


def first_facts(source: Macmon) -> Facts:
    """What the source says once it says something."""
    found: list[Facts] = []

    def answered() -> bool:
        try:
            found.append(source.read(SourceRequest()))
        except NotYet:
            return False
        return True

    wait_for(answered)
    return found[0]


def test_macmon_gives_the_newest_whole_line(tmp_path: Path) -> None:
    newest = recordings.MACMON_NEW.replace('"gpu_power":9.25', '"gpu_power":3.5')
    program = stand_in(tmp_path, [f"{recordings.MACMON_NEW}\n{newest}\n", recordings.MACMON_NEW[:50]])
    before = children()
    source = Macmon(Commands(), program, FakeClock().monotonic)
    try:
        assert first_facts(source).gpus[0].power_watts == 3.5
        with pytest.raises(NotYet):
            source.read(SourceRequest())
    finally:
        source.close()
    assert children() <= before


PRINTS_AGAIN = """#!{python}
import pathlib, time
print({line!r}, flush=True)
while not pathlib.Path({folder!r}, "go").exists():
    time.sleep(0.01)
print({line!r}, flush=True)
pathlib.Path({folder!r}, "printed").touch()
time.sleep(60)
"""


def test_what_waited_in_the_pipe_during_a_pause_is_not_shown_as_current(tmp_path: Path) -> None:
    clock = FakeClock()
    program = tmp_path / "macmon"
    program.write_text(PRINTS_AGAIN.format(python=sys.executable, line=recordings.MACMON_NEW, folder=str(tmp_path)))
    program.chmod(0o755)
    source = Macmon(Commands(), str(program), clock.monotonic)
    try:
        first_facts(source)
        (tmp_path / "go").touch()
        wait_for((tmp_path / "printed").exists)
        clock.advance(3600)
        with pytest.raises(NotYet, match="asked again"):
            source.read(SourceRequest())
    finally:
        source.close()


def test_macmon_that_ends_is_named_and_can_be_started_again(tmp_path: Path) -> None:
    source = Macmon(Commands(), stand_in(tmp_path, [], sleep=0), time.monotonic)

    def has_ended() -> bool:
        try:
            source.read(SourceRequest())
        except NotYet:
            return False
        except SourceError as error:
            return "ended with exit code 0" in str(error)
        return False

    wait_for(has_ended)
    wait_for(has_ended)  # once more, for it was started again
    source.close()


def test_macmon_that_prints_nonsense_is_named(tmp_path: Path) -> None:
    source = Macmon(Commands(), stand_in(tmp_path, ["no json\n"]), FakeClock().monotonic)
    try:
        with pytest.raises(SourceError, match="no JSON object"):
            first_facts(source)
    finally:
        source.close()
