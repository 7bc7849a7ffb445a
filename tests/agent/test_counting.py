"""Steps and epochs of a program, from where its own count stands."""

from __future__ import annotations

import argparse
import functools
import gc
import itertools
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from mpstui.agent.counting import Steps
from mpstui.agent.parsed import ParsedArguments
from mpstui.agent.passes import Passes
from mpstui.agent.saving import step_begun_from
from mpstui.wire import heartbeat, storage
from mpstui.wire.records import LaunchRecord
from mpstui.wire.rundir import RunDir

Made = tuple[torch.nn.Linear, torch.optim.Optimizer]


def _step(made: Made, steps: Steps, epoch_steps: int | None = None) -> None:
    net, optimizer = made
    optimizer.zero_grad()
    net(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    steps.network(optimizer)
    steps.stepped(optimizer, epoch_steps, joins=steps.joins(optimizer))


def _made(kind: Any, steps: Steps, **options: Any) -> Made:
    net = torch.nn.Linear(3, 1)
    optimizer = kind(net.parameters(), lr=0.01, **options)
    steps.made(optimizer)
    return net, optimizer


def _resumed(
    kind: Any,
    checkpoint: dict[str, Any],
    begun_from: Callable[[list[str]], int | None] = lambda loaded: None,
    **options: Any,
) -> tuple[Steps, Made]:
    """After five steps elsewhere, in a process that loads what was saved."""
    first = _made(kind, Steps(), **options)
    for _ in range(5):
        _step(first, Steps())
    steps = Steps(begun_from)
    made = _made(kind, steps, **options)
    with tempfile.TemporaryFile() as file:
        torch.save({**checkpoint, "optimizer": first[1].state_dict()}, file)
        file.seek(0)
        found = torch.load(file)
    steps.loaded(found)
    steps.resumed(made[1])
    made[1].load_state_dict(found["optimizer"])
    return steps, made


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
def test_the_same_network_begun_anew_is_another_training_and_with_a_new_optimizer_alone_none(kind: Any) -> None:
    """As folds of a cross-validation, or repeated runs, have it; a schedule may make a new optimizer, too."""
    steps = Steps()
    net, optimizer = _made(kind, steps)
    told = []
    kept = {name: value.clone() for name, value in net.state_dict().items()}
    for begin in (lambda: None, lambda: None, net.reset_parameters, lambda: net.load_state_dict(kept)):
        begin()
        optimizer = kind(net.parameters(), lr=0.01)
        steps.made(optimizer)
        for _ in range(4):
            _step((net, optimizer), steps)
        told.append((steps.network(optimizer), steps.training, steps.count))
    assert told == [(0, 1, 4), (0, 1, 8), (1, 2, 12), (2, 3, 16)]


def test_a_network_is_begun_anew_also_where_half_of_it_is_written_past_the_count() -> None:
    """``weight.data.uniform_()``, as graph networks do it. A layer that takes part now and then is no sign of it."""
    steps, told = Steps(), []
    parts = [torch.nn.Linear(3, 1) for _ in range(3)]
    net = torch.nn.ModuleList(parts)
    for fold in range(3):
        if fold == 2:
            parts[0].weight.data.uniform_()
            parts[1].reset_parameters()
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        steps.made(optimizer)
        for number in range(12):
            optimizer.zero_grad()
            loss: Any = sum(part(torch.ones(2, 3)).sum() for part in parts[: 3 if number % 2 else 2])
            loss.backward()
            optimizer.step()
            steps.network(optimizer)
            steps.stepped(optimizer, None, joins=steps.joins(optimizer))
        told.append(steps.training)
    assert told == [1, 1, 2]


def test_a_network_is_begun_anew_also_where_all_of_it_is_written_past_the_count() -> None:
    """It was evaluated at the end of each fold; weights that stay as they are make no other training."""
    steps, told = Steps(), []
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    for fold in range(4):
        if fold in (1, 3):
            for weight in net.parameters():
                weight.data.uniform_(-1, 1)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        steps.made(optimizer)
        for _ in range(6):
            steps.begins()
            _step((net, optimizer), steps)  # type: ignore[arg-type]
        steps.evaluates(float(fold))
        told.append((steps.training, steps.count))
    assert told == [(1, 6), (2, 12), (2, 18), (3, 24)]


@pytest.mark.parametrize("weights_first", [True, False])
def test_trainings_of_two_optimizers_that_share_a_network_begun_anew_are_two(weights_first: bool) -> None:
    """A wide part that is kept, and a deep one that is another each time; the first training tells nothing anew."""
    steps, told = Steps(), []
    wide = torch.nn.Linear(3, 1)
    for training in range(3):
        deep = torch.nn.Linear(3, 1)
        if training == 2 and weights_first:
            wide.reset_parameters()
        optimizers = [torch.optim.SGD(net.parameters(), lr=0.01) for net in (wide, deep)]
        for optimizer in optimizers:
            steps.made(optimizer)
        if training == 2 and not weights_first:
            wide.reset_parameters()
        for _ in range(5):
            for optimizer in optimizers:
                optimizer.zero_grad()
            steps.begins()
            (wide(torch.ones(2, 3)) + deep(torch.ones(2, 3))).sum().backward()
            for optimizer in optimizers:
                optimizer.step()
                steps.network(optimizer)
                steps.stepped(optimizer, None, joins=steps.joins(optimizer))
        told.append((steps.training, steps.count))
    assert told == [(1, 5), (1, 10), (2, 15)]


def test_of_steps_that_are_compiled_at_times_the_optimizer_tells() -> None:
    steps = Steps()
    made = _made(torch.optim.Adam, steps)
    _step(made, steps)
    for _ in range(4):  # unseen
        made[1].step()
    assert steps.count == 5
    _step(made, steps)
    assert steps.count == 6


def test_steps_count_from_the_first_one() -> None:
    steps = Steps()
    made = _made(torch.optim.SGD, steps, momentum=0.9)
    assert (steps.count, steps.seen) == (None, False)
    for _ in range(3):
        _step(made, steps)
    assert (steps.count, steps.before, steps.may_go_on, steps.lr) == (3, 0, False, 0.01)
    made[1].param_groups[0]["lr"] = 0.5
    assert steps.lr == 0.5, "as it is now, not as it was at the last beat"
    _step(made, steps)
    del made
    gc.collect()
    assert steps.lr == 0.5, "the optimizer of a function that has returned"


def test_a_new_optimizer_that_is_given_its_own_state_is_not_resumed() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    for checkpoint, before in ({"model": {}}, 0), ({"model": {}, "optimizer": {"state": {}, "param_groups": []}}, None):
        steps, optimizer = Steps(), torch.optim.SGD([weight], lr=0.1)
        steps.made(optimizer)
        steps.loaded(checkpoint)  # pretrained weights, or a checkpoint to go on from
        steps.resumed(optimizer, optimizer.state_dict())
        steps.stepped(optimizer, None, joins=steps.joins(optimizer))
        assert steps.before == before


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad])
def test_a_resumed_optimizer_knows_its_steps(kind: Any) -> None:
    steps, made = _resumed(kind, {})
    _step(made, steps)
    assert (steps.count, steps.before) == (6, 5)


