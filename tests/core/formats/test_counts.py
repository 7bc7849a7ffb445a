"""How far a line says that the training is: so many of so many, whatever stands around it."""

from __future__ import annotations

import pytest

from mpstui.core.formats.points import LossSummary, Number, ParsedLog
from mpstui.core.formats.reader import LogReader

FORMS: list[tuple[str, tuple[Number | None, ...]]] = [
    (
        "| epoch   1 |    20/   46 batches | lr 20.00 | ms/batch 12.3 | loss 5.11 | ppl 300",
        (1, None, None, None, 20, 46),
    ),
    ("step 00059/00060 (98.33%) | loss: 6.71 | dt: 100ms | tok/sec: 1,234", (None, None, 59, 60, None, None)),
    ("iter 340/5000: train loss 1.21, val loss 1.5", (None, None, 340, 5000, None, None)),
    ("Iteration 20 / 50", (None, None, 20, 50, None, None)),
    ("[12/100][3/20] loss: 0.51", (12, 100, None, None, 3, 20)),
    ("steps 59 of 60 loss 0.51", (None, None, 59, 60, None, None)),
    ("20/46 batches, loss 0.51", (None, None, None, None, 20, 46)),
    ("Completed 340/5000 steps (6.8%), loss 0.51", (None, None, 340, 5000, None, None)),
    ("Finished 3/10 epochs, loss 0.51", (3, 10, None, None, None, None)),
    ("Progress: 20/50 loss=0.51", (None, None, 20, 50, None, None)),
    ("Progress: 340 / 5000 steps, loss 0.51", (None, None, 340, 5000, None, None)),
    ("Overall Progress: [2/16] Batch [20/50] Loss: 0.51", (2, 16, None, None, 20, 50)),
    ("Overall progress 2/16 | Iter 20/50 | loss 0.51", (2, 16, None, None, 20, 50)),
    ("Progress [2/16] [20/50] Loss: 0.51", (2, 16, None, None, 20, 50)),
    (" 34% [####      ] 340/1000 | loss 0.51", (None, None, 340, 1000, None, None)),
    ("[==>   ] 340/5000 loss 0.51", (None, None, 340, 5000, None, None)),
    ("█████░░░░░ 3/20 loss: 0.51", (None, None, 3, 20, None, None)),
    ("[1/10] step 3/20 loss: 0.51", (1, 10, None, None, 3, 20)),
    ("Train: [ 1/10] Step 003/020 Loss 0.51 Prec@1 10.0", (1, 10, None, None, 3, 20)),
    ("Epoch is [3/20], mini-batch is [5/200], batch_loss is 0.51", (3, 20, None, None, 5, 200)),
    ("batch i:300, loss: 0.51", (None, None, None, None, 300, None)),
    ("epoch 3: avg train loss: 0.51, best val: 0.60 at epoch 2", (3, None, None, None, None, None)),
    ("200 [D loss: 0.531, acc.: 81.25%] [G loss: 0.91]", (None, None, 200, None, None, None)),
    ("After 300 iterations, training cost = 0.51", (None, None, 300, None, None, None)),
    ("Iteración 3/20 pérdida: 0.51", (None, None, 3, 20, None, None)),
    ("42/50 ( 82.00%) (TE: 0:01 / 0:35) itr: 242, G_loss : +1.063, loss : 0.51", (None, None, 242, None, 42, 50)),
    ("3/50 itr: 3, loss : 0.51", (None, None, 3, 50, None, None)),
    ("[0005] Epoch 3 loss: 0.51", (3, None, 5, None, None, None)),
    ("[3,    20] RMSE: 0.9226402", (3, None, None, None, 20, None)),
    ("[3, 20] accuracy: 0.51", (3, None, None, None, 20, None)),
    ("Total epoch 3 finished in 2.8 seconds with TRAINING RMSE loss: 0.51", (3, None, None, None, None, None)),
    ("Total epoch 3 loss: 0.51", (3, None, None, None, None, None)),
    ("Total epochs 3 done, loss 0.51", (3, None, None, None, None, None)),
    ("[000660][Epoch 03/50] loss: 0.51", (3, 50, None, None, None, None)),
    ("Epoch 2/10 (3/20) loss 0.51", (2, 10, None, None, 3, 20)),
    ("[Epoch 2][Step 3/20] loss 0.51", (2, None, None, None, 3, 20)),
    ("Epoch 019 | Avg Loss 0.51 | Best 0.62 (Epoch 18)", (19, None, None, None, None, None)),
    ("0-epoch (99/4466): total loss 0.51, lr 1e-4", (0, None, None, None, 99, 4466)),
    ("20/500 in 3 epoch finished at time 0:00:27.742635 from start, Loss is 0.51", (3, None, None, None, 20, 500)),
    ("12th epoch: train loss 0.51", (12, None, None, None, None, None)),
    ("Epoch and iter 28 1251 Loss 0.51 Time 102.1", (28, None, 1251, None, None, None)),
    ("epoch, step: 3, 20, loss 0.51", (3, None, 20, None, None, None)),
    ("Steps: 2048 Episode: 23 Reward: 21.5 epsilon: 0.1", (None, None, 2048, None, None, None)),
    ("Total T: 2048 Episode Num: 12 Episode T: 100 Reward: 12.3", (None, None, 2048, None, None, None)),
    (
        "Epoch #1: 9it [00:10, 9.12it/s, env_step=2048, gradient_step=9, len=200, loss=0.51, n/ep=1, n/st=9, rew=1.5]",
        (1, None, 2048, None, None, None),
    ),
    ("Epoch: [3 | 600] loss: 0.51", (3, 600, None, None, None, None)),
    # The plural beside a loss counts; how many are planned stands elsewhere.
    ("Epochs:  10  Iterations:  187  Loss:  2.51", (10, None, 187, None, None, None)),
    ("epochs: 3, loss: 0.51", (3, None, None, None, None, None)),
    ("Epochs: 3/8 loss: 0.51", (3, 8, None, None, None, None)),
    ("[>....]  Step: 7s867ms | Tot: 23s700ms | Loss: 2.1 | Acc: 23.2% (119/512) 4/7", (None, None, None, None, 4, 7)),
]


