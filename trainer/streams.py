"""Work side by side on a GPU: kernels too small to fill it run at once, in a recorded step too."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch

_MOST_STREAMS = 4
"""torch has 32 per device and hands them out in turn; work done side by side may split up once more."""


@contextmanager
def side_by_side(device: torch.device) -> Iterator[Iterator[AbstractContextManager[object]]]:
    """Yield contexts for independent pieces of work; work after this block waits for all of them.

    On other devices than CUDA the pieces run one after the other.
    """
    if device.type != "cuda":
        yield itertools.repeat(torch.cuda.stream(None))
        return
    usual = torch.cuda.current_stream(device)
    streams = _streams_beside(usual)
    for stream in streams:
        stream.wait_stream(usual)
    yield map(torch.cuda.stream, itertools.cycle(streams))
    for stream in streams:
        usual.wait_stream(stream)


@functools.cache
def _streams_beside(usual: torch.cuda.Stream) -> list[torch.cuda.Stream]:
    return [torch.cuda.Stream(usual.device) for _ in range(_MOST_STREAMS)]  # type: ignore[no-untyped-call]
