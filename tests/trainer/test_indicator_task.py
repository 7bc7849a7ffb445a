"""The indicator task: what it learns, what it may see, what it says about bad data, and resuming."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.trainer.running import command, made, metrics, parsed, train
from trainer import tasks
from trainer.data import candles, markets
from trainer.data.candles import Candles
from trainer.data.indicators import WARM_UP
from trainer.errors import UsageError
from trainer.models.indicator import IndicatorTransformer

TINY = ("--width", "16", "--layers", "1", "--heads", "2", "--dropout", "0")
NAMES = ("open", "high", "low", "close", "volume")


def _written(path: Path, history: Candles) -> Path:
    rows = zip(history.time, *(getattr(history, name) for name in NAMES), strict=True)
    lines = [",".join([str(time)[:10], *(repr(float(number)) for number in numbers)]) for time, *numbers in rows]
    path.write_text("\n".join(["Date,Open,High,Low,Close,Volume", *lines]) + "\n")
    return path


def _folder(folder: Path, days: int = 420) -> Path:
    folder.mkdir(exist_ok=True)
    for history in markets.synthetic(3, symbols=2, days=days):
        _written(folder / f"{history.symbol}.csv", history)
    return folder


def test_returns_can_be_learnt_and_shuffled_ones_cannot(tmp_path: Path) -> None:
    wish = (*TINY, "--batch-size", "64", "--lr", "0.006", "--epochs", "1")
    learnt = train("indicator", *wish, run_dir=tmp_path / "true")
    assert learnt["val_directional_accuracy"] > learnt["val_naive_accuracy"] + 0.03
    assert learnt["val_loss"] < learnt["val_naive_loss"] - 0.03
    assert learnt["val_edge"] == pytest.approx(learnt["val_directional_accuracy"] - learnt["val_naive_accuracy"])
    control = train("indicator", *wish, "--shuffle-labels", run_dir=tmp_path / "shuffled")
    assert control["val_directional_accuracy"] < control["val_naive_accuracy"] + 0.02
    assert control["val_loss"] > control["val_naive_loss"] - 0.01


def test_resumed_inside_an_epoch_equals_uninterrupted(tmp_path: Path) -> None:
    data = _folder(tmp_path / "prices")
    wish = (*TINY[:-1], "0.1", "--data", str(data), "--cache-dir", str(tmp_path / "cache"), "--limit", "200",
            "--epochs", "2", "--batch-size", "16", "--save-every", "0")  # fmt: skip
    stop = int(np.random.default_rng().integers(1, 13))
    train("indicator", *wish, run_dir=tmp_path / "whole")
    train("indicator", *wish, "--stop-after", str(stop), run_dir=tmp_path / "parts")
    train("indicator", *wish, "--resume", "latest", run_dir=tmp_path / "parts")
    assert len([point for point in metrics(tmp_path / "whole") if "loss" in point]) == 26
    assert metrics(tmp_path / "parts") == metrics(tmp_path / "whole")
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_what_comes_after_training_changes_nothing_a_training_sample_holds(tmp_path: Path) -> None:
    """Prices from the first day of validation on are replaced: features, scaling and targets of training stay."""
    history = markets.synthetic(3, symbols=1, days=500)[0]
    original = made("indicator", "--no-cache", "--data", str(_written(tmp_path / "A.csv", history)))
    begin = original.data.split("(")[1].split(" to ")[0]
    later = history.time >= np.datetime64(begin)
    changed = {name: np.where(later, getattr(history, name) * 7, getattr(history, name)) for name in NAMES}
    other = made(
        "indicator", "--no-cache", "--data", str(_written(tmp_path / "A.csv", Candles("A", history.time, **changed)))
    )
    assert other.data == original.data
    samples = torch.arange(original.train_size)
    one, same = original.batch(samples, 0), other.batch(samples, 0)
    assert all(torch.equal(one[name], same[name]) for name in one)


def test_a_batch_holds_the_newest_values_last(tmp_path: Path) -> None:
    data = _written(tmp_path / "A.csv", markets.synthetic(3, symbols=1, days=420)[0])
    task = made("indicator", "--no-cache", "--data", str(data), "--window", "5")
    batch = task.batch(torch.tensor([0, 1]), seed=0)
    assert batch["values"].shape == (2, 32, 5)
    assert batch["context"].shape == (2, 10)
    assert int(batch["rows"][1]) == int(batch["rows"][0]) + 1
    torch.testing.assert_close(batch["values"][1, :, :-1], batch["values"][0, :, 1:])


def test_scaling_is_of_training_rows(tmp_path: Path) -> None:
    task = made("indicator", "--limit", "3000", "--window", "1")
    values = task.batch(torch.arange(3000), 0)["values"][:, :, 0]
    torch.testing.assert_close(values.mean(dim=0), torch.zeros(32), atol=0.05, rtol=0)
    torch.testing.assert_close(values.std(dim=0), torch.ones(32), atol=0.1, rtol=0)


def test_only_selected_indicators_take_part() -> None:
    torch.manual_seed(0)
    model = IndicatorTransformer(
        indicators=6, window=4, context=10, symbols=1, width=16, layers=1, heads=2, dropout=0.0
    ).eval()
    with torch.no_grad():
        model.selector.weight[0].mul_(20)
        inputs = (torch.randn(32, 6, 4), torch.randn(32, 10), torch.zeros(32, dtype=torch.int64))
        selection, weight, outlook, direction = model(*inputs)
    some = (selection > 0.5).any(dim=1)
    assert 0 < int((selection > 0.5).sum()) < selection.numel()
    assert torch.equal(weight > 0, selection > 0.5)
    torch.testing.assert_close(weight.sum(dim=1)[some], torch.ones(int(some.sum())))
    assert outlook.shape == direction.shape == (32,)


def test_the_default_model_has_about_five_million_parameters() -> None:
    args, defaults = parsed("indicator"), tasks.find("indicator").DEFAULTS
    model = IndicatorTransformer(
        indicators=32, window=args.window, context=10, symbols=1, width=args.width, layers=args.layers,
        heads=args.heads, dropout=args.dropout,
    )  # fmt: skip
    assert 4.5e6 < sum(weight.numel() for weight in model.parameters()) < 5.5e6
    assert (defaults.batch_size, defaults.lr) == (16, 2e-4)


def test_check_data_counts_symbols_and_names_bad_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _folder(tmp_path / "prices")
    wish = ("indicator", "--check-data", "--no-cache", "--data", str(folder))
    assert command(*wish) == 0
    printed = capsys.readouterr().out
    assert "rows of SYN1: 420" in printed
    assert "training samples: " in printed
    with (folder / "SYN2.csv").open("a") as file:
        file.write("2030-01-01,1,2,3,1,5\n")
    assert command(*wish) == 2
    assert f"problem: {folder / 'SYN2.csv'}, line 422: high is below low" in capsys.readouterr().out
    assert command("indicator", "--no-cache", "--data", str(folder), "--device", "cpu") == 2
    assert "line 422: high is below low; correct or remove it (--check-data" in capsys.readouterr().err
    assert (
        "without 1 bad rows: 2 symbols"
        in made("indicator", "--no-cache", "--data", str(folder), "--skip-bad-rows").data
    )


def test_a_symbol_that_gives_no_sample_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _folder(tmp_path / "prices")
    young = markets.synthetic(3, symbols=1, days=WARM_UP + 16 + 5 - 1)[0]
    _written(folder / "YOUNG.csv", young)
    wish = ("indicator", "--no-cache", "--data", str(folder))
    assert "fold 5 of 5), too few rows for a sample: YOUNG" in made(*wish).data
    assert command(*wish, "--check-data") == 0
    assert f"data: {folder}; too few rows for a sample (121 needed): YOUNG" in capsys.readouterr().out
    (folder / "YOUNG.csv").unlink()
    assert "too few" not in made(*wish).data


def test_too_short_a_history_and_a_fold_too_far_are_refused(tmp_path: Path) -> None:
    short = _written(tmp_path / "A.csv", markets.synthetic(3, symbols=1, days=110)[0])
    with pytest.raises(UsageError, match="too few rows for 5 folds; the first 121 of each symbol"):
        made("indicator", "--no-cache", "--data", str(short))
    with pytest.raises(UsageError, match="--fold 6: there are only 5"):
        made("indicator", "--fold", "6")
    (tmp_path / "B.csv").write_text("Date,Open,High,Low,Close,Volume\n")
    with pytest.raises(UsageError, match="not one row"):
        made("indicator", "--no-cache", "--data", str(tmp_path / "B.csv"))


def _minutes(path: Path, days: int = 6) -> Path:
    """Rows of every minute of a trading day, for two symbols, as a database writes them out."""
    calendar = np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]")
    calendar = calendar[np.is_busday(calendar)][:days]
    minutes = (calendar[:, None] + (np.arange(390) + 570).astype("timedelta64[m]")).ravel()
    lines = ["symbol,timestamp,open,high,low,close,volume"]
    random = np.random.default_rng(0)
    for symbol in ("AAA", "BBB"):
        prices = 100 * np.exp(np.cumsum(random.normal(0, 0.001, len(minutes))))
        for time, price in zip(minutes, prices, strict=True):
            lines.append(f"{symbol},{str(time).replace('T', ' ')}:00+00:00,{price},{price + 1},{price - 1},{price},10")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_minute_rows_some_symbols_and_the_newest_days(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ("--no-cache", "--data", str(_minutes(tmp_path / "minutes.csv")))
    whole = made("indicator", *data)
    assert "2 symbols" in whole.data
    assert "1 symbols" in made("indicator", *data, "--symbols", "BBB").data
    fewer = made("indicator", *data, "--days", "3")  # of the calendar: a weekend counts
    assert fewer.train_size < whole.train_size
    with pytest.raises(UsageError, match="--symbols CCC: there is no such symbol; the data has AAA, BBB"):
        made("indicator", *data, "--symbols", "AAA,CCC")
    assert command("indicator", *data, "--check-data") == 0
    assert "gaps" not in capsys.readouterr().out  # a night is none


def test_rows_are_put_together_to_longer_bars(tmp_path: Path) -> None:
    one = candles.read(_minutes(tmp_path / "minutes.csv"))
    five = candles.narrowed(one, symbols=("AAA",), bar=300).symbols[0]
    fine = one.symbols[0]
    assert len(five) == len(fine) / 5
    assert (five.open[1], five.close[1]) == (fine.open[5], fine.close[9])
    assert (five.high[1], five.low[1]) == (fine.high[5:10].max(), fine.low[5:10].min())
    assert (five.volume[1], str(five.time[1])) == (50, "2024-01-01T09:35:00")
    with pytest.raises(SystemExit):
        parsed("indicator", "--bars", "5 bananas")
