"""What it takes for a printed value to be shown as a metric: a known name, or that it comes again, in what company."""

from __future__ import annotations

import pytest

from mpstui.core.formats.measures import (
    best_of,
    is_measure,
    is_never_a_metric,
    is_of_machine,
    is_plain_measure,
    looks_measured,
)
from tests.bench import metric_names

TRAINING = "".join(f"Epoch {n} loss: 1.{n}5\n" for n in range(1, 6))


def shown(text: str) -> set[str]:
    """The names that get a chart, but for the loss of the training that the text is put behind."""
    return set(metric_names.read((TRAINING + text).encode()).names) - {"loss"}


@pytest.mark.parametrize(
    "line",
    [
        "Test accuracy: 0.9",
        "Final test F1: 0.9",
        "mAP@50: 61.5",
        "Watermark recovery MSE: 1.1906",
        "Pseudo-label accuracy: 26.67%",
    ],
)
def test_a_result_that_is_printed_once_is_a_metric(line: str) -> None:
    assert shown(line + "\n") == {line.partition(":")[0]}


@pytest.mark.parametrize(
    "line",
    [
        "The shipping cost is 15",
        "detr_set_cost_bbox: 5.0",
        "bookmark cost: 3",
        "CosineAnnealing restarts with T_0: 10.5",
        "Pool kept: 41.25",
    ],
)
def test_a_name_that_only_resembles_one_needs_more_than_one_sighting(line: str) -> None:
    assert shown(line + "\n") == set()


def test_a_name_that_only_resembles_one_is_a_metric_once_it_comes_again_changed() -> None:
    assert shown("region cost: 5\n" + TRAINING.replace("Epoch ", "Epoch 1") + "region cost: 4.5\n") == {"region cost"}


def test_a_measure_that_nothing_counts_is_shown_once_it_has_changed_twice() -> None:
    lines = [
        f"2024-11-28 20:07:1{n},706 DQN INFO episodic returns: {value}\n" for n, value in enumerate((29, 24, 18, 31))
    ]
    assert metric_names.read("".join(lines[:2]).encode()).names == set()
    assert metric_names.read("".join(lines).encode()).names == {"episodic returns"}


def test_times_beside_the_measures_of_a_line_make_no_settings_of_it() -> None:
    times = ", ".join(f"{what} time: 0.00{n}4" for n, what in enumerate(("batching", "forward", "backward", "step"), 2))
    form = "value loss: 2.{n}5, policy loss: 8.{n}5, entropy: -0.{n}5, ratio max: 1.{n}7, ratio min: 0.{n}7, "
    log = "".join(f"{form.format(n=n)}{times}, episode: 97{n}\n" for n in range(1, 5))
    assert metric_names.read(log.encode()).names >= {"value loss", "policy loss", "entropy"}


@pytest.mark.parametrize("name", ["fscore", "F-score", "f_measure", "fmeasure", "F1score"])
def test_the_mean_of_precision_and_recall_is_a_measure(name: str) -> None:
    assert is_measure(name)


def test_what_counts_beside_no_record_is_no_metric_however_often_it_comes() -> None:
    counts = "".join(f"Epoch {n} loss: 1.{n}\nGames kept: {n % 3}\nRatio kept: 0.{n}5\n" for n in range(6, 12))
    assert shown(counts) == {"Ratio kept"}


def test_among_settings_a_value_is_one_of_them() -> None:
    told = "".join(f"Try {n} > weight decay = 0.{n}5, warmup = {n}.5, balance = 0.{n}2\n" for n in range(1, 9))
    assert shown(told) == set()


@pytest.mark.parametrize(
    "beside",
    [
        "elapsed: {n}.25",
        "sampling {n}.25s",
        "pool {n}.25 GB",
        "Peak Mem (GB): {n}.25",
        "Global Tokens/s: 1{n}.5",
        "data_time 0.{n}25",
        "swap used {n}.25",
    ],
)
def test_times_speeds_and_memory_are_of_the_machine(beside: str) -> None:
    lines = "".join(f"Epoch {n} loss: 1.{n} | {beside.format(n=n)}\n" for n in (6, 7, 9, 8))
    assert shown(lines) == set()


def test_the_best_so_far_has_no_curve_beside_the_value_itself() -> None:
    lines = "".join(f"Epoch {n} loss: 1.{n} val_acc: 0.{n}\nNew best val_acc: 0.{n}\n" for n in (6, 7, 8))
    assert shown(lines + "Best validation accuracy: 0.8\n") == {"val_acc"}