@pytest.mark.parametrize(("line", "counters"), FORMS)
def test_so_many_of_so_many(line: str, counters: tuple[Number | None, ...]) -> None:
    assert LogReader().feed(f"{line}\n".encode())[-1].counters == counters


@pytest.mark.parametrize(
    ("line", "total"),
    [
        ("Scheduled epochs: 3 (epochs + cooldown). Warmup within epochs. LR stepped per epoch.", (3, None)),
        ("125 iterations per epoch. 12500 max iterations", (None, 12500)),
        ("Running: /usr/bin/python train.py --optimizer muon --epochs 2 --seed 42 --batch-size 128", (2, None)),
        ("Namespace(data='x', epochs=2, lr=0.1, batch_size=64)", (2, None)),
        ("Config: {'epochs': 2, 'batch_size': 64, 'lr': 0.1, 'loss': 'mse'}", (2, None)),
        ("{'batch_size': 64,\n 'epochs': 2,\n 'lr': 0.1}", (2, None)),
        ("{'batch_size': 8,\n 'max_steps': 600}", (None, 600)),
        ("scheduler kwargs: {'epochs': 2, 'max_lr': 0.1}", (None, None)),
        ("max_iters = 600", (None, 600)),
        ("num_train_epochs=3,", (3, None)),
        ("Training for 10 epochs", (10, None)),
        ("Total epochs 10", (10, None)),
        ("Total epoch: 10, total loss weight 0.5", (10, None)),
        ("warmup_steps = 100", (None, None)),
        ("eval_iters = 200", (None, None)),
        ("save_steps=500,", (None, None)),
        ("steps_per_epoch: 50", (None, None)),
    ],
)
def test_a_total_is_taken_from_where_it_is_told(line: str, total: tuple[int | None, int | None]) -> None:
    reader = LogReader()
    reader.feed(f"{line}\nepoch 1 step 5 loss 2.5\n".encode())
    found = reader.summary()
    assert (found.epochs, found.steps) == total
    assert (found.epoch, found.step) == (1, 5)


