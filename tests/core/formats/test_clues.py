"""What tells of a number where its name does not: its share of the whole, its size, what the line begins with."""

from __future__ import annotations

import pytest

from mpstui.core.formats.points import LossSummary, ParsedLog
from mpstui.core.formats.reader import LogReader


def reader_of(log: str) -> LogReader:
    reader = LogReader()
    reader.feed(log.encode())
    return reader


def read(log: str) -> ParsedLog:
    return reader_of(log).summary()


def lines(form: str, count: int = 4) -> str:
    return "".join(form.format(n=n) + "\n" for n in range(1, count + 1))


def test_a_count_with_its_share_of_the_whole_is_a_place() -> None:
    found = read(
        lines("Process {n}00/2000({n}5.0%) average objf: -0.{n}7 over 64 frames, epoch 1").replace("({n}5", "(")
    )
    assert found.step is None  # the shares are wrong
    found = read("".join(f"Process {n}00/2000({n * 5}.0%) average objf: -0.{n}7, epoch 1\n" for n in (1, 2, 3)))
    assert (found.step, found.steps, found.epoch) == (300, 2000, 1)
    assert set(found.metrics) == {"average objf"}


@pytest.mark.parametrize("name", ["Correct", "Fold"])
def test_a_share_of_what_is_right_is_no_place(name: str) -> None:
    found = read("".join(f"{name} {n}0/100 ({n}0.0%) loss: 0.{n}7\n" for n in (1, 2, 3)))
    assert found.step is None


@pytest.mark.parametrize("prefix", ["[1,0]<stderr>:", "[1,13]<stdout>:", "worker-0: ", "trainer-1  | ", "node_12: "])
def test_who_printed_a_line_is_no_place(prefix: str) -> None:
    found = read(lines(f"{prefix}step {{n}}00 | loss 2.{{n}}5"))
    assert (found.epoch, found.step) == (None, 400)
    assert found.train_loss is not None
    assert found.train_loss.count == 4


def test_an_epoch_in_brackets_is_read_behind_the_name_of_the_host() -> None:
    found = read(lines("worker-0: [2, {n}000] loss: 1.{n}5"))
    assert (found.epoch, found.step) == (2, 4000)


def test_values_under_the_heading_of_a_time_are_times() -> None:
    found = read(
        lines(" iteration {n}/10 | lm loss: 2.{n}5E+00 |\ntime (ms) | forward: 35{n}.9 | batch generator: 1{n}.1")
    )
    assert set(found.metrics) == {"lm loss"}


def test_seconds_since_1970_are_no_metric() -> None:
    found = read(lines(":::LOG trainer 156093620{n}.667271376 (/app/logger.py:251) train_loss: 5.{n}15"))
    assert set(found.metrics) == {"train_loss"}


@pytest.mark.parametrize(
    "names",
    ["step/total_step", "step/steps", "Step/Total", "iter/max_iter", "steps/num_steps", "iteration / total iterations"],
)
def test_a_total_may_be_named_beside_the_count(names: str) -> None:
    found = read(lines(f"Epoch 3, {names}: {{n}}0/60 Loss:5.{{n}}9"))
    assert (found.epoch, found.step, found.steps) == (3, 40, 60)


def test_epochs_that_are_told_ever_anew_are_not_those_of_the_training() -> None:
    data = "".join(f"    total number of samples: {n}00\n    total number of epochs: {n}\n" for n in (76, 136, 504))
    assert read(data + lines(" iteration {n}/1000 | lm loss: 2.{n}5 |")).epochs is None
    assert read("total number of epochs: 76\n" + lines("Epoch {n} loss: 2.{n}5")).epochs == 76


def test_an_average_may_be_told_in_brackets_behind_a_measure() -> None:
    reader = reader_of("EPOCH 3 done: loss 0.1091\nDEV : loss 0.175 - f1-score (micro avg)  0.6586\n")
    assert {"DEV loss", "DEV f1-score"} <= set(reader.summary().metrics)