def test_the_best_so_far_is_told_above_the_measure_that_it_is_the_best_of() -> None:
    form = "Epoch [{n}][50/50] loss: 1.{n}5\nBest accuracy_top-1 is 16.{n}5 at {n} epoch.\n"
    form += "Epoch(val) [{n}][196] accuracy_top-1: 16.{n}5, accuracy_top-5: 36.{n}5\n"
    found = metric_names.read("".join(form.format(n=n) for n in (1, 2, 3)).encode())
    assert found.names == {"loss", "val accuracy_top-1", "val accuracy_top-5"}


def test_the_best_alone_is_a_result() -> None:
    assert shown("Best validation accuracy: 0.85\n") == {"Best validation accuracy"}


def test_two_values_in_brackets_are_a_range() -> None:
    lines = "".join(
        f"Epoch {n} loss: 1.{n} | Pred range: [-{n}.5, {n}.25] | grads: [0.{n}5 1.{n}]\n" for n in (6, 7, 9, 8)
    )
    assert shown(lines) == set()


def test_what_a_sentence_says_before_its_measure_is_no_part_of_the_name() -> None:
    assert shown("Epoch 8 - loss: 1.25, ended with BLEU-2: 65.76\n") == {"BLEU-2"}


def test_names_alone() -> None:
    assert not any(map(is_of_machine, ("mem avg. loss", "time_error", "timesteps_kl")))
    assert all(map(is_of_machine, ("timing_s/reward", "timings/kl_ms", "time/score", "Time cost")))
    assert is_plain_measure("Val macro F1")
    assert not is_plain_measure("cost of one poster")
    assert best_of("Best val acc") == best_of("Highest accuracy so far") == frozenset(("acc",))
    assert best_of("val acc") is None
    assert best_of("best accuracy of the student") == frozenset(("acc",))
    assert all(map(is_measure, ("H@10", "test P@5", "MedAE", "r@1", "pass@8", "MedR", "MnR")))
    assert not any(map(is_measure, ("img@2", "lr@100", "Host@1", "GPU@0", "worker@1", "medr")))
    assert [looks_measured(value) for value in (0.913, 26.67, 5.0, 1e-4, 0.5)] == [True, True, False, False, False]


def test_what_sums_up_a_fold_is_no_loss_of_the_training() -> None:
    epochs = "".join(f"Epoch {n} loss: 0.{n}5\n" for n in range(1, 4))
    folds = "".join(f"Fold {n}: loss 1.{n}5, acc 0.{n}5\n" for n in range(1, 9))
    found = metric_names.read((epochs + folds).encode()).summary
    assert found.train_loss is not None
    assert (found.train_loss.last, found.train_loss.count, found.epoch) == (0.35, 3, 3)


def test_what_stands_beside_an_episode_out_of_so_many_is_of_training() -> None:
    episodes = "".join(f"Episode {n}000/9000 | Epsilon: 0.{9 - n} | Avg Reward: -{9 - n}0.5\n" for n in range(1, 5))
    assert shown(f"{episodes}Training complete\nSuccess Rate: 95.0%\n") == {"Epsilon", "Avg Reward", "Success Rate"}


def test_a_measure_that_is_all_of_its_line_needs_no_sign() -> None:
    record = "Timestep {n}000\nmean reward (100 episodes) -1{n}.5\nepisodes 5{n}0\nlearning_rate 0.0{n}01\n"
    log = "".join(record.format(n=n) for n in range(1, 5))
    assert shown(log) == {"mean reward", "learning_rate"}
    assert metric_names.read(log.encode()).summary.learning_rate == 0.0401
    assert metric_names.read(f"{TRAINING}learning rate 0.1:\n".encode()).summary.learning_rate is None
    assert shown("The mean reward 1.5\nmean reward 1.5 of 2.5\nshipping cost 2.75\nreward 3\n") == set()
    assert shown("F-measure after evaluation: 0.5576\n") == {"F-measure after evaluation"}
    assert shown("Envsteps so far: 4.55\n") == set()


def test_a_reward_of_several_is_a_metric_though_it_never_changes() -> None:
    lines = "".join(f"{{'loss': 0.{n}, 'rewards/strict_format_func': 0.0, 'epoch': {n}.0}}\n" for n in (1, 2, 3))
    assert shown(lines) == {"rewards/strict_format_func"}


