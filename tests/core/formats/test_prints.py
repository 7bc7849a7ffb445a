"""Other people's print statements, one line of each kind; the same line is printed twice with other numbers."""

from __future__ import annotations

import pytest

from mpstui.core.formats.reader import LogReader

# text with {e} epoch, {s} step and {v} loss; then which of them the reader must find
PRINTS = [
    ("Epoch [{e}/3], Step [{s}/600], Loss: {v}", "es"),
    ("| epoch {e:3d} | {s:5d}/ 2983 batches | lr 20.00 | ms/batch 12.3 | loss {v} | ppl 300.1", "es"),
    ("Step {s}: loss = {v} (12.3 sec/batch; 10.4 examples/sec)", "s"),
    ("INFO:tensorflow:loss = {v}, step = {s} (1.23 sec)", "s"),
    ("ep{e:03d} it{s:05d} loss {v}", "es"),
    ("Epoch-{e} loss={v}", "e"),
    ("{s}: loss {v}", "s"),
    ("[{s}] loss={v}, learning_rate=0.0003", "s"),
    ("INFO:app:[{s:7d}] | gnorm  0.13 lr  0.001 | loss  {v}", "s"),
    ("INFO:root:epoch {e} of 10, train loss = tensor({v}, device='mps:0', grad_fn=<NllLossBackward0>)", "e"),
    ("epoch={e} step={s} train/loss={v} train/acc=0.5 val/loss=9.9 lr=1e-4", "es"),
    ("Epoch {e:2d} | Train Loss {v} Acc 0.5 | Test Loss 9.9 Acc 0.4 | Time 3s", "e"),
    ("TRAIN: EPOCH {e}/3 | BATCH {s}/40 | LOSS {v} | LR 1.0E-04", "es"),
    ("\x1b[36mEpoch {e}/5\x1b[0m ┃ \x1b[33mloss\x1b[0m \x1b[1m{v}\x1b[0m ┃ lr 0.001", "e"),
    ("Epoch {e} loss {v}↓ acc 50%↑", "e"),
    ("(epoch: {e}, iters: {s}, time: 1.3, data: 0.04) , total_loss: {v}, loss_a: 0.1, loss_b: 0.2", "es"),
    ("iteration: {s}, loss_value: {v}, learning_rate: 0.01", "s"),
    ("[rank0]: 2024-01-02 10:00:00,123 [INFO] app.train: epoch {e}, step {s}, loss {v}", "es"),
    ("第{e}轮 第{s}步 损失：{v}，学习率：0.001", "es"),
    ("[{e}エポック目] 学習損失={v} 検証損失=9.9", "e"),
    ("에폭 {e}/5 - 학습 손실: {v} - 검증 손실: 9.9", "e"),
    ("Эпоха {e}/5, потери: {v}, валидация потери: 9.9", "e"),
    ("Épocas {e}/5 - pérdida: {v}", "e"),
    ("Épocas {e}/5 - perda: {v}", "e"),
    ("Эпоха № {e}: потеря = {v}", "e"),
    ("训练次数：{s}，Loss：{v}", "s"),
    ("迭代次数: {s}, 损失值: {v}", "s"),
    ("训练轮数:{e} 训练误差:{v} 验证误差:9.9", "e"),
    ("【第{e}轮】训练集loss：{v}，测试集loss：9.9", "e"),
    ("[エポック{e}] 訓練誤差: {v} テスト誤差: 9.9", "e"),
    ("{e} {s} Loss={v} Time=0.040", "es"),
    ("['epoch', '{e}', 'step', '{s}', 'loss', '{v}', 'acc', '0.5']", "es"),
    ("['epoch', {e}, 'loss', {v}]", "e"),
    ("epoch={e} i={s}/530 total_loss={v} part_loss=0.1", "es"),
    ("epoch: {e}, batch_id: {s}, AUC:0.9, loss:{v}, cost: 1.2 sec", "es"),
    ("Epoch {e}, Step {s}, used time 7.1 (s), avg loss so far is {v}", "es"),
    ("2024-01-02 10:00:00,123 - INFO - Epoch: [ {e}/200] Iter [ {s}/1487] || Loss: {v}", "es"),
    ("[2024-01-02 10:00:00 tiny] (main.py 226): INFO Train: [{e}/300][{s}/1251]\tloss {v} ({v})", "es"),
    ("current step: {s}th step, batch loss:{v}", "s"),
    ("completed step: {s}, seconds: 1.2, loss: {v}", "s"),
    ("Epoch #{e}, loss: {v}", "e"),
    ("epochs: {e}, loss: {v}", "e"),
    ("Epoch:[ {e}/ 90], step:[ {s}/ 625], loss:[{v}/9.9], lr:0.1", "es"),
    ("Train loss {s} {v} Grad Norm 1.2 2.3s/it", "s"),
    ("(0/4) Epoch {e}, batch {s}, loss[loss={v}, part_loss=9.9, over 12.00 frames.]", "es"),
    ("[01:33:27.164930] Epoch: [{e}]  [{s}/1504]  lr: 0.0001  closs: {v} (9.9)  time: 4.1", "es"),
    ("Epoch {e} trainloss={v} valloss=9.9", "e"),
    ("[train.py:53 - train - INFO ] Iter: {s}/900   Epoch: {e}.00/20.0 (33.3% complete)   loss: {v}", "es"),
    ("Whole iter step:{s} - epoch progress:{e}/100 - total_loss:{v} - f_bce:0.7", "es"),
    ("19-08-11 17:38:53.279 - INFO: <epoch:{e:3d}, iter:{s:8,d}, lr:2.000e-04> l_pix: {v}", "es"),
    (
        "[Epoch {e} 281/288][Iteration {s}][Wall Clock 7.2s] Train 12 in 1.2seconds. Rate is 4 a second. Loss is {v}.",
        "es",
    ),
    ("(TaskRunner pid=22) step:{s} - actor/pg_loss:9.9 - actor/loss:{v} - training/epoch:{e} - critic/score:0.1", "es"),
    ("{e} {s} 2024-03-11 19:58:35.773642 {{'loss': '{v}', 'avg_loss': '9.9', 'tok/gpu/s': '3,679.1'}}", "es"),
    ("2022-10-23 03:18:58,579   INFO  epoch: {e}/120, acc_iter={s}, cur_iter=15/271, loss={v}, lr=0.0003", "es"),
    ("^MEpoch {e}/30:   7%|▋  | 2/30 [05:05<1:11:07, 152.40s/it, v_num=1, train_loss={v}]", "e"),
    ("2026-01-02T10:00:00.123456789Z stdout F epoch {e} step {s}/400 loss {v} lr 1e-3", "es"),
    ("[Dönem {e}/5] kayıp: {v} öğrenme oranı: 0.001", "e"),
    ("I0102 10:00:00.123456 140234 logging_writer.py:48] [{s}] learning_rate=0.1, train_loss={v}, eval_loss=9.9", "s"),
    ('time=2026-01-02T10:00:00Z level=info msg="train step" step={s} loss={v} tokens_per_sec=41000', "s"),
    ("2026-01-02T10:00:00Z [info     ] train_step          epoch={e} loss={v} lr=0.001 step={s}", "es"),
    ("[训练] 轮次 {e}/10 批次 {s}/500 损失 {v} 准确率 81.2% 学习率 0.001", "es"),
    ("epoch: {e}, lr: 1.00e-03 - train loss: {v} - valid loss: 9.9, valid PER: 60.5", "e"),
    ("loss in epoch {e} iteration {s}: {v}", "es"),
    ("Training loss at epoch {e}, batch {s}/400 = {v}", "es"),
    ("Époque {e} sur 12 — perte : {v} — perte de validation : 9.9", "e"),
]


