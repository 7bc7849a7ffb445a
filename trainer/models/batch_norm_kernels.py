"""CUDA kernels that fuse batch norm, an optional residual addition and ReLU, with the fewest passes over memory.

Half of a ResNet's step is spent moving activations to and from the GPU's memory. Between two convolutions at least
eight passes are needed. Forward: one read for the statistics, a read and a write to normalise. Backward: two reads for
the sums; two reads and a write for the gradient. These kernels need no more, except with a residual addition. They
store no ReLU mask: the backward pass recomputes it from the convolution's output, which is saved anyway.

Activations are (rows, channels), the memory layout of channels-last tensors: a row is one pixel of one image. Each
program sums some of the rows, and the partial sums are added in a fixed order, so equal inputs give equal bits.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

_TILE = 4096
_WIDEST = 128
_PROGRAMS = 264
"""Two for each of the 132 multiprocessors of a Hopper GPU: all run at once and leave few partial sums to add."""
_BLOCKS, _FEW_CHANNELS, _WARPS = 512, 8, 8
"""The tile in which partial sums are added (programs by channels), and the number of warps."""


@triton.jit
def _sums_kernel(x, shift, sums, rows, channels, per_program, BLOCK_ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """For each block of rows, the sums of ``x - shift`` and of its square."""
    program, programs = tl.program_id(0), tl.num_programs(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    known = columns < channels
    away = tl.load(shift + columns, mask=known, other=0.0)
    first = tl.zeros((BLOCK_ROWS, BLOCK), tl.float32)
    second = tl.zeros((BLOCK_ROWS, BLOCK), tl.float32)
    start = program.to(tl.int64) * per_program
    for offset in tl.range(0, per_program, BLOCK_ROWS, num_stages=4):
        row = start + offset + tl.arange(0, BLOCK_ROWS)
        here = (row < rows)[:, None] & known[None, :]
        value = tl.load(x + row[:, None] * channels + columns[None, :], mask=here, other=0.0).to(tl.float32)
        value = tl.where(here, value - away[None, :], 0.0)
        first += value
        second += value * value
    place = sums + program * channels + columns
    tl.store(place, tl.sum(first, axis=0), mask=known)
    tl.store(place + programs * channels, tl.sum(second, axis=0), mask=known)


@triton.jit
def _total(sums, blocks, channels, columns, known, BLOCKS: tl.constexpr, BLOCK: tl.constexpr):
    """Add up the partial sums of all programs, for some channels."""
    total = tl.zeros((BLOCKS, BLOCK), tl.float32)
    for start in range(0, blocks, BLOCKS):
        block = start + tl.arange(0, BLOCKS)
        here = (block < blocks)[:, None] & known[None, :]
        total += tl.load(sums + block[:, None] * channels + columns[None, :], mask=here, other=0.0)
    return tl.sum(total, axis=0)


@triton.jit
def _statistics_kernel(
    sums, weight, bias, running_mean, running_variance, tracked, kept, blocks, rows, channels, momentum, epsilon,
    BLOCKS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """For each channel: mean, 1 / standard deviation, the affine factor and offset, and updated running statistics."""
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    known = columns < channels
    away = _total(sums, blocks, channels, columns, known, BLOCKS, BLOCK) / rows
    squares = _total(sums + blocks * channels, blocks, channels, columns, known, BLOCKS, BLOCK) / rows
    was = tl.load(running_mean + columns, mask=known, other=0.0)
    mean = was + away
    variance = tl.maximum(squares - away * away, 0.0)
    scale = 1.0 / tl.sqrt(variance + epsilon)
    factor = tl.load(weight + columns, mask=known, other=0.0) * scale
    tl.store(kept + columns, mean, mask=known)
    tl.store(kept + channels + columns, scale, mask=known)
    tl.store(kept + 2 * channels + columns, factor, mask=known)
    tl.store(kept + 3 * channels + columns, tl.load(bias + columns, mask=known, other=0.0) - mean * factor, mask=known)
    unbiased = variance * (rows / (rows - 1.0))
    spread = tl.load(running_variance + columns, mask=known, other=0.0)
    tl.store(running_mean + columns, was + momentum * away, mask=known)
    tl.store(running_variance + columns, spread + momentum * (unbiased - spread), mask=known)
    if tl.program_id(0) == 0:
        tl.store(tracked, tl.load(tracked) + 1)


@triton.jit
def _apply_kernel(
    x, added, kept, y, rows, channels,
    ADDED: tl.constexpr, RELU: tl.constexpr, BLOCK_ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Normalise ``x``; with ADDED add the residual, with RELU clamp at 0."""
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    known = columns < channels
    here = (row < rows)[:, None] & known[None, :]
    place = row[:, None] * channels + columns[None, :]
    factor = tl.load(kept + 2 * channels + columns, mask=known, other=0.0)
    offset = tl.load(kept + 3 * channels + columns, mask=known, other=0.0)
    value = tl.load(x + place, mask=here, other=0.0).to(tl.float32) * factor[None, :] + offset[None, :]
    if ADDED:
        value += tl.load(added + place, mask=here, other=0.0).to(tl.float32)
    if RELU:
        value = tl.maximum(value, 0.0)
    tl.store(y + place, value.to(y.dtype.element_ty), mask=here)