@pytest.mark.parametrize(
    ("checkpoint", "before"),
    [
        ({"global_step": 40, "epoch": 3}, 40),
        ({"iter_num": 40, "best": 0.5}, 40),
        ({"epoch": 3, "scheduler": {"last_epoch": 3}}, 30),  # of 10 steps each
        ({"epoch": 3}, None),  # begun or done: nobody knows
        ({"step": True}, None),
        ({}, None),
    ],
)
def test_a_checkpoint_tells_what_its_optimizer_does_not(checkpoint: dict[str, Any], before: int | None) -> None:
    steps, made = _resumed(torch.optim.SGD, checkpoint, momentum=0.9)
    _step(made, steps, epoch_steps=10)
    assert (steps.before, steps.count) == (before, (before or 0) + 1)
    assert steps.epoch_saved == checkpoint.get("epoch")


STARTED = "/out/008.pt"


def _run_resumed(
    folder: Path, *saved: dict[str, Any], step_from: str | None = None, started_from: str | None = STARTED
) -> dict[str, str]:
    """The environment of a second attempt, after a first one that told of what it ``saved``."""
    run = RunDir(folder)
    for attempt, checkpoint in ((1, None), (2, started_from)):
        storage.make_private_folder(run.attempt(attempt).path)
        record = LaunchRecord(attempt, 0.0, ["python"], "/", "cpu", checkpoint=checkpoint)
        storage.write_json(run.attempt(attempt).launch, record)
    told = heartbeat.Heartbeat(time=0.0, seq=1, step=300, step_from=step_from)
    storage.write_json(run.attempt(1).heartbeat(), heartbeat.to_json(told))
    for event in saved:
        storage.append_line(run.events, {"time": 0.0, "attempt": 1, "event": "checkpoint", **event})
    return {"MPSTUI_RUN_DIR": str(folder), "MPSTUI_ATTEMPT": "2"}