@pytest.mark.parametrize(("text", "counters"), PRINTS)
def test_a_print_statement_is_read(text: str, counters: str) -> None:
    reader = LogReader()
    lines = [text.format(e=e, s=s, v=v) for e, s, v in ((1, 100, "1.5000"), (2, 200, "1.2500"), (3, 300, "1.1250"))]
    reader.feed("\n".join([*lines, ""]).encode())
    found = reader.summary()
    assert found.train_loss is not None
    assert (found.train_loss.first, found.train_loss.last, found.train_loss.count) == (1.5, 1.125, 3)
    assert found.epoch == 3 or "e" not in counters
    assert found.step == 300 or "s" not in counters


@pytest.mark.parametrize(
    "name",
    [
        "Скорость обучения",
        "Lernrate",
        "taux d'apprentissage",
        "tasa de aprendizaje",
        "taxa de aprendizado",
        "tasso di apprendimento",
        "öğrenme oranı",
        "współczynnik uczenia",
    ],
)
def test_the_learning_rate_has_a_name_in_many_languages(name: str) -> None:
    reader = LogReader()
    reader.feed(f"Epoch 3/5, loss: 0.5, {name}: 0.001\n".encode())
    found = reader.summary()
    assert found.learning_rate == 0.001
    assert found.train_loss is not None
    assert found.train_loss.last == 0.5