def log(line: str, *, lines: int = 4) -> ParsedLog:
    """What a log of lines with ``{n}`` for their number, from 1, says."""
    reader = LogReader()
    reader.feed("".join(line.format(n=n) + "\n" for n in range(1, lines + 1)).encode())
    return reader.summary()


@pytest.mark.parametrize(
    ("line", "epoch", "epochs", "step", "steps", "loss"),
    [
        ("[epoch: {n}/20, iter: 5/99] total: 1.{n}25", 4, 20, 5, 99, 1.425),
        ("Epoch {n}, Step 3, det loss: 0.5, box loss: 0.25, all_loss: 0.{n}5", 4, None, 3, None, 0.45),
        ("Loss after {n} epochs: 0.{n}5", 4, None, None, None, 0.45),
        ("Distill Epoch {n}/9 | Loss 0.{n}5", 4, 9, None, None, 0.45),
        ("\rTrain {n}/9:  50%|#####     | 5/10 [00:01<00:01,  4.0it/s, loss=0.{n}5]", 4, 9, 5, 10, 0.45),
        ("\r[fold_0] 00{n}/009:  50%|##  | 5/10 [00:01<00:01,  4.0it/s, loss=0.{n}5]", 4, 9, 5, 10, 0.45),
        ("\rfold {n}/9:  50%|#####     | 5/10 [00:01<00:01,  4.0it/s, loss=0.{n}5]", None, None, 5, 10, 0.45),
        ("\r {n}0%|#    | {n}/10 [00:01<00:01, 4.0s/it]Epoch {n}, loss: 0.{n}5", 4, 10, 4, 10, 0.45),
        ("#{n}0 loss:0.{n}5 gnorm:1.5", None, None, 40, None, 0.45),
        ("[{n}][20/99] loss 0.{n}5 (0.5)", 4, None, 20, 99, 0.45),
        ("{n}0: contrastive_loss 0.{n}5, pos_sim 0.5", None, None, 40, None, 0.45),
        ("ep 00{n} loss(train/val)=0.{n}5/0.75 lr=1e-3", 4, None, None, None, 0.45),
        ("Epoch {n}: Train/Val Loss: 0.{n}5 / 0.75", 4, None, None, None, 0.45),
        ("Namespace(epochs=9, data='x', lr=0.1, wd=0.5)\nEpoch {n} loss: 0.{n}5", 4, 9, None, None, 0.45),
        ("gpu: True, dir: data, epochs: 9, every: 500, path: x\nEpoch {n} loss: 0.{n}5", 4, 9, None, None, 0.45),
        ("Training [== ] 40.0% {n}/10 | 4.5 it/s | loss=0.{n}5", None, None, 4, 10, 0.45),
        ("epoch {n}-step 50 loss: 0.{n}5", 4, None, 50, None, 0.45),
        ("I Training of Epoch {n} - loss: 0.{n}5", 4, None, None, None, 0.45),
        ("Step, {n}, Loss, 0.{n}5, PSNR, 9.{n}, StepTime, 0.5,", None, None, 4, None, 0.45),
        ("Start Training 9 EPOCHs\nEpoch {n} loss: 0.{n}5", 4, 9, None, None, 0.45),
        ("Epoch {n} tloss: 0.{n}5 vloss: 0.75", 4, None, None, None, 0.45),
        ("# step loss lr\n{n}0 0.{n}5 1e-3", None, None, 40, None, 0.45),
        ("Epoch {n}, Itrs {n}0/150, Loss=0.{n}5", 4, None, 40, 150, 0.45),
    ],
)
def test_counters_and_losses_as_programs_print_them(
    line: str, epoch: int | None, epochs: int | None, step: int | None, steps: int | None, loss: float
) -> None:
    found = log(line)
    assert found.train_loss is not None
    assert (found.epoch, found.epochs, found.step, found.steps) == (epoch, epochs, step, steps)
    assert found.train_loss.last == loss


