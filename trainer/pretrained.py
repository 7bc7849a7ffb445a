"""``--init-from FILE``: begin with the weights of another training, ours or anybody's.

Only tensors are read: from safetensors, or from a file of ``torch.save`` without running any code in it. Names may
differ by a prefix, as wrappers leave them (``module.``, ``_orig_mod.``, ``model.``): the prefix that makes most names
agree is removed or added. What did not fit is reported name by name.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

from . import checkpoint, parts, tensorfile
from .errors import UsageError
from .export import averaged, names_its_average

Weights = Mapping[str, torch.Tensor]
_CONTAINERS = ("model", "state_dict", "model_state_dict", "model_state", "net", "weights", "params", "module", "ema")
"""Where a training keeps the weights among other things: Lightning's is ``state_dict``."""
_SHARE_TO_RENAME = 0.75
_HARMLESS: list[Any] = [
    *(argparse.Namespace, PosixPath, WindowsPath, PurePosixPath, PureWindowsPath),
    *(np.dtype, np.float64(0).__reduce__()[0], *(type(np.dtype(kind)) for kind in ("f8", "f4", "i8", "i4", "b1"))),
]
"""What trainings save beside weights and torch does not load by default: arguments, paths, single numbers."""


@dataclass(frozen=True)
class Filled:
    """What happened to each weight."""

    taken: tuple[str, ...]
    fresh: tuple[str, ...]
    """Weights of the model that the file lacks: they keep their random start."""
    misshapen: tuple[str, ...]
    """Likewise, since the file has them in another shape: ``name (file 10x64, model 100x64)``."""
    unused: tuple[str, ...]
    """Names in the file that the model does not have."""

    def lines(self, path: Path) -> Iterator[str]:
        """Lines for a person, with every name."""
        of = len(self.taken) + len(self.fresh) + len(self.misshapen)
        yield f"begun with {len(self.taken)} of {of} weights from {path}"
        for what, names in (
            ("stay as drawn, the file has them in another shape", self.misshapen),
            ("stay as drawn, the file lacks them", self.fresh),
            ("are in the file alone", self.unused),
        ):
            if names:
                yield f"{len(names)} {what}: {', '.join(names)}"


def fill(model: nn.Module, path: Path, translated: Callable[[Weights], Weights] = lambda given: given) -> Filled:
    """Copy a file's weights into a model.

    Args:
        translated: turns names and shapes of public versions of the model into ours.

    Raises:
        UsageError: the file cannot be read, or nothing in it fits.
    """
    given, wanted = translated(read(path)), model.state_dict()
    off, on = _best_prefixes(given, wanted)
    named = {on + name.removeprefix(off): tensor for name, tensor in given.items()}
    fitting = {name for name, tensor in named.items() if name in wanted and tensor.shape == wanted[name].shape}
    if not any(wanted[name].is_floating_point() for name in fitting):
        raise UsageError(
            f"--init-from {path}: none of its {len(given)} tensors fits this model (it has {_few(given)}; the model"
            f" {_few(wanted)}); give the options of the model it was made with"
        )
    with torch.no_grad():
        for name in fitting:
            wanted[name].copy_(named[name])
    filled = {wanted[name].data_ptr() for name in fitting}  # a weight that is used twice has two names
    return Filled(
        taken=tuple(name for name in wanted if name in fitting or wanted[name].data_ptr() in filled),
        fresh=tuple(name for name in wanted if name not in named and wanted[name].data_ptr() not in filled),
        misshapen=tuple(
            f"{name} (file {_shape(named[name])}, model {_shape(wanted[name])})"
            for name in wanted
            if name in named and name not in fitting
        ),
        unused=tuple(name for name in named if name not in wanted),
    )


def read(path: Path) -> Weights:
    """The weights in a file; from our own checkpoints the averaged ones, if there are any.

    Raises:
        UsageError: it cannot be read, or holds no tensors by name.
    """
    if not checkpoint.is_checkpoint(path):
        raise UsageError(f"--init-from {path} is no file; name a checkpoint or a safetensors file")
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        with torch.serialization.safe_globals(_HARMLESS):
            state = parts.joined(path) if path.is_dir() else tensorfile.read(path)
    except Exception as error:  # zip, pickle, torch and safetensors each raise their own kinds
        reason = str(error).strip().partition("\n")[0][:160]
        raise UsageError(
            f"--init-from {path} cannot be read ({reason}); save its state_dict() with torch.save or safetensors"
        ) from error
    if isinstance(state, dict) and state.get("format") == checkpoint.FORMAT and names_its_average(state):
        return averaged(state)
    for found in (state, *(state.get(key) for key in _CONTAINERS)) if isinstance(state, dict) else ():
        tensors = _tensors(found)
        if tensors:
            return tensors
    networks = state.items() if isinstance(state, dict) else ()  # several networks, each under its own name
    joined = {
        f"{str(part).removesuffix('_state_dict')}.{name}": tensor
        for part, held in networks
        if "optim" not in str(part)
        for name, tensor in _tensors(held).items()
    }
    if joined:
        return joined
    raise UsageError(f"--init-from {path} holds no tensors by name; save the model's state_dict()")


def _tensors(found: Any) -> dict[str, torch.Tensor]:
    if not isinstance(found, Mapping):
        return {}
    return {name: value for name, value in found.items() if isinstance(name, str) and isinstance(value, torch.Tensor)}


def _best_prefixes(given: Weights, wanted: Weights) -> tuple[str, str]:
    """The prefix to remove from the file's names and the one to add, so that most become names of the model.

    Both empty unless three quarters then agree: any two networks with layers called 0, 1, 2 share a few names.
    """

    def known(pair: tuple[str, str]) -> int:
        off, on = pair
        return sum(on + name[len(off) :] in wanted for name in given if name.startswith(off))

    best = max(((off, on) for off in _prefixes(given) for on in _prefixes(wanted)), key=known)
    return best if known(best) >= _SHARE_TO_RENAME * min(len(given), len(wanted)) else ("", "")


def _prefixes(weights: Weights) -> list[str]:
    """The empty prefix, then whatever precedes one of the first three dots of a name."""
    found = {"": None}
    for name in weights:
        parts = name.split(".")[:-1][:3]
        found.update({".".join(parts[: depth + 1]) + ".": None for depth in range(len(parts))})
    return list(found)


def _shape(tensor: torch.Tensor) -> str:
    return "x".join(str(size) for size in tensor.shape) or "1"


def _few(weights: Weights) -> str:
    names = list(weights)
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