def test_both_sides_of_a_stroke_may_be_thousands() -> None:
    reader = LogReader()
    reader.feed(b"step=1.2k/3.6k loss=0.912 (avg 1.012)\nstep=2.4k/3.6k loss=0.712 (avg 0.912)\n")
    found = reader.summary()
    assert (found.step, found.steps) == (2400, 3600)


def test_the_loss_of_the_value_function_is_no_average() -> None:
    points = LogReader().feed(b"step: 1, loss/policy_avg: -0.01, loss/value_avg: 0.3, kl: 0.1\n")
    assert [point.loss for point in points] == [None]


def test_a_decimal_comma_is_read_where_no_point_is() -> None:
    reader = LogReader()
    reader.feed("".join(f"Epoche {e} von 9: Verlust = 1,{9 - e}25; Zeit: 12,5 s\n" for e in range(1, 7)).encode())
    found = reader.summary()
    assert found.train_loss is not None
    assert (found.train_loss.last, found.epoch, found.epochs) == (1.325, 6, 9)


def test_a_comma_may_part_thousands_or_members_of_a_list() -> None:
    reader = LogReader()
    (first,) = reader.feed(b"step: 1,200 loss: 1.5 shape: 3,4\n")
    assert (repr(first.step), first.loss) == ("1200", 1.5)


@pytest.mark.parametrize("line", ["Total epochs needed: 98 for iters 600,000", "Number of epochs required: 98"])
def test_what_is_needed_is_planned(line: str) -> None:
    reader = LogReader()
    reader.feed(
        f"{line}\n[epoch:  0, iter:     100] l_pix: 2.9e-02\n[epoch:  0, iter:     200] l_pix: 2.1e-02\n".encode()
    )
    assert (reader.summary().epoch, reader.summary().epochs) == (0, 98)


def test_steps_that_something_needed_are_neither_a_place_nor_a_plan() -> None:
    reader = LogReader()
    reader.feed(b"episode: 3, steps needed: 30, reward: 1.5\n")
    assert (reader.summary().step, reader.summary().steps) == (None, None)


@pytest.mark.parametrize(
    "line",
    [
        "Epoch: 00{i}/100 | Batch 100/469 | Gen/Dis Loss: -0.{i}519/-0.2590\n",
        "<epoch: {i}, iter: 1{i}> l_g_pix: 1.4e-03 l_g_gan: 7.2e-02 l_d_real: 1.4e-05 D_real: -2.5e+01\n",
        "step {i} - actor/loss:0.{i} - critic/loss:0.2\n",
        "Stoploss: 0.{i} pair BTC-{i}\n",
        "epoch progress: 0.{i}\n",
    ],
)
def test_several_losses_or_none_leave_no_main_one(line: str) -> None:
    reader = LogReader()
    reader.feed("".join(line.format(i=i) for i in range(1, 7)).encode())
    assert reader.summary().train_loss is None


def test_values_beside_a_total_that_proves_to_be_a_count_are_all_kept() -> None:
    lines = (f"Episode: {n}, total numsteps: {50 * n}, reward: {-7.25 * n}\n" for n in range(1, 6))
    points = LogReader().feed(f"total numsteps: 9000, buffer: 0.5\n{''.join(lines)}".encode())
    assert [(point.counters.step, point.metrics) for point in points] == [
        (50 * n, {"reward": -7.25 * n}) for n in range(1, 6)
    ]


def test_a_number_of_steps_that_goes_on_rising_is_no_plan() -> None:
    reader = LogReader()
    reader.feed("".join(f"Iteration: {i}\nNumTimesteps: {2000 * i}\nLoss: 0.{i}\n" for i in range(1, 6)).encode())
    found = reader.summary()
    assert (found.step, found.steps) == (5, None)


def test_the_end_of_an_epoch_tells_how_many_are_planned() -> None:
    reader = LogReader()
    reader.feed(b"(epoch: 5, iters: 100) G_L1: 12.9\nEnd of epoch 5 / 40 \t Time Taken: 8 sec\n")
    assert (reader.summary().epoch, reader.summary().epochs) == (5, 40)


def test_a_reduction_is_no_learning_rate() -> None:
    reader = LogReader()
    reader.feed(b"Epoch 1 loss: 0.5\nLearning Rate: 7.0e-04\nLearning Rate Reduction: 1.4x\nlr_step: 30\n")
    assert reader.summary().learning_rate == 7.0e-04