def test_a_row_may_begin_a_letter_aside_from_the_name_of_its_column() -> None:
    found = read(
        "epoch       iteration   main/loss   validation/main/loss  elapsed_time\n"
        "0           100         2.5                                114.5\n"
        "0           200         2.25        2.125                  229.5\n"
    )
    assert found.train_loss is not None
    assert (found.epoch, found.step, found.train_loss.last) == (0, 200, 2.25)


def test_a_validation_of_marian_tells_its_measure() -> None:
    log = lines("[2021-07-17 12:54:3{n}] Ep. 1 : Up. {n}000 : Sen. 9,843 : Cost 5.2{n} : Time 3.59s : 307.81 words/s")
    reader = reader_of(log + "[2021-07-17 13:51:02] [valid] Ep. 1 : Up. 4000 : perplexity : 187.458 : new best\n")
    assert "perplexity" in reader.summary().metrics


def test_what_an_epoch_of_espnet_came_to_is_read_by_its_parts() -> None:
    form = (
        "{n}epoch results: [train] iter_time=0.002, loss_ctc=17.{n}, loss=15.{n}07, optim0_lr0=4.9e-04, "
        "time=3 hours and 16.97 seconds, total_count=527, "
        "[valid] loss_ctc=9.{n}, cer=0.{n}3, loss=9.{n}81, total_count=56"
    )
    reader = reader_of(lines(form))
    found = reader.summary()
    assert (found.epoch, found.train_loss) == (4, LossSummary(15.107, 15.407, 4))
    assert found.learning_rate == 4.9e-4
    assert {"loss", "loss_ctc", "cer"} <= set(found.metrics)


@pytest.mark.parametrize("label", ["0: ", "13: "])
def test_the_number_of_a_task_in_front_of_a_line_is_no_place(label: str) -> None:
    found = read(lines(f"{label}[RANK 0] Epoch {{n}} | Loss: 0.{{n}}45"))
    assert (found.epoch, found.step) == (4, None)
    assert read(lines("{n}: loss 0.{n}45")).step == 4


def test_cross_validation_is_an_evaluation() -> None:
    found = read(lines("2026-05-09 04:10:57,296 DEBUG CV Batch 7/{n}0 loss 0.{n}57 acc 99.0{n} history loss 0.{n}8"))
    assert found.train_loss is None


def test_a_unit_of_time_behind_a_name_makes_it_a_time() -> None:
    found = read(lines("epoch: {n} | nupdates: {n}000 | bch(ms): 40{n}.7 | optim(ms): 6{n}.8 | loss: 2.{n}5"))
    assert set(found.metrics) == {"loss"}
    assert (found.epoch, found.step) == (4, 4000)


def test_a_count_in_brackets_in_front_of_an_objective_is_a_step() -> None:
    found = read(lines("  [   {n}] obj=5310{n}.96   act=24066{n}   err= 3.{n}1%/25.41% time=0.23s/0.23s"))
    assert found.step == 4
    assert "err" in found.metrics


def test_a_total_that_rises_under_one_count_is_a_count_of_its_own() -> None:
    found = read("".join(f"TRAIN Batch 4/20{n}00 loss 12.{n}4 lr 0.0003 rank 0\n" for n in range(9)))
    assert (found.epoch, found.step, found.steps) == (4, 20800, None)
    found = read("".join(f"Batch {n}/20 loss 12.{n}4\n" for n in range(9)) + "Batch 9/30 loss 9.9\n")
    assert (found.epoch, found.step, found.steps) == (None, 9, 30)


def test_a_pass_with_batches_is_an_epoch() -> None:
    found = read(lines("[Pass 3, train batch {n}0]  loss 53.{n}9, acc1 0.{n}0000, batch_cost 1.35808 sec"))
    assert (found.epoch, found.step) == (3, 40)


