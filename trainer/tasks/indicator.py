"""Which technical indicators count for a symbol now, how much, and where its price goes over the horizon."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from ..data import candles, markets
from ..data.cache_folder import cache_folder
from ..data.indicator_cache import IndicatorCache
from ..data.indicators import INDICATORS, WARM_UP
from ..device import Device
from ..errors import UsageError
from ..inspection import Inspection
from ..models.indicator import SELECTED, IndicatorTransformer, Judgement
from ..optimizers import with_weight_decay_on_matrices
from ..options import fraction, number, positive
from ..order import mixed
from . import Batch, Defaults, Loss, Task

_EVALUATION_BATCH = 512
_BAR = re.compile(r"([1-9]\d{0,3})(min|h|d)")
_NAMED = 9
"""At most this many symbols without a sample are named."""


class Indicator(Task):
    """Selection, weights and next-horizon return from indicators and the market's state."""

    HELP: ClassVar[str] = "select and weight technical indicators, and predict the next horizon's return"
    DEFAULTS: Defaults = Defaults(epochs=20, batch_size=16, lr=2e-4, clip=1.0, better={"val_loss": "min"})

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Data, split and model."""
        parser.add_argument(
            "--data", type=Path, metavar="FILE|DIR", help="OHLCV CSV, or a folder of them; else synthetic"
        )
        parser.add_argument("--skip-bad-rows", action="store_true", help="leave out bad rows, and say how many")
        parser.add_argument(
            "--symbols",
            dest="only",
            type=_names,
            default=(),
            metavar="A,B,...",
            help="train on these only (default: all)",
        )
        parser.add_argument("--days", type=positive, metavar="N", help="train on the newest N days only")
        parser.add_argument(
            "--bars", type=_seconds, metavar="LENGTH", help="put rows together first, such as 5min, 1h or 1d"
        )
        parser.add_argument("--horizon", type=positive, default=5, metavar="ROWS", help="how far ahead (default 5)")
        parser.add_argument(
            "--window", type=positive, default=16, metavar="ROWS", help="of each indicator (default 16)"
        )
        parser.add_argument("--folds", type=positive, default=5, metavar="N", help="of the walk forward (default 5)")
        parser.add_argument("--fold", type=positive, metavar="K", help="which one to train, from 1 (default: the last)")
        parser.add_argument("--width", type=positive, default=256, metavar="N", help="of the model (default 256)")
        parser.add_argument("--layers", type=positive, default=6, metavar="N", help="of the model (default 6)")
        parser.add_argument("--heads", type=positive, default=8, metavar="N", help="of each layer (default 8)")
        parser.add_argument("--dropout", type=fraction, default=0.1, metavar="X")
        parser.add_argument("--sparsity", type=number, default=0.01, metavar="X", help="cost of selecting indicators")
        parser.add_argument("--limit", type=positive, metavar="N", help="train on the newest N samples only")
        parser.add_argument("--cache-dir", type=Path, metavar="DIR", help="computed indicators (default: user's cache)")
        parser.add_argument("--no-cache", action="store_true", help="compute the indicators every time")
        parser.add_argument("--show-selection", action="store_true", help="report each indicator's mean selection too")
        parser.add_argument("--shuffle-labels", action="store_true", help="a control: nothing can be learnt from this")

    def __init__(self, args: argparse.Namespace) -> None:
        """Read or generate prices, compute indicators, split by time."""
        self._args = args
        market, split, name = _prepared(args)
        train = split.train[-args.limit :] if args.limit else split.train
        self._rows, self._validation = torch.from_numpy(train), torch.from_numpy(split.validation)
        seen = markets.seen_by(train, args.window)
        self._values = torch.from_numpy(markets.Scaling.of(market.indicators[seen]).apply(market.indicators))
        self._context = torch.from_numpy(markets.Scaling.of(market.context[train]).apply(market.context))
        self._symbols = torch.from_numpy(market.symbol)
        scale = market.target[train].std() + 1e-12
        self._targets = torch.from_numpy((market.target / scale).clip(-8, 8).astype(np.float32))
        self._past = torch.from_numpy(np.sign(market.past).astype(np.float32))
        self._up_share = float((market.target[train] > 0).mean())
        self._mean = float(self._targets[self._rows].mean())
        self._answers = _shuffled(self._rows, len(market.time), args.seed or 0) if args.shuffle_labels else None
        self.train_size = len(train)
        self.synthetic = args.data is None
        self.data = _in_words(name, market, split, len(train), args)
        self.signature: Mapping[str, Any] = {
            "width": args.width,
            "layers": args.layers,
            "heads": args.heads,
            "window": args.window,
            "horizon": args.horizon,
            "indicators": len(INDICATORS),
            "symbols": len(market.symbols),
        }

    @staticmethod
    def inspect(args: argparse.Namespace) -> Inspection:
        """Count symbols, rows and samples; name the bad rows."""
        reading = _read(args)
        name = str(args.data) if args.data else "synthetic prices"
        counts = {f"rows of {one.symbol}": len(one) for one in reading.symbols}
        counts |= {f"gaps of {one.symbol}": markets.gaps(one) for one in reading.symbols if markets.gaps(one)}
        if not reading.symbols:
            return Inspection(name, counts, (*reading.problems, f"{name}: not one row can be used"))
        market = _market(reading.symbols, args)
        split = markets.walk_forward(market, folds=args.folds, fold=_fold(args))
        counts |= {"training samples": len(split.train), "validation samples": len(split.validation)}
        few = () if len(split.train) and len(split.validation) else (_too_few(name, args),)
        idle = _idle(market, f" ({_needed(args)} needed)")
        return Inspection(f"{name}; {idle}" if idle and not few else name, counts, (*reading.problems, *few))

    def build_model(self) -> nn.Module:
        """The transformer."""
        args = self._args
        return IndicatorTransformer(
            indicators=len(INDICATORS),
            window=args.window,
            context=markets.CONTEXT_FEATURES,
            symbols=int(self.signature["symbols"]),
            width=args.width,
            layers=args.layers,
            heads=args.heads,
            dropout=args.dropout,
        )

    def parameter_groups(self, model: nn.Module) -> list[dict[str, Any]]:
        """Matrices decay, biases and norms do not."""
        return with_weight_decay_on_matrices(model)

    def batch(self, samples: torch.Tensor, seed: int) -> Batch:
        """The last ``window`` values of each indicator, the market's state, and the return to come."""
        rows = self._rows[samples]
        answers = rows if self._answers is None else self._answers[rows]
        return {"rows": rows, **self._inputs(rows), "targets": self._targets[answers]}

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Huber loss of the return, cross-entropy of its direction, and a cost for selecting."""
        judged = Judgement(*model(batch["values"], batch["context"], batch["symbols"]))
        targets = batch["targets"]
        selected = judged.selection.mean()
        value = _cost(judged.outlook, judged.direction, targets).mean() + self._args.sparsity * selected
        hits, counted = _hits(judged.direction.detach(), targets)
        return Loss(value, {"directional_accuracy": hits.mean() / counted.mean().clamp(min=1e-6)})

    def evaluate(self, model: nn.Module, device: Device) -> Iterator[dict[str, float] | None]:
        """Loss and directional accuracy on the days after training, and those of guesses without a model."""
        sums = torch.zeros(4, device=device.torch)
        chosen = torch.zeros(len(INDICATORS), device=device.torch)
        for start in range(0, len(self._validation), _EVALUATION_BATCH):
            rows = self._validation[start : start + _EVALUATION_BATCH]
            shown, targets = device.put((self._inputs(rows), self._targets[rows]))
            judged = Judgement(*model(shown["values"], shown["context"], shown["symbols"]))
            hits, counted = _hits(judged.direction, targets)
            cost = _cost(judged.outlook, judged.direction, targets)
            sums += torch.stack([cost.sum(), hits.sum(), counted.sum(), (judged.selection > SELECTED).float().sum()])
            chosen += judged.selection.sum(dim=0)
            yield None
        cost_sum, hit, direction_count, selected = sums.tolist()
        count = len(self._validation)
        found = {"val_loss": cost_sum / count, "val_directional_accuracy": hit / max(1.0, direction_count)}
        found |= self._naive() | {"val_selected": selected / count}
        found["val_edge"] = found["val_directional_accuracy"] - found["val_naive_accuracy"]
        if self._args.show_selection:
            found |= {
                f"val_selection_{name}": share / count for name, share in zip(INDICATORS, chosen.tolist(), strict=True)
            }
        yield found

    def _inputs(self, rows: torch.Tensor) -> Batch:
        steps = torch.arange(1 - self._args.window, 1)
        values = self._values[rows[:, None] + steps].mT
        return {"values": values, "context": self._context[rows], "symbols": self._symbols[rows]}

    def _naive(self) -> dict[str, float]:
        """The better of two predictions without a model: the commoner direction of training, and persistence.

        The naive loss is that of always predicting the mean and the share of rises of the training samples.
        """
        targets = self._targets[self._validation]
        odds = torch.logit(torch.tensor(self._up_share), eps=1e-4).expand(len(targets))
        cost = _cost(torch.full_like(targets, self._mean), odds, targets).mean()
        scores = [_hits(guess, targets) for guess in (odds, self._past[self._validation])]
        best = max(float(hits.sum() / counted.sum().clamp(min=1)) for hits, counted in scores)
        return {"val_naive_loss": float(cost), "val_naive_accuracy": best}


def _cost(outlook: torch.Tensor, direction: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Huber loss and binary cross-entropy of each sample; a return of exactly 0 has no direction."""
    rises = (targets > 0).float()
    turn = F.binary_cross_entropy_with_logits(direction, rises, reduction="none") * (targets != 0)
    return F.huber_loss(outlook, targets, reduction="none") + turn


