"""Ranks that are forks of one process: it has loaded torch and what they need, which takes longer than all they do.

Where forks bear it, see tests/warm.py; tests/trainer/test_processes.py has ranks that torchrun started.
"""

from __future__ import annotations

import functools
import gc
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch.distributed as dist


def prepare() -> None:
    """Load, in the process that is going to be forked, what each rank would load for itself."""
    gc.disable()  # what a rank would look through is all of torch, and every page of it would be copied
    for module in ("torch._dynamo", "torch.distributed.fsdp"):
        importlib.import_module(module)


def forked(store: Path, ranks: int, work: Callable[[], object]) -> None:
    """Let so many ranks, who meet at a file that is not there yet, do their work; raises where one fails."""
    children = []
    for rank in range(ranks):
        child = os.fork()
        if not child:
            code = 1
            try:
                os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank)}
                meet: dict[str, Any] = {"init_method": f"file://{store}", "rank": rank, "world_size": ranks}
                with patch.object(dist, "init_process_group", functools.partial(dist.init_process_group, **meet)):
                    work()
                code = 0
            except BaseException:  # noqa: BLE001 - nothing of the parent's may run here
                sys.excepthook(*sys.exc_info())
            finally:
                sys.stderr.flush()
                os._exit(code)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert not any(codes), (store.name, codes)