@triton.jit
def _gradient_sums_kernel(
    gradient, again, x, y, passed, kept, sums, rows, channels, per_program,
    TWICE: tl.constexpr, ADDED: tl.constexpr, RELU: tl.constexpr, PASSED: tl.constexpr,
    BLOCK_ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """For each block of rows, the sums of the gradient behind ReLU, and of that times ``x - mean``."""
    program, programs = tl.program_id(0), tl.num_programs(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    known = columns < channels
    mean = tl.load(kept + columns, mask=known, other=0.0)
    factor = tl.load(kept + 2 * channels + columns, mask=known, other=0.0)
    offset = tl.load(kept + 3 * channels + columns, mask=known, other=0.0)
    first = tl.zeros((BLOCK_ROWS, BLOCK), tl.float32)
    second = tl.zeros((BLOCK_ROWS, BLOCK), tl.float32)
    start = program.to(tl.int64) * per_program
    for step in tl.range(0, per_program, BLOCK_ROWS, num_stages=4):
        row = start + step + tl.arange(0, BLOCK_ROWS)
        here = (row < rows)[:, None] & known[None, :]
        place = row[:, None] * channels + columns[None, :]
        value = tl.load(x + place, mask=here, other=0.0).to(tl.float32)
        arriving = tl.load(gradient + place, mask=here, other=0.0).to(tl.float32)
        if TWICE:
            arriving += tl.load(again + place, mask=here, other=0.0).to(tl.float32)
        if RELU:
            if ADDED:
                through = tl.load(y + place, mask=here, other=0.0).to(tl.float32) > 0
            else:
                through = value * factor[None, :] + offset[None, :] > 0
            arriving = tl.where(through, arriving, 0.0)
        if PASSED:
            tl.store(passed + place, arriving.to(passed.dtype.element_ty), mask=here)
        first += arriving
        second += arriving * (value - mean[None, :])
    place = sums + program * channels + columns
    tl.store(place, tl.sum(first, axis=0), mask=known)
    tl.store(place + programs * channels, tl.sum(second, axis=0), mask=known)


@triton.jit
def _coefficients_kernel(
    sums, kept, gradients, coefficients, blocks, rows, channels, BLOCKS: tl.constexpr, BLOCK: tl.constexpr
):
    """Gradients of weight and bias, and the coefficients (slope, constant) of ``x`` in the gradient of ``x``."""
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    known = columns < channels
    first = _total(sums, blocks, channels, columns, known, BLOCKS, BLOCK)
    second = _total(sums + blocks * channels, blocks, channels, columns, known, BLOCKS, BLOCK)
    mean = tl.load(kept + columns, mask=known, other=0.0)
    scale = tl.load(kept + channels + columns, mask=known, other=0.0)
    factor = tl.load(kept + 2 * channels + columns, mask=known, other=0.0)
    slope = -factor * scale * scale * second / rows
    tl.store(gradients + columns, second * scale, mask=known)
    tl.store(gradients + channels + columns, first, mask=known)
    tl.store(coefficients + columns, slope, mask=known)
    tl.store(coefficients + channels + columns, -factor * first / rows - slope * mean, mask=known)


@triton.jit
def _gradient_kernel(
    gradient, x, kept, coefficients, result, rows, channels,
    RELU: tl.constexpr, BLOCK_ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradient of ``x``; with RELU the incoming gradient still has to be masked."""
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    known = columns < channels
    here = (row < rows)[:, None] & known[None, :]
    place = row[:, None] * channels + columns[None, :]
    factor = tl.load(kept + 2 * channels + columns, mask=known, other=0.0)
    slope = tl.load(coefficients + columns, mask=known, other=0.0)
    constant = tl.load(coefficients + channels + columns, mask=known, other=0.0)
    value = tl.load(x + place, mask=here, other=0.0).to(tl.float32)
    arriving = tl.load(gradient + place, mask=here, other=0.0).to(tl.float32)
    if RELU:
        offset = tl.load(kept + 3 * channels + columns, mask=known, other=0.0)
        arriving = tl.where(value * factor[None, :] + offset[None, :] > 0, arriving, 0.0)
    found = arriving * factor[None, :] + value * slope[None, :] + constant[None, :]
    tl.store(result + place, found.to(result.dtype.element_ty), mask=here)


class NormReLU(torch.autograd.Function):
    """Batch norm in a training step, an optional addition, and ReLU. Call :func:`norm_relu`."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, added: torch.Tensor | None, weight: torch.Tensor, bias: torch.Tensor,
        norm: torch.nn.BatchNorm2d, relu: bool, twice: bool,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        channels, rows = x.shape[1], x.numel() // x.shape[1]
        tile, y = _Tile(rows, channels), torch.empty_like(x)
        sums = x.new_empty(2, tile.programs, channels, dtype=torch.float32)
        kept = x.new_empty(4, channels, dtype=torch.float32)
        _sums_kernel[tile.blocks](x, norm.running_mean, sums, rows, channels, tile.rows_per_program, *tile.sizes)
        _statistics_kernel[tile.channels](
            sums, weight, bias, norm.running_mean, norm.running_var, norm.num_batches_tracked, kept,
            tile.programs, rows, channels, norm.momentum, norm.eps, _BLOCKS, _FEW_CHANNELS, num_warps=_WARPS,
        )  # fmt: skip
        given = x if added is None else added
        _apply_kernel[tile.tiles](x, given, kept, y, rows, channels, added is not None, relu, *tile.sizes)
        ctx.relu, ctx.added = relu, added is not None
        ctx.save_for_backward(x, kept, *([y] if ctx.added and relu else []))
        return (y, y.detach()) if twice else y

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor, again: torch.Tensor | None = None) -> Any:
        x, kept, *told = ctx.saved_tensors
        channels, rows = x.shape[1], x.numel() // x.shape[1]
        tile, result = _Tile(rows, channels), torch.empty_like(x)
        sums = x.new_empty(2, tile.programs, channels, dtype=torch.float32)
        gradients, coefficients = (x.new_empty(2, channels, dtype=torch.float32) for _ in range(2))
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        again = None if again is None else again.contiguous(memory_format=torch.channels_last)
        is_passed = again is not None or (ctx.added and ctx.relu)
        passed = torch.empty_like(gradient) if is_passed else gradient
        _gradient_sums_kernel[tile.blocks](
            gradient, gradient if again is None else again, x, told[0] if told else x, passed, kept, sums,
            rows, channels, tile.rows_per_program, again is not None, ctx.added, ctx.relu, is_passed, *tile.sizes,
        )  # fmt: skip
        _coefficients_kernel[tile.channels](
            sums, kept, gradients, coefficients, tile.programs, rows, channels, _BLOCKS, _FEW_CHANNELS, num_warps=_WARPS
        )
        _gradient_kernel[tile.tiles](
            passed, x, kept, coefficients, result, rows, channels, ctx.relu and not is_passed, *tile.sizes
        )
        return result, passed if ctx.added else None, *gradients, None, None, None


class _Tile:
    """How the programs divide the activations."""

    def __init__(self, rows: int, channels: int) -> None:
        width = min(triton.next_power_of_2(channels), _WIDEST)
        self.sizes = height, _ = _TILE // width, width
        across, tiles = triton.cdiv(channels, width), triton.cdiv(rows, height)
        self.tiles = tiles, across
        self.rows_per_program = triton.cdiv(tiles * across, _PROGRAMS) * height
        self.programs = triton.cdiv(rows, self.rows_per_program)
        self.blocks = self.programs, across
        self.channels = (triton.cdiv(channels, _FEW_CHANNELS),)


def norm_relu(
    norm: torch.nn.BatchNorm2d,
    x: torch.Tensor,
    added: torch.Tensor | None = None,
    *,
    relu: bool = True,
    twice: bool = False,
) -> Any:
    """Batch norm, plus ``added``, then ReLU; in evaluation without gradients.

    Args:
        x: (batch, channels, height, width) on CUDA, channels-last; ``added`` likewise.
        twice: return the result twice, for two consumers; the sums' kernel then adds up their gradients.
    """
    if added is not None:
        added = added.contiguous(memory_format=torch.channels_last)
    if not norm.training:
        y = _evaluated(norm, x, added, relu)
        return (y, y) if twice else y
    return NormReLU.apply(x, added, norm.weight, norm.bias, norm, relu, twice)  # type: ignore[no-untyped-call]


def _evaluated(norm: torch.nn.BatchNorm2d, x: torch.Tensor, added: torch.Tensor | None, relu: bool) -> torch.Tensor:
    """Normalise by the running statistics, in one pass over memory."""
    channels, rows = x.shape[1], x.numel() // x.shape[1]
    mean, variance, *_ = norm.buffers()
    factor = norm.weight * torch.rsqrt(variance + norm.eps)
    # As the statistics' kernel lays them out; only the last two rows are read here.
    kept = torch.stack([mean, variance, factor, norm.bias - mean * factor])
    tile, y = _Tile(rows, channels), torch.empty_like(x)
    given = x if added is None else added
    _apply_kernel[tile.tiles](x, given, kept, y, rows, channels, added is not None, relu, *tile.sizes)
    return y


def try_out() -> None:
    """Run the kernels of a forward pass once on the current GPU."""
    with torch.no_grad():
        norm_relu(torch.nn.BatchNorm2d(8).cuda(), torch.zeros(1, 8, 2, 2, device="cuda"))
