"""One table of what other programs call the fields of a record, and the reader of such records.

A *record* is a flat mapping: a line of JSON, a row of CSV, a heartbeat file, the dictionary that a trainer prints. Names
are compared in lower case. What the table does not hold is judged by `names.classify`, like a name in a log line.
"""

from __future__ import annotations

from collections.abc import Mapping

from .assemble import series_name
from .names import Name, Role, Scope, classify
from .numbers import as_float, as_number
from .points import Counters, Number, Phase, Reading

EPOCH, EPOCHS, STEP, STEPS = "epoch", "epochs", "step", "steps"
EPOCH_STEP, EPOCH_STEPS = "epoch_step", "epoch_steps"
LOSS, LEARNING_RATE, THROUGHPUT, PHASE = "loss", "lr", "throughput", "phase"
DONE_OR_PLANNED = "done_or_planned"
"""Names that mean the plan beside a current step, and the count of what is done where they stand alone."""
IGNORED = "ignored"

ALIASES: dict[str, str] = {
    "epoch": EPOCH, "current_epoch": EPOCH, "epoch_num": EPOCH, "epoch_idx": EPOCH, "epoch_index": EPOCH, "cur_epoch": EPOCH,
    "trainer/epoch": EPOCH, "train/epoch": EPOCH, "epoch_id": EPOCH,
    "epochs": EPOCHS, "num_epochs": EPOCHS, "max_epochs": EPOCHS, "total_epochs": EPOCHS, "n_epochs": EPOCHS,
    "num_train_epochs": EPOCHS, "epochs_total": EPOCHS, "epoch_total": EPOCHS, "epoch_count": EPOCHS,
    "step": STEP, "global_step": STEP, "current_step": STEP, "current_steps": STEP, "iteration": STEP, "iter": STEP,
    "num_updates": STEP, "train_num_updates": STEP, "steps_done": STEP, "step_num": STEP, "optimizer_step": STEP, "train_step": STEP, "update_step": STEP,
    "trainer/global_step": STEP, "train/global_step": STEP, "train/step": STEP, "_step": STEP, "iter_num": STEP, "it": STEP, "n_iter": STEP,
    "steps_completed": STEP, "completed_steps": STEP, "cur_step": STEP, "cur_iter": STEP, "train/iteration": STEP, "iterations_done": STEP,
    "time/total_timesteps": STEP, "total_timesteps": STEP, "timesteps": STEP, "timesteps_total": STEP, "num_timesteps": STEP,
    "total_env_steps": STEP, "misc/total_timesteps": STEP, "timestepssofar": STEP, "num_env_steps_sampled": STEP,
    "max_steps": STEPS, "max_iters": STEPS, "num_steps": STEPS, "num_training_steps": STEPS, "max_train_steps": STEPS, "max_iter": STEPS,
    "num_iterations": STEPS, "total_iters": STEPS, "total_iterations": STEPS, "n_steps_total": STEPS, "step_total": STEPS, "max_step": STEPS,
    "steps_total": DONE_OR_PLANNED, "total_steps": DONE_OR_PLANNED, "steps": DONE_OR_PLANNED, "total_step": DONE_OR_PLANNED,
    "epoch_step": EPOCH_STEP, "batch": EPOCH_STEP, "batch_idx": EPOCH_STEP, "batch_num": EPOCH_STEP, "step_in_epoch": EPOCH_STEP,
    "epoch_steps": EPOCH_STEPS, "steps_per_epoch": EPOCH_STEPS, "batches_per_epoch": EPOCH_STEPS, "num_batches": EPOCH_STEPS,
    "batches": EPOCH_STEPS, "total_batches": EPOCH_STEPS,
    "loss": LOSS, "train_loss": LOSS, "avg_loss": LOSS, "loss_avg": LOSS, "mean_loss": LOSS, "train/loss": LOSS, "training_loss": LOSS,
    "total_loss": LOSS, "loss_total": LOSS, "last_loss": LOSS, "current_loss": LOSS, "train_loss_step": LOSS, "train/loss_step": LOSS, "loss/train": LOSS,
    "running_loss": LOSS, "trl": LOSS, "losses/train": LOSS, "train.loss": LOSS, "train-loss": LOSS,
    "lr": LEARNING_RATE, "learning_rate": LEARNING_RATE, "lr/pg0": LEARNING_RATE, "train/lr": LEARNING_RATE, "train/learning_rate": LEARNING_RATE,
    "current_lr": LEARNING_RATE, "optim/learning_rate": LEARNING_RATE, "last_lr": LEARNING_RATE, "base_lr": LEARNING_RATE,
    "samples_per_second": THROUGHPUT, "steps_per_second": THROUGHPUT, "tok_s": THROUGHPUT, "tokens_per_second": THROUGHPUT,
    "throughput": THROUGHPUT, "images_per_second": THROUGHPUT, "it_s": THROUGHPUT, "tps": THROUGHPUT, "wps": THROUGHPUT,
    "train_samples_per_second": THROUGHPUT, "time/fps": THROUGHPUT,
    "phase": PHASE, "mode": PHASE, "split": PHASE, "stage": PHASE,
    "update": IGNORED, "time": IGNORED, "timestamp": IGNORED, "pid": IGNORED, "rank": IGNORED, "world_size": IGNORED, "seq": IGNORED,
    "schema": IGNORED, "_timestamp": IGNORED, "time/iterations": IGNORED,
}  # fmt: skip
_PRECEDENCE = ("train_loss_step", "train/loss_step", "loss", "train/loss", "train_loss", "training_loss", "total_loss")
_RUN_SUMMARY = ("train_runtime", "train_steps_per_second", "total_flos")
_EVALUATION_PHASES = ("val", "valid", "validation", "eval", "test", "dev")


def read_record(record: Mapping[str, object], grammar: str) -> Reading | None:
    """The reading of a flat record; None when nothing in it is a counter, a loss or a rate.

    Values may be numbers or quoted numbers. Nested mappings and lists are passed over, except ``metrics``, whose members
    count as fields of the record.
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
    return Reading(
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
    number = as_number(value)
    if number is not None and number == number and number >= 0 and field not in found:
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
