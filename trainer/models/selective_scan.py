"""The selective scan of Mamba (Gu and Dao, 2023, arXiv:2312.00752, equations 2 and 3) in plain PyTorch.

The recurrence h[t] = a[t] * h[t-1] + b[t] is associative, so log2(T) vectorised steps can replace T sequential ones
(Blelloch, 1990). States are large (batch, length, channels, states), so they are computed for one chunk of the length
at a time, and recomputed in the backward pass instead of being kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

_CHUNK_ELEMENTS = {"cpu": 1 << 20}
"""States held at once, by type of device: a CPU is fastest while they fit its caches."""
_CHUNK_ELEMENTS_ELSEWHERE = 1 << 24
"""64 MiB in float32: larger chunks take more memory, smaller ones more kernel launches."""
_SHORTEST_CHUNK = 16


def selective_scan(
    x: torch.Tensor, delta: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor
) -> torch.Tensor:
    """y[t] = sum over n of c[t, n] * h[t, :, n], with h[t] = exp(delta[t] * a) * h[t-1] + delta[t] * b[t] * x[t].

    Always computed in float32, even under autocast. Decays are only multiplied, never divided by, so nothing overflows
    at any length.

    Args:
        x: input, (batch, length, channels).
        delta: positive step sizes, (batch, length, channels).
        a: negative decay rates, (channels, states).
        b: how the input enters the states, (batch, length, states).
        c: how the states are read, (batch, length, states).

    Returns:
        (batch, length, channels) in the type of ``x``.
    """
    with torch.autocast(x.device.type, enabled=False):
        y: torch.Tensor = _SelectiveScan.apply(x.float(), delta.float(), a.float(), b.float(), c.float())  # type: ignore[no-untyped-call]
    return y.to(x.dtype)


def scan_(decay: torch.Tensor, values: torch.Tensor, *, reverse: bool = False) -> None:
    """Replace ``values`` by h[t] = decay[t] * h[t-1] + values[t] along dimension 1 (h[-1] = 0); overwrites ``decay``.

    Pairs are merged, the sequence of pairs (half as long) is scanned the same way, and the elements between the pairs
    follow from it: 2 T multiplications in 2 log2(T) steps.

    Args:
        decay, values: (batch, length, ...), equal shapes.
        reverse: from the end to the beginning: h[t] = decay[t] * h[t+1] + values[t].
    """
    length = values.shape[1]
    if length < 2:
        return
    if reverse:
        start = length % 2
        first, second = slice(start + 1, None, 2), slice(start, length - 1, 2)
        between, before = slice(1 - start, length - 2, 2), slice(1 - start, None)
    else:
        first, second = slice(0, length - 1, 2), slice(1, None, 2)
        between, before = slice(2, None, 2), slice(0, (length - 1) // 2)
    pair_decay, pairs = decay[:, second], values[:, second]
    pairs.addcmul_(pair_decay, values[:, first])
    pair_decay.mul_(decay[:, first])
    scan_(pair_decay, pairs, reverse=reverse)
    values[:, between].addcmul_(decay[:, between], pairs[:, before])


class _SelectiveScan(torch.autograd.Function):
    """Forward keeps the state at the start of each chunk; backward goes through the chunks in reverse."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, delta: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor
    ) -> torch.Tensor:
        state = x.new_zeros(x.shape[0], 1, *a.shape)
        starts, outputs = [], []
        for part in _chunks(x, a):
            starts.append(state)
            decay = torch.exp(delta[:, part, :, None] * a)
            states = _states(x[:, part], delta[:, part], b[:, part], state, decay)
            outputs.append((states @ c[:, part, :, None]).squeeze(-1))
            state = states[:, -1:].clone()
        ctx.save_for_backward(x, delta, a, b, c, torch.cat(starts, dim=1))
        return torch.cat(outputs, dim=1)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x, delta, a, b, c, starts = ctx.saved_tensors
        parts = list(_chunks(x, a))
        carried = torch.zeros_like(starts[:, :1])
        total_a = torch.zeros_like(a)
        pieces: list[tuple[torch.Tensor, ...]] = []
        for number in reversed(range(len(parts))):
            inputs = [tensor[:, parts[number]] for tensor in (x, delta, b, c)]
            start = starts[:, number : number + 1]
            *piece, of_a, carried = _chunk_gradients(gradients[0][:, parts[number]], inputs, a, start, carried)
            total_a += of_a
            pieces.append(tuple(piece))
        of_x, of_delta, of_b, of_c = (torch.cat(found[::-1], dim=1) for found in zip(*pieces, strict=True))
        return of_x, of_delta, total_a, of_b, of_c


def _chunks(x: torch.Tensor, a: torch.Tensor) -> Iterator[slice]:
    """Slices of the length whose states fit, all but the last equally long."""
    batch, length, _ = x.shape
    elements = _CHUNK_ELEMENTS.get(x.device.type, _CHUNK_ELEMENTS_ELSEWHERE)
    size = max(_SHORTEST_CHUNK, elements // max(1, batch * a.numel()))
    return (slice(start, min(start + size, length)) for start in range(0, length, size))


def _states(
    x: torch.Tensor, delta: torch.Tensor, b: torch.Tensor, start: torch.Tensor, decay: torch.Tensor
) -> torch.Tensor:
    """The states of one chunk that follow ``start``: (batch, length, channels, states). Overwrites ``decay``."""
    states = (delta * x)[..., None] * b[:, :, None]
    states[:, :1].addcmul_(decay[:, :1], start)
    scan_(decay, states)
    return states


def _chunk_gradients(
    above: torch.Tensor, inputs: list[torch.Tensor], a: torch.Tensor, start: torch.Tensor, carried: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Gradients of x, delta, b, c and a from one chunk, and of the state it started from.

    Args:
        above: gradient of the outputs, (batch, length, channels).
        inputs: x, delta, b, c of the chunk.
        carried: gradient of the state after the chunk, (batch, 1, channels, states).
    """
    x, delta, b, c = inputs
    decay = torch.exp(delta[..., None] * a)
    states = _states(x, delta, b, start, decay.clone())
    of_c = (above[:, :, None] @ states).squeeze(2)
    of_states = above[..., None] * c[:, :, None]
    of_states[:, -1:] += carried
    scan_(decay.roll(-1, dims=1), of_states, reverse=True)  # nothing follows the last one, so its decay is never used
    carried = of_states[:, :1] * decay[:, :1]
    of_input = (of_states @ b[..., None]).squeeze(-1)
    of_b = ((delta * x)[:, :, None] @ of_states).squeeze(2)
    of_exponent = of_states.mul_(decay)
    of_exponent[:, :1].mul_(start)
    of_exponent[:, 1:].mul_(states[:, :-1])
    of_a = (of_exponent * delta[..., None]).sum(dim=(0, 1))
    of_delta = of_exponent.mul_(a).sum(dim=-1) + of_input * x
    return of_input * delta, of_delta, of_b, of_c, of_a, carried
