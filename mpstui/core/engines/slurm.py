"""Slurm, 20.11 or newer, through sbatch, squeue, scontrol, scancel and, if accounting is enabled, sacct."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from ...wire.jobs import EngineRule
from ..model.jobs import JobPhase, JobView
from .engine import LONG_OPTION, JobOptions

_PHASES = {
    "PENDING": JobPhase.PENDING,
    "REQUEUED": JobPhase.PENDING,
    "REQUEUE_FED": JobPhase.PENDING,
    "REQUEUE_HOLD": JobPhase.HELD,
    "SPECIAL_EXIT": JobPhase.HELD,
    "RESV_DEL_HOLD": JobPhase.HELD,
    "CONFIGURING": JobPhase.STARTING,
    "POWER_UP_NODE": JobPhase.STARTING,
    "RUNNING": JobPhase.RUNNING,
    "RESIZING": JobPhase.RUNNING,
    "SIGNALING": JobPhase.RUNNING,
    "SUSPENDED": JobPhase.SUSPENDED,
    "STOPPED": JobPhase.SUSPENDED,
    "COMPLETING": JobPhase.ENDING,
    "STAGE_OUT": JobPhase.ENDING,
    "COMPLETED": JobPhase.COMPLETED,
    "FAILED": JobPhase.FAILED,
    "LAUNCH_FAILED": JobPhase.FAILED,
    "RECONFIG_FAIL": JobPhase.FAILED,
    "CANCELLED": JobPhase.CANCELLED,
    "REVOKED": JobPhase.CANCELLED,
    "TIMEOUT": JobPhase.TIMED_OUT,
    "DEADLINE": JobPhase.TIMED_OUT,
    "PREEMPTED": JobPhase.PREEMPTED,
    "NODE_FAIL": JobPhase.NODE_FAILED,
    "BOOT_FAIL": JobPhase.NODE_FAILED,
    "OUT_OF_MEMORY": JobPhase.OUT_OF_MEMORY,
}
"""The values of ``squeue -o %T`` and ``sacct -o State``."""
_NO_ESTIMATE_SECONDS = 360 * 86400.0
"""If Slurm cannot estimate a start, it reports a year from now."""
_SEPARATOR = "\x1f"
_FIELDS = ("%i", "%T", "%r", "%N", "%P", "%S", "%e", "%Q", "%u", "%j")
_HISTORY = "JobID,State,Reason,NodeList,Partition,Start,End,Priority,User,JobName"
_OURS = {
    "array": "mpstui submits a sweep as one",
    "chdir": "the profile's cwd says where the program runs",
    "error": "the run directory has the output",
    "output": "the run directory has the output",
    "job-name": "--name names the run",
    "parsable": "mpstui needs its output",
    "test-only": "it submits nothing",
    "wait": "`mpstui wait` does that",
    "wrap": "the profile's command is what runs",
}
"""Options of sbatch that cannot be set, and why."""
_DEFAULTS = {"signal": "B:USR1@60", "requeue": "", "open-mode": "append"}
_SCRIPT = '#!/bin/sh\n# The first process of the job: the supervisor that its arguments name.\nexec "$@"\n'
_OF_ONE_JOB = (
    r"SLURM_(?!CONF$|CLUSTERS$).*|PMIX?_.*|SBATCH_(ARRAY_INX|ERROR|EXPORT|GET_USER_ENV|INPUT|JOB_NAME|OUTPUT|WAIT.*)"
)
"""Variables of a single job. Of the ``SBATCH_`` ones, which users set as their defaults, only those for options that
cannot be set."""


class Slurm:
    """The scheduler of most clusters."""

    name, title, program, index = "slurm", "Slurm", "sbatch", "SLURM_ARRAY_TASK_ID"
    arrays = True
    refused = (
        "`sinfo` lists partitions and their limits; `--job OPTION=VALUE` or [slurm] of the profile says what is asked"
    )
    usual: ClassVar[Mapping[str, str]] = {
        "partition": "gpu",
        "nodes": "1",
        "gpus-per-node": "2",
        "time": "4:00:00",
        "account": "vision",
    }

    def check(self, options: JobOptions) -> str:
        """See :class:`.engine.Engine`."""
        for key, value in options.items():
            if key in _OURS:
                return f"`{key}` cannot be set: {_OURS[key]}"
            if not LONG_OPTION.fullmatch(key):
                return f"`{key}` is no long option of sbatch, such as partition, nodes, gpus, time or account"
            if any(not letter.isprintable() for letter in value):
                return f"`{key}` has a character that cannot be printed"
        if options.get("nodes") and not re.fullmatch(r"[1-9][0-9]*", options["nodes"]):
            return f"`nodes` is a whole number here, not {options['nodes']!r}: processes are counted by it"
        return ""

    def nodes(self, options: JobOptions) -> int:
        """See :class:`.engine.Engine`."""
        return int(options.get("nodes") or 1)

    def asks_for_gpus(self, options: JobOptions) -> bool:
        """See :class:`.engine.Engine`."""
        return any(key.startswith("gpus") for key in options) or "gpu" in options.get("gres", "")

    def rule(self, options: JobOptions) -> EngineRule:
        """See :class:`.engine.Engine`."""
        stays_out = "no-requeue" in options
        return EngineRule(
            name=self.name,
            title=self.title,
            ids=["{SLURM_ARRAY_JOB_ID}_{SLURM_ARRAY_TASK_ID}", "{SLURM_JOB_ID}"],
            restarts="SLURM_RESTART_COUNT",
            look=["squeue", "-h", "-t", "all", "-j", "{job}", "-O", "State:20,PreemptTime:30,RestartCnt:10,Reason:40"],
            given_notice=r"RUNNING (?!N/A).*",
            untouched=r"RUNNING N/A .*",
            # When Slurm requeues a job, its restart count already includes the next start.
            dropped=r"COMPLETING ((?!N/A)\S+ {restarts} .*|N/A {restarts} (?P<limit>TimeLimit))",
            cancelled=r"(COMPLETING|CANCELLED) N/A {restarts} None",
            requeue=[] if stays_out else ["scontrol", "requeue", "{job}"],
            again=[] if stays_out else ["--dependency=afterany:{job}", "--array={task}"],
            of_one_job=_OF_ONE_JOB,
            # srun reacts to a SIGTERM by killing everything it started, at once and on all nodes.
            signal=["scancel", "--signal={signal}", "{job}"] if self.nodes(options) > 1 else [],
            options=dict(options),
            nodes=self.nodes(options),
        )

    def on_every_node(self, argv: Sequence[str], options: JobOptions) -> list[str]:
        """See :class:`.engine.Engine`. A failed node ends the others, which would wait half an hour for it."""
        count = str(self.nodes(options))
        cpus = options.get("cpus-per-task")  # srun no longer inherits sbatch's value since 22.05
        each = [f"--cpus-per-task={cpus}"] if cpus else []
        tasks = [f"--nodes={count}", f"--ntasks={count}", "--ntasks-per-node=1", *each]
        return ["srun", *tasks, "--kill-on-bad-exit=1", "--export=ALL", *argv]

    def files(self, folder: Path, command: Sequence[str]) -> Mapping[str, str]:
        """See :class:`.engine.Engine`."""
        return {"job.sh": _SCRIPT}

    def submission(self, folder: Path, name: str, command: Sequence[str], options: JobOptions, count: int) -> list[str]:
        """See :class:`.engine.Engine`."""
        place = str(folder).replace("%", "%%")
        asked = {**_DEFAULTS, **options}
        if "no-requeue" in asked:
            del asked["requeue"]
        words = [f"--{key}={value}" if value else f"--{key}" for key, value in asked.items()]
        words += [f"--array=0-{count - 1}"] if count > 1 else []
        log = f"{place}/job{'-%a' if count > 1 else ''}.log"
        own = ["--parsable", f"--job-name={name}", f"--chdir={folder}", f"--output={log}"]
        return [self.program, *own, *words, str(folder / "job.sh"), *command]

    def submitted(self, output: str, folders: Sequence[Path]) -> list[str]:
        """See :class:`.engine.Engine`: ``17`` or ``17;cluster``."""
        lines = output.split()
        job = lines[-1].partition(";")[0] if lines else ""
        if not job.isdecimal():
            return []
        return [job] if len(folders) == 1 else [f"{job}_{place}" for place in range(len(folders))]

    def listing(self) -> list[str]:
        """See :class:`.engine.Engine`."""
        mine = ["squeue", "--noheader", "--array", "--states=all", f"--user={os.getuid()}"]
        return [*mine, f"--format={_SEPARATOR.join(_FIELDS)}"]

    def listed(self, output: str) -> list[JobView]:
        """See :class:`.engine.Engine`."""
        return list(self._views(output))

    def history(self, ids: Sequence[str]) -> list[str]:
        """See :class:`.engine.Engine`."""
        if not shutil.which("sacct"):
            return []
        # sacct does not find a task that never started by its own id, so ask for the whole array.
        arrays = dict.fromkeys(job.partition("_")[0] for job in ids)
        wanted = ["--noheader", "--allocations", "--parsable2", f"--delimiter={_SEPARATOR}"]
        return ["sacct", *wanted, f"--jobs={','.join(arrays)}", f"--format={_HISTORY}"]

    def remembered(self, output: str) -> list[JobView]:
        """See :class:`.engine.Engine`."""
        return list(self._views(output))

    def change(self, action: str, job: str) -> list[str]:
        """See :class:`.engine.Engine`."""
        known = {
            "cancel": ["scancel", job],
            "kill": ["scancel", "--full", "--signal=KILL", job],
            "hold": ["scontrol", "hold", job],
            "release": ["scontrol", "release", job],
            "top": ["scontrol", "top", job],
        }
        return known.get(action, [])

    def offers(self) -> list[str]:
        """See :class:`.engine.Engine`."""
        return ["sinfo", "--noheader", f"--format=%P{_SEPARATOR}%l{_SEPARATOR}%G"]

    def offered(self, output: str) -> Mapping[str, str]:
        """See :class:`.engine.Engine`. The default partition comes first."""
        limits, gpus = dict[str, str](), dict[str, str]()
        for line in sorted(output.splitlines(), key=lambda line: "*" + _SEPARATOR not in line):
            name, _, rest = line.strip().partition(_SEPARATOR)
            limit, _, gres = rest.partition(_SEPARATOR)
            limits[name.removesuffix("*")] = limit
            if found := re.search(r"\bgpu:(?:([^:,()]+):)?([0-9]+)", gres):
                gpus[name.removesuffix("*")] = f"{found[2]} {found[1] or ''}".strip()
        bounded = [f"{limit} in {name}" for name, limit in limits.items() if limit and limit != "infinite"]
        told = {
            "partition": ", ".join(limits),
            "time": f"at most {', '.join(bounded)}" if bounded else "",
            "gpus-per-node": ", ".join(f"{count} in {name}" for name, count in gpus.items()),
        }
        return {option: text for option, text in told.items() if text}

    def output_of(self, job: str) -> list[str]:
        """See :class:`.engine.Engine`."""
        return ["scontrol", "show", "job", job]

    def output_path(self, output: str) -> str:
        """See :class:`.engine.Engine`."""
        found = re.search(r"^\s*StdOut=(/.*)$", output, re.MULTILINE)
        return found[1].strip() if found else ""

    def _views(self, output: str) -> Iterator[JobView]:
        for line in output.split("\n"):  # a job's name may contain any other line separator
            fields = line.split(_SEPARATOR, len(_FIELDS) - 1)
            if len(fields) != len(_FIELDS):
                continue
            job, state, reason, nodes, partition, starts, ends, priority, user, name = (
                field.strip() for field in fields
            )
            word = state.partition(" ")[0].rstrip("+")  # sacct prints ``CANCELLED by 1000``
            phase = _PHASES.get(word, JobPhase.UNKNOWN)
            phase = JobPhase.HELD if phase is JobPhase.PENDING and priority == "0" else phase  # whoever held it
            begins = _moment(starts)
            if begins is not None and phase.waits and begins > time.time() + _NO_ESTIMATE_SECONDS:
                begins = None
            view = JobView(
                engine=self.name,
                title=self.title,
                id=job,
                phase=phase,
                state=word,
                reason=None if reason in ("", "None") else reason,
                nodes=None if nodes in ("", "None assigned") else nodes,
                partition=partition or None,
                user=user or None,
                name=name or None,
                starts=begins,
                ends=_moment(ends),
            )
            yield from (view._replace(id=one) for one in _ids(job))


def _ids(text: str) -> Iterator[str]:
    """Yield the job ids of one line: pending tasks of an array may share a line, ``17_[3-5,9%2]``.

    A heterogeneous job is represented by its first component, which runs the script.
    """
    number, _, tasks = text.partition("_[")
    if not tasks:
        job, _, part = text.partition("+")
        yield from [job] if part in ("", "0") else []
    for place in tasks.rstrip("]").partition("%")[0].split(",") if tasks else ():
        first, _, last = place.partition("-")
        if first.isdecimal() and (last or first).isdecimal():  # a long list may be truncated
            yield from (f"{number}_{task}" for task in range(int(first), int(last or first) + 1))


def _moment(text: str) -> float | None:
    """Parse Unix seconds, as printed with ``SLURM_TIME_FORMAT=%s``; None for ``N/A``, ``NONE`` and ``Unknown``."""
    return float(text) if text.isdecimal() else None
