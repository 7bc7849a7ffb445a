"""What the steps and epochs of a run are, where the agent, the output and the arguments count different things."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import RunSnapshot
from mpstui.core.runs.planned import asked_totals
from mpstui.wire.heartbeat import CheckpointNote
from tests.core.runs.build import FakeClock, RunBuilder, make_monitor
from tests.core.runs.test_joining import run_of


def shown(home: Home, argv: str, output: str, **told: Any) -> RunSnapshot:
    """A run under the agent, as its own screen shows it."""
    run = run_of(home, argv.split()).beat(1, loss=0.5, loss_seen="backward", **told).output(output)
    found = make_monitor(home, FakeClock()).refresh(run.run.run)[0]
    run.release()
    return found


@pytest.mark.parametrize(("step", "steps"), [(4, 10), (3, 10), (9, None), (1, None)])
def test_where_each_epoch_is_one_step_the_epochs_are_the_steps(home: Home, step: int, steps: int | None) -> None:
    printed = "".join(f"Epoch: {epoch:04d} loss_train: 1.{epoch} acc_train: 0.3\n" for epoch in range(1, 5))
    numbers = shown(home, "python train.py --epochs 10", printed, step=step).numbers
    assert (numbers.step, numbers.steps, numbers.epochs) == (step, steps, 10)


@pytest.mark.parametrize(("step", "steps"), [(151, 400), (190, 400), (200, 400), (230, None), (302, None), (390, None)])
def test_an_epoch_of_one_step_that_is_told_each_fifty_is_behind_the_steps(
    home: Home, step: int, steps: int | None
) -> None:
    """The total stays between two lines; two steps of each epoch would be 300 and more by now."""
    printed = "".join(f"time elapsed= {e / 20:.2f} [s] | epoch={e} | val acc=0.{e}\n" for e in (1, 51, 101, 151))
    told = {"accumulate": 1, "steps_per_second": 20.0, "planned_epochs": 400}
    numbers = shown(home, "python train.py --num_of_epochs 400", printed, step=step, **told).numbers
    assert (numbers.step, numbers.steps, numbers.epoch, numbers.epochs) == (step, steps, 151, 400)


def test_a_fast_training_has_gone_on_between_its_beat_and_what_it_prints(home: Home) -> None:
    """The beat is a second old: what is printed is two epochs of fifty steps ahead."""
    bars = ((e, i) for e in range(1, 16) for i in (0, 25))
    printed = "".join(f"\repoch: {e}: {2 * i}%|## | {i}/50 [00:00<00:00, 150.08batch/s]" for e, i in bars)
    told = {"accumulate": 1, "steps_per_second": 121.7}
    numbers = shown(home, "python main.py --epochs 24", printed, step=612, **told).numbers
    assert (numbers.step, numbers.steps) == (612, 1200)


@pytest.mark.parametrize(
    ("size", "parsed", "steps"),
    [
        ("--batch_size 64", None, 3128),
        ("--batch-size=8", None, None),
        ("", None, None),
        ("", 64, 3128),  # a default of the program's parser
        ("", 8, None),  # which is something else
        ("--batch_size 64", 8, 3128),
    ],
)
def test_samples_that_are_printed_of_an_epoch_are_steps_by_the_batch_size(
    home: Home, size: str, parsed: int | None, steps: int
) -> None:
    """No data loader tells the agent how long an epoch is: the program slices its tensors."""
    places = [(epoch, done) for epoch in (1, 2) for done in range(6336, 50001, 6400)][:11]
    line = "Train Epoch: {:2d} [{:6d}/ 50000 ({:.0f}%)]\tLearning rate: 0.0040\tLoss: {:.6f}\n"
    printed = "".join(line.format(epoch, done, done / 500, 3 / (epoch * 50000 + done)) for epoch, done in places)
    told = {"accumulate": 1} if parsed is None else {"accumulate": 1, "planned_batch_size": parsed}
    numbers = shown(home, f"python add_test.py --epochs 4 {size}", printed, step=1190, **told).numbers
    assert (numbers.step, numbers.steps, numbers.epoch, numbers.epochs) == (1190, steps, 2, 4)


@pytest.mark.parametrize(
    ("argv", "totals"),
    [
        ("python main.py --n_updates 300", {"steps": 300}),
        ("python train.py --max-update 9000 --update-freq 4", {"steps": 9000}),
        ("python main.py --update_every 50", {}),
        ("run_train --max_num_epochs 12", {"epochs": 12}),
        ("python train.py --max_iterations 300 --warmup_iterations 20", {"steps": 300}),
        ("python train.py --n_iter 300 --iter_size 2 --n_iter_eval 9", {"steps": 300}),
        ("python train.py --max-iteration=300", {"steps": 300}),
        ("python image_train.py --lr_anneal_steps 300 --diffusion_steps 50", {"steps": 300}),
        ("python image_train.py --lr_anneal_steps 0", {}),
        ("python main.py data/fox --iters 30000 --max_steps 1024 --num_steps 512", {"steps": 30000}),
        ("python train.py --iters 12", {}),
        ("python train.py --num_steps 9000 --train_iters 16 --batch 4", {"steps": 9000}),
        ("python train.py --number-of-epochs=12 --num_warmup_epochs 2", {"epochs": 12}),
        ("python main.py --comm_round 50 --epochs 5", {"epochs": 50}),  # the epochs are those of each client
        ("python main.py --num-rounds 50 --epochs 5 --num-clients 10", {"epochs": 50}),
        ("python main.py --num-rounds 50 --epochs 5", {"epochs": 5}),
        ("python main.py --num-rounds 50 --global_rounds 20 --epochs 5", {}),  # nobody knows which
        ("python train.py --n_epochs 5 --n_epochs_decay 3", {}),  # 8, or 5 of which 3 decay
        ("python train.py --epoch 5 --n_epochs_decay 3", {}),
        ("python train.py --nepoch 12", {"epochs": 12}),
    ],
)
def test_a_plan_is_read_by_the_words_of_an_argument(argv: str, totals: dict[str, float]) -> None:
    assert asked_totals(argv.split()) == totals


@pytest.mark.parametrize(("epochs", "epoch"), [(300, 41), (20, None)])
def test_a_bar_over_epochs_of_one_step_each_counts_these(home: Home, epochs: int, epoch: int | None) -> None:
    """``for epoch in tqdm(range(300))``: nothing else says that what it counts are epochs."""
    printed = "".join(f" 14%|█▍        | {n}/300 [00:02<00:10, 22.4it/s]\r" for n in range(42))
    numbers = shown(home, f"python train.py --n_epochs {epochs}", printed, step=41, accumulate=1).numbers
    assert (numbers.step, numbers.steps, numbers.epoch, numbers.epochs) == (41, 300, epoch, epochs)


@pytest.mark.parametrize(("stride", "steps"), [(1, 400), (3, None)])
def test_an_epoch_of_which_every_step_is_printed_says_how_many_there_are(
    home: Home, stride: int, steps: int | None
) -> None:
    """No data loader tells the agent how long an epoch is: the program draws its own batches."""
    places = [(epoch, step) for epoch in range(1, 5) for step in range(0, 10, stride)]
    printed = "".join(f"loss in epoch {epoch} iteration {step}: 1.{epoch}{step}\n" for epoch, step in places)
    numbers = shown(home, "python main.py --num_epochs 40", printed, step=40, accumulate=1).numbers
    assert (numbers.step, numbers.steps, numbers.epoch, numbers.epochs) == (40, steps, 4, 40)


@pytest.mark.parametrize("step", [26, 30, 40, 44])
def test_the_total_of_short_epochs_stands_still_while_a_beat_is_late(home: Home, step: int) -> None:
    printed = "".join(f"loss in epoch {n // 10} iteration {n % 10}: 1.{n}\n" for n in range(10, 50))
    told = {"accumulate": 1, "steps_per_second": 3.5}
    numbers = shown(home, "python main.py --num_epochs 40", printed, step=step, **told).numbers
    assert (numbers.step, numbers.steps) == (step, 400)


@pytest.mark.parametrize(
    ("argv", "totals"),
    [
        ("bert -c corpus.txt -hs 64 -e 5", {"epoch": 5}),
        ("python train.py -net vgg -epochs 7 -b 32", {"epochs": 7}),
        ("python main.py -e 4 --epochs 9", {"epochs": 9}),
        ("python main.py -e --lr 1 data", {}),
    ],
)
def test_a_plan_may_stand_behind_one_dash(argv: str, totals: dict[str, float]) -> None:
    """``-e 5`` may be a plan, as ``--epoch 5`` may."""
    assert asked_totals(argv.split()) == totals


@pytest.mark.parametrize(
    ("printed", "step", "steps"),
    [
        ("", 900, None),
        ("global_step=11000, episodic_return=12.0\nglobal_step=11900, episodic_return=15.0\n", 11900, 12000),
        ("global_step=300, episodic_return=12.0\n", 900, None),
    ],
)
def test_the_updates_of_a_network_are_no_share_of_the_steps_of_its_environment(
    home: Home, printed: str, step: int, steps: int | None
) -> None:
    """What is asked for are steps of the environment; an optimizer makes fewer, or more."""
    argv = "python main.py --dvc cpu --Max_train_steps 12000"
    numbers = shown(home, argv, printed, step=900, step_from="updates").numbers
    assert (numbers.step, numbers.steps) == (step, steps)


@pytest.mark.parametrize(
    ("line", "step", "steps"),
    [
        ("step:{n} episode:{e} R:{r}", 11900, 12000),
        ("outdir:results/a1 step:{n} episode:{e} R:{r}", 11900, 12000),
        ("Episode {e}/99 | Total steps: {n} | Return: {r}", 11900, 12000),
        ("step {n} | loss {r}", 900, None),  # nothing says that it acts: it may print batches
    ],
)
def test_steps_beside_an_episode_are_the_programs_in_whatever_environment(
    home: Home, line: str, step: int, steps: int | None
) -> None:
    """It knows no gymnasium, so that the agent cannot tell its optimizer's steps from those of the environment."""
    told = "".join(line.format(n=n, e=n // 50, r=n / 800) + "\n" for n in (11000, 11450, 11900))
    found = shown(home, "python main.py --steps 12000", told, step=900)
    assert (found.numbers.step, found.numbers.told_by["step"] != "agent") == (step, step == 11900)
    assert step == 900 or found.numbers.steps == steps
    returns = [view for name, view in found.series.items() if name in ("R", "Return")]
    assert [view.axis for view in returns] == ["step"] * len(returns)


@pytest.mark.parametrize(
    ("done", "printed", "step", "steps"),
    [
        (1, 600, 600, None),  # it prints each evaluation, all within one step of the optimizer
        (31, 30, 31, 90),  # it prints its steps
        (301, 100, 301, None),  # after many steps of another optimizer
        (31, None, 31, 90),
    ],
)
def test_what_lbfgs_evaluates_within_a_step_may_be_what_the_program_counts(
    home: Home, done: int, printed: int | None, step: int, steps: int | None
) -> None:
    output = "" if printed is None else "".join(f"Iter {n}, Loss: {1 / n:.5f}\n" for n in (printed - 1, printed))
    rate = {"steps_per_second": 0.1} if done == 1 else {}
    numbers = shown(home, "python pinn.py --max-steps 90", output, step=done, step_from="evaluations", **rate).numbers
    assert (numbers.step, numbers.steps) == (step, steps)


def test_the_epochs_of_one_of_many_trainings_go_before_the_rounds_among_the_arguments(home: Home) -> None:
    numbers = shown(home, "python main_fed.py --epochs 8", "", step=4800, epoch=2, epochs=2, training=40).numbers
    assert (numbers.epoch, numbers.epochs) == (2, 2)


STAGES = (
    "epoch {epoch}/6 loss {loss}\n",
    "Task 1 | Epoch: [{epoch}/6] loss {loss}\n",
    "epoch {epoch} train_loss {loss} val_loss 0.5\n",
    "Train Epoch: {epoch}/6 Loss: {loss} Accuracy: 90.00%:  50%|#####     | {epoch}/6 [00:03<00:03,  1.0s/it]\n",
    "Stage 2, Epoch {epoch} of 6: train loss = {loss}, val loss = 0.5\n",
    "{{'epoch': {epoch}, 'train_loss': {loss}, 'val_acc': 0.5}}\n",
)


@pytest.mark.parametrize("line", STAGES)
@pytest.mark.parametrize(("first", "epochs", "shown_epoch"), [(1, 4, 4), (0, 4, 4), (0, 1, 1)])
def test_epochs_that_begin_anew_in_each_stage_are_those_that_are_printed(
    home: Home, line: str, first: int, epochs: int, shown_epoch: int
) -> None:
    """A network is pruned, or meets its next task, and trained again: the agent counts passes through all stages."""
    stages = [*range(6)], [*range(6)], [*range(epochs)]
    values = iter(range(900, 0, -1))
    printed = "".join(
        line.format(epoch=first + epoch, loss=f"0.{next(values)}") for epochs in stages for epoch in epochs
    )
    told = {"step": 20 * (12 + epochs), "epoch": 12 + epochs, "epoch_step": 20, "epoch_steps": 20}
    numbers = shown(home, "python prune.py", printed, **told).numbers
    assert numbers.epoch is not None
    assert (numbers.epoch + 1 - numbers.first_epoch, numbers.epochs) == (shown_epoch, 6 if "6" in line else None)
    assert (numbers.step, numbers.steps) == (told["step"], None)
    assert numbers.told_by["step"] == "agent"


def test_a_checkpoint_that_only_the_heartbeat_has_told_of_is_listed(home: Home, tmp_path: Path) -> None:
    """An event follows with the next step, which an evaluation in between may never come to."""
    (tmp_path / "checkpoint.pt").write_bytes(b"PK\x03\x04")
    run = RunBuilder(home).status("ended").launch().exit(code=-15)
    run.beat(step=1200, checkpoint=CheckpointNote(str(tmp_path / "checkpoint.pt"), 1200), loss_seen="backward")
    found = make_monitor(home, FakeClock()).snapshot(run.run.run).checkpoints
    assert [(one.path.name, one.step) for one in found] == [("checkpoint.pt", 1200)]


@pytest.mark.parametrize(("env", "device"), [({"MPSTUI_AGENT_DEVICE": "cpu"}, "cpu"), ({}, "cuda")])
def test_a_device_that_is_printed_is_not_the_one_of_a_program_that_is_given_the_cpu(
    home: Home, env: dict[str, str], device: str
) -> None:
    """Until its first step nobody but the program says where it trains, and it does not know what it is given."""
    run = run_of(home, device="cpu", env=env).output("Using device: cuda\n")
    found = make_monitor(home, FakeClock()).refresh(run.run.run)[0]
    run.release()
    assert found.numbers.device.type == device


_OF_BOTH = "".join(f"[{at}/480] Train loss: {9 / at:.4f}, Valid loss: {8 / at:.4f}, took: 1.25\n" for at in (1, 40, 80))


@pytest.mark.parametrize(
    ("argv", "epochs", "step"),
    [
        ("python train.py --num_iter 480", (None, None), 81),
        ("python train.py --num_iter 480 --epochs 480", (80, 480), 81),
        ("python train.py --num_iter 900", (80, 480), 81),
        ("python train.py", (80, 480), 81),
    ],
)
def test_counts_without_a_name_out_of_the_steps_that_were_asked_for_are_steps(
    home: Home, argv: str, epochs: tuple[int | None, int | None], step: int
) -> None:
    """A count beside what both training and an evaluation come to is that of an epoch, where nothing says otherwise."""
    found = shown(home, argv, _OF_BOTH, step=step)
    assert (found.numbers.epoch, found.numbers.epochs) == epochs
    assert found.numbers.step == step


def test_an_epoch_that_is_called_so_stays_one_though_as_many_steps_were_asked_for(home: Home) -> None:
    printed = "".join(f"Epoch [{at}/40] Train loss: {9 / at:.4f}, Valid loss: {8 / at:.4f}\n" for at in (1, 2, 3))
    numbers = shown(home, "python train.py --max_steps 40", printed, step=3).numbers
    assert (numbers.epoch, numbers.epochs, numbers.step) == (3, 40, 3)


@pytest.mark.parametrize(
    ("told", "steps"),
    [({"step": 20}, 300), ({"step": 301}, 301), ({"step": 400}, None), ({"step": 20, "step_from": "updates"}, None)],
)
def test_the_total_may_be_a_default_of_the_programs_parser(home: Home, told: dict[str, Any], steps: int | None) -> None:
    """None where more steps were made, or the total is one of an environment."""
    assert shown(home, "python run.py", "", planned_steps=300, **told).numbers.steps == steps
