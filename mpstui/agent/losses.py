"""The losses of a program that does not know mpstui, as it passes them to backward.

What is passed is not always what the program calls its loss: under gradient accumulation it is divided, a sum grows
with the batch, a GAN has several. The autograd graph tells; where it cannot, no loss is better than a wrong one.
"""

from __future__ import annotations

import functools
import linecache
import re
import sys
import weakref
from typing import Any

_LIBRARIES = frozenset({"torch", "accelerate", "transformers", "lightning", "lightning_fabric", "pytorch_lightning"})
_OURS = __name__.partition(".")[0]
_HANDED = re.compile(r"backward\(\s*([A-Za-z_][\w.]*)\b(?!\s*[=(])")
_NAME = re.compile(r"[A-Za-z_]\w*")
_CALLS = re.compile(r"(?:\.\w+\(\))+$")
_RESUMED = re.compile(r"^torch_dynamo_resume_in_|_at_\d+$")
_LINEAR = frozenset({"AddBackward0", "SubBackward0", "NegBackward0", "MulBackward0", "ToCopyBackward0"})
_JOINED = frozenset({"StackBackward0", "CatBackward0"})
_SUM = 2
"""torch's number for ``reduction="sum"``."""
_DEEPEST = 12


class _Root:
    """A place in the program that calls backward, and the loss it passed last."""

    def __init__(self, name: str, shape: tuple[bool, bool]) -> None:
        self.name = name
        self.is_sum, self.has_factor = shape
        self.value: Any = None
        self.divisor: float | None = None
        self.passes = 0
        self.passes_per_step = 0
        """In a usual step: the batches left over by an epoch make a smaller one, or enlarge the next epoch's first."""
        self._is_usual = False
        self._unlike = 0
        """How many steps in a row had another number of passes; from the second on, theirs is the usual one."""
        self.proven: set[float] = set()

    def stepped(self, evaluations: int) -> None:
        if self.passes:
            passes, self.passes = max(1, self.passes // evaluations), 0
            if passes == self.passes_per_step:
                self._is_usual, self._unlike = True, 0
            else:
                self._unlike += 1
                if not self._is_usual or self._unlike == 2:
                    self.passes_per_step, self._is_usual, self._unlike = passes, False, 0
            if self.divisor is not None and passes == self.divisor:
                self.proven.add(self.divisor)

    def loss(self) -> float | None:
        """Return the program's own number (this waits for the device); None if that cannot be proven."""
        if self.value is None or self.is_sum:
            return None
        if self.divisor in self.proven and self.divisor is not None:
            return float(self.value.item()) * self.divisor
        is_whole = (
            self.passes_per_step == 1 or not self.has_factor
        )  # before the first step the number of passes is unknown
        return float(self.value.item()) if is_whole else None


class Losses:
    """Sees every backward pass and every optimizer step; knows what the loss is."""

    def __init__(self, torch: Any) -> None:
        self.backwards = 0
        self.searches = False
        """True if a step has evaluated the loss of its batch several times, which the program may count."""
        self._tensor = torch.Tensor
        self._unscaled: Any = None
        self._sites: dict[tuple[int, int], _Root] = {}
        self._codes: list[Any] = []  # kept alive: their ids are keys
        self._depth = 1
        """Frames from ours to the newest of these call sites."""
        self._roots: dict[tuple[str, str, str], _Root] = {}
        self._several: dict[str, _Root] = {}
        self._last: _Root | None = None
        self._evaluated: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        """Evaluations that each optimizer had counted when a step with several passes was last seen."""

    @property
    def passes_per_step(self) -> int:
        """Backward passes of the newest loss per step; 0 before the first step."""
        return self._last.passes_per_step if self._last is not None else 0

    @property
    def device(self) -> str:
        """The device of the newest loss."""
        value = self._last.value if self._last is not None else None
        return "cpu" if value is None else str(value.device.type)

    def before_scale(self, scaler: Any, outputs: Any, *args: Any) -> None:
        """Remember a loss as it is before a GradScaler multiplies it."""
        if scaler.is_enabled() and isinstance(outputs, self._tensor) and outputs.numel() == 1:
            self._unscaled = outputs.detach()

    def before_backward(self, tensors: Any = None, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> None:
        """Remember the loss, without a copy and without waiting for the device."""
        self.backwards += 1
        unscaled, self._unscaled = self._unscaled, None
        if not isinstance(tensors, self._tensor) or tensors.numel() != 1 or (grad_fn := tensors.grad_fn) is None:
            return
        if unscaled is not None:
            grad_fn = grad_fn.next_functions[0][0] or grad_fn
        root = self._root_of(grad_fn, is_weighted=grad_tensors is not None)
        if root is not self._last:
            if root.value is not None and self._last is not None:  # seen before: they alternate
                self._several.update({self._last.name: self._last, root.name: root})
            self._last = root
        root.value = tensors.detach() if unscaled is None else unscaled
        if root.has_factor and root.passes_per_step != 1:
            root.divisor = _divisor(grad_fn)
        root.passes += 1

    def stepped(self, optimizer: Any) -> None:
        """Note a step of an optimizer."""
        evaluations = 1
        for root in self._roots.values():
            if root.passes > 1:
                evaluations = self._evaluations(optimizer)
                break
        for root in self._roots.values():
            root.stepped(evaluations)

    def _evaluations(self, optimizer: Any) -> int:
        """Return how often one step evaluated the loss of its batch: LBFGS does so in its line search, and counts."""
        counts: list[int] = [
            one["func_evals"] for one in optimizer.state.values() if isinstance(one, dict) and "func_evals" in one
        ]
        before: int = self._evaluated.get(optimizer, 0)
        self._evaluated[optimizer] = now = sum(counts)
        most = max(root.passes for root in self._roots.values())  # evaluations before a resume are not among them
        evaluations = max(1, min(now - before, most))
        self.searches = self.searches or evaluations > 1
        return evaluations

    @property
    def are_several(self) -> bool:
        """Whether the program passes more than one loss in turns."""
        return bool(self._several)

    def read(self) -> tuple[float | None, dict[str, float | None]]:
        """Return the loss, and further numbers by name: each of several losses, or a sum that is no loss per sample."""
        if self.are_several:
            return None, {name: root.loss() for name, root in self._several.items()}
        root = self._last
        if root is None or root.value is None:
            return None, {}
        return root.loss(), {"loss_sum": float(root.value.item())} if root.is_sum else {}

    def _root_of(self, grad_fn: Any, *, is_weighted: bool) -> _Root:
        """Return the place in the program that calls backward: the innermost frame that is not a library's.

        It is usually as deep as last time; looking there first saves creating an object for each frame in between. A
        frame further out is never mistaken for it, since it stands at the instruction of another call.
        """
        try:
            frame: Any = sys._getframe(self._depth)
        except ValueError:  # the stack is less deep
            frame = None
        if frame is not None and (known := self._sites.get((id(frame.f_code), frame.f_lasti))) is not None:
            return known
        frame, depth = sys._getframe(1), 1
        while frame.f_back is not None and _is_library(frame.f_globals.get("__name__")):
            frame, depth = frame.f_back, depth + 1
        self._depth = depth
        return self._sites.get((id(frame.f_code), frame.f_lasti)) or self._new_site(frame, grad_fn, is_weighted)

    def _new_site(self, frame: Any, grad_fn: Any, is_weighted: bool) -> _Root:
        """Add a call site. Those in one function that pass the same variable share a root: `no_sync` makes two of them.

        The source line names the variable. The frame's `f_locals` are left alone: before Python 3.13, reading them
        keeps the tensors of that moment alive until the function ends.
        """
        code, line = frame.f_code, frame.f_lineno
        name = _name_of(linecache.getline(code.co_filename, line), is_weighted=is_weighted) or f"loss_line_{line}"
        key = (code.co_filename, _RESUMED.sub("", code.co_name), name)
        root = self._roots.get(key) or _Root(name, _shape_of(grad_fn))
        self._roots[key] = self._sites[id(code), frame.f_lasti] = root
        self._codes.append(code)
        return root


@functools.cache
def _is_library(module: Any) -> bool:
    first = str(module).partition(".")[0]
    return first in _LIBRARIES or first == _OURS


def _name_of(line: str, *, is_weighted: bool) -> str:
    """Return the name of the loss in a source line: ``errD`` for ``scaler.scale(errD / n).backward()``.

    The argument of the call is a loss handed to an accelerator or engine, unless the loss ``is_weighted`` with a
    gradient: then the argument is that gradient, as in ``errD.backward(one)``.
    """
    handed = None if is_weighted and "autograd.backward(" not in line else _HANDED.search(line)
    if handed:
        return handed[1].rpartition(".")[2]
    before = line.partition(".backward(")[0].rpartition(";")[2] if ".backward(" in line else ""
    names = _NAME.findall(_CALLS.sub("", re.split(r"[/*]", before)[0]))
    return names[-1] if names else ""


def _divisor(grad_fn: Any) -> float | None:
    """Return the number that the loss was last divided by, looking past a last division by 1; None if not divided."""
    number = _divided_by(grad_fn)
    before = grad_fn.next_functions[0][0] if number == 1.0 else None
    return (before and _divided_by(before)) or number


def _divided_by(grad_fn: Any) -> float | None:
    name = grad_fn.name()
    if name not in ("DivBackward0", "MulBackward0"):
        return None
    other = grad_fn._saved_other
    if other is None or other.numel() != 1 or other.device.type != "cpu":
        return None
    number = float(other.item())
    if name == "MulBackward0":
        number = 1 / number if number else 0.0
    return float(round(number)) if number >= 1 and abs(number - round(number)) < 1e-4 * number else number or None


def _shape_of(grad_fn: Any) -> tuple[bool, bool]:
    """Return whether a loss is a sum over its batch, and whether it was, or may have been, divided or multiplied."""
    sums = others = 0
    has_factor = False
    waiting = [(grad_fn, 0)]
    while waiting:
        node, depth = waiting.pop()
        name = node.name()
        before = [after for after, _ in node.next_functions if after is not None]
        if name == "DivBackward0" and len(before) == 1 and _divisor(node) == 1.0:  # by a count that happens to be 1
            waiting.append((before[0], depth))
        elif name == "DivBackward0" or (name == "MulBackward0" and depth == 0):
            has_factor, others = True, others + 1
        elif name in _LINEAR and depth < _DEEPEST:
            has_factor |= name == "MulBackward0"
            waiting += [(after, depth + 1) for after in before]
        elif getattr(node, "_saved_reduction", None) == _SUM or _sums_many(node, name):
            sums += 1
        else:
            others += 1
            has_factor |= name.startswith("CompiledFunction")
    return sums > 0 and not others, has_factor


def _sums_many(node: Any, name: str) -> bool:
    """Return whether a node sums a whole tensor, rather than a few losses stacked into one."""
    before = node.next_functions[0][0] if name == "SumBackward0" else None
    return before is not None and before.name() not in _JOINED
