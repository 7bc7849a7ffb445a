"""Choosing a profile, filling in the form, seeing what it starts, starting it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from mpstui.core.diagnosis.model import Finding, Remedy
from mpstui.core.hosts.line import HostError
from mpstui.core.hosts.offering import Launches, Offer
from mpstui.core.hosts.placing import PlacedLauncher
from mpstui.core.hosts.progress import Cancelled, Progress
from mpstui.core.hosts.sending import Sender, Shipment
from mpstui.core.hosts.sources import Staying
from mpstui.core.launching.choice import LaunchChoice
from mpstui.core.launching.explaining import Explanation
from mpstui.core.launching.form_fields import Preview
from mpstui.core.launching.rehearsal import Rehearsed, Shown
from mpstui.core.launching.scheduling import scheduled, scheduler_fields
from mpstui.core.model.errors import UsageError
from mpstui.core.model.snapshot import RunSnapshot
from mpstui.core.present import needs_attention
from mpstui.core.profiles.model import profile_of_command
from mpstui.ui.bindings import KEYS
from mpstui.ui.screens.acting import ActingScreen
from mpstui.ui.screens.launch import LaunchForm
from mpstui.ui.widgets.launching import preview_rows
from mpstui.wire.records import Rehearsal

from . import fakes
from .driving import Driver, drive


def test_from_the_list_to_a_new_run() -> None:
    world = fakes.world(())

    async def play(driver: Driver) -> None:
        await driver.press("n")
        await driver.sees("My own fine-tuning")
        await driver.press("enter")
        await driver.sees("--epochs 200")
        await driver.sees("! doubtful can freeze the whole machine")
        await driver.press("down", "right")
        await driver.sees("--device mps")
        await driver.press("down", "right", "right")
        await driver.sees("bf16 is slower")
        await driver.press("down", "backspace", "backspace", "5")
        await driver.sees("--epochs 5")
        world.monitor.snapshots = (fakes.bare(),)
        await driver.press("ctrl+s")
        await driver.sees("no output yet")

    drive(world, play, size=(120, 30))
    assert world.launcher.form.launched[0]["arg:epochs"] == "5"
    assert world.launcher.form.launched[0]["device"] == "mps"


@pytest.mark.parametrize("known", [False, True])
def test_several_runs_are_asked_about_with_their_number_and_time(known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    names = tuple(f"six optimizers seed={seed}" for seed in range(18))
    preview = Preview("python t.py", runs=names, profile="cifar", epochs=100.0)
    monkeypatch.setattr(fakes.FakeDraft, "preview", lambda self, values: preview)
    world = fakes.world(
        (fakes.finished(started=fakes.NOW - 50_000, attempt_started=fakes.NOW - 50_000),) if known else ()
    )

    async def play(driver: Driver) -> None:
        await driver.press("n", "enter", "ctrl+s")
        await driver.sees("Start 18 runs?")
        told = "About 2d 02h in all, 2h 46m each" if known else "How long they take is unknown"
        assert told in driver.text
        assert not world.launcher.form.launched
        await driver.press("y")
        await driver.hears("18 runs queued")
        assert world.launcher.form.launched

    drive(world, play, size=(120, 40))


def test_an_edited_restart_asks_for_the_work_that_it_would_cost() -> None:
    world = fakes.world((fakes.unsaved(),))

    async def play(driver: Driver) -> None:
        await driver.press("R")
        await driver.sees("--epochs 200")
        await driver.press("ctrl+s")
        await driver.sees("Everything since the start")
        await driver.press("escape", "ctrl+s")
        await driver.sees("y restart it")
        assert not world.launcher.form.restarted
        await driver.press("y")
        await driver.until(lambda: world.launcher.form.restarted, "the restart")

    drive(world, play, size=(120, 40))


def test_a_mistake_is_shown_at_its_field_and_nothing_starts() -> None:
    world = fakes.world(())

    async def play(driver: Driver) -> None:
        await driver.press("n", "enter")
        await driver.sees("--epochs 200")
        await driver.press("tab", "tab", "tab", "x")
        await driver.sees("✗ epochs: 'x' is not a number · write a whole number")
        below = driver.lines.index(next(line for line in driver.lines if line.strip("● ").startswith("epochs")))
        assert "is not a number" in driver.lines[below + 1]
        await driver.press("ctrl+s")
        await driver.hears("Not started")
        await driver.press("ctrl+o")
        await driver.hears("Not saved")
        await driver.press("backspace", "9")
        await driver.until(lambda: "is not a number" not in driver.text, "the mistake gone")

    drive(world, play)
    assert not world.launcher.form.launched


def test_a_broken_profile_says_what_is_wrong_and_cannot_be_chosen() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("n", "down", "down", "down")
        await driver.sees("unknown key `epoch`")
        await driver.press("enter")
        await driver.hears("broken cannot be launched: /me/broken.toml:3: unknown key `epoch`")
        await driver.press("up", "enter")
        await driver.sees("preview")
        assert isinstance(driver.app.screen, LaunchForm)
        assert not driver.toasts, "it concerns the list"
        await driver.press("escape", "escape")
        await driver.sees("no runs yet")

    drive(fakes.world(()), play)


def test_a_choice_is_kept_as_a_profile() -> None:
    world = fakes.world(())

    async def play(driver: Driver) -> None:
        await driver.press("n", "enter")
        await driver.sees("--epochs 200")
        await driver.press("ctrl+o")
        await driver.sees("name of your new profile")
        await driver.press(*"fast", "enter")
        await driver.hears("saved as /home/me/.config/mpstui/profiles/fast.toml")
        await driver.press("ctrl+o", "escape")

    drive(world, play)
    assert world.launcher.form.saved == ["fast"]


def test_edit_and_restart_is_the_form_filled_in() -> None:
    world = fakes.world(fakes.several())

    async def play(driver: Driver) -> None:
        await driver.press("R")
        await driver.sees("edit and restart · CIFAR-10")
        await driver.sees("--epochs 200")
        await driver.press("pagedown", "pageup", "ctrl+s")
        await driver.hears("edit and restart requested")
        await driver.sees("Apple M2 Max")

    drive(world, play, opening=fakes.running().run)
    assert world.launcher.form.restarted == [fakes.running().run]


def test_q_can_be_typed_into_a_field() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("n", "enter")
        await driver.sees("--epochs 200")
        await driver.press("end", "q", "question_mark")
        await driver.sees("cifarq?")
        await driver.press("escape", "escape")
        await driver.sees("no runs yet")

    drive(fakes.world(()), play)


def test_a_preview_names_mistakes_before_all_else() -> None:
    error = UsageError("there is no device 'tpu'", "one of auto, cpu", field="device")
    lines = [line.text for line in preview_rows(Preview("python x.py"), error, 60)]
    assert lines[0] == "✗ there is no device 'tpu'"
    assert "$ python x.py" in lines
    assert "  nothing added" in lines


def test_fix_fills_in_the_remedy_of_the_diagnosis() -> None:
    world = fakes.world((fakes.failed(),))

    async def play(driver: Driver) -> None:
        await driver.sees("f apply the remedy")
        await driver.press("f")
        await driver.sees("edit and restart ·")

    drive(world, play, opening=fakes.failed().run)
    assert [cure and cure.finding for cure in world.launcher.cures] == [fakes.FINDING]


def test_a_fix_that_is_asked_for_before_the_diagnosis_is_there_opens_with_it() -> None:
    world = fakes.world((fakes.failed(),))
    read = Event()
    explain = world.services.explain

    def slowly(snapshot: RunSnapshot) -> Explanation:
        read.wait(60.0)
        return explain(snapshot)

    world.services.explain = slowly  # type: ignore[method-assign]

    async def play(driver: Driver) -> None:
        await driver.sees("reading the log …")
        await driver.press("f")
        await driver.hears("fix: reading the log …")
        read.set()
        await driver.sees("edit and restart ·")

    drive(world, play, opening=fakes.failed().run)
    assert [cure and cure.finding for cure in world.launcher.cures] == [fakes.FINDING]


def test_fix_of_a_run_that_has_not_failed_says_so() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("f")
        await driver.hears("fix: it has not failed")

    drive(fakes.world((fakes.running(),)), play)


CAN_BE_CURED = (fakes.FINDING,)
HAS_NO_CURE = (replace(fakes.FINDING, remedy=Remedy(text="Look at the data.")),)


@pytest.mark.parametrize(
    ("run", "findings", "why_not"),
    [
        (fakes.failed(), CAN_BE_CURED, ""),
        (fakes.failed(), HAS_NO_CURE, "fix: no change of the launch helps: its card says what does"),
        (fakes.failed(), (), "fix: no fix is known for this"),
        (fakes.running(), CAN_BE_CURED, "fix: it has not failed"),
        (fakes.finished(), CAN_BE_CURED, "fix: it has not failed"),
    ],
)
@pytest.mark.parametrize("listed", [True, False])
def test_fix_is_bright_in_the_footer_only_where_it_does_something(
    run: RunSnapshot, findings: tuple[Finding, ...], why_not: str, listed: bool
) -> None:
    world = fakes.world((run,))
    world.services.findings = findings
    (fix,) = (key for key in KEYS if key.action == "fix")

    async def play(driver: Driver) -> None:
        screen = driver.app.screen
        assert isinstance(screen, ActingScreen)
        await driver.until(lambda: not needs_attention(run) or driver.app.state.findings(run) is not None)
        await driver.until(lambda: screen.usable(fix) is not bool(why_not))
        if why_not:
            await driver.press("f")
            await driver.hears(why_not)

    drive(world, play, size=(200, 40), opening=None if listed else run.run)


def test_a_remedy_that_can_harm_asks_first() -> None:
    remedy = Remedy(text="Load it all the same.", env={"A": "1"}, risk="It can run any code on this machine.")
    world = fakes.world((fakes.failed(),))
    world.services.findings = (replace(fakes.FINDING, remedy=remedy),)

    async def play(driver: Driver) -> None:
        await driver.sees("f apply the remedy")
        await driver.press("f")
        await driver.sees("It can run any code")
        await driver.press("escape")
        assert not world.launcher.cures
        await driver.press("f")
        await driver.sees("It can run any code")
        await driver.press("y")
        await driver.sees("edit and restart ·")

    drive(world, play, opening=fakes.failed().run)
    assert [cure and cure.finding.remedy for cure in world.launcher.cures] == [remedy]


def test_the_program_is_asked_for_all_its_arguments_and_paths_are_completed() -> None:
    world = fakes.world(())

    async def play(driver: Driver) -> None:
        await driver.press("n", "enter")
        await driver.sees("--epochs 200")
        await driver.press("ctrl+l")
        await driver.sees("0.9  of SGD alone")
        await driver.press("tab", "tab", "tab", "tab", "tab", "tab", *"data")
        await driver.sees("data/batches")  # what is offered behind the cursor
        await driver.press("right")
        await driver.sees("--momentum data/batches")
        await driver.press("tab", "tab", "tab", "tab", "x", "ctrl+l")
        await driver.hears("Not asked: correct what is marked ✗.")

    drive(world, play)


def test_a_remedy_can_be_rehearsed_from_the_form() -> None:
    world = fakes.world((fakes.failed(),))

    async def play(driver: Driver) -> None:
        await driver.sees("f apply the remedy")
        await driver.press("f")
        await driver.sees("^t rehearse")
        await driver.press("ctrl+t")
        await driver.hears("rehearsal requested")

    drive(world, play, opening=fakes.failed().run)
    assert (world.launcher.form.rehearsed, world.launcher.form.restarted) == ([fakes.failed().run], [])


@pytest.mark.parametrize("findings", [(fakes.FINDING,), ()])
def test_what_a_rehearsal_has_proven_is_gone_on_with_by_one_key(findings: tuple[Finding, ...]) -> None:
    world = fakes.world((fakes.failed(),))
    shown = Shown(step=30, memory="1.0 GiB")
    tried = Rehearsed(attempt=2, rehearsal=Rehearsal(of=1), failed=shown, tried=shown, steps=20, failure="")
    world.services.findings, world.services.tried = findings, tried

    async def play(driver: Driver) -> None:
        await driver.sees("f go on with what was tried")
        await driver.press("f")
        await driver.hears("restart requested")

    drive(world, play, opening=fakes.failed().run)
    assert world.services.acting.asked == [("restart", fakes.failed().run, {"tried": True})]
    assert world.launcher.form.restarted == []


def test_a_new_launch_offers_no_rehearsal() -> None:
    world = fakes.world()

    async def play(driver: Driver) -> None:
        await driver.press("n", "enter")
        await driver.sees("^s start")
        assert "rehearse" not in driver.text
        await driver.press("ctrl+t")
        await driver.hears("no attempt has failed")

    drive(world, play)
    assert not world.launcher.form.launched


def test_reasons_give_way_to_what_is_started_where_there_is_no_room_for_both() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("n", "enter")
        await driver.sees("PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0")
        assert "an operator the device lacks" not in driver.text
        assert "doubtful" in driver.text
        await driver.press("pagedown")
        await driver.sees("lets the allocator use all memory")

    drive(fakes.world(fakes.several()), play, size=(80, 22))


def test_reasons_stand_below_each_variable_where_there_is_room() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("n", "enter")
        await driver.sees("an operator the device lacks")
        await driver.sees("lets the allocator use all memory")

    drive(fakes.world(fakes.several()), play, size=(120, 40))


class FakeSender(Sender):
    """A way to another machine that notes what goes over it."""

    def __init__(self, failure: str = "") -> None:
        self.launched: list[str] = []
        self.looks, self.closed, self.failure = 0, 0, failure
        self.steps: list[Progress] = []
        self.goes_on = Event()
        """After each of its steps it waits for this."""
        self.is_cancelled = False

    def look(self, launches: Launches) -> Shipment:
        self.looks += 1
        if self.failure:
            raise HostError("gpu1", "unreachable", self.failure)
        told: dict[str, Any] = {
            "name": "cifar",
            "environment": [],
            "warnings": [],
            "waits_for": [],
            "epochs": None,
            "cwd": "/code/x",
        }
        command = ["/usr/bin/python3", "train.py", *launches.told[0]["choice"]["sets"].values()]
        code = {"files": [["train.py", "0" * 64, 1024]], "provenance": {}}
        offer = Offer("/home/me/project", code, (Staying(".env", "secret"),))
        return Shipment("gpu1", launches, offer, [{**told, "command": command}], None, ["0" * 64], 1024)

    def launch(self, found: Shipment, tell: Callable[[Progress], None] = lambda now: None) -> dict[str, Any]:
        for now in self.steps:
            tell(now)
            assert self.goes_on.wait(60)
            if self.is_cancelled:
                raise Cancelled("the launch was cancelled; nothing was launched")
        self.launched.append(found.host)
        return {"runs": ["20261121-115959-new"], "warnings": []}

    def cancel(self) -> None:
        self.is_cancelled = True
        self.goes_on.set()

    def close(self) -> None:
        self.closed += 1


def choices(self: object, values: Mapping[str, str]) -> tuple[LaunchChoice, ...]:
    profile = profile_of_command(("python", "train.py"), cwd=Path("/home/me/project"))
    return (LaunchChoice(profile, sets={"epochs": values["arg:epochs"]}),)


def placed(monkeypatch: pytest.MonkeyPatch, world: fakes.World, sender: FakeSender) -> None:
    """The form of this machine's profiles, where another one is known too."""
    monkeypatch.setattr(fakes.FakeDraft, "choices", choices)
    launcher = PlacedLauncher(world.launcher, None, ("local", "gpu1"), "local", lambda source, to: sender)
    monkeypatch.setattr(world.services, "placed_launcher", lambda: launcher)


