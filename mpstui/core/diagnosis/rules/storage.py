"""The disk."""

from __future__ import annotations

from ..model import Rule
from ..model import Remedy

RULES = (
    Rule(
        id="disk_full",
        title="The disk is full (or refused to write)",
        cause="A write, usually of a checkpoint, failed: no space, quota reached, or the volume gave an error.",
        remedy=Remedy(
            text="Free space or keep fewer checkpoints, then resume from the checkpoint before; the last file may "
            "be cut short."
        ),
        restart_on_cpu_helps=False,
        sources=("hiyouga/LlamaFactory#1223", "pytorch/pytorch#10577", "XavierXiao/Dreambooth-Stable-Diffusion#45"),
        patterns=(
            r"No space left on device",
            r"\[Errno (?:28|122|69)\]",
            r"\bENOSPC\b",
            r"\bEDQUOT\b",
            r"Disk quota exceeded",
            r"PytorchStreamWriter failed",
            r"inline_container\.\w+\W.{0,40}unexpected pos",
            r"unexpected pos \d+ vs \d+",
            r"fd \d+ failed with",
            r"(?:write|fwrite|file write)\W{0,3} failed",
            r"\bwrite error\b",
            r"iostream error",
            r"(?:not enough|insufficient|out of|low on|no) (?:free )?disk space",
            r"There is not enough space on the disk",
            r"StorageFull",
            r"failed writing (?:file|central directory)",
            r"disk (?:is )?full",
            r"Errno 5\] Input/output error",
        ),
        confidence=0.93,
        clues={"phase:save": 0.04},
        outranks=("ckpt_corrupt", "dl_worker_signal", "bus_error"),
    ),
)
