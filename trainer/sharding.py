"""How a training's weights are placed on its ranks: all of them on every rank, or a part on each.

The rest of the trainer works on the tensors that a rank holds, which are ordinary tensors either way. Everything that
needs all ranks at once is here: the caller must make sure that every rank calls it at the same step.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
import torch.distributed as dist
from torch import nn
from torch.optim import Optimizer

from .distributed import Group
from .exchange import Exchange
from .gradients import Gradients, gradient_norm
from .optimizers import load_state
from .parts import Rows

if TYPE_CHECKING:
    from torch.distributed.fsdp import FSDPModule
    from torch.distributed.tensor import DTensor


class Layout:
    """Every rank holds whole tensors: a single process, or several with gradients averaged over them."""

    divided = False
    """Whether each rank holds only a part, so that all must call the model, and take its state, together."""

    def __init__(self, model: nn.Module, group: Group) -> None:
        self._model = model
        self._group = group
        named = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
        self._weights = [weight for _, weight in named]
        self.weight_names = [name for name, _ in named]
        """The names of :meth:`weights`, as in the model's state."""
        self._averaged = None if self.divided else group.averaged(model, self._weights)

    @property
    def validates(self) -> bool:
        """Whether this rank takes part in validation."""
        return self._group.ranks.leads

    def any_validating(self, flag: bool) -> bool:
        """Whether the flag is set on any rank that validates; each of those must call this."""
        return flag

    def held(self, groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """A task's parameter groups with this rank's part of each parameter: what the optimizer works on."""
        return groups

    def weights(self) -> list[torch.Tensor]:
        """This rank's part of each trainable parameter, to be read and written in place."""
        return list(self._weights)

    def take_gradients(self) -> None:
        """Give the parameters that :meth:`held` returned their gradients, averaged over all ranks."""
        if self._averaged:
            self._averaged.exchange()

    def judged(self, loss: torch.Tensor, gradients: Gradients) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return the loss, non-finite if any rank's is, and the norm of all gradients if this rank has only a part."""
        return loss, None

    def spread_overflow(self, gradients: Gradients) -> None:
        """Let every rank's loss scaler see when gradients of another rank are not finite."""

    def model_state(self) -> dict[str, Any]:
        """Return the model's state; if it is divided, with :class:`Rows` instead of tensors."""
        return self._model.state_dict()

    def load_model(self, state: Mapping[str, Any]) -> None:
        """Load a whole state. Raises RuntimeError when it does not fit."""
        self._model.load_state_dict(state)

    def optimizer_state(self, optimizer: Optimizer) -> dict[str, Any]:
        """Return the optimizer's state, likewise with :class:`Rows` if divided."""
        return optimizer.state_dict()

    def load_optimizer(self, optimizer: Optimizer, state: Mapping[str, Any]) -> None:
        """Load a whole state. Raises ValueError when it does not fit."""
        load_state(optimizer, state)

    def saved(self, held: Sequence[torch.Tensor]) -> list[torch.Tensor | Rows]:
        """Return this rank's parts, one for each of :meth:`weights`, in the form in which a state keeps them."""
        return list(held)

    def gathered(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the state without :class:`Rows`: whole tensors on the leading rank, placeholders on the others."""
        return dict(state)

    def parts(self, whole: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return this rank's part of whole tensors."""
        return list(whole)


class Sharded(Layout):
    """Weights, gradients and optimizer state are divided over the ranks by rows. In float32 a block has whole weights
    only while it computes (FSDP); in reduced precision the whole model has them until the step (:class:`Exchange`).

    The optimizer, the guard and the average get this rank's rows as plain tensors, which every fused kernel accepts.
    """

    divided = True

    def __init__(self, model: nn.Module, group: Group, reduced: torch.dtype | None) -> None:
        """Divides the model, which must be the same on all ranks, in place."""
        self._exchange = _divide(model, group.ranks.world_size, reduced)
        super().__init__(model, group)
        self._device = next(model.parameters()).device
        self._shards = {weight: nn.Parameter(_rows(weight)) for weight in self._weights}
        if self._exchange:
            self._exchange.begin({weight: _rows(weight) for weight in model.parameters()} | self._shards)

    @property
    def validates(self) -> bool:
        """See :class:`Layout`."""
        return True

    def any_validating(self, flag: bool) -> bool:
        """See :class:`Layout`."""
        return self._group.any(flag)

    def held(self, groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """See :class:`Layout`."""
        return [{**group, "params": [self._shards[weight] for weight in group["params"]]} for group in groups]

    def weights(self) -> list[torch.Tensor]:
        """See :class:`Layout`."""
        self._forget_whole_weights()
        return [_rows(weight) for weight in self._weights]

    @torch.no_grad()
    def take_gradients(self) -> None:
        """See :class:`Layout`."""
        for weight, shard in self._shards.items() if self._exchange is None else ():  # else it put them there
            shard.data = _rows(weight)  # padding in the first pass may have moved them
            shard.grad = None if weight.grad is None else _rows(weight.grad)
            weight.grad = None

    def judged(self, loss: torch.Tensor, gradients: Gradients) -> tuple[torch.Tensor, torch.Tensor | None]:
        """See :class:`Layout`."""
        squared = gradient_norm(gradients).square() if gradients else torch.zeros((), device=self._device)
        sums = _summed(torch.stack([loss * 0, squared]))  # 0 times a non-finite value is NaN
        return loss + sums[0], sums[1].sqrt()

    def spread_overflow(self, gradients: Gradients) -> None:
        """See :class:`Layout`."""
        found, one = (make((), device=self._device) for make in (torch.zeros, torch.ones))
        if gradients:
            torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, one)  # as the scaler will check
        _summed(found)
        for gradient in gradients[:1]:
            gradient.add_(torch.where(found > 0, torch.nan, 0.0))

    @torch.no_grad()
    def model_state(self) -> dict[str, Any]:
        """See :class:`Layout`."""
        self._forget_whole_weights()
        state = self._model.state_dict(keep_vars=True)
        divided = {weight: Rows(weight, _rows(weight)) for weight in self._model.parameters()}
        return {name: divided[value] if value in divided else value.detach() for name, value in state.items()}

    def load_model(self, state: Mapping[str, Any]) -> None:
        """See :class:`Layout`."""
        mine = dict(self._model.named_parameters(remove_duplicate=False))
        self._model.load_state_dict(
            {name: self._divided(mine[name], value) if name in mine else value for name, value in state.items()}
        )

    @torch.no_grad()
    def optimizer_state(self, optimizer: Optimizer) -> dict[str, Any]:
        """See :class:`Layout`."""
        found = optimizer.state_dict()
        weights = dict(enumerate(self._weights_of(optimizer)))

        def rows(weight: nn.Parameter, value: Any) -> Any:
            return Rows(weight, value) if _has_shape(value, self._shards[weight].shape) else value

        return {**found, "state": _changed(found["state"], weights, rows)}

    def load_optimizer(self, optimizer: Optimizer, state: Mapping[str, Any]) -> None:
        """See :class:`Layout`."""
        weights = dict(enumerate(self._weights_of(optimizer)))

        def part(weight: nn.Parameter, value: Any) -> Any:
            return self._part(value) if _has_shape(value, weight.shape) else value

        load_state(optimizer, {**state, "state": _changed(state["state"], weights, part)})

    def saved(self, held: Sequence[torch.Tensor]) -> list[torch.Tensor | Rows]:
        """See :class:`Layout`."""
        return [Rows(weight, rows) for weight, rows in zip(self._weights, held, strict=True)]

    @torch.no_grad()
    def gathered(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """See :class:`Layout`."""

        def whole(value: Any) -> Any:
            if isinstance(value, Rows):
                return self._gathered(value.weight, value.held)
            if isinstance(value, Mapping):
                return {key: whole(item) for key, item in value.items()}
            return [whole(item) for item in value] if isinstance(value, list) else value

        return {key: whole(value) for key, value in state.items()}

    def parts(self, whole: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """See :class:`Layout`."""
        return [self._part(tensor) for tensor in whole]

    def _forget_whole_weights(self) -> None:
        """Free them: FSDP keeps those outside the blocks after a forward pass, in case a backward pass follows."""
        if self._exchange is None:
            cast("FSDPModule", self._model).reshard()

    def _weights_of(self, optimizer: Optimizer) -> Iterator[nn.Parameter]:
        weights = {shard: weight for weight, shard in self._shards.items()}
        return (weights[shard] for group in optimizer.param_groups for shard in group["params"])

    def _gathered(self, weight: nn.Parameter, rows: torch.Tensor) -> torch.Tensor:
        """Return the whole of a tensor divided like ``weight``: on the leading rank's CPU, empty elsewhere."""
        whole = _like(weight, rows).full_tensor()
        return whole.cpu() if self._group.ranks.leads else whole.new_empty(0)

    def _divided(self, weight: nn.Parameter, whole: torch.Tensor) -> torch.Tensor:
        """Divide a whole tensor like ``weight``, so that loading can tell whether it fits."""
        return _like(weight, self._part(whole).to(weight.device), whole.shape)

    def _part(self, whole: torch.Tensor) -> torch.Tensor:
        """This rank's rows; the last ranks may have fewer, or none."""
        ranks = self._group.ranks
        rows = whole.contiguous().chunk(ranks.world_size)  # how FSDP divides them too
        return rows[ranks.rank].clone() if ranks.rank < len(rows) else whole.new_empty(0, *whole.shape[1:])


def layout_for(model: nn.Module, group: Group, *, divided: bool, reduced: torch.dtype | None) -> Layout:
    """The layout of a model on a group's ranks; with ``divided`` the model is divided in place.

    Args:
        reduced: the dtype of matrix products under autocast; None: everything is computed in float32.
    """
    return Sharded(model, group, reduced) if divided and group.ranks.world_size > 1 else Layout(model, group)


def blocks(model: nn.Module) -> Iterator[nn.Module]:
    """Yield the parts of a model that gather their whole weights in turn: the elements of lists of layers.

    An element without submodules (such as the linear layer of a small head) is too small to be worth it.
    """
    listed = isinstance(model, (nn.ModuleList, nn.Sequential))
    for child in model.children():
        if listed and any(True for _ in child.children()):
            yield child
        else:
            yield from blocks(child)


def _divide(model: nn.Module, ranks: int, reduced: torch.dtype | None) -> Exchange | None:
    # Imported only when needed: it takes a second, and a torch without it can still train unsharded.
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh(next(model.parameters()).device.type, (ranks,))
    if reduced:
        return Exchange(model, reduced, mesh)
    from torch.distributed.fsdp import fully_shard

    # torch warns against writing in place into such a model's output; no task does.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
    for weight in model.parameters():
        weight.data = weight.data.contiguous()  # FSDP takes no channels-last weights; activations stay so
    for block in blocks(model):
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return None


def _rows(weight: torch.Tensor) -> torch.Tensor:
    """This rank's rows of a divided tensor, without a copy."""
    with torch.no_grad():
        return cast("DTensor", weight).to_local()


def _like(weight: torch.Tensor, rows: torch.Tensor, shape: torch.Size | None = None) -> DTensor:
    """Make a tensor divided like ``weight`` from this rank's rows; it has the weight's shape if none is given."""
    from torch.distributed.tensor import DTensor

    divided = cast("DTensor", weight)
    size = divided.shape if shape is None else shape
    stride = torch.empty(size, device="meta").stride()
    return DTensor.from_local(rows, divided.device_mesh, divided.placements, run_check=False, shape=size, stride=stride)


def _summed(values: torch.Tensor) -> torch.Tensor:
    dist.all_reduce(values)
    return values


def _has_shape(value: Any, shape: torch.Size) -> bool:
    return isinstance(value, torch.Tensor) and value.shape == shape


def _changed(
    state: Mapping[int, Mapping[str, Any]], weights: Mapping[int, nn.Parameter], change: Any
) -> dict[int, dict[str, Any]]:
    """Apply ``change`` to every value of an optimizer's state, except those of parameters not in ``weights``."""
    return {
        number: {name: change(weights[number], value) if number in weights else value for name, value in kept.items()}
        for number, kept in state.items()
    }