def _hits(direction: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Whether each direction was predicted right, and whether there was one: floats (batch,). 0 is a miss."""
    counted = targets != 0
    return ((direction.sign() == targets.sign()) & counted).float(), counted.float()


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _seconds(text: str) -> int:
    """The length of a bar in seconds, from text like ``5min``."""
    found = _BAR.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text} is no length of a bar (such as 5min, 1h or 1d)")
    return int(found[1]) * {"min": 60, "h": 3600, "d": 86400}[found[2]]


def _read(args: argparse.Namespace) -> candles.Reading:
    found = candles.read(args.data) if args.data else candles.Reading(markets.synthetic(args.seed or 0))
    return candles.narrowed(found, symbols=args.only, days=args.days, bar=args.bars)


def _prepared(args: argparse.Namespace) -> tuple[markets.Market, markets.Split, str]:
    reading = _read(args)
    name = str(args.data) if args.data else f"synthetic prices, seed {args.seed or 0}"
    bad = len(reading.problems)
    if bad and not args.skip_bad_rows:
        more = f"{bad - 1:,} more, " if bad > 1 else ""
        raise UsageError(
            f"--data {reading.problems[0]} ({more}--check-data lists all, --skip-bad-rows leaves them out)"
        )
    if bad:
        name = f"{name} without {bad:,} bad rows"
    if not reading.symbols:
        raise UsageError(f"--data {name}: there is not one row in it; give OHLCV rows")
    market = _market(reading.symbols, args)
    split = markets.walk_forward(market, folds=args.folds, fold=_fold(args))
    if not len(split.train) or not len(split.validation):
        raise UsageError(_too_few(name, args))
    return market, split, name


def _market(symbols: tuple[candles.Candles, ...], args: argparse.Namespace) -> markets.Market:
    folder = None if args.no_cache or not args.data else args.cache_dir or cache_folder(os.environ, "indicators")
    return markets.market(symbols, horizon=args.horizon, window=args.window, cache=IndicatorCache(folder))


def _fold(args: argparse.Namespace) -> int:
    if args.fold and args.fold > args.folds:
        raise UsageError(f"--fold {args.fold}: there are only {args.folds}; raise --folds or name one of them")
    return int(args.fold or args.folds)


def _needed(args: argparse.Namespace) -> int:
    """Rows that a symbol needs for one sample."""
    return int(WARM_UP + args.window + args.horizon)


def _idle(market: markets.Market, needed: str = "") -> str:
    """Name the symbols without a single sample; empty if there are none."""
    idle = market.without_samples()
    more = f" and {len(idle) - _NAMED:,} more" if len(idle) > _NAMED else ""
    return f"too few rows for a sample{needed}: {', '.join(idle[:_NAMED])}{more}" if idle else ""


def _too_few(name: str, args: argparse.Namespace) -> str:
    return (
        f"--data {name}: too few rows for {args.folds} folds; the first {_needed(args)} of each symbol go into"
        " averages, window and horizon: give a longer history or fewer --folds"
    )


def _shuffled(rows: torch.Tensor, total: int, seed: int) -> torch.Tensor:
    """For each row of the market, the row whose target it gets; only training rows are exchanged."""
    generator = torch.Generator().manual_seed(mixed(seed, 0x5AFF))
    answers = torch.arange(total)
    answers[rows] = rows[torch.randperm(len(rows), generator=generator)]
    return answers


def _in_words(name: str, market: markets.Market, split: markets.Split, train: int, args: argparse.Namespace) -> str:
    shuffled = ", returns shuffled" if args.shuffle_labels else ""
    period = f"{split.validation_from.astype('datetime64[D]')} to {split.validation_to.astype('datetime64[D]')}"
    idle = _idle(market)
    return (
        f"{name}{shuffled}: {len(market.symbols)} symbols, {train:,} training samples, {len(split.validation):,}"
        f" validation samples ({period}, fold {_fold(args)} of {args.folds}){f', {idle}' if idle else ''}"
    )