@pytest.mark.parametrize("size", [(60, 15), (80, 24)])
def test_a_launch_on_another_machine_shows_what_is_sent_before_it_is(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    world, sender = fakes.world(()), FakeSender()
    placed(monkeypatch, world, sender)

    async def play(driver: Driver) -> None:
        await driver.press("n", "enter")
        await driver.sees("‹this machine›")
        await driver.press("down", "right")
        await driver.sees("gpu1 gets 1 file of /home/me/project")
        await driver.sees("stays here: .env")
        await driver.press("ctrl+s")
        await driver.sees("Start 1 run on gpu1?")
        assert not sender.launched
        await driver.press("y")
        await driver.hears("started on gpu1: 20261121-115959-new")

    drive(world, play, size=size)
    assert (sender.launched, world.launcher.form.launched) == (["gpu1"], [])
    assert sender.closed, "the line was left open"


@pytest.mark.parametrize("size", [(60, 15), (120, 40)])
@pytest.mark.parametrize("cancels", [True, False])
def test_how_far_what_a_launch_sends_is_can_be_seen_until_it_is_cancelled_or_there(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], *, cancels: bool
) -> None:
    world, sender = fakes.world(()), FakeSender()
    placed(monkeypatch, world, sender)
    sender.steps = [Progress("its checkpoint is sent", 3 << 30, 4 << 30, 64 << 20)]

    async def play(driver: Driver) -> None:
        await driver.press("n", "enter")
        await driver.sees("‹this machine›")
        await driver.press("down", "right")
        await driver.sees("gpu1 gets 1 file of /home/me/project")
        await driver.press("ctrl+s")
        await driver.sees("Start 1 run on gpu1?")
        await driver.press("y")
        await driver.sees("3.0 GiB of 4.0 GiB, 64.0 MiB/s, 16s left")
        await driver.sees("c cancel: nothing is launched")
        if cancels:
            await driver.press("c")
            await driver.hears("the launch was cancelled; nothing was launched")
            await driver.until(lambda: "its checkpoint is sent" not in driver.text)
        else:
            sender.goes_on.set()
            await driver.hears("started on gpu1: 20261121-115959-new")

    drive(world, play, size=size)
    assert sender.launched == ([] if cancels else ["gpu1"])
    assert sender.closed, "the line was left open"


