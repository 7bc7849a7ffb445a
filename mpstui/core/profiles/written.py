"""Finding, reading and changing options in a command, in the place and style in which they were written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ...wire.records import Totals

_ASSIGNMENT = re.compile(r"(?P<head>(?:--?|\+{1,2})?(?P<key>[A-Za-z][\w.-]*)=)(?P<value>.*)", re.DOTALL)
_FLAG = re.compile(r"--?(?P<key>[A-Za-z][\w.-]*)")
_NUMBER = re.compile(r"-\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|-\.\d+")
USUAL_NAMES: Mapping[str, tuple[str, ...]] = {
    "batch_size": (
        *("batch_size", "train_batch_size", "per_device_train_batch_size", "bs", "batchSize", "batchsize", "bsz"),
        *("train_batch", "train_bs", "trainBatchSize", "mini_batch_size"),
    ),
    "accumulate": (
        *("accumulate", "gradient_accumulation_steps", "grad_accum_steps", "accumulation_steps", "grad_accum"),
        "accumulate_grad_batches",
    ),
    "workers": ("workers", "num_workers", "dataloader_num_workers"),
    "epochs": (
        *("epochs", "num_epochs", "max_epochs", "n_epochs", "num_train_epochs", "train_epochs", "total_epochs"),
        *("nepochs", "nEpochs", "nb_epochs", "nepoch", "n_epoch", "nb_epoch", "num_epoch", "max_epoch", "total_epoch"),
    ),
    "steps": (
        *("steps", "max_steps", "total_steps", "train_steps", "max_train_steps", "num_train_steps", "training_steps"),
        *("num_training_steps", "max_iters", "max_iter", "n_iters", "num_iters", "num_iterations", "iterations"),
        *("train_iters", "total_iters", "num_iter", "niters", "training_iters", "train_iterations"),
        *("n_updates", "max_update", "max_updates", "total_updates", "lr_anneal_steps"),
    ),
}
"""Role -> common names for its argument, used if no profile says."""

NAMES_FOR_REMEDIES: Mapping[str, tuple[str, ...]] = {
    **USUAL_NAMES,
    "batch_size": (*USUAL_NAMES["batch_size"], "batch", "per_gpu_train_batch_size"),
    "part_of_batch": (
        *("micro_batch_size", "microbatch_size", "micro_batch", "microbatch", "micro_bs"),
        *("train_micro_batch_size_per_gpu", "device_batch_size"),
    ),
    "whole_batch": ("global_batch_size", "total_batch_size", "effective_batch_size"),
    "precision": ("precision", "mixed_precision", "dtype", "amp_dtype"),
    "fp16": ("fp16", "use_fp16"),
    "bf16": ("bf16", "use_bf16"),
    "pin_memory": ("pin_memory", "pin_mem", "dataloader_pin_memory"),
    "persistent_workers": ("persistent_workers", "dataloader_persistent_workers"),
    "prefetch_factor": ("prefetch_factor", "dataloader_prefetch_factor"),
    "devices": ("devices",),
    "strategy": ("strategy",),
    "backend": ("dist_backend", "ddp_backend"),
}
"""The same for all roles that a remedy may change; a recipe must not guess the additional ones."""


class WrittenOption(NamedTuple):
    """One option of a command."""

    key: str
    """The name as spelled, without dashes."""
    value: str | None
    """The value; None for a bare flag."""
    place: int
    """Index of its word in the command."""
    head: str
    """The part of the word before the value (``--key=``); empty if the value is the next word."""


def program_ends(command: Sequence[str]) -> int:
    """Return the index of the program's first own word: after the script or module, else after the first word."""
    for place, word in enumerate(command[1:], start=1):
        if word == "-c":
            return min(place + 2, len(command))
        if word.endswith(".py"):
            return place + 1
        if word == "-m" and place + 1 < len(command):
            return place + 2
    return 1


def is_option(word: str) -> bool:
    """True if a word begins with a dash and is not a negative number."""
    return word.startswith("-") and not _NUMBER.fullmatch(word)


def written_options(command: Sequence[str]) -> Iterator[WrittenOption]:
    """Yield the program's options: ``--key value``, ``--key=value``, ``key=value``, ``-k value``."""
    for place in range(program_ends(command), len(command)):
        word, following = command[place], command[place + 1 : place + 2]
        if assigned := _ASSIGNMENT.fullmatch(word):
            yield WrittenOption(assigned["key"], assigned["value"], place, assigned["head"])
        elif flag := _FLAG.fullmatch(word):
            value = following[0] if following and not is_option(following[0]) else None
            yield WrittenOption(flag["key"], value, place, "")


def replace_option(words: list[str], key: str, text: str | bool) -> bool:
    """Give an option of the command a new value, in its own style; return False if there is no such option.

    Args:
        text: the new value; True leaves a bare flag, False removes the option.
    """
    found = [one for one in written_options(words) if folded(one.key) == folded(key)]
    for option in found[-1:]:  # if it is given twice, programs take the last one
        end = option.place + (2 if option.value is not None and not option.head else 1)
        if text is False:
            words[option.place : end] = []
        elif text is True:
            words[option.place : end] = [words[option.place].partition("=")[0]]
        elif option.head:
            words[option.place] = option.head + text
        else:
            words[option.place + 1 : end] = [text]
    return bool(found)


def totals_of(command: Sequence[str], roles: Mapping[str, str]) -> Totals:
    """Return the epochs and steps that a command asks for; ``roles`` maps roles to the argument names of a profile."""
    found = {folded(one.key): one.value for one in written_options(command)}
    last = {key.rpartition(".")[2]: value for key, value in found.items()}

    def count(role: str) -> int | None:
        named = roles.get(role)
        texts = [found.get(folded(named))] if named else [last.get(name) for name in USUAL_NAMES[role]]
        return next((number for text in texts if text is not None and (number := _whole(text))), None)

    return Totals(count("epochs"), count("steps"))


def folded(key: str) -> str:
    """Return a key in normalised spelling: ``--batch-size`` and ``batch_size`` are the same."""
    return key.lstrip("-+").replace("-", "_")


def _whole(text: str) -> int | None:
    """Return a positive whole number, else None; programs use -1 for "no limit"."""
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if 0 < number < 1e15 and number.is_integer() else None