OLDER, NEWER = {"path": STARTED, "step": 256}, {"path": "/out/009.pt", "step": 288}


@pytest.mark.parametrize(
    ("saved", "step_from", "begun_from"),
    [
        ([OLDER], None, 256),
        ([OLDER, NEWER], None, 256),  # an older one was chosen
        ([{**OLDER, "step": 128}, OLDER], None, 256),  # written twice
        ([OLDER], "process", None),  # counted from nobody knows where
        ([NEWER], None, None),
        ([{"path": STARTED}], None, None),
        ([{**OLDER, "attempt": 2}], None, None),  # it has that name again since
        ([], None, None),
    ],
)
def test_a_restart_goes_on_at_the_step_that_was_told_of_its_checkpoint(
    tmp_path: Path, saved: list[dict[str, Any]], step_from: str | None, begun_from: int | None
) -> None:
    environ = _run_resumed(tmp_path, *saved, step_from=step_from)
    assert step_begun_from(environ) == begun_from
    begun = functools.partial(step_begun_from, environ)
    steps, made = _resumed(torch.optim.SGD, {"epoch": 8}, begun_from=begun, momentum=0.9)
    _step(made, steps)
    assert (steps.before, steps.count) == (begun_from, (begun_from or 0) + 1)


def test_a_checkpoint_that_the_program_finds_by_itself_is_known_by_its_place(tmp_path: Path) -> None:
    """What is loaded may be a file of the folder that was told of; of bare weights nobody knows what they are for."""
    bare = {**NEWER, "weights_only": True}
    environ = _run_resumed(tmp_path, {"path": "/out/step_256", "step": 256}, bare, started_from=None)
    assert step_begun_from(environ, ["/out/step_256/optimizer.bin"]) == 256
    assert step_begun_from(environ, ["/out/other.pt", "/out/step_256"]) == 256
    assert step_begun_from(environ, ["/out/009.pt"]) is None
    assert step_begun_from(environ) is None


@pytest.mark.parametrize("resumes", [True, False])
def test_a_checkpoint_that_is_loaded_is_gone_on_from_where_an_optimizer_is_given_its_state(
    tmp_path: Path, resumes: bool
) -> None:
    names = ["newer.pt", "older.pt"]
    steps = Steps(lambda loaded: 256 if loaded == [str(tmp_path / name) for name in names] else None)
    made = _made(torch.optim.SGD, steps)
    steps.loaded({"model": {}, "optimizer": made[1].state_dict()}, tmp_path / "older.pt")
    steps.loaded({"model": {}, "optimizer": made[1].state_dict()}, f=str(tmp_path / "newer.pt"))
    if resumes:
        steps.resumed(made[1], made[1].state_dict())
    _step(made, steps)
    assert steps.before == (256 if resumes else 0)


def test_weights_that_mpstui_started_from_are_a_resume_too() -> None:
    steps = Steps(lambda loaded: 256)
    made = _made(torch.optim.SGD, steps)
    steps.loaded({"model": {}})
    _step(made, steps)
    assert (steps.before, steps.count) == (256, 257)


def test_weights_alone_are_no_resume() -> None:
    steps = Steps()
    made = _made(torch.optim.SGD, steps)
    steps.loaded({"step": 90_000, "model": {}})
    _step(made, steps)
    assert (steps.before, steps.count, steps.may_go_on) == (0, 1, True)


@pytest.mark.parametrize(
    ("found", "resumes"),
    [
        ({"x": torch.ones(9, 3), "y": torch.ones(9)}, False),
        ({"weight": torch.ones(9, 3), "bias": torch.ones(9)}, True),
        ({"0.weight": torch.ones(9, 3)}, True),
    ],
)
def test_data_that_is_loaded_is_no_resume(found: dict[str, Any], resumes: bool) -> None:
    steps = Steps()
    steps.loaded(found)
    assert steps.may_go_on is resumes