def test_profiles_of_two_machines_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the machine that is looked at, and the own ones of this machine: what ships is the same on both."""
    near, far = fakes.FakeLauncher(), fakes.FakeLauncher()
    monkeypatch.setattr(fakes.FakeDraft, "choices", choices)
    launcher = PlacedLauncher(near, far, ("local", "gpu1"), "gpu1", lambda source, to: FakeSender())
    names = [one.name for one in launcher.entries()]
    assert names == ["mine", "broken", "cifar", "gpu1:mine", "gpu1:broken"]
    for name, used in (("mine", near), ("gpu1:mine", far), ("cifar", far)):
        draft = launcher.draft(name)
        machine = next(field for field in draft.fields if field.key == "machine")
        assert (machine.value, machine.choices) == ("gpu1", ("this machine", "gpu1"))
        values = {field.key: field.value for field in draft.fields}
        assert (draft.preview(values).host == "gpu1") == (used is near), "what lies there is not sent"


def test_what_the_other_machine_says_is_of_the_newest_values(monkeypatch: pytest.MonkeyPatch) -> None:
    world, sender = fakes.world(()), FakeSender()
    placed(monkeypatch, world, sender)

    async def play(driver: Driver) -> None:
        await driver.press("n", "enter", "down", "right")
        await driver.sees("train.py 200")
        await driver.press("tab", "tab", "tab", "backspace", "7")
        await driver.sees("train.py 7")
        await driver.press("shift+tab", "shift+tab", "shift+tab", "left")
        await driver.sees("--epochs 7")
        await driver.press("ctrl+s")
        await driver.until(lambda: world.launcher.form.launched, "the launch here")

    drive(world, play, size=(120, 40))
    assert not sender.launched


def test_a_machine_that_is_not_reached_is_told_and_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world, sender = fakes.world(()), FakeSender("it does not answer")
    placed(monkeypatch, world, sender)

    async def play(driver: Driver) -> None:
        await driver.press("n", "enter", "down", "right")
        await driver.sees("✗ gpu1: it does not answer")
        sender.failure = ""
        await driver.press("ctrl+s")
        await driver.sees("Start 1 run on gpu1?")

    drive(world, play, size=(120, 40))
    assert not sender.launched


def test_a_line_that_is_frozen_keeps_no_key_waiting_and_a_start_goes_on_with_the_answer() -> None:
    world, frozen = fakes.world(()), Event()

    class Far(fakes.FakeDraft):
        def preview(self, values: Mapping[str, str]) -> Preview:
            return Preview("", host="gpu1")

        def examine(self, values: Mapping[str, str]) -> Preview:
            frozen.wait(60)
            return replace(super().preview(values), host="gpu1")

    class FarLauncher(fakes.FakeLauncher):
        asks = "gpu1"

        def draft(self, name: str) -> fakes.FakeDraft:
            frozen.wait(60)
            frozen.clear()
            return self.form

    launcher = world.services.launching = FarLauncher(form=Far())

    async def play(driver: Driver) -> None:
        await driver.press("n")
        await driver.sees("choose a profile")
        await driver.press("enter")
        await driver.hears("asking gpu1")
        await driver.press("down")
        await driver.sees("▌  mine")
        frozen.set()
        await driver.sees("asking gpu1 what it would start")
        await driver.press("ctrl+s")
        await driver.hears("this continues with its answer")
        await driver.press("tab", "tab", "tab", "backspace")
        await driver.hears("a field was changed")
        await driver.press("7", "ctrl+s")
        assert not launcher.form.launched
        world.monitor.snapshots = (fakes.bare(),)
        frozen.set()
        await driver.sees("no output yet")

    drive(world, play, size=(120, 40))
    assert launcher.form.launched[0]["arg:epochs"] == "7"


def test_options_of_a_scheduler_are_there_while_it_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    world = fakes.world(())
    profile = profile_of_command(("python", "train.py"), cwd=Path("/home/me/project"))
    fields = scheduler_fields(LaunchChoice(replace(profile, jobs={"slurm": {"partition": "gpu"}})), ())
    plain = fakes.FakeDraft().fields
    monkeypatch.setattr(fakes.FakeDraft, "fields", (plain[0], *fields, *plain[1:]))

    async def play(driver: Driver) -> None:
        await driver.press("n", "enter")
        await driver.sees("partition gpu")
        await driver.press("down", "left")
        await driver.until(lambda: "partition" not in driver.text, "no options without a scheduler")
        await driver.press("right", "down", "down", "2")
        await driver.sees("nodes▌2")
        await driver.press("ctrl+s")
        await driver.until(lambda: world.launcher.form.launched, "the launch")

    drive(world, play, size=(80, 24))
    values = world.launcher.form.launched[0]
    choice = LaunchChoice(replace(profile, jobs={"slurm": {"partition": "gpu"}}))
    assert scheduled(values, choice) == {"on": None, "job": {"nodes": "2"}}
    assert scheduled({**values, "on": "none"}, choice) == {"on": "local", "job": {}}
    with pytest.raises(UsageError, match="partition cannot be left out"):
        scheduled({**values, "job:slurm:partition": ""}, choice)


def test_the_list_of_profiles_tells_what_the_selected_one_starts_and_what_became_of_it() -> None:
    ended = fakes.finished(profile="cifar", name="CIFAR-10 · first")
    world = fakes.world((fakes.running(), ended))

    async def play(driver: Driver) -> None:
        await driver.press("n")
        await driver.sees("earlier runs  2")
        assert "command    python -m trainer cifar" in driver.text
        assert "arguments  epochs=90" in driver.text
        assert any("✓ finished" in line and "loss" in line and "first" in line for line in driver.lines)
        await driver.press("down")
        await driver.until(lambda: "earlier runs" not in driver.text, "nothing of a profile without runs")

    drive(world, play, size=(120, 40))


def test_a_form_shows_the_earlier_runs_of_its_profile_where_there_is_room() -> None:
    world = fakes.world((fakes.finished(profile="cifar"),))

    async def play(driver: Driver) -> None:
        await driver.press("n", "enter")
        await driver.sees("earlier runs  1")

    drive(world, play, size=(120, 40))