def test_the_rate_of_the_first_group_is_the_rate() -> None:
    reader = LogReader()
    reader.feed(b"Epoch 3\nLoss = 3.7e-01, PNorm = 37.1023, GNorm = 0.6239, lr_0 = 1.3594e-04\n")
    assert reader.summary().learning_rate == 1.3594e-04


def test_the_length_of_an_epoch_is_no_epoch() -> None:
    reader = LogReader()
    reader.feed(b"1 epoch = 2640 batches\n" + b"".join(b"step %d, loss: 1.%d\n" % (i, i) for i in range(4)))
    assert (reader.summary().epoch, reader.summary().step) == (None, 3)


def test_what_was_trained_is_counted_not_planned() -> None:
    reader = LogReader()
    reader.feed(b"total_loss: 1.5\nnum_steps_trained: 1080\ntraining_iteration: 27\n")
    assert reader.summary().steps is None


def test_a_position_with_its_total_is_read_by_either_name() -> None:
    reader = LogReader()
    reader.feed(b"{'loss': 0.27, 'learning_rate': 9.5e-07, 'epoch': 0.47, 'global_step/max_steps': '22/94'}\n")
    assert (reader.summary().step, reader.summary().steps) == (22, 94)


def test_a_bar_over_one_thing_counts_nothing() -> None:
    reader = LogReader()
    reader.feed(
        b"Data Iteration:   0%|     | 0/1 [00:00<?, ?it/s]\n"
        b"Epoch Progress:   0%|     | 5/1000 [00:15<51:15,  3.09s/it]Epoch: 6, Train Loss: 1.5, Val Loss: 9.9\n"
    )
    found = reader.summary()
    assert (found.epoch, found.epochs, found.step, found.steps) == (6, 1000, None, None)


def test_a_bar_of_our_own_hides_no_loss() -> None:
    """Keras draws one like it, with a dash behind it."""
    reader = LogReader()
    reader.feed(
        "".join(f"{n}/9 [{'=' * n}{'-' * (9 - n)}] loss: -{n}.5E-02 / score: +0.{n}\n" for n in (4, 5)).encode()
    )
    found = reader.summary()
    assert (found.step, found.steps, found.metrics) == (5, 9, ("loss", "score"))
    assert found.train_loss is not None
    assert (found.train_loss.first, found.train_loss.last) == (-0.045, -0.055)


def test_a_bar_whose_description_names_the_next_epoch_says_nothing_new() -> None:
    frames = [
        f"Epoch {e}/9:  1%|▎  | {n}/9 [02:34<1:14, 15.9s/it, train_loss=1.{n}]" for e, n in ((1, 1), (2, 1), (2, 2))
    ]
    reader = LogReader()
    reader.feed(("\r".join([*frames, frames[-1].replace("2/9:", "3/9:")]) + "\n").encode())
    loss = reader.summary().train_loss
    assert loss is not None
    assert (loss.first, loss.last, loss.count) == (1.1, 1.2, 2)


@pytest.mark.parametrize(
    ("text", "speed"),
    [
        ("step=12 loss=1.2 lr=3.00e-04 tok/s=41000 mem=11.2GB", 41000.0),
        ("step 12 loss 1.2 lr 3.00e-04 tok/s 41000 mem 11.2GB", 41000.0),
        ("step=12 loss=1.2 lr=3.00e-04 tok/s/gpu=41,000", 41000.0),
        ("step=12 loss=1.2 it/s: 3.2 lr=3.00e-04", 3.2),
        ("step 12 loss 1.2 samples/sec 310.5 lr 3.00e-04", 310.5),
        ("step=12 epoch=3 loss=1.2 images/s=310.5 lr=3.00e-04", 310.5),
        ("step=12 loss=1.2 lr=3.00e-04 tokens per second: 41000", 41000.0),
        ("step=12 loss=1.2 tok/s=41k lr=3.00e-04", 41000.0),
        ("step=12 loss=1.2 lr=3.00e-04 41000 tok/s", 41000.0),
        ("step=12 loss=1.2 lr=3.00e-04 throughput 41k", 41000.0),
        ("step=12 loss=1.2 lr=3.00e-04 throughput 12.5MB", 12.5),
        ("step 12 | loss 1.2 | 41.5k tok/s 312 ms/step | lr 3.00e-04", 41500.0),
        ("step=12 loss=1.2 speed 410 img/s 312 ms/step lr=3.00e-04", 410.0),
        ("step=12 loss=1.2 lr=3.00e-04 3.2it/s", 3.2),
        ("step=12 loss=1.2 lr=3.00e-04 12.5 batches/s", 12.5),
        ("step=12 loss=1.2 lr=3.00e-04 310 samples per second", 310.0),
        ("step=12 loss=1.2 lr=3.00e-04 312 ms/step", None),
        ("step=12 loss=1.2 lr=3.00e-04 ms/step 312", None),
    ],
)
def test_a_unit_is_told_from_the_name_of_the_next_value(text: str, speed: float | None) -> None:
    reader = LogReader()
    reader.feed(text.encode() + b"\n")
    found = reader.summary()
    assert (found.throughput, found.learning_rate, found.step) == (speed, 3e-4, 12)
    assert found.train_loss is not None
    assert found.train_loss.last == 1.2