def test_what_is_loaded_behind_the_first_step_is_no_resume() -> None:
    steps = Steps()
    made = _made(torch.optim.SGD, steps)
    _step(made, steps)
    steps.loaded({"step": 90_000, "model": {}})
    steps.resumed(made[1])
    _step(made, steps)
    assert (steps.before, steps.count, steps.may_go_on) == (0, 2, False)


def test_an_optimizer_without_a_count_is_told_by_the_one_beside_it() -> None:
    steps, adam = _resumed(torch.optim.Adam, {})
    plain = _made(torch.optim.SGD, steps)
    _step(plain, steps)
    assert (steps.before, steps.count) == (5, 6)
    _step(adam, steps)
    assert steps.count == 6


def test_a_count_that_no_step_was_seen_of_is_the_optimizer_s_own() -> None:
    steps = Steps()
    net, optimizer = _made(torch.optim.Adam, steps)
    for _ in range(3):
        net(torch.ones(2, 3)).sum().backward()
        optimizer.step()
    assert (steps.seen, steps.count, steps.lr) == (False, 3, 0.01)


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam])
def test_trainings_one_after_another_add_up(kind: Any) -> None:
    steps, told = Steps(), []
    for _ in range(3):
        made = _made(kind, steps)
        for _ in range(4):
            _step(made, steps)
            told.append((steps.training, steps.count))
        del made
        gc.collect()  # the next optimizer may have its place in memory
    assert told == [(1 + done // 4, done + 1) for done in range(12)]


def test_compiled_trainings_one_after_another_add_up() -> None:
    steps = Steps()
    for done in (3, 6):
        net, optimizer = _made(torch.optim.Adam, steps)
        for _ in range(3):  # unseen
            net(torch.ones(2, 3)).sum().backward()
            optimizer.step()
        assert steps.count == done
        del net, optimizer


def test_a_later_optimizer_of_the_same_weights_goes_on_with_the_training() -> None:
    steps = Steps()
    net, first = _made(torch.optim.Adam, steps)
    for _ in range(3):
        _step((net, first), steps)
    later = torch.optim.Adam([*torch.nn.Linear(2, 2).parameters(), *net.parameters()])
    steps.made(later)
    steps.resumed(later)
    later.load_state_dict(_resumed(torch.optim.Adam, {})[1][1].state_dict() | {"param_groups": later.param_groups})
    _step((net, later), steps)
    assert (steps.training, steps.count) == (1, 4)


def test_optimizers_that_take_turns_make_one_step_together() -> None:
    steps = Steps()
    judge = _made(torch.optim.Adam, steps)
    _step(judge, steps)
    maker = _made(torch.optim.SGD, steps)  # made when the first step was done already
    for number in range(10):
        for _ in range(number > 0):
            _step(judge, steps)
        _step(maker, steps)
    assert (steps.training, steps.count) == (1, 10)


@pytest.mark.parametrize(("turns", "count"), [("aaabbbaaabbb", 12), ("abababab", 4), ("aabaab", 4)])
def test_optimizers_that_train_one_network_in_turn_share_no_step(turns: str, count: int) -> None:
    """Several steps in a row are its own, those step by step are common ones."""
    steps = Steps()
    first = _made(torch.optim.SGD, steps)
    second = (first[0], torch.optim.Adam(first[0].parameters()))
    steps.made(second[1])
    for turn in turns:
        _step(first if turn == "a" else second, steps)
    assert steps.count == count


def test_optimizers_of_networks_of_their_own_keep_their_steps_in_common() -> None:
    steps = Steps()
    critic, actor = _made(torch.optim.SGD, steps), _made(torch.optim.Adam, steps)
    for made in (critic, actor, actor) * 3:
        _step(made, steps)
    assert steps.count == 6


@pytest.mark.parametrize(
    ("turns", "count"),
    [
        ("aaaabbbb", 8),  # a policy, then the value of its states
        ("aab", 2),  # a critic makes more steps than what it judges
        ("abb", 2),
        ("abc", 1),
    ],
)
def test_many_steps_of_one_optimizer_and_then_many_of_another_are_as_many(turns: str, count: int) -> None:
    steps = Steps()
    made = {name: _made(torch.optim.SGD, steps) for name in sorted(set(turns))}
    for name in turns * 5:
        _step(made[name], steps)
    assert steps.count == 5 * count


def test_optimizers_of_single_parameters_that_are_made_within_the_first_step_make_one_step() -> None:
    steps = Steps()
    made: list[Made] = []
    for number in range(6):
        if number == 0:
            for _ in range(3):
                made.append(_made(torch.optim.Adam, steps))
                _step(made[-1], steps)
        else:
            for one in made:
                _step(one, steps)
    assert (steps.training, steps.count) == (1, 6)


def test_many_short_trainings_within_one_are_one() -> None:
    steps = Steps()
    outer = _made(torch.optim.Adam, steps)
    for _ in range(3):
        for _ in range(2):
            inner = _made(torch.optim.SGD, steps)
            _step(inner, steps)
        _step(outer, steps)
    assert (steps.training, steps.count) == (1, 6)


def test_trainings_of_optimizers_that_were_all_made_before_go_on() -> None:
    steps = Steps()
    for made in [_made(torch.optim.SGD, steps) for _ in range(3)]:
        for _ in range(5):
            _step(made, steps)
    assert steps.count == 15


def test_an_evaluation_between_them_tells_where_the_next_training_begins() -> None:
    steps = Steps()
    for made in [_made(torch.optim.SGD, steps) for _ in range(3)]:
        for _ in range(5):
            _step(made, steps)
        steps.evaluates(1.0)
    assert (steps.count, steps.training) == (15, 3)


def test_a_pass_that_begins_behind_a_whole_one_tells_where_the_next_training_begins() -> None:
    steps, passes = Steps(), Passes(torch)
    for made in [_made(torch.optim.SGD, steps) for _ in range(3)]:
        loader = _loader(4, batch_size=2)
        iterator = iter(loader)
        passes.begun(iterator, loader)
        for batch in iterator:
            if passes.fetched(batch, iterator):
                steps.ends_step()
            _step(made, steps)
    assert steps.count == 6


def test_networks_that_take_turns_on_batches_of_their_own_make_one_step_together() -> None:
    steps, passes, loader = Steps(), Passes(torch), _loader(40, batch_size=2)
    pair = _made(torch.optim.SGD, steps), _made(torch.optim.Adam, steps)
    for made in pair * 3:
        iterator = iter(loader)
        passes.begun(iterator, loader)
        if passes.fetched(next(iterator), iterator):
            steps.ends_step()
        _step(made, steps)
    assert steps.count == 3


class _Endless(IterableDataset[torch.Tensor]):
    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter(torch.ones(10, 3))

    def __len__(self) -> int:
        raise AssertionError("to ask changes what torch warns of")


def _loader(rows: int, **options: Any) -> DataLoader[Any]:
    return DataLoader(TensorDataset(torch.ones(rows, 3)), **options)


def _batches(passes: Passes, loader: DataLoader[Any]) -> Iterator[Any]:
    iterator = iter(loader)
    passes.begun(iterator, loader)
    for batch in iterator:
        passes.fetched(batch, iterator)
        yield batch


def test_networks_that_take_turns_have_epochs_of_their_own() -> None:
    passes, told = Passes(torch), []
    for _ in range(2):
        for fold in range(3):
            for _ in _batches(passes, _loader(4, batch_size=2)):
                passes.stepped(1, fold)
            told.append(_told(passes)[0])
    for _ in _batches(passes, _loader(4, batch_size=2)):  # and those that are trained with the same batches
        for part in (0, 7):
            passes.stepped(1, part)
    assert [*told, _told(passes)[0]] == [1, 1, 1, 2, 2, 2, 3]


def test_epochs_of_the_next_training_count_from_one() -> None:
    passes, told = Passes(torch), []
    for training in (1, 2):
        for _ in range(3):
            for _ in _batches(passes, _loader(4, batch_size=2)):
                passes.stepped(1, training)
            told.append(_told(passes)[:3])
    assert told == [(epoch, 2, 2) for epoch in (1, 2, 3, 1, 2, 3)]


def test_trainings_that_had_as_many_epochs_each_tell_those_of_the_next_one() -> None:
    passes, told = Passes(torch), []
    for training, epochs in enumerate((2, 2, 2, 3, 1), 1):
        for _ in range(epochs):
            for _ in _batches(passes, _loader(4, batch_size=2)):
                passes.stepped(1, training)
            told.append(passes.facts(1, 0, None, training)["epochs"])
    assert told == [None, None, None, None, 2, 2, 2, 2, None, None]


def _told(passes: Passes, every: int = 1, before: int | None = 0, epochs: int | None = None) -> tuple[Any, ...]:
    facts = passes.facts(every, before, epochs)
    return tuple(facts.get(name) for name in ("epoch", "epoch_step", "epoch_steps", "batch_size"))


def test_each_pass_that_is_trained_on_is_an_epoch() -> None:
    passes = Passes(torch)
    train, test = _loader(10, batch_size=4), _loader(10, batch_size=10)
    assert passes.facts(1, 0, None) == {}
    for epoch in range(2):
        for done, _ in enumerate(_batches(passes, train), 1):
            passes.stepped(1)
            assert _told(passes) == (epoch + 1, done, 3, 4)
        list(_batches(passes, test))
    assert _told(passes) == (2, 3, 3, 4)


@pytest.mark.parametrize("rows", [1, 30])
def test_an_evaluation_between_batch_and_step_is_no_epoch(rows: int) -> None:
    passes = Passes(torch)
    for _epoch in range(2):
        for number, _batch in enumerate(_batches(passes, _loader(10, batch_size=2))):
            if number % 2 == 0:
                for done, _ in enumerate(_batches(passes, _loader(rows))):
                    if done == 3:
                        passes.evaluated(3)
            passes.stepped(1)
    assert _told(passes) == (2, 5, 5, 2)


def test_accumulation_makes_fewer_steps_of_an_epoch() -> None:
    passes = Passes(torch)
    for number, _ in enumerate(_batches(passes, _loader(10)), 1):
        if number % 4 == 0 or number == 10:
            passes.stepped(4)
    assert _told(passes, every=4) == (1, 3, 3, 1)


@pytest.mark.parametrize(("carries", "of_epoch"), [(False, [3, 3, 2, 2, 2, 2]), (True, [3, 3, 3, 3, 3, 2, 2])])
def test_what_is_left_of_an_epoch_may_make_no_step_of_its_own(carries: bool, of_epoch: list[int]) -> None:
    """``(i + 1) % 4 == 0`` drops the last two of ten batches, ``seen % 4 == 0`` keeps them for the next epoch."""
    passes, told, seen = Passes(torch), [], 0
    for _ in range(3):
        for number, _batch in enumerate(_batches(passes, _loader(10)), 1):
            seen += 1
            if (seen if carries else number) % 4 == 0:
                passes.stepped(4)
                told.append(_told(passes, every=4)[2])
    assert told == of_epoch
    assert passes.facts(4, 0, None)["epoch_batches"] == (10 if carries else None)


def test_a_loader_begun_anew_for_each_step_makes_no_epochs() -> None:
    passes, loader = Passes(torch), _loader(10)
    for _ in range(3):
        next(_batches(passes, loader))
        passes.stepped(1)
    assert _told(passes)[:3] == (None, None, None)


def test_an_epoch_that_is_left_early_has_no_length() -> None:
    passes, loader = Passes(torch), _loader(10)
    for _ in range(2):
        for number, _batch in enumerate(_batches(passes, loader), 1):
            passes.stepped(1)
            if number == 5:
                break
    assert _told(passes)[:3] == (2, None, None)


def test_data_that_is_read_through_a_loader_before_the_first_step_makes_no_epochs() -> None:
    """The training takes batches of its own from what was read."""
    passes, told = Passes(torch), []
    for loader in (_loader(10), _loader(30)):
        list(_batches(passes, loader))
    for _ in range(20):
        passes.stepped(1)
        told.append(_told(passes)[:3])
    assert told[1:] == [(None, None, None)] * 19
    list(_batches(passes, _loader(20)))  # nor does an evaluation behind them
    passes.stepped(1)
    passes.stepped(1)
    assert _told(passes)[:3] == (None, None, None)


@pytest.mark.parametrize("ahead", [1, 3])
def test_batches_that_are_fetched_ahead_are_those_of_the_steps(ahead: int) -> None:
    passes, told = Passes(torch), []
    for _ in range(2):
        batches = _batches(passes, _loader(3))
        waiting = list(itertools.islice(batches, ahead))
        while waiting:
            passes.stepped(1)
            told.append(_told(passes)[:3])
            waiting = [*waiting[1:], *itertools.islice(batches, 1)]
    assert told == [(epoch, step, 3) for epoch in (1, 2) for step in (1, 2, 3)]


def test_one_step_for_a_whole_pass_is_an_epoch() -> None:
    passes, told = Passes(torch), []
    for _ in range(3):
        list(_batches(passes, _loader(20)))
        passes.stepped(20)
        told.append(_told(passes, every=20)[:3])
    assert told == [(epoch, 1, 1) for epoch in (1, 2, 3)]


def test_a_sampler_without_an_end_makes_no_epochs() -> None:
    passes = Passes(torch)
    data = TensorDataset(torch.ones(10, 3))
    loader = DataLoader(data, batch_size=2, sampler=torch.utils.data.RandomSampler(data, True, int(1e10)))
    for number, _batch in enumerate(_batches(passes, loader)):
        passes.stepped(1)
        if number == 5:
            break
    assert _told(passes) == (None, None, None, 2)
    oversampled = DataLoader(data, batch_size=2, sampler=torch.utils.data.RandomSampler(data, True, 40))
    passes = Passes(torch)
    for _batch in _batches(passes, oversampled):
        passes.stepped(1)
    assert _told(passes) == (1, 20, 20, 2)


def test_a_sampler_that_tells_no_length_makes_no_epochs_once_it_has_shown_all_samples_twice() -> None:
    class Endless(torch.utils.data.Sampler[int]):
        def __iter__(self) -> Any:
            return itertools.cycle(range(10))

    passes, told = Passes(torch), []
    loader = DataLoader(TensorDataset(torch.ones(10, 3)), batch_size=2, sampler=Endless())
    for _batch in itertools.islice(_batches(passes, loader), 11):
        passes.stepped(1)
        told.append(_told(passes)[0])
    assert told == [1] * 10 + [None]


def test_a_loader_that_goes_on_beyond_its_length_begins_an_epoch_each_time() -> None:
    class Repeating(DataLoader[Any]):
        def __iter__(self) -> Any:
            return super().__iter__()

        def __len__(self) -> int:
            return 3

    passes, told = Passes(torch), []
    for _batch in _batches(passes, Repeating(TensorDataset(torch.ones(8, 3)), batch_size=1)):
        passes.stepped(1)
        told.append(_told(passes))
    assert told[2:4] == [(1, 3, 3, 1), (2, 1, 3, 1)]
    assert told[-1] == (3, 2, 3, 1)


def test_a_stream_has_no_length_and_its_batches_are_measured() -> None:
    passes = Passes(torch)
    for _batch in _batches(passes, DataLoader(_Endless(), batch_size=None, sampler=None)):
        passes.stepped(1)
    assert _told(passes) == (1, None, None, 3)


def test_a_batch_that_the_data_set_makes_itself_is_not_one_sample() -> None:
    """Its loader takes one item at a time: a batch."""
    data = TensorDataset(torch.ones(6, 16, 3), torch.ones(6, 16))
    for loader, size in (
        (DataLoader(data, batch_size=1, collate_fn=lambda items: items[0]), None),
        (DataLoader(data, batch_size=1, collate_fn=lambda items: (items[0][0][None], items[0][1][None])), 1),
        (DataLoader(data, batch_size=1), 1),
        (DataLoader(data, batch_size=2, collate_fn=lambda items: torch.cat([item[0] for item in items])), 2),
    ):
        passes = Passes(torch)
        for _batch in _batches(passes, loader):
            passes.stepped(1)
        assert _told(passes)[3] == size
        assert passes.samples == len(data) * (size is not None)


@pytest.mark.parametrize(
    ("before", "epochs", "saved", "epoch"),
    [
        (20, None, None, 3),
        (20, None, 2, 3),
        (20, None, 1, 3),  # counted from 0
        (20, None, 4, None),  # of 5 steps each: the batch was half as large
        (25, None, None, None),
        (None, None, None, None),
        (None, 7, 7, 8),
        (0, 7, None, 1),
    ],
)
def test_after_a_resume_an_epoch_is_told_where_it_is_known(
    before: int | None, epochs: int | None, saved: int | None, epoch: int | None
) -> None:
    passes = Passes(torch)
    for _batch in _batches(passes, _loader(10)):
        passes.stepped(1)
    assert passes.facts(1, before, epochs, epoch_saved=saved)["epoch"] == epoch


def _parsed(words: str, called: str = "--epochs", **changed: Any) -> tuple[ParsedArguments, argparse.Namespace]:
    parser = argparse.ArgumentParser()
    parser.add_argument("-nep", called, type=int, default=100)
    parser.add_argument("--warmup_epochs", type=int, default=5)
    parser.add_argument("-bs", "--batchSize", type=int, default=16)
    parser.add_argument("--test-batch-size", type=int, default=100)
    parser.add_argument("--name", default="net")
    found = parser.parse_known_args(words.split())
    known = ParsedArguments()
    known.after_parse(found, parser)
    vars(found[0]).update(changed)
    return known, found[0]


@pytest.mark.parametrize(
    ("words", "changed", "epochs"),
    [
        ("", {}, 100),
        ("-nep 4", {}, 4),
        ("--epo 4", {"epochs": 7}, 7),  # by a configuration that is read afterwards
        ("", {"max_epochs": 100}, 100),
        ("", {"max_epochs": 9}, None),  # nobody knows which
        ("", {"epochs": "many"}, None),
        ("", {"epochs": 0}, None),
        ("", {"epochs": float("inf")}, None),  # until it is stopped
        ("", {"epochs": float("nan")}, None),
        ("", {"max_dataset_size": float("inf")}, 100),  # no limit on something else
        ("", {"n_epochs_decay": 100}, None),  # they may come after the others
    ],
)
def test_the_epochs_are_those_that_the_program_has_parsed(
    words: str, changed: dict[str, Any], epochs: int | None
) -> None:
    known, kept = _parsed(words, **changed)
    assert known.epochs == epochs
    alive = weakref.ref(kept)
    del kept
    assert alive() is None
    assert known.epochs == epochs  # at the end of the program, too


@pytest.mark.parametrize(
    ("called", "changed", "epochs"),
    [
        ("--stop_epoch", {"start_epoch": 3}, 100),
        ("--max_epoch", {"epoch": 7}, 100),
        ("--nepoch", {}, 100),
        ("--end_epoch", {"epochs": 20}, 20),  # what is called epochs says more
        ("--end_epoch", {"max_epoch": 20}, None),
        ("--save_epoch", {}, None),
        ("--last_epoch", {}, None),  # a scheduler's, to begin with
    ],
)
def test_the_last_epoch_that_the_program_has_parsed_tells_how_many_there_are(
    called: str, changed: dict[str, Any], epochs: int | None
) -> None:
    known, kept = _parsed("", called, **changed)
    assert known.epochs == epochs
    del kept


@pytest.mark.parametrize(
    ("changed", "epochs"),
    [
        ({"comm_round": 50}, 50),
        ({"rounds": 50, "num_clients": 10}, 50),
        ({"global_rounds": 50, "local_ep": 5}, 50),
        ({"num_rounds": 50, "client_num_in_total": 10}, 50),
        ({"rounds": 50}, 100),  # of anything
        ({"num_clients": 10}, 100),
    ],
)
def test_the_epochs_of_each_client_are_not_those_of_the_rounds(changed: dict[str, Any], epochs: int) -> None:
    known, kept = _parsed("", **changed)
    assert known.epochs == epochs
    assert known.steps is None
    del kept
    assert known.epochs == epochs


@pytest.mark.parametrize(
    ("changed", "steps"),
    [
        ({"epochs": None, "max_steps": 300, "warm_up_steps": 20, "num_steps": 5}, 300),
        ({"epochs": None, "max_steps": 300, "total_iters": 400}, None),
        ({"epochs": None, "max_steps": -1}, None),
        ({"max_steps": 300}, None),  # epochs are planned
    ],
)
def test_the_steps_are_those_that_the_program_has_parsed_where_it_plans_no_epochs(
    changed: dict[str, Any], steps: int | None
) -> None:
    known, _kept = _parsed("", **changed)
    assert known.steps == steps


@pytest.mark.parametrize(
    ("words", "changed", "size"),
    [("", {}, 16), ("-bs 4", {}, 4), ("", {"train_batch_size": 8}, None), ("", {"batchSize": "auto"}, None)],
)
def test_the_size_of_a_batch_is_that_which_the_program_has_parsed(
    words: str, changed: dict[str, Any], size: int | None
) -> None:
    known, kept = _parsed(words, **changed)
    assert known.batch_size == size
    del kept
    assert known.batch_size == size
