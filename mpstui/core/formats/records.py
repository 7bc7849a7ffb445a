"""One table of what other programs call the fields of a record, and the reader of such records.

A *record* is a flat mapping: a line of JSON, a row of CSV, a heartbeat file, the dictionary that a trainer prints.
Names are compared in lower case. What the table does not hold is judged by `names.classify`, like one in a log line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from .names import Name, Role, Scope, classify
from .points import Counters, LineReading, Number, Phase, as_float, as_number, series_name

EPOCH, EPOCHS, STEP, STEPS = "epoch", "epochs", "step", "steps"
EPOCH_STEP, EPOCH_STEPS = "epoch_step", "epoch_steps"
LOSS, LEARNING_RATE, THROUGHPUT, PHASE = "loss", "lr", "throughput", "phase"
DONE_OR_PLANNED = "done_or_planned"
"""Names that mean the plan beside a current step, and the count of what is done where they stand alone."""
IGNORED = "ignored"

_NAMES = {
    EPOCH: "epoch current_epoch epoch_num epoch_idx epoch_index cur_epoch trainer/epoch train/epoch epoch_id",
    EPOCHS: (
        "epochs num_epochs max_epochs total_epochs n_epochs num_train_epochs epochs_total epoch_total epoch_count"
    ),
    STEP: (
        "step global_step current_step current_steps iteration iter num_updates train_num_updates steps_done "
        "step_num optimizer_step train_step update_step trainer/global_step train/global_step train/step "
        "_step iter_num it n_iter steps_completed completed_steps cur_step cur_iter train/iteration "
        "iterations_done time/total_timesteps total_timesteps timesteps timesteps_total num_timesteps "
        "global_step/max_steps total_env_steps misc/total_timesteps timestepssofar num_env_steps_sampled"
    ),
    STEPS: (
        "max_steps max_iters num_steps num_training_steps max_train_steps max_iter num_iterations total_iters "
        "total_iterations n_steps_total step_total max_step"
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
    PHASE: "phase mode split stage",
    IGNORED: "update time timestamp pid rank world_size seq schema _timestamp time/iterations",
}
ALIASES: dict[str, str] = {name: field for field, names in _NAMES.items() for name in names.split()}
"""Lower-case name to field."""
_TOTALS = {EPOCH: EPOCHS, STEP: STEPS, EPOCH_STEP: EPOCH_STEPS}
_OF_TOTAL = re.compile(r"\s{0,8}(\d{1,12})\s?/\s?(\d{1,12})\s{0,8}\Z")
_PRECEDENCE = ("train_loss_step", "train/loss_step", "loss", "train/loss", "train_loss", "training_loss", "total_loss")
_RUN_SUMMARY = ("train_runtime", "train_steps_per_second", "total_flos")
_EVALUATION_PHASES = ("val", "valid", "validation", "eval", "test", "dev")


def read_record(record: Mapping[str, object], grammar: str) -> LineReading | None:
    """The reading of a flat record; None when nothing in it is a counter, a loss or a rate.

    Values may be numbers or quoted numbers. Nested mappings and lists are passed over, except ``metrics`` and its like,
    whose members count as fields of the record.
    """
    flat = _flatten(record)
    fields = {key: ALIASES.get(key.strip().lower()) for key in flat}
    evaluation = _is_evaluation(flat, fields)
    counters = _counters(flat, fields)
    loss_key = None if evaluation or any(key in flat for key in _RUN_SUMMARY) else _loss_key(flat, fields)
    metrics, eval_metrics = _metrics(flat, fields, evaluation)
    if loss_key is None and not metrics and not eval_metrics and counters == Counters():
        return None
    rate_key = _first_of(flat, fields, LEARNING_RATE, Role.LEARNING_RATE)
    speed_key = _first_of(flat, fields, THROUGHPUT, Role.THROUGHPUT)
    return LineReading(
        grammar=grammar,
        counters=Counters() if evaluation and _reuses_step(flat) else counters,
        phase=Phase.EVAL if evaluation else Phase.TRAIN,
        loss=as_float(flat[loss_key]) if loss_key else None,
        loss_name=loss_key or "",
        learning_rate=as_float(flat[rate_key]) if rate_key and not evaluation else None,
        throughput=as_float(flat[speed_key]) if speed_key else None,
        throughput_unit=speed_key or "",
        metrics=metrics,
        eval_metrics=eval_metrics,
        series=series_name(loss_key, Counters()) if loss_key else "",
        certain=True,
    )


def _flatten(record: Mapping[str, object]) -> dict[str, object]:
    flat = {key: value for key, value in record.items() if not isinstance(value, (dict, list))}
    for name in ("metrics", "train", "progress", "data"):
        inner = record.get(name)
        if isinstance(inner, dict):
            prefix = "train/" if name == "train" else ""
            flat.update({prefix + str(k): v for k, v in inner.items() if not isinstance(v, (dict, list))})
    return flat


def _is_evaluation(flat: Mapping[str, object], fields: Mapping[str, str | None]) -> bool:
    if "schema" in flat:
        return False  # mpstui's own heartbeat: its phase says what the program does, its loss is of training
    for key, field in fields.items():
        if field == PHASE and str(flat[key]).strip().lower() in _EVALUATION_PHASES:
            return True
    if any(field == LOSS and as_float(flat[key]) is not None for key, field in fields.items()):
        return False
    scopes = [classify(key).scope for key, value in flat.items() if fields[key] is None and as_float(value) is not None]
    return bool(scopes) and all(scope is Scope.EVAL for scope in scopes)


def _reuses_step(flat: Mapping[str, object]) -> bool:
    """mmcv counts validation batches under ``iter``, mmengine writes the epoch under ``step``."""
    return "mode" in flat or "global_step" not in flat


def _counters(flat: Mapping[str, object], fields: Mapping[str, str | None]) -> Counters:
    found: dict[str, Number] = {}
    for key, field in fields.items():
        if field in (EPOCH, EPOCHS, STEP, STEPS, EPOCH_STEP, EPOCH_STEPS) and field not in found:
            _keep(found, field, flat[key])
    for key, field in fields.items():
        if field == DONE_OR_PLANNED:
            _keep(found, STEPS if STEP in found else STEP, flat[key])
    return Counters(**found)


def _keep(found: dict[str, Number], field: str, value: object) -> None:
    if isinstance(value, str) and (both := _OF_TOTAL.match(value)):
        value = both[1]
        if field in _TOTALS:
            _keep(found, _TOTALS[field], both[2])
    number = as_number(value)
    if number is not None and 0 <= number < math.inf and field not in found:
        found[field] = int(number) if field != EPOCH and number == int(number) else number


def _loss_key(flat: Mapping[str, object], fields: Mapping[str, str | None]) -> str | None:
    """The key of the training loss by the table's precedence, else the best name, else none."""
    known = [key for key, field in fields.items() if field == LOSS and as_float(flat[key]) is not None]
    if known:
        order = {name: place for place, name in enumerate(_PRECEDENCE)}
        return min(known, key=lambda key: order.get(key.strip().lower(), len(order)))
    named: list[tuple[int, str]] = []
    for key, value in flat.items():
        name = classify(key)
        if name.role is Role.LOSS and name.scope is not Scope.EVAL and as_float(value) is not None:
            named.append((name.rank, key))
    if not named:
        return None
    best = min(rank for rank, _ in named)
    keys = [key for rank, key in named if rank == best]
    boxes = [key for key in keys if key.strip().lower() in ("train/box_loss", "train/loss_step")]
    if best >= 5 and len(keys) > 1:
        return boxes[0] if boxes else None
    return keys[0]


def _metrics(
    flat: Mapping[str, object], fields: Mapping[str, str | None], evaluation: bool
) -> tuple[dict[str, float], dict[str, float]]:
    train: dict[str, float] = {}
    other: dict[str, float] = {}
    for key, value in flat.items():
        number = as_float(value)
        if number is None or fields[key] in (
            EPOCH,
            EPOCHS,
            STEP,
            STEPS,
            EPOCH_STEP,
            EPOCH_STEPS,
            PHASE,
            IGNORED,
            DONE_OR_PLANNED,
        ):
            continue
        name: Name = classify(key)
        side = other if evaluation or name.scope is Scope.EVAL else train
        side[key.strip()] = number
    return train, other


def _first_of(flat: Mapping[str, object], fields: Mapping[str, str | None], field: str, role: Role) -> str | None:
    for key in flat:
        if fields[key] == field and as_float(flat[key]) is not None:
            return key
    for key, value in flat.items():
        if fields[key] is None and classify(key).role is role and as_float(value) is not None:
            return key
    return None