@pytest.mark.parametrize("value", ["Array(2.5, dtype=float32)", "tensor(2.5, device='mps:0')", "np.float32(2.5)"])
def test_a_scalar_of_a_library_is_a_number_in_a_dictionary(value: str) -> None:
    reader = LogReader()
    reader.feed(f"{{'step': 100, 'loss': {value}, 'lr': 0.001}}\n".encode())
    found = reader.summary()
    assert found.train_loss is not None
    assert (found.step, found.train_loss.last, found.learning_rate) == (100, 2.5, 0.001)


def test_a_rate_that_heads_the_first_epoch_of_another_launch_is_its_own() -> None:
    epoch = "learning rate of epoch 0: {}.\nEpoch: [0][0/554] Loss {}\nEpoch: [0][10/554] Loss {}\n"
    reader = LogReader()
    reader.feed((epoch.format("0.000400", "9.75", "8.25") + epoch.format("0.000200", "9.5", "8.0")).encode())
    assert (reader.summary().runs, reader.summary().learning_rate) == (2, 0.0002)
    reader.feed(b"Epoch: [0][0/554] Loss 9.25\n")
    assert (reader.summary().runs, reader.summary().learning_rate) == (3, None)


def test_the_rates_of_several_groups_among_settings_are_not_the_rate() -> None:
    reader = LogReader()
    reader.feed(b"embed_lr:0.05 head_lr:0.0 matrix_lr:0.04\nstep:20/500 train_loss:2.5 step_avg:43.7ms\n")
    assert reader.summary().learning_rate is None
    reader.feed(b"step:30/500 train_loss:2.4 matrix_lr:0.04 head_lr:0.0\n")
    assert reader.summary().learning_rate == 0.04


def test_source_in_a_log_has_no_metrics() -> None:
    reader = LogReader()
    reader.feed(b"        if steps == 0:\n            return 0.25\n        return 1.5\nstep:20/500 train_loss:2.5\n")
    assert reader.summary().metrics == ("train_loss",)


CELLS = [
    "{i}\tT_sample {t}\tT_update {t}\ttrain_R_avg {a}\teval_R_avg {b}",
    "{i}\ttrain_R_avg: {a}\teval_R_avg: {b}",
    "{i} | train_R_avg: {a} | eval_R_avg: {b}",
    "{i}:\ttrain_R_avg={a}\teval_R_avg={b}\t",
    "2026-11-30 10:00:01,123 INFO {i}\ttrain_R_avg {a}\teval_R_avg {b}\ttime 0.5",
]


@pytest.mark.parametrize("line", CELLS)
def test_a_number_in_front_of_cells_with_a_name_and_a_value_counts_them(line: str) -> None:
    reader = LogReader()
    rows = (line.format(i=i, t=f"0.{i}7", a=f"{i * 7 % 5}.25", b=f"{i * 3 % 5}.75") for i in range(6))
    points = reader.feed("".join(f"{row}\n" for row in rows).encode())
    shown = reader.summary()
    assert (shown.step, shown.epoch, shown.train_loss) == (5, None, None)
    assert set(shown.metrics) == {"train_R_avg", "eval_R_avg"}
    assert [(point.counters.step, point.metrics["train_R_avg"]) for point in points[-2:]] == [(4, 3.25), (5, 0.25)]


@pytest.mark.parametrize(
    "line",
    [
        "{i}\tcats\t0.{i}5\tdogs\t1.{i}5",  # a table without names
        "{i}\tcat 3\tdog 4",  # counts of things
        "{i}\tthe model has 0.{i}5\tand 1.{i}5",
        "{i}\tsaved model.pt 0.{i}5 MB\tin 0.{i} s",
    ],
)
def test_cells_that_do_not_all_hold_a_name_and_a_value_are_no_record(line: str) -> None:
    reader = LogReader()
    reader.feed("".join(f"{line.format(i=i)}\n" for i in range(6)).encode())
    assert reader.summary().metrics == ()