def test_a_number_may_begin_a_name() -> None:
    lines = "".join(f"Epoch {n} loss: 1.{n}\nVal 1-shot L2N: 4{n}.25%\n" for n in (6, 7, 9, 8))
    assert shown(lines) == {"Val 1-shot L2N"}


def test_what_was_counted_behind_a_total_is_no_part_of_the_next_name() -> None:
    found = metric_names.read(b"".join(b"[Epoch %d] 20 of 20 steps Loss: 0.%d5 lr: 0.1\n" % (n, n) for n in (1, 2, 3)))
    assert found.names - {"lr"} == {"Loss"}
    assert found.summary.train_loss is not None
    assert (found.summary.train_loss.last, found.summary.epoch, found.summary.step) == (0.35, 3, 20)


def test_likelihoods_of_an_evaluation_are_metrics() -> None:
    text = "sigma = 0.10, nll = 134.25\nsigma = 0.12, nll = 272.5\nLog-Likelihood of test set = 339.75, se: 1.87\n"
    assert metric_names.read(text.encode()).names >= {"nll", "Log-Likelihood of test set"}


def test_the_history_of_keras_that_pandas_wrote_into_a_log_is_a_table() -> None:
    rows = "".join(f"{n},0.{6 - n}8,0.8{n},0.{7 - n}5,0.8{n}5\n" for n in range(4))
    found = metric_names.read(f"Layer (type)  Param #\n,loss,acc,val_loss,val_acc\n{rows}".encode())
    assert found.names == {"loss", "acc", "val_loss", "val_acc"}
    assert found.summary.train_loss is not None
    assert (found.summary.epoch, found.summary.train_loss.count) == (3, 4)


def test_the_bar_of_an_evaluation_alone_counts_no_steps() -> None:
    bar = "".join(f"\r {n}0%|#####     | {n}/10 [00:0{n}<00:09,  1.0it/s]" for n in range(1, 9))
    said = "[INFO|trainer.py:31] 2024-03-07 12:45:33,603 >> ***** Running Evaluation *****"
    mapped = "\r  0%|          | 0/3 [00:00<?, ?ba/s]"
    found = metric_names.read(f"{mapped}\n{said}\n{bar}\n{{'eval_loss': 1.59, 'eval_wer': 0.5}}\n".encode())
    assert (found.summary.step, found.summary.steps) == (None, None)
    assert found.names == {"eval_loss", "eval_wer"}


def test_a_plan_in_a_printed_dictionary_is_one_and_its_headings_announce_nothing() -> None:
    config = '{\n  "train": {\n    "epochs": 30,\n    "batch_size": 2\n  },\n  "eval": {\n    "every": 2\n  }\n}\n'
    lines = "".join(f"Epoch {n} | loss 1.{n}5 | loss_ce=0.{n}5\n" for n in range(4))
    found = metric_names.read((config + lines).encode())
    assert found.summary.train_loss is not None
    assert (found.summary.epochs, found.summary.train_loss.count) == (30, 4)
    assert found.names == {"loss", "loss_ce"}


def test_clients_and_rounds_are_counted() -> None:
    lines = "".join(f"Client {n % 3} - Round {n // 3} - Loss: 1.{9 - n}25, Accuracy: 0.{n}5\n" for n in range(9))
    assert metric_names.read(lines.encode()).names == {"Loss", "Accuracy"}


def test_names_in_turn_have_their_values_in_turn() -> None:
    found = metric_names.read(b"Epoch 1 loss: 0.5\nEpoch 1  IS, FID: 1.675, 341.5\n")
    assert found.names == {"loss", "IS", "FID"} or found.names == {"loss", "FID"}


def test_the_rate_of_a_program_that_joins_by_commas() -> None:
    lines = "".join(f"lr, 0.000{9 - n}\nepoch={n}/9,total_loss=0.{9 - n}5\n" for n in range(1, 5))
    assert metric_names.read(lines.encode()).summary.learning_rate == 0.0005


def test_batches_behind_a_colon_and_steps_of_an_optimizer_are_counted() -> None:
    batches = "".join(f"[Epoch 1/9][ {n}00:391]  Loss: 0.{9 - n}5\n" for n in range(1, 4))
    found = metric_names.read(batches.encode()).summary
    assert (found.step, found.steps) == (300, 391)
    assert metric_names.read(b"L-BFGS iteration: 20 | Loss: 0.5\nL-BFGS iteration: 30 | Loss: 0.4\n").summary.step == 30


