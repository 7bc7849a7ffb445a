"""The card offers no key that cannot work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpstui.core.diagnosis.model import EvidenceLine, Finding
from mpstui.core.launching.rehearsal import Rehearsed, Shown
from mpstui.core.model.exits import ExitSummary
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import State
from mpstui.ui.services import Services
from mpstui.ui.widgets.failure_card import Failure, card, card_lines, offers
from mpstui.wire.records import Rehearsal

from . import fakes
from .driving import Driver, drive

EXIT = ExitSummary(code=1, signal=None, cause=None, requested_by=None)
NEVER = ExitSummary(code=None, signal=None, cause="dependency_failed", requested_by=None, unbegun=True)


def test_restart_on_cpu_is_offered_only_where_it_can_work() -> None:
    failed = next(item for item in fakes.several() if item.state is State.FAILED)
    helps, idle = (replace(fakes.FINDING, restart_on_cpu_helps=helps) for helps in (True, False))
    told = [((helps,), True), ((helps,), False), ((idle,), True), ((), True), (None, True)]
    keys = [card(Failure(failed, findings, able), 80, 8)[-1].text for findings, able in told]
    assert ["restart on CPU" in shown for shown in keys] == [True, False, False, False, False]


def test_a_remedy_is_offered_once_its_key_works() -> None:
    failed = next(item for item in fakes.several() if item.state is State.FAILED)
    idle = fakes.cure(changes=(), notes=("A was 1 already",))
    offered = ((fakes.cure(), True), (fakes.cure(), False), (idle, True), (None, True))
    cards = [card(Failure(failed, (fakes.FINDING,), cure=cure, fixable=able), 80, 8) for cure, able in offered]
    keys = ["".join(span.text for span in rows[-1].spans) for rows in cards]
    assert ["apply the remedy" in shown for shown in keys] == [True, False, False, False]
    assert "no fix A was 1 already." in "\n".join(line.text for line in cards[2])
    assert "f does device mps -> cpu" in "\n".join(line.text for line in cards[0])


@pytest.mark.parametrize("width", range(8, 90))
def test_the_keys_are_whole_words_at_any_width(width: int) -> None:
    failed = next(item for item in fakes.several() if item.state is State.FAILED)
    keys = card(Failure(failed, (fakes.FINDING,), cure=fakes.cure()), width, 8)[-1]
    shown = "".join(span.text for span in keys.spans).removeprefix("▌")
    full = " c restart on CPU  f apply the remedy  l log there  r restart  R edit"
    short = " c on CPU  f remedy  l log there  r restart  R edit"
    assert keys.width <= width
    if width > len(full):
        assert shown == full
    else:
        assert f"{short} ".startswith(f"{shown} ")
        assert shown == short or width < len(short) + 1


@pytest.mark.parametrize("mark", ["    ", "[rank0]:     ", ""])
def test_the_error_is_quoted_and_not_the_line_that_raises_it(mark: str) -> None:
    failed = next(item for item in fakes.several() if item.state is State.FAILED)
    raises = EvidenceLine(116, f'{mark}raise RuntimeError("MPS backend out of memory (MPS allocated: {{}})")')
    finding = replace(fakes.FINDING, evidence=(raises, *fakes.FINDING.evidence))
    rows = card(Failure(failed, (finding,)), 80, 9)
    shown = "\n".join("".join(span.text for span in row.spans) for row in rows)
    assert "line 118 RuntimeError: MPS backend out of memory" in shown
    assert finding.shown_by == fakes.FINDING.evidence[0]
    alone = replace(finding, evidence=(EvidenceLine(None, "killed by the system"), raises))
    assert alone.shown_by == raises


def test_an_unknown_end_shows_the_last_exception_on_the_card() -> None:
    failed = next(item for item in fakes.several() if item.state is State.FAILED)
    exception = EvidenceLine(4711, "KeyError: 'learning_rate'", "train.py:3 in load")
    rows = card(Failure(failed, (), True, exception), 80, 9)
    shown = "\n".join("".join(span.text for span in row.spans) for row in rows)
    assert "▌ KeyError: 'learning_rate'\n" in shown
    assert "at train.py:3 in load · log line 4711 · no known kind of failure" in shown
    assert rows[-1].text.startswith("▌ l log there")


def test_how_it_ended_is_said_once() -> None:
    failed = replace(fakes.failed(), reason="exit code 1", exit=EXIT)
    shown = ["".join(span.text for span in row.spans) for row in card(Failure(failed, ()), 80, 9)]
    assert sum("exit code 1" in line for line in shown) == 1


def test_the_last_exception_is_shown_where_nothing_was_found() -> None:
    async def play(driver: Driver) -> None:
        await driver.sees("KeyError: 'learning_rate'")

    world = fakes.world((fakes.failed(),))
    world.services.findings, world.services.exception = (), EvidenceLine(3, "KeyError: 'learning_rate'")
    drive(world, play)
    drive(world, play, opening=fakes.failed().run)


def test_the_core_looks_for_the_last_exception_only_where_nothing_was_found(tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path)
    services = Services(home, {}, tmp_path, lambda: fakes.NOW)
    run = replace(fakes.failed(), dir=tmp_path / "run")
    log = tmp_path / "run/attempts/1/output.log"
    log.parent.mkdir(parents=True)
    log.write_text('Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nKeyError: odd\n')
    findings, exception, cure, tried = services.explain(run)
    assert (findings, exception and exception.text, cure, tried) == ((), "KeyError: odd", None, None)


@pytest.mark.parametrize("findings", [None, ()])
def test_a_run_that_was_never_started_says_why_and_has_no_log_to_look_at(findings: tuple[Finding, ...] | None) -> None:
    why = "never started: run a did not finish, and this one was to start when it is done"
    run = replace(fakes.failed(), state=State.DEPENDENCY_FAILED, exit=NEVER, reason=why)
    told = " ".join(line.text.strip("▌ ") for line in card(Failure(run, findings), 60, 8))
    assert "✗ blocked · never started run a did not finish, and this one was to start when it is done" in told
    assert not [word for word in ("log", "cause", "unknown") if word in told]


LONG = "It needs more than one line to be told to its end, as the help text of the out-of-memory error does. "


def test_nothing_is_cut_where_there_are_lines_and_the_remedy_last_where_there_are_few() -> None:
    finding = replace(fakes.FINDING, cause=LONG * 2, remedy=replace(fakes.FINDING.remedy, text=LONG * 3))
    failure = Failure(fakes.failed(), (finding,), cure=fakes.cure())
    whole = card(failure, 80, 20)
    assert "…" not in "".join(line.text for line in whole)
    assert len(whole) < 20
    assert card_lines(failure, 80, 20, 24) == len(whole)
    most = card_lines(failure, 80, 7, 24)
    assert 7 < most < len(whole), "the chart gives way for the remedy, and for no more than a line of the rest"
    short = [line.text for line in card(failure, 80, most)]
    assert " ".join(line.strip("▌ ").removeprefix("helps ").strip() for line in short).count(LONG.strip()) == 3
    for begins in ("▌ The device ran", "▌ It needs", "▌ log line 118", "▌ helps", "▌ f does"):
        assert any(text.startswith(begins) for text in short), begins
    assert card_lines(failure, 80, 7, 8) == 8
    least = [line.text for line in card(failure, 80, 7)]
    assert not any(text.startswith(("▌ It needs", "▌ log line")) for text in least), "cause and evidence are cut first"
    assert " ".join(line.strip("▌ ").removeprefix("helps ").strip() for line in least).count(LONG.strip()) == 3


def test_the_place_that_failed_stands_beside_its_name() -> None:
    shown = replace(fakes.FINDING.evidence[0], where="train.py:112 in step")
    rows = card(Failure(fakes.failed(), (replace(fakes.FINDING, evidence=(shown,)),)), 80, 9)
    assert rows[1].text == "▌ The device ran out of memory · train.py:112 in step"


def test_a_log_that_nobody_can_restart_offers_no_restart() -> None:
    failure = Failure(fakes.failed(), (fakes.FINDING,), on_cpu=False, fixable=False)
    assert [key for key, *_ in offers(failure, log_in_reach=True)] == ["l"]


def test_the_checkpoint_to_go_back_to_is_named_where_there_is_one() -> None:
    back = replace(fakes.FINDING, remedy=replace(fakes.FINDING.remedy, from_checkpoint="Go back to the last one."))
    told = [
        " ".join(line.text for line in card(Failure(run, (back,)), 80, 12))
        for run in (
            fakes.failed(),
            replace(fakes.failed(), checkpoints=fakes.running().checkpoints, started=None, ended=None),
        )
    ]
    assert ["Go back" in text for text in told] == [False, True]


def test_the_numbers_of_the_failure_stand_beside_its_name() -> None:
    finding = replace(fakes.FINDING, numbers="wanted 512.00 MB more")
    assert "ran out of memory · wanted 512.00 MB more" in card(Failure(fakes.failed(), (finding,)), 80, 9)[1].text


def test_what_a_rehearsal_showed_stands_on_the_card() -> None:
    rehearsal = Rehearsal(of=1, before="batch 64", after="32 × 2")
    good = Rehearsed(
        attempt=2,
        rehearsal=rehearsal,
        failed=Shown(step=30, memory="2.0 GiB"),
        tried=Shown(step=41, memory="1.0 GiB"),
        steps=21,
        failure="",
    )
    bad = replace(good, failure="MPS ran out of memory")
    shown = [
        " ".join(line.text.strip("▌ ") for line in card(Failure(fakes.failed(), found, cure=cure, tried=one), 110, 12))
        for found, cure, one in (
            ((fakes.FINDING,), fakes.cure(), good),
            ((fakes.FINDING,), fakes.cure(), bad),
            ((), None, good),  # a person's own change, of a crash that no rule knows
        )
    ]
    assert "tried batch 64: 2.0 GiB ✗ → 32 × 2: 1.0 GiB ✓; 21 steps done, past step 30 where it failed" in shown[0]
    assert "not compared, since not known for both: loss, speed" in shown[0]
    assert "f go on with what was tried" in shown[0]
    assert "tried batch 64: 2.0 GiB ✗ → 32 × 2: 1.0 GiB ✗ MPS ran out of memory" in shown[1]
    assert "f apply the remedy" in shown[1]
    assert "tried batch 64: 2.0 GiB ✗ → 32 × 2: 1.0 GiB ✓; 21 steps done" in shown[2]
    assert "no known cause" in shown[2]
    assert "f go on with what was tried" in shown[2]
