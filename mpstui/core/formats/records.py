"""A table of the names that programs give to the fields of a record, and the reader of such records.

A *record* is a flat mapping: a line of JSON, a row of CSV, a heartbeat file, the dictionary that a trainer prints.
Names are compared in lower case. A name that the table lacks is classified by `names.classify`, like one in a log line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from .measures import is_duration
from .names import PART, NameScope, Role, classify, scope_of, words_of
from .points import Counters, LineReading, Number, Phase, as_float, as_number, series_name
from .vocabulary import TRAIN_WORDS

EPOCH, EPOCHS, STEP, STEPS = "epoch", "epochs", "step", "steps"
EPOCH_STEP, EPOCH_STEPS = "epoch_step", "epoch_steps"
LOSS, LEARNING_RATE, THROUGHPUT, PHASE = "loss", "lr", "throughput", "phase"
DONE_OR_PLANNED = "done_or_planned"
"""Names that mean the total if the record has a current step, and otherwise the current step itself."""
IGNORED = "ignored"

_NAMES = {
    EPOCH: "epoch current_epoch epoch_num epoch_idx epoch_index cur_epoch trainer/epoch train/epoch epoch_id",
    EPOCHS: (
        "epochs num_epochs max_epochs total_epochs n_epochs num_train_epochs epochs_total epoch_total epoch_count "
        "train_epochs training_epochs"
    ),
    STEP: (
        "step i global_step global_steps current_step current_steps iteration iter num_updates train_num_updates "
        "steps_done step_num optimizer_step train_step update_step trainer/global_step train/global_step train/step "
        "_step iter_num it n_iter steps_completed completed_steps cur_step cur_iter train/iteration "
        "iterations_done time/total_timesteps total_timesteps timesteps timesteps_total num_timesteps "
        "generation gen global_step/max_steps total_env_steps misc/total_timesteps timestepssofar num_env_steps_sampled"
    ),
    STEPS: (
        "max_steps max_iters num_steps num_training_steps max_train_steps max_iter num_iterations total_iters "
        "total_iterations n_steps_total step_total max_step num_train_steps"
    ),
    DONE_OR_PLANNED: "steps_total total_steps steps total_step",
    EPOCH_STEP: "epoch_step batch batch_idx batch_num step_in_epoch",
    EPOCH_STEPS: "epoch_steps steps_per_epoch batches_per_epoch num_batches batches total_batches",
    LOSS: (
        "loss train_loss avg_loss loss_avg mean_loss train/loss training_loss total_loss loss_total last_loss "
        "current_loss train_loss_step train/loss_step loss/train running_loss trl losses/train train.loss "
        "train-loss"
    ),
    LEARNING_RATE: (
        "lr learning_rate lr/pg0 train/lr train/learning_rate current_lr optim/learning_rate last_lr base_lr"
    ),
    THROUGHPUT: (
        "samples_per_second steps_per_second tok_s tokens_per_second throughput images_per_second it_s tps "
        "wps train_samples_per_second time/fps"
    ),
    PHASE: "phase mode split stage _type",
    IGNORED: "update time timestamp pid rank world_size seq schema nevals _timestamp time/iterations time/time_elapsed",
}
ALIASES: dict[str, str] = {name: field for field, names in _NAMES.items() for name in names.split()}
"""Fields by lower-case name."""
_COUNTERS = (EPOCH, EPOCHS, STEP, STEPS, EPOCH_STEP, EPOCH_STEPS)
_NO_METRIC = (*_COUNTERS, PHASE, IGNORED, DONE_OR_PLANNED)
_TOTALS = {EPOCH: EPOCHS, STEP: STEPS, EPOCH_STEP: EPOCH_STEPS}
_OF_TOTAL = re.compile(r"\s{0,8}(\d{1,12})\s?/\s?(\d{1,12})\s{0,8}\Z")
_PRECEDENCE = ("train_loss_step", "train/loss_step", "loss", "train/loss", "train_loss", "training_loss", "total_loss")
_LONGEST_PHASE = 20
_LONGEST_NAME = 200
"""Longer keys are ignored, since names are cached."""
_SPEED = ("_runtime", "_samples_per_second", "_steps_per_second", "_tokens_per_second", "_preparation_time")
"""Duration and speed of an evaluation or a training, which the Trainer of Hugging Face adds to the results."""
_RUN_SUMMARY = ("train_runtime", "train_steps_per_second", "total_flos")


def read_record(record: Mapping[str, object], grammar: str) -> LineReading | None:
    """Return the reading of a flat record; None if it holds neither a counter nor a metric.

    Values may be numbers or quoted numbers. Nested mappings and lists are ignored, except ``metrics``, ``val`` and the
    like, whose members count as fields of the record.
    """
    flat = {
        key: value for key, value in record.items() if len(key) <= _LONGEST_NAME and not isinstance(value, (dict, list))
    }
    for name in ("metrics", "progress", "data", "train", "val", "valid", "validation", "eval", "test"):
        inner = record.get(name)
        if isinstance(inner, dict):
            prefix = "" if name in ("metrics", "progress", "data") else f"{name}/"
            flat.update(
                {prefix + k: v for k, v in inner.items() if len(k) <= _LONGEST_NAME and not isinstance(v, (dict, list))}
            )
    fields = {key: ALIASES.get(key.strip().lower()) for key in flat}
    numbers = {key: number for key, value in flat.items() if (number := as_float(value)) is not None}
    evaluation = _is_evaluation(flat, fields, numbers)
    counters = _counters(flat, fields)
    loss = None if evaluation or _sums_up(flat) else _loss_key(fields, numbers)
    rate = None if evaluation else _first_of(fields, numbers, LEARNING_RATE, Role.LEARNING_RATE)
    metrics, eval_metrics = dict[str, float](), dict[str, float]()
    timed = any(key.endswith("_runtime") for key in numbers)
    for key, number in numbers.items():
        if fields[key] not in _NO_METRIC and not (timed and key.endswith(_SPEED)):
            of_evaluation = evaluation or classify(key).scope is NameScope.EVAL
            (eval_metrics if of_evaluation else metrics)[key.strip()] = number
    if loss is None and not eval_metrics and all(map(is_duration, metrics)):
        metrics = {}  # say, how long it took to save a checkpoint
    if loss is None and not metrics and not eval_metrics and counters == Counters():
        return None
    speed = _first_of(fields, numbers, THROUGHPUT, Role.THROUGHPUT)
    # In an evaluation mmcv counts batches under ``iter``, and mmengine writes the epoch under ``step``.
    reuses_step = evaluation and ("mode" in flat or "global_step" not in flat)
    return LineReading(
        grammar=grammar,
        counters=Counters() if reuses_step else counters,
        phase=Phase.EVAL if evaluation else Phase.TRAIN,
        loss=numbers[loss] if loss else None,
        loss_name=loss or "",
        learning_rate=numbers[rate] if rate else None,
        throughput=numbers[speed] if speed else None,
        throughput_unit=speed or "",
        metrics=metrics,
        eval_metrics=eval_metrics,
        series=series_name(loss, Counters()) if loss else "",
        certain=True,
        part=loss is not None and fields[loss] != LOSS and classify(loss).rank >= PART and _has_rivals(loss, numbers),
    )


def _has_rivals(loss: str, numbers: Mapping[str, float]) -> bool:
    names = (classify(key) for key in numbers if key != loss)
    return any(name.role is Role.LOSS and name.scope is not NameScope.EVAL for name in names)


def _sums_up(record: Mapping[str, object]) -> bool:
    """Whether a record sums up a whole training; with a loss it does not, as Trainer can add the run time to that."""
    return "loss" not in record and any(name in record for name in _RUN_SUMMARY)


def _is_evaluation(flat: Mapping[str, object], fields: Mapping[str, str | None], numbers: Mapping[str, float]) -> bool:
    if "schema" in flat:
        return False  # mpstui's own heartbeat: its phase is what the program does, its loss is a training loss
    phases = [words_of(str(flat[key])[:_LONGEST_PHASE]) for key, field in fields.items() if field == PHASE]
    if any(scope_of(words) is NameScope.EVAL and TRAIN_WORDS.isdisjoint(words) for words in phases):
        return True
    scopes = [classify(key).scope for key in numbers if fields[key] is None]
    has_loss = any(fields[key] == LOSS for key in numbers)
    return not has_loss and bool(scopes) and all(scope is NameScope.EVAL for scope in scopes)


def _counters(flat: Mapping[str, object], fields: Mapping[str, str | None]) -> Counters:
    found: dict[str, Number] = {}

    def keep(field: str, value: object) -> None:
        if isinstance(value, str) and (both := _OF_TOTAL.match(value)):
            value = both[1]
            if field in _TOTALS:
                keep(_TOTALS[field], both[2])
        number = as_number(value)
        if number is not None and 0 <= number < math.inf and field not in found:
            found[field] = int(number) if field != EPOCH and number == int(number) else number

    for key, field in fields.items():
        if field in _COUNTERS and field not in found:
            keep(field, flat[key])
    for key, field in fields.items():
        if field == DONE_OR_PLANNED:
            keep(STEPS if STEP in found else STEP, flat[key])
    return Counters(**found)


def _loss_key(fields: Mapping[str, str | None], numbers: Mapping[str, float]) -> str | None:
    """Return the key of the training loss, by the table's order of precedence or else the best name; None if none."""
    known = [key for key in numbers if fields[key] == LOSS]
    if known:
        order = {name: place for place, name in enumerate(_PRECEDENCE)}
        return min(known, key=lambda key: order.get(key.strip().lower(), len(order)))
    names = {key: classify(key) for key in numbers}
    ranks = {key: n.rank for key, n in names.items() if n.role is Role.LOSS and n.scope is not NameScope.EVAL}
    best = min(ranks.values(), default=0)
    keys = [key for key, rank in ranks.items() if rank == best]
    if best >= PART and len(keys) > 1:
        keys = [key for key in keys if key.strip().lower() in ("train/box_loss", "train/loss_step")]
    return keys[0] if keys else None


def _first_of(fields: Mapping[str, str | None], numbers: Mapping[str, float], field: str, role: Role) -> str | None:
    """Return the key of a field, by the table or else by what its words mean."""
    named = (key for key in numbers if fields[key] == field)
    meant = (key for key in numbers if fields[key] is None and classify(key).role is role)
    return next(named, None) or next(meant, None)
