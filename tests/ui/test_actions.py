"""Every action key in every kind of run: done, asked, or refused with the reason; and the answer on the screen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpstui.core.actions import ACTIONS, BY_ID, RunFacts, allowed
from mpstui.core.model.errors import OperationError
from mpstui.core.model.snapshot import Checkpoint, Health, Numbers, RunSnapshot, State
from mpstui.supervisor import loop
from mpstui.ui.bindings import KEYS
from mpstui.ui.messages import RequestAnswered
from mpstui.ui.screens.acting import meant
from mpstui.ui.toasts import answer_text
from mpstui.wire.heartbeat import CheckpointNote, Heartbeat
from mpstui.wire.records import REQUESTS, TRAINER_ACTIONS, Ack, Request

from . import fakes
from .driving import Driver, drive

NOW = fakes.NOW
ACTION_KEYS = {action.key: action for action in ACTIONS if action.key and action.request and not action.screen_action}


def test_every_action_has_a_key_that_shows_what_it_does() -> None:
    keys = {key.acts.id: key for key in KEYS if key.acts is not None}
    assert {*keys} == {*BY_ID} - {"continue"}
    assert all(key.help and key.label for key in keys.values())


def test_every_request_is_carried_out_by_somebody() -> None:
    assert {action.request for action in ACTIONS if action.request} == {*REQUESTS}
    assert {*loop._ACTIONS, *TRAINER_ACTIONS, "dump_stacks"} == {*REQUESTS}


@pytest.mark.parametrize("opening", [None, fakes.running().run], ids=["list", "run"])
@pytest.mark.parametrize("key", ACTION_KEYS)
def test_an_action_key_writes_its_request(key: str, opening: str | None) -> None:
    world = fakes.world((fakes.running(),))

    async def play(driver: Driver) -> None:
        await driver.press(key)
        await driver.until(lambda: world.actions.asked, "a request")
        await driver.hears("requested")

    drive(world, play, opening=opening)
    action, run, options = world.actions.asked[0]
    assert action == ACTION_KEYS[key].request
    assert run == fakes.running().run
    assert options.get("device") == ("cpu" if key == "c" else None)


@pytest.mark.parametrize("opening", [None, fakes.running().run], ids=["list", "run"])
def test_a_key_that_is_faster_than_the_reading_of_its_run_is_not_lost(opening: str | None) -> None:
    world = fakes.world((fakes.running(),))
    world.monitor.unread = True

    async def play(driver: Driver) -> None:
        await driver.press("s")
        assert not world.actions.asked
        assert driver.toasts == []
        world.monitor.unread = False
        await driver.until(lambda: world.actions.asked, "the request")

    drive(world, play, opening=opening)
    assert [action for action, _, _ in world.actions.asked] == ["stop"], "once"


@pytest.mark.parametrize("key", [*ACTION_KEYS, "R", "enter", "space", "asterisk", "o", "O"])
def test_with_no_run_a_key_says_so(key: str) -> None:
    world = fakes.world(())

    async def play(driver: Driver) -> None:
        await driver.press(key)
        await driver.hears("no run is selected")

    drive(world, play)
    assert not world.actions.asked


@pytest.mark.parametrize("key", ["x", "S", "T", "s", "K", "p"])
def test_a_key_that_cannot_work_says_why(key: str) -> None:
    world = fakes.world((fakes.finished(),))

    async def play(driver: Driver) -> None:
        await driver.press(key)
        await driver.hears("this run has ended")

    drive(world, play)
    assert not world.actions.asked


def test_evaluate_is_offered_where_it_would_change_something() -> None:
    plain = fakes.running()
    knows = replace(plain, numbers=replace(plain.numbers, beat=Heartbeat(time=NOW, seq=1, answers=("evaluate",))))
    other = replace(plain, numbers=replace(plain.numbers, beat=Heartbeat(time=NOW, seq=1, answers=("save",))))
    evaluating = replace(knows, health=Health.EVALUATING)
    found = [allowed(one, RunFacts(), BY_ID["evaluate"]) for one in (knows, other, evaluating)]
    never = 'it does not evaluate on request: report.requested("evaluate") in its loop would'
    assert [one.why for one in found] == ["", never, "it is evaluating now"]

    async def play(driver: Driver) -> None:
        await driver.press("ctrl+p", *"evaluate")
        await driver.sees("A       evaluate")
        assert "not now" not in driver.text
        await driver.press("escape", "escape")
        assert "A evaluate" in driver.lines[-1]

    async def ended(driver: Driver) -> None:
        await driver.sees("D remove")
        assert "A evaluate" not in driver.lines[-1]
        await driver.press("A")
        await driver.hears("this run has ended")

    drive(fakes.world((plain,)), play, size=(300, 24), opening=plain.run)
    drive(fakes.world((fakes.finished(),)), ended, size=(300, 24), opening=fakes.finished().run)


@pytest.mark.parametrize("answer", ["n", "escape"])
def test_kill_can_be_declined(answer: str) -> None:
    world = fakes.world((fakes.unsaved(),))

    async def play(driver: Driver) -> None:
        await driver.press("K")
        await driver.sees("end at once")
        await driver.press(answer)
        assert "end at once" not in driver.text

    drive(world, play)
    assert not world.actions.asked


@pytest.mark.parametrize("opening", [None, fakes.unsaved().run], ids=["list", "run"])
@pytest.mark.parametrize("key", ["s", "r", "c", "K"])
def test_work_that_is_in_no_checkpoint_is_not_lost_without_a_question(key: str, opening: str | None) -> None:
    world = fakes.world((fakes.unsaved(),))

    async def play(driver: Driver) -> None:
        await driver.press(key)
        await driver.sees("43m 10s" if key in "sK" else "from step 0")
        assert not world.actions.asked
        await driver.press("y")
        await driver.until(lambda: world.actions.asked, "the request")

    drive(world, play, opening=opening)


@pytest.mark.parametrize(
    "run",
    [
        fakes.unsaved(started=NOW - 100, attempt_started=NOW - 100),
        replace(fakes.unsaved(), argv=("python", "-P", "-m", "trainer", "cifar")),
        fakes.running(),
    ],
    ids=["two minutes", "saves when it is stopped", "has just saved"],
)
def test_what_costs_little_is_done_at_once(run: RunSnapshot) -> None:
    assert BY_ID["stop"].question(run, "") is None


def test_what_has_not_begun_has_nothing_to_lose() -> None:
    assert all(BY_ID[name].question(fakes.bare(), "") is None for name in ("stop", "kill", "restart", "restart_cpu"))


def test_what_has_no_processes_has_nothing_to_lose() -> None:
    for state in (State.QUEUED, State.BACKING_OFF, State.LOST):
        waits = replace(fakes.unsaved(), state=state)
        assert BY_ID["stop"].question(waits, "") is BY_ID["kill"].question(waits, "") is None


@pytest.mark.parametrize("opening", [None, fakes.running().run], ids=["list", "run"])
@pytest.mark.parametrize("letters", ["resnet", "Ky", "is syyy", "ppy"])
def test_letters_that_come_in_one_piece_end_nothing(letters: str, opening: str | None) -> None:
    world = fakes.world((fakes.running(),))

    async def play(driver: Driver) -> None:
        await driver.burst(*(letter.replace(" ", "space") for letter in letters))
        await driver.sees("arrived together with other letters")
        await driver.burst("y", "e", "s")
        assert "arrived together with other letters" in driver.text
        assert not world.actions.asked
        await driver.press("y")
        await driver.until(lambda: world.actions.asked, "the request")

    drive(world, play, opening=opening)


@pytest.mark.parametrize("key", ["c", "r"])
def test_a_restart_from_scratch_is_asked_for(key: str) -> None:
    world = fakes.world((fakes.failed(),))

    async def play(driver: Driver) -> None:
        await driver.press(key)
        await driver.sees("will start from step 0")
        assert driver.text.count("step 0") == 1
        assert not world.actions.asked
        await driver.press("y")
        await driver.until(lambda: world.actions.asked, "a request")

    drive(world, play)


def test_pause_becomes_continue() -> None:
    world = fakes.world((fakes.running(paused=True),))

    async def play(driver: Driver) -> None:
        await driver.until(lambda: "p continue" in driver.lines[-1], "what can be done with the run")
        await driver.press("p")
        await driver.until(lambda: world.actions.asked, "a request")

    drive(world, play, size=(120, 30))
    assert world.actions.asked[0][0] == "continue"


def test_a_run_that_somebody_else_stopped_says_so_and_goes_on_with_the_same_key() -> None:
    note = "stopped by a signal that mpstui did not send"
    world = fakes.world((fakes.running(health=Health.PAUSED, health_note=note),))

    async def play(driver: Driver) -> None:
        assert f"! {note}; p resumes it" in driver.text
        await driver.press("p")
        await driver.until(lambda: world.actions.asked, "a request")

    drive(world, play, opening=fakes.running().run)
    assert world.actions.asked[0][0] == "continue"


def test_a_run_that_is_paused_for_a_full_disk_says_so() -> None:
    reason = "paused: the disk is full (12 MiB left); it goes on by itself when 256 MiB are free"
    world = fakes.world((fakes.running(paused=True, health=Health.PAUSED, reason=reason, held_for="disk"),))

    async def play(driver: Driver) -> None:
        assert "the disk is full (12 MiB left)" in driver.text

    drive(world, play, size=(120, 30), opening=fakes.running().run)


def test_the_answer_is_shown_with_who_gave_it_and_the_memory_freed() -> None:
    world = fakes.world((fakes.running(),))
    world.actions.automatic = Ack("r1", True, "trainer", fakes.NOW, "", 7 << 30, 5 << 30, 2 << 30)

    async def play(driver: Driver) -> None:
        await driver.press("4")
        await driver.sees("x frees up to 1.3 GiB")
        await driver.press("x")
        await driver.hears("clear cache: freed 2.0 GiB (7.0 GiB → 5.0 GiB)")
        await driver.sees("freed 2.0 GiB: 7.0 GiB → 5.0 GiB at 12:00:00")

    drive(world, play, opening=fakes.running().run)
    assert [asked[0] for asked in world.actions.asked] == ["clear_cache"]


@pytest.mark.parametrize("opening", [None, fakes.running().run], ids=["list", "run"])
def test_stacks_are_told_of_and_shown_in_the_log(opening: str | None) -> None:
    world = fakes.world((fakes.running(),))
    world.actions.automatic = Ack("r1", True, "supervisor", fakes.NOW, "the stacks of pid 4242 are in the output")

    async def play(driver: Driver) -> None:
        if opening is not None:
            await driver.press("3")
            assert "following · 300 lines" not in driver.text
        await driver.press("T")
        await driver.hears("the stacks of pid 4242 are in the output")
        if opening is not None:
            await driver.sees("following · 300 lines")

    drive(world, play, opening=opening)
    assert [asked[0] for asked in world.actions.asked] == ["dump_stacks"]


def test_a_request_that_cannot_be_written_is_told() -> None:
    world = fakes.world((fakes.running(),))
    world.actions.failure = OperationError("the disk is full", "free some space")

    async def play(driver: Driver) -> None:
        await driver.press("s")
        await driver.hears("stop: the disk is full · free some space")

    drive(world, play)


def test_any_other_failure_of_a_job_is_told_too() -> None:
    world = fakes.world((fakes.running(),))
    world.actions.failure = ZeroDivisionError("surprise")

    async def play(driver: Driver) -> None:
        await driver.press("s")
        await driver.hears("ZeroDivisionError: surprise")
        await driver.press("x")
        await driver.hears("clear cache: ZeroDivisionError")

    drive(world, play)


@pytest.mark.parametrize(
    ("snapshot", "action", "words"),
    [
        (fakes.running(step=25_900, steps_per_second=None, updated=NOW + 900), "kill", "since the checkpoint at step"),
        (fakes.unsaved(), "kill", "Nothing is saved."),
        (fakes.unsaved(), "kill", "43m 10s of work is in no checkpoint: everything since the start is lost."),
        (fakes.unsaved(), "stop", "43m 10s of work is in no checkpoint"),
        (fakes.unsaved(), "stop", "Whether this program saves when it is asked to end is not known."),
        (fakes.running(checkpoint=None, checkpoints=()), "restart_cpu", "stopped first"),
        (fakes.finished(), "restart", "It has finished: 10 of 10 epochs."),
        (
            fakes.finished(checkpoint=None, checkpoints=()),
            "restart",
            "It will start from step 0: there is no checkpoint.",
        ),
        (
            fakes.finished(checkpoints=(Checkpoint(Path("/x.pt"), 9, NOW - 49_500),)),
            "restart_cpu",
            "there may be nothing left to do",
        ),
    ],
)
def test_questions_spell_out_the_consequences(snapshot: RunSnapshot, action: str, words: str) -> None:
    asked = BY_ID[action].question(snapshot, "")
    assert asked is not None
    assert words in " ".join(asked.lines)


def test_a_program_that_says_nothing_has_worked_since_its_start() -> None:
    silent = replace(fakes.unsaved(), numbers=Numbers(), updated=NOW - 3600, attempt_started=NOW - 3600)
    silent = replace(silent, started=NOW - 3600, checkpoints=())
    for action in ("kill", "stop", "restart"):
        asked = BY_ID[action].question(silent, "")
        assert asked is not None
        assert "1h 00m" in " ".join(asked.lines)


def saved(path: str, seconds_ago: float, step: int | None = None) -> Checkpoint:
    return Checkpoint(Path("/runs/x") / path, 1 << 20, NOW - seconds_ago, step)


@pytest.mark.parametrize(
    ("files", "pace", "words"),
    [
        ((saved("ep3.pt", 40.0),), 0.5, "40s of training (about 20 steps) since the newest checkpoint are lost."),
        ((saved("ep3.pt", 40.0),), None, "40s of training (unknown how many steps) since"),
        ((saved("ep3.pt", 40.0), saved("ep2.pt", 80.0, step=100)), 0.5, "about 20 steps"),
        ((saved("step_300.pt", 40.0, step=300),), 0.5, "20 steps (40s) since the checkpoint at step 300 are lost."),
        ((saved("step_300.pt", 50.0, step=300),), None, "20 steps (50s) since the checkpoint at step 300 are lost."),
        (
            (saved("torn.pt", 4.0)._replace(complete=False),),
            1.0,
            "15m 00s of work is in no checkpoint: everything since the start is lost.",
        ),
        ((saved("other.pt", 4.0)._replace(owner="another"),), 1.0, "is in no checkpoint"),
    ],
)
def test_what_a_kill_costs_is_told_from_what_is_known(
    files: tuple[Checkpoint, ...], pace: float | None, words: str
) -> None:
    numbers = Numbers(step=320, steps_per_second=pace)
    run = replace(fakes.running(), numbers=numbers, checkpoints=files, started=NOW - 900, attempt_started=NOW - 900)
    assert words in BY_ID["kill"].cost(replace(run, updated=NOW), "")


def test_a_list_that_has_not_looked_for_checkpoints_says_so() -> None:
    asked = BY_ID["kill"].question(replace(fakes.running(checkpoint=None, checkpoints=()), brief=True), "")
    assert asked is not None
    assert "may be in no checkpoint, which is not known yet: perhaps everything is lost." in asked.lines[1]


@pytest.mark.parametrize(
    "action", ["stop", "pause", "continue", "clear_cache", "save", "dump_stacks", "restart", "restart_cpu"]
)
def test_what_loses_nothing_is_not_asked(action: str) -> None:
    assert BY_ID[action].question(fakes.running(), "") is None


def test_a_question_about_a_run_that_has_a_namesake_says_which_it_is() -> None:
    twins = tuple(
        replace(fakes.unsaved(run=f"r{rate}", name="train"), argv=("python", "t.py", "--lr", rate))
        for rate in ("0.1", "0.02")
    )

    async def play(driver: Driver) -> None:
        await driver.press("K")
        await driver.sees("Kill train (lr=0.1)?")
        await driver.press("escape", "space", "space", "K")
        await driver.sees("Kill: 2 runs?")
        assert "train (lr=0.02)" in driver.text

    drive(fakes.world(twins), play)


def test_a_caution_of_the_core_becomes_a_question() -> None:
    asked = BY_ID["restart"].question(fakes.running(), "it will start from step 0: its profile has no [resume] setting")
    assert asked is not None
    assert "has no [resume] setting" in " ".join(asked.lines)
    assert "Everything since the start (" in " ".join(asked.lines)


def test_a_restart_says_which_checkpoint_it_takes_instead_of_one_that_holds_nan() -> None:
    good = Checkpoint(Path("/runs/x/step_200.pt"), 1 << 20, NOW - 500.0, 200)
    bad = Checkpoint(Path("/runs/x/step_300.pt"), 1 << 20, NOW - 40.0, 300, finite=False)
    numbers = Numbers(step=320, steps_per_second=0.5, checkpoint=CheckpointNote(str(bad.path), 300, NOW - 40.0))
    failed = replace(fakes.running(), state=State.FAILED, numbers=numbers, updated=NOW, attempt_started=NOW - 900)
    restart = BY_ID["restart"]
    run = replace(failed, checkpoints=(bad, good))
    told = "step_300.pt holds NaN: it continues from step_200.pt. "
    assert restart.cost(run, "") == f"{told}120 steps (4m 00s) since the checkpoint at step 200 are done again."
    none = replace(failed, checkpoints=(bad, good._replace(finite=False)))
    told = "Every checkpoint holds NaN: it starts from step 0. Everything since the start ("
    assert restart.cost(none, "").startswith(told)
    asked = restart.question(none, "")
    assert asked is not None
    assert [line for line in asked.lines if "step 0" in line] == [restart.cost(none, "")]


def test_what_is_not_asked_says_what_it_costs() -> None:
    at = Checkpoint(Path("/runs/x/step_300.pt"), 1 << 20, NOW - 40.0, 300)
    numbers = Numbers(step=320, steps_per_second=0.5)
    run = replace(fakes.running(), numbers=numbers, checkpoints=(at,), updated=NOW, attempt_started=NOW - 900)
    again = "20 steps (40s) since the checkpoint at step 300 are done again unless it saves first."
    costs = {name: BY_ID[name].cost(run, "") for name in ("stop", "restart", "restart_cpu", "edit_restart", "fix")}
    assert costs == {
        "stop": "20 steps (40s) since the checkpoint at step 300 are lost unless it saves first.",
        "restart": again,
        "restart_cpu": f"{again} How fast it is on CPU is unknown.",
        "edit_restart": again,
        "fix": again,
    }
    ended = replace(run, state=State.FAILED)
    assert BY_ID["fix"].cost(ended, "") == "20 steps (40s) since the checkpoint at step 300 are done again."
    saved_just_now = replace(run, numbers=replace(numbers, step=300))
    assert BY_ID["stop"].cost(saved_just_now, "") == "Nothing since the checkpoint at step 300 is lost."
    assert BY_ID["restart"].cost(saved_just_now, "") == "Nothing since the checkpoint at step 300 is done again."
    assert BY_ID["restart"].cost(ended, "it will start from step 0").startswith("Everything since the start (")
    assert BY_ID["pause"].cost(run, "") == ""
    world = fakes.world((run,))

    async def play(driver: Driver) -> None:
        await driver.press("s")
        await driver.hears("stop requested · 20 steps (40s) since the checkpoint at step 300 are lost unless it saves")

    drive(world, play, opening=run.run)


def test_answers_in_words() -> None:
    request = Request("r", "stop", 1, "me", 0.0, {})
    assert answer_text(RequestAnswered("a", "stop", request, None))[1] == "warning"
    paused = RequestAnswered("a", "pause", request, Ack("r", True, "supervisor", 0.0, "Paused. It keeps its memory."))
    assert answer_text(paused) == ("Paused. It keeps its memory.", "information")
    refused = RequestAnswered("a", "stop", request, Ack("r", False, "supervisor", 0.0, "this run has ended"))
    assert answer_text(refused) == ("stop was refused: this run has ended", "warning")
    assert meant(fakes.running(paused=True), BY_ID["pause"]).id == "continue"
    assert meant(fakes.running(), BY_ID["pause"]).id == "pause"


def test_a_key_that_cannot_work_is_dim_in_the_footer() -> None:
    world = fakes.world((fakes.finished(),))

    async def play(driver: Driver) -> None:
        screen = driver.app.acting_screen
        assert screen is not None
        stop = next(key for key in KEYS if key.acts is BY_ID["stop"])
        restart = next(key for key in KEYS if key.acts is BY_ID["restart"])
        await driver.until(lambda: screen.usable(restart), "what can be done with the run is known")
        assert not screen.usable(stop)

    drive(world, play)


def test_a_checkpoint_that_is_not_looked_for_is_nothing_to_go_on_from() -> None:
    """The agent tells of each file that a program saves, wherever it lies; [resume] may look elsewhere."""
    told = replace(fakes.running(), checkpoints=())
    question = BY_ID["restart"].question(told, "")
    assert question is not None
    assert any("epoch-056.pt is not where the checkpoints" in line for line in question.lines)
    assert BY_ID["restart"].question(replace(told, brief=True), "") is None
    assert BY_ID["restart"].question(fakes.running(), "") is None