def test_the_losses_of_policy_and_value_are_two_parts() -> None:
    found = log("[ 1{n}] ep=5{n} r= 1.5 ploss=-0.{n}5 vloss= {n}0.5 ent=1.{n}5")
    assert found.train_loss is None
    assert {"ploss", "vloss"} <= set(found.metrics)


def test_a_summary_behind_a_star_is_of_an_evaluation() -> None:
    reader = LogReader()
    (point,) = reader.feed(b" * Prec@1 87.5\n")
    assert (dict(point.metrics), dict(point.eval_metrics)) == ({}, {"Prec@1": 87.5})


def test_two_losses_told_apart_by_an_abbreviation_are_two() -> None:
    found = log("it: {n}00, avg. loss: 3.{n}5\nit: {n}00, mem avg. loss: 2.{n}5")
    assert found.train_loss is not None
    assert (found.train_loss.last, found.train_loss.count) == (3.45, 4)


def test_a_last_line_without_an_end_counts_where_it_ends_like_the_others() -> None:
    reader = LogReader()
    reader.feed(b"Steps 10, Loss 1.5e+00 lr 1.000e-04\nSteps 20, Loss 1.25e+00 lr 1.000e-04")
    assert [point.loss for point in reader.close()] == [1.25]
    reader = LogReader()
    reader.feed(b"Steps 10, Loss 1.5e+00 lr 1.000e-04\nSteps 20, Loss 1.25e+00 lr 1.000e-0")
    assert reader.close() == []


def test_a_count_within_a_name_makes_no_further_name() -> None:
    found = log("epoch {n} loss 0.{n}5\ntraining score({n}): 1.{n}", lines=40)
    assert found.metrics == ("loss", "training score")
    found = log("epoch {n} loss 0.{n}5\nscore of game{n}: 1.{n}", lines=400)
    assert len(found.metrics) < 12


def test_a_duration_and_a_place_are_no_metrics() -> None:
    found = log("epoch {n} loss 0.{n}5 acc 0.9{n}. at thresh {n}.5 | Tot: 4{n}m4s | Step: {n}s69{n}ms")
    assert found.metrics == ("loss", "acc")


def test_settings_printed_anew_by_another_launch_are_no_metrics() -> None:
    launch = "epochs: 9\n  ortho_weight: 0.{n}\nepoch 1 loss 1.{n}\nepoch 2 loss 0.{n}"
    assert log(launch, lines=2).metrics == ("loss",)


def test_the_end_of_an_evaluation_is_the_training_again() -> None:
    found = log("epoch {n} loss 0.{n}5\nbegin evaluate...\nloss: 9.5\nend evaluate...\nloss: 0.{n}6")
    assert found.train_loss is not None
    assert found.train_loss.last < 1


def test_parts_on_lines_tell_the_step_and_no_bar_of_an_evaluation_does() -> None:
    found = log("iter: {n}00, l_mos: 0.{n}5, l_rank: 0.{n}6\n\r 50%|#####     | 5/10 [00:01<00:01,  4.0it/s]")
    assert (found.step, found.steps, found.train_loss) == (400, None, None)


def test_steps_that_go_through_the_epochs_hold_when_the_next_one_is_announced() -> None:
    found = log("EPOCH {n}\nEpoch {n} Step: {n}000 Batch Loss: 0.{n}5\nEpoch {n}: total training loss {n}.5\nEPOCH 5")
    assert (found.epoch, found.step) == (5, 4000)


@pytest.mark.parametrize(
    ("launch", "counted"),
    [
        ("Loading the data...\ndone\nStarting for 9 meta epoch(s)\nMeta epoch 0...\nTotal train loss: {v}", (0, 9, 1)),
        ("##### config #####\nlr: 0.1\nEpoch 0, lr=0.1\nLoss:{v} TrainAcc:0.5", (0, None, 1)),
        ("nohup: ignoring input\nepoch 1 step 10 loss {v}\nepoch 1 step 20 loss {v}", (1, None, 2)),
        ("Using default model\nepoch=0 i=0/9 total_loss={v} part_loss=0.5", (0, None, 1)),
        ("me@box:~/net$ python train.py --epochs 7\nEpoch 1 loss {v}", (1, 7, 1)),
        ("(env) C:\\net>python -u train.py\nEpoch 1 loss {v}", (1, None, 1)),
    ],
)
def test_a_program_that_begins_again_is_another_run(launch: str, counted: tuple[int | None, ...]) -> None:
    reader = LogReader()
    reader.feed("".join(launch.format(v=f"{n}.5") + "\n" for n in range(3)).encode())
    found = reader.summary()
    assert found.train_loss is not None
    assert (found.epoch, found.epochs, found.train_loss.count, found.runs) == (*counted, 3)
    assert found.train_loss.first == 2.5