def test_a_bar_that_stands_where_a_line_of_a_later_epoch_does_tells_the_steps_of_the_run() -> None:
    log = lines("{{'loss': 0.1{n}, 'global_step': {n}00, 'epoch': 2.{n}3}}")
    assert read(f"{log} 33%|###       | 400/600 [01:11<01:58,  3.37it/s]\n").steps == 600


def test_both_counts_may_have_their_word_behind_them() -> None:
    found = read(lines("loss: 0.{n}5, {n}00 iter, 3 epoch / 20 epochs"))
    assert (found.epoch, found.epochs) == (3, 20)


def test_a_count_in_brackets_beside_a_measure_spoils_no_other_line() -> None:
    reader = reader_of(lines("Val: [1/{n}] loss 0.{n} (3) acc 0.{n}") + lines("Epoch {n} loss: 0.{n}5"))
    assert reader.failure is None
    assert reader.summary().epoch == 4


def test_the_unit_of_a_time_is_no_part_of_the_next_name() -> None:
    found = read(lines("Step: {n}000. Time Elapsed: 11{n}.797 s Mean Reward: 0.4{n}. Std of Reward: 0.{n}9. Training."))
    assert set(found.metrics) == {"Mean Reward", "Std of Reward"}


def test_the_loss_of_a_model_among_those_of_others_is_not_the_loss() -> None:
    found = read(lines("[5847{n}] kl_loss 0.{n}7 / image_loss 1.{n}e4 / model_loss 1.{n}e4 / actor_loss -1.5e-{n}"))
    assert found.train_loss is None
    found = read(lines("epoch {n} model_loss: 1.{n}5 acc: 0.{n}"))
    assert found.train_loss is not None


def test_names_and_values_in_a_row_need_no_sign_between_them() -> None:
    found = read(lines("[5847{n}] kl_loss 0.{n}7 / prior_ent 1.{n}2 / model_grad_norm 133.{n}8 / actor_loss -1.5e-{n}"))
    assert {"kl_loss", "prior_ent", "model_grad_norm"} <= set(found.metrics)
    assert found.step == 58474
    tested = lines("Iter 000{n} | Loss 0.{n}1") + lines("[TEST] Iter 000{n} | Test Loss 0.{n}5 | NFE 14")
    assert read(tested).metrics == ("Loss", "Test Loss")
    assert not read(lines("It took 0.{n} seconds to load 3{n} files from 2 folders")).metrics


@pytest.mark.parametrize(
    "plan",
    ["총 학습 스텝 수: 900", "総ステップ数: 900", "Всего шагов: 900", "Anzahl Schritte: 900", "макс. шагов: 900"],
)
def test_how_many_steps_are_planned_in_other_languages(plan: str) -> None:
    found = read(plan + "\n" + lines("step {n} loss 0.{n}5"))
    assert (found.step, found.steps) == (4, 900)


@pytest.mark.parametrize("name", ["Устройство", "Gerät", "Dispositivo", "Appareil"])
def test_the_device_in_other_languages(name: str) -> None:
    assert read(f"10:00:01 | INFO | {name}: cpu\n" + lines("step {n} loss 0.{n}5")).standing.device == "cpu"


def test_a_time_behind_the_level_is_none_of_the_record() -> None:
    found = read(lines("[INFO] 2025-01-02 03:04:0{n} Episode {n} reward -1{n}.500 eps 0.9{n}"))
    assert {"reward", "eps"} <= set(found.metrics)


@pytest.mark.parametrize("sentence", ["Found 3 images 2.5 each", "it took 3 of 4.5", "images 3 kept 2"])
def test_names_and_numbers_of_no_measure_are_no_record(sentence: str) -> None:
    assert read(lines(sentence + "{n}")).metrics == ()


def test_a_cost_in_seconds_at_the_end_of_a_line_is_no_loss() -> None:
    found = read(lines("====> Epoch: {n}, cost 20.{n}1 s"))
    assert (found.epoch, found.train_loss, found.metrics) == (4, None, ())