def test_the_value_of_an_option_is_no_part_of_the_next_name() -> None:
    lines = "".join(f"task={n}/9 method=net_mse requested_seeds={n} lags={n}.5\n" for n in range(1, 9))
    assert shown(lines) == set()


def test_a_loss_that_is_spelt_out_as_a_sum_is_read_once() -> None:
    lines = "".join(f"Epoch {n} loss 6.{n}2 = 5.{n} + 1.0{n}2 avg prob of [ word] 0.{n}4\n" for n in range(1, 6))
    found = metric_names.read(lines.encode())
    assert found.names <= {"loss", "avg prob of"}
    assert found.summary.train_loss is not None
    assert (found.summary.train_loss.last, found.summary.train_loss.count) == (6.52, 5)


def test_rows_by_tabs_under_a_header_by_commas_are_a_table() -> None:
    rows = "".join(f"{n}\t{n}00\t{n}0\t2.{9 - n}5\t1.{n}\n" for n in range(1, 5))
    found = metric_names.read(f"epoch,step,grad_step,tr_loss,tr_ppl\n{rows}".encode())
    assert found.summary.train_loss is not None
    assert (found.summary.epoch, found.summary.step, found.summary.train_loss.last) == (4, 400, 2.55)


def test_the_power_of_a_schedule_is_no_rate() -> None:
    text = "SOLVER:\n  POLY_LR_POWER: 0.9\n  NAME: x\nepoch 1 loss: 0.5\nepoch 2 loss: 0.4\n"
    assert metric_names.read(text.encode()).summary.learning_rate is None


def test_weights_in_a_dictionary_are_settings() -> None:
    assert shown("loss_weights: {'bce': 1, 'dice': 1.25, 'focal': 0.5}\n") == set()


def test_a_measure_behind_the_loss_of_an_evaluation_is_read() -> None:
    lines = "".join(
        f"step {n} loss: 1.{n}\nvalidation loss at step {n}: 2.{n}5, the acc is: 0.0{n}5\n" for n in (1, 2, 3)
    )
    assert metric_names.read(lines.encode()).evaluated == {"validation loss": 2.35, "validation acc": 0.035}


def test_a_name_that_a_number_begins_is_whole_behind_another_value() -> None:
    lines = "".join(f"Epoch {n} loss: 1.{n}  1-shot: 5{n}.25  5-shot: 7{n}.25\n" for n in (6, 7, 9, 8))
    assert shown(lines) == {"1-shot", "5-shot"}


def test_the_best_of_no_named_measure_is_none_beside_one() -> None:
    assert shown("val/accuracy reached: 0.25\nMetric improved. New best score: 0.25\n") == {"val/accuracy reached"}


def test_the_best_of_a_named_measure_is_called_so() -> None:
    log = "".join(f"Metric val_f1 improved by 0.0{n} >= min_delta = 0.0. New best score: 0.{n}5\n" for n in (1, 3, 4))
    assert shown(log) == {"best val_f1"}
    assert shown("Epoch 1 loss: 0.75 val_f1: 0.15\n" + log) == {"val_f1"}
    ended = (
        "Monitored metric val_f1 did not improve in the last 9 records. Best score: 0.45. Signaling Trainer to stop.\n"
    )
    assert shown(log + ended) == {"best val_f1"}


def test_a_cost_in_minutes_is_no_loss() -> None:
    log = "".join(f"file index:{n}, cost:0.{n}5 min, ETA:{9 - n}.5 min, Acc:0.{n}5\n" for n in range(1, 9))
    assert metric_names.read(log.encode()).summary.train_loss is None


def test_the_numbers_of_the_words_of_a_vocabulary_are_none_of_training() -> None:
    words = ", ".join(f"{word!r}: {n}" for n, word in enumerate(("the", "of", "step", "epoch", "loss", "acc"), 1))
    found = metric_names.read(f"word_index is: {{{words}}}\n".encode())
    assert not found.names
    assert (found.summary.step, found.summary.train_loss) == (None, None)


def test_the_time_of_a_diffusion_beside_the_step_is_no_metric() -> None:
    assert (
        shown("".join(f"--- PREVIEW (Step {n}0 | t={n * 37 % 10}.5) ---\nloss: 0.{n}5\n" for n in (1, 2, 3))) == set()
    )


def test_what_is_named_by_its_split_is_measured() -> None:
    assert shown("train/ctc: 2.43\neval/ctc: 5.26\n") == {"train/ctc", "eval/ctc"}