def test_a_program_that_begins_again_with_other_steps_in_an_epoch_is_another_run() -> None:
    """The first step that it tells may lie behind all those of the launch before."""
    first = "Loading the data...\n" + "".join(f"epoch 0 step {n}4/1600 loss 3.{n}\n" for n in range(1, 6))
    second = "Loading the data...\n" + "".join(f"epoch 0 step {n}99/400 loss 2.{n}\n" for n in range(1, 3))
    reader = LogReader()
    reader.feed((first + second).encode())
    found = reader.summary()
    assert found.train_loss is not None
    assert (found.runs, found.steps, found.train_loss.count, found.train_loss.first) == (2, 400, 2, 2.1)


def test_a_line_that_comes_with_each_epoch_begins_no_program() -> None:
    found = log("Loading the next shard\nepoch {n} loss 0.{n}5\nLoading the next shard\nval loss 0.{n}6", lines=8)
    assert found.runs == 1
    found = log("Engine run starting with max_epochs=1.\nepoch 1 step {n} loss 0.{n}5", lines=8)
    assert found.runs == 1


def test_steps_that_rise_beside_a_measure_are_counted_not_planned() -> None:
    found = log("Num steps: {n}0000   Return: 2{n}.5   Time: 0:0{n}:15", lines=6)
    assert (found.step, found.steps, found.metrics) == (60000, None, ("Return",))
    found = log("max_steps: {n}0000\nepoch 1 step {n} loss 0.{n}5", lines=6)
    assert found.step == 6


def test_the_end_of_an_epoch_may_stand_between_rules() -> None:
    assert LogReader().feed(b"step 3 loss 0.5\n================ End of epoch 3 ================\n")[-1].epoch_done


def test_the_time_spent_in_an_epoch_is_no_epoch() -> None:
    found = log("epoch: {n}\ntrain loss: 1.{n}5\ntime (s) spent in epoch: 22{n}.97", lines=4)
    assert (found.epoch, found.runs) == (4, 1)


def test_iterations_over_the_data_with_steps_of_them_are_epochs() -> None:
    reader = LogReader()
    for line in ("iteration:1 step:100/250, NER loss:9.5", "iteration:1 step:200/250, NER loss:8.5"):
        reader.feed(f"{line}\n".encode())
    found = reader.summary()
    assert (found.epoch, found.step, found.steps) == (1, 200, 250)
    reader.feed(b"iteration:2 step:50/250, NER loss:7.5\n")
    assert (reader.summary().epoch, reader.summary().runs) == (2, 1)


def test_a_batch_alone_with_its_number_is_a_size() -> None:
    reader = LogReader()
    reader.feed(b"Epoch 0/9\nbatch = 405\ntrain Loss: 0.5\nEpoch 1/9\nbatch = 405\ntrain Loss: 0.25\n")
    assert (reader.summary().epoch, reader.summary().step) == (1, None)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("Fold {n}, k=2{n}: test_map = 0.5{n}, test_recall = 0.4{n}", ("test_map", "test_recall")),
        ("class 0{n}: #TP=4{n}05, #FP= 51{n}, #FN=30{n}, IoU=0.8{n}", tuple(f"class 0{n} IoU" for n in range(1, 6))),
        ("step {n} loss 0.5 alpha: [0.324354381{n} 0.107519151 0.087313751 0.1004597]", ("loss",)),
    ],
)
def test_what_is_counted_and_which_part_it_is_are_no_metrics(line: str, names: tuple[str, ...]) -> None:
    reader = LogReader()
    for n in (3, 1, 4, 1, 5, 2):
        reader.feed(f"{line.format(n=n)}\n".encode())
    assert set(reader.summary().metrics) == set(names)