def test_a_level_behind_a_stamp_in_brackets_ends_what_a_logger_puts_in_front() -> None:
    found = read(lines("[Net][05-01 10:00:0{n}]INFO: Train|Epoch{n}/30|Iter{n}0(1/30)| loss:0.{n}5"))
    assert (found.epoch, found.epochs, found.step) == (4, 30, 40)


def test_a_name_that_ends_in_a_phase_says_whose_place_follows() -> None:
    found = read(lines("detector/default train: [{n}][30/90]|loss 9.{n}5 |size_loss 1.5 |Net 0.512s"))
    assert (found.epoch, found.step, found.steps, found.runs) == (4, 30, 90, 1)


def test_a_cross_entropy_is_the_loss_where_nothing_else_is() -> None:
    found = read(lines("Epoch[{n}] Batch [20]\taccuracy=0.{n}4\tcross-entropy=1.{n}5"))
    assert found.train_loss is not None
    assert (found.train_loss.last, found.train_loss.count) == (1.45, 4)
    found = read(lines("Epoch {n} loss: 2.{n}5, cross_entropy: 1.{n}5"))
    assert found.train_loss is not None
    assert found.train_loss.last == 2.45


def test_the_step_within_the_name_of_a_validation_loss_is_no_part_of_it() -> None:
    log = "".join(f"Train loss {n}00 1.{n}50000 Grad Norm 0.5\nValidation loss {n}00:  1.{n}75000\n" for n in (1, 2, 3))
    assert set(read(log).metrics) >= {"Validation loss"}
    assert not any("00" in name for name in read(log).metrics)


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        ("Epoch[0] Batch [{n}0-{n}5]\tSpeed: 5.1 samples/sec\tloss=0.5{n}", ("loss", 0, 45)),
        ("Episode: {n}, total numsteps: {n}00, episode steps: 100, reward: -1{n}.5", (None, None, 400)),
        ("[0{n}/20] train_loss=0.5{n} | val_loss=0.7{n}", ("loss", 4, None)),
        ("\rEpoch 2 L: 22.1{n}: {n}0%|██        | {n}/10 [00:01<00:04,  1.2it/s]", ("loss", 2, 4)),
        ("train loss 1 0.5{n}, overall train average 0.7{n}", (None, None, None)),
    ],
)
def test_what_counts_and_what_is_counted(form: str, shown: tuple[str | None, int | None, int | None]) -> None:
    found = read(lines(form))
    assert ("loss" if found.train_loss else None, found.epoch, found.step) == shown


def test_a_count_alone_behind_the_full_bar_of_an_epoch_is_that_of_the_epochs() -> None:
    bar = "Epoch {n}: 100%|██████████| 9/9 [00:01<00:00,  1.2it/s, loss=0.5{n}]\n[{n}/7] mean total = 0.5{n}1"
    found = read(lines(bar))
    assert (found.epoch, found.epochs, found.step, found.steps) == (4, 7, 9, 9)


def test_settings_may_be_joined_to_their_values_by_dots() -> None:
    told = "batch_size ........ 32\nepochs ........ 20\nhidden_dim ........ 128.5\nlr ................ 0.001\n"
    found = read(told + lines("Epoch {n}: loss 0.5{n}"))
    assert (found.epochs, found.learning_rate, found.metrics) == (20, 0.001, ("loss",))


@pytest.mark.parametrize("line", ["[LR] current: 5.00e-04", "Validation Results\nCurrent Learning Rate: 0.00050"])
def test_a_rate_behind_its_tag_or_among_results_is_the_one_in_use(line: str) -> None:
    assert read(lines("Epoch {n}: loss 0.5{n} lr 0.001") + line + "\n").learning_rate == 0.0005


def test_a_count_in_brackets_in_front_of_a_loss_without_a_sign_is_a_place() -> None:
    found = read(lines("[{n}/6] avg loss 2.{n}5"))
    assert (found.step, found.steps, found.train_loss and found.train_loss.last) == (4, 6, 2.45)
    assert read(lines("[{n}/6] Loading shard 2.{n}5")).step is None