def test_answers_beside_the_number_of_an_item_are_no_metrics() -> None:
    answers = "".join(f"  i = {n}, Guess = {n * 7 % 10}, Answer = {n * 3 % 10}\n" for n in range(1, 40))
    assert shown("RESPONSES\n" + answers) == set()


def test_the_loss_of_durations_is_a_loss_and_no_time() -> None:
    log = "".join(f"step {n} loss_mel: 1.{n}5 loss_duration: 0.{n}5 step_duration: 1.{n}\n" for n in range(1, 5))
    assert shown(log) == {"loss_mel", "loss_duration"}


def test_what_is_said_of_the_final_step_is_no_curve() -> None:
    log = "".join(f"loss = {9 - n}.5, step = {n}00\n" for n in range(1, 5))
    assert shown(log + "Loss for final step: 5.25.\n") == set()


def test_the_best_of_a_model_is_the_best_of_its_measure() -> None:
    log = "".join(f"Epoch {n}: train acc 0.6{n}, test acc 0.5{n}\n" for n in range(1, 5))
    log += "Done: the best validation accuracy of the SNN is 0.5437 in epoch 4.\n"
    assert shown(log) == {"train acc", "test acc"}


def test_what_is_found_among_the_first_is_measured_wherever_it_is_told() -> None:
    log = "".join(f"Epoch {n} loss: 1.{n}\nvalid MRR: 0.5{n} | H@1: 0.4{n} | H@10: 0.7{n}\n" for n in range(1, 5))
    assert shown(log + "test MRR: 0.5 | H@1: 0.43 | H@10: 0.75\n") >= {"test MRR", "test H@1", "test H@10"}


def test_measures_of_a_fit_are_shown() -> None:
    assert shown("   MAE =         0.25\n   R^2 =           0.975\n") == {"MAE", "R^2"}
    assert shown("MAE = 0.25\ncorrelation coefficient = 0.9875\nR^2 = 0.975\n") >= {"correlation coefficient", "R^2"}


@pytest.mark.parametrize(
    "line",
    [
        "decreased learning rate by  0.94",
        "Reducing learning rate by 0.1",
        "lr decayed by 0.5",
        "learning_rate_decrease_itr: 5",
        "LR update interval: 10",
    ],
)
def test_by_how_much_or_how_often_a_rate_changes_is_no_rate(line: str) -> None:
    log = "".join(f"epoch {n} loss: 0.{n} lr: 0.001\n{line}\n" for n in range(1, 5))
    assert metric_names.read(log.encode()).summary.learning_rate == 0.001


@pytest.mark.parametrize("line", ["Decreasing learning rate to 0.00025", "lr decayed to 0.00025"])
def test_to_what_a_rate_changes_is_the_rate(line: str) -> None:
    log = f"epoch 1 loss: 0.5 lr: 0.001\n{line}\nepoch 2 loss: 0.25\n"
    assert metric_names.read(log.encode()).summary.learning_rate == 0.00025


def test_a_name_right_behind_the_last_digit_of_a_value_is_the_next_name() -> None:
    log = "".join(f"{n} Val Pi loss:1.{n}0860752788457Val V loss:0.{n}1748192405\n" for n in range(1, 5))
    assert metric_names.read(log.encode()).evaluated == {"Val Pi loss": 1.40860752788457, "Val V loss": 0.41748192405}


def test_rewards_under_the_number_of_an_episode_are_metrics() -> None:
    rows = "".join(f"{n}     {n}37       -{n}.5\n" for n in (3, 1, 4, 2))
    found = metric_names.read(f"Episode  Prey Reward  Total Reward\n{rows}".encode())
    assert found.names == {"Prey Reward", "Total Reward"}
    assert (found.summary.epoch, found.summary.step) == (None, None)


def test_the_loss_of_this_guess_is_a_sentence_and_that_of_this_epoch_a_value() -> None:
    assert shown("The loss of this prediction is 0.6931472.\n") == set()
    assert is_never_a_metric("loss of this prediction")
    assert not is_never_a_metric("accuracy of this epoch")


@pytest.mark.parametrize("name", ["MinDCF", "minADE", "minFDE"])
def test_a_measure_that_is_a_least_one_is_shown_though_it_has_not_changed_yet(name: str) -> None:
    """A ``min_lr`` or a ``min_size`` is what a program was told."""
    lines = "".join(f"Epoch {e}, loss 0.{e}, lr 0.001\nEpoch {e}, val_eer 5{e}.5, {name} 1.00000\n" for e in (1, 2, 3))
    assert name in shown(lines)