def test_a_training_without_a_loss_begins_anew_where_its_epochs_do() -> None:
    epoch = "Epoch[{0}] Batch [20] Train-Acc=0.{0}5\nUpdate[90]: Change learning rate to 1e-04\n"
    later = "Start training with gpu(0)\n" + "".join(f"Epoch[{n}] Batch [20] Train-Acc=0.{n}7\n" for n in range(4))
    reader = LogReader()
    reader.feed(("".join(map(epoch.format, range(2, 9))) + later).encode())
    found = reader.summary()
    assert (found.runs, found.epoch, found.learning_rate) == (2, 3, None)


def test_a_span_of_batches_is_no_place_and_so_many_units_are_part_of_a_name() -> None:
    rate = "Learning rate per 1 samples: 0.001\n"
    epochs = "Finished Epoch[{n} of 9]: [Training] loss = 2.{n}5 * 600, metric = 1{n}.5% * 600 2.5s (240.1 samples/s);"
    found = log(epochs, lines=3)
    assert (found.epoch, found.epochs, found.step) == (3, 9, None)
    reader = LogReader()
    reader.feed(
        (rate + "Finished Epoch[1 of 9]: loss = 2.5\nFinal Results: Minibatch[1-11]: errs = 0.54% * 100\n").encode()
    )
    found = reader.summary()
    assert (found.learning_rate, found.step, found.metrics) == (0.001, None, ("loss", "errs"))


def test_the_record_of_an_iteration_below_folds_is_one_of_training() -> None:
    record = (
        "***** Iteration #{0} *****\nLoss: 5{0}38.26\nFeature norm: 0.3{0}9\nError norm: 90{0}.428\n"
        "Active features: 129{0}4 / 15711\nTrials: {0}\nSeconds required: 0.008{0}\n"
        "Accuracy: 0.59{0}8 (127{0}/2133)\nMicro F1: 0.6{0}\n"
    )
    reader = LogReader()
    folds = "Cross validation: true\n===== Cross validation (1/5) =====\n"
    reader.feed((folds + "".join(map(record.format, (1, 2)))).encode())
    found = reader.summary()
    assert (found.step, found.train_loss) == (2, LossSummary(5138.26, 5238.26, 2))
    assert {"Loss", "Accuracy", "Micro F1"} <= set(found.metrics)


def test_the_iterations_of_a_round_are_not_all_steps_of_the_training() -> None:
    reader = LogReader()
    reader.feed(b"train_steps        : 400000\niterations         : 5000\n[  5000] | lr 0.00025 | loss 5.5\n")
    assert (reader.summary().step, reader.summary().steps) == (5000, 400000)
    reader.feed(b"iterations         : 8000\n[  6000] | lr 0.00025 | loss 5.5\n")
    assert reader.summary().steps == 8000


@pytest.mark.parametrize(
    "line",
    [
        "Generation {n} | Best Fitness: 13.{n}",
        "Generation: {n} Average Fitness: 0.{n}5",
        "Generation {n}/40: best fitness = 0.{n}3",
        "generation {n} loss 0.{n}5",
    ],
)
def test_generations_beside_a_measure_are_steps(line: str) -> None:
    assert log(line).step == 4


@pytest.mark.parametrize("line", ["Generation: {n} tokens, 0.{n} tokens-per-sec", "Generation {n} took 0.{n}5 s"])
def test_what_a_model_generates_is_no_step(line: str) -> None:
    assert log(line).step is None


@pytest.mark.parametrize("count", ["total num timesteps {n}00/90000", "Total steps: {n}00/90000"])
def test_a_total_that_is_called_so_may_be_told_as_a_count_out_of_it(count: str) -> None:
    for told in (1, 2, 4):
        found = log(f"{count}, FPS 38.", lines=told)
        assert (found.step, found.steps) == (100 * told, 90000)
