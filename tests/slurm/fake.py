"""A scheduler for tests: sbatch, squeue, scontrol, scancel and srun in one small program, with its jobs in files.

Installed under each of those names in a folder on PATH. A job waits until a test starts it (or at once, with the file
``open`` there); what a real cluster does by itself, a test does by editing a job's file through :class:`FakeCluster`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NAMES = ("sbatch", "squeue", "scontrol", "scancel", "srun", "sinfo")
_FIELD = {
    "%i": "id",
    "%T": "state",
    "%r": "reason",
    "%N": "nodes",
    "%P": "partition",
    "%S": "start",
    "%e": "end",
    "%Q": "priority",
}


class FakeCluster:
    """The jobs in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def install(cls, folder: Path) -> FakeCluster:
        """With the programs in ``folder/bin``, which has to be put on PATH."""
        (folder / "bin").mkdir(parents=True)
        (folder / "jobs").mkdir()
        root = Path(__file__).resolve().parents[2]
        script = f"#!{sys.executable} -IS\nimport sys\nsys.path.append({str(root)!r})\n"
        script += f"from tests.slurm.fake import main\nmain({str(folder)!r})\n"
        for name in NAMES:
            (folder / "bin" / name).write_text(script)
            (folder / "bin" / name).chmod(0o700)
        return cls(folder)

    def jobs(self) -> list[dict[str, Any]]:
        """All jobs, the oldest first."""
        return [self.job(path.stem) for path in sorted((self.folder / "jobs").glob("*.json"), key=_age)]

    def job(self, name: str) -> dict[str, Any]:
        """One job; one whose process has ended is over."""
        job: dict[str, Any] = json.loads((self.folder / "jobs" / f"{name}.json").read_text())
        code = self.folder / "jobs" / f"{name}.code"
        if job["state"] == "RUNNING" and code.exists():
            job["state"] = "COMPLETED" if code.read_text().strip() == "0" else "FAILED"
            self.write(job)
        return job

    def write(self, job: dict[str, Any], **changes: Any) -> None:
        path = self.folder / "jobs" / f"{job['id']}.json"
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps({**job, **changes}))
        fresh.replace(path)

    def set(self, name: str, **changes: Any) -> None:
        """What the scheduler does with a job by itself."""
        self.write(self.job(name), **changes)

    @property
    def down(self) -> bool:
        return (self.folder / "down").exists()

    @down.setter
    def down(self, is_down: bool) -> None:
        (self.folder / "down").touch() if is_down else (self.folder / "down").unlink(missing_ok=True)

    def open(self) -> None:
        """From now on jobs start as soon as they are submitted."""
        (self.folder / "open").touch()

    def start(self, name: str) -> None:
        """Give a job its nodes."""
        job = self.job(name)
        (self.folder / "jobs" / f"{name}.code").unlink(missing_ok=True)
        number, _, place = name.partition("_")
        environ = {**job["environ"], "SLURM_JOB_ID": str(int(number) + int(place or 0)), "SLURM_JOB_NODELIST": "n1"}
        environ["SLURM_FAKE_FOLDER"] = str(self.folder)  # other tests beside this one have a job of this number too
        environ |= {"SLURM_ARRAY_JOB_ID": number, "SLURM_ARRAY_TASK_ID": place} if place else {}
        environ |= {"SLURM_RESTART_COUNT": str(job["restarts"])} if job["restarts"] else {}
        code = self.folder / "jobs" / f"{name}.code"
        # A shell between, as a batch step is: it notes the exit code, and lets signals to the job pass it by.
        watch = ["/bin/sh", "-c", 'out="$1"; shift; "$@"; echo $? > "$out.new"; mv "$out.new" "$out"', "sh", str(code)]
        with Path(job["output"].replace("%a", place)).open("ab") as log:
            process = subprocess.Popen(
                [*watch, *job["command"]], env=environ, stdout=log, stderr=log, start_new_session=True, cwd="/"
            )
        self.write(job, state="RUNNING", reason="None", nodes="n1", pid=process.pid, start=str(int(time.time())))

    def signal(self, name: str, number: signal.Signals) -> None:
        """To the job's first process."""
        children = Path(f"/proc/{self.job(name)['pid']}/task/{self.job(name)['pid']}/children").read_text().split()
        for child in children:
            os.kill(int(child), number)

    def kill(self, name: str) -> None:
        """End everything of a job at once, as at the end of its grace."""
        number, _, place = name.partition("_")
        marks = {b"SLURM_JOB_ID=%d" % (int(number) + int(place or 0)), b"SLURM_FAKE_FOLDER=" + os.fsencode(self.folder)}
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and marks <= set((entry / "environ").read_bytes().split(b"\0")):
                    os.kill(int(entry.name), signal.SIGKILL)


def _age(path: Path) -> tuple[int, int]:
    number, _, place = path.stem.partition("_")
    return int(number), int(place or 0)


def main(folder: str) -> None:
    """What the program does under the name that it is called by."""
    cluster, name, words = FakeCluster(Path(folder)), Path(sys.argv[0]).name, sys.argv[1:]
    with (cluster.folder / "calls").open("a") as calls:
        calls.write(json.dumps([name, *words]) + "\n")
    for _ in range(600):
        if not (cluster.folder / "slow").exists():
            break
        time.sleep(0.1)
    if cluster.down:
        sys.exit("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
    answers = {"sbatch": _sbatch, "squeue": _squeue, "scontrol": _scontrol, "scancel": _scancel, "sinfo": _sinfo}
    sys.exit(answers[name](cluster, words))


def _sbatch(cluster: FakeCluster, words: list[str]) -> int:
    options = {}
    while words and words[0].startswith("--"):
        key, _, value = words.pop(0)[2:].partition("=")
        options[key] = value
    if options.get("partition") == "none":
        sys.exit("sbatch: error: invalid partition specified: none")
    if not Path(words[0]).is_file():
        sys.exit(f"sbatch: error: Unable to open file {words[0]}")
    number = len({job["id"].partition("_")[0] for job in cluster.jobs()}) * 10 + 10
    last = options.get("array", "").partition("-")[2]
    names = [f"{number}_{place}" for place in range(int(last) + 1)] if last else [str(number)]
    for one in names:
        job: dict[str, Any] = {
            "id": one,
            "state": "PENDING",
            "reason": "Priority",
            "nodes": "",
        }
        job |= {"partition": options.get("partition", "p"), "command": words, "options": options, "restarts": 0}
        job |= {"start": "N/A", "end": "N/A", "priority": 17}
        cluster.write({**job, "output": options["output"], "environ": dict(os.environ), "pid": None})
    print(f"{number};lab")
    print("sbatch: warning of something", file=sys.stderr)
    sys.stdout.flush()
    for one in names if (cluster.folder / "open").exists() else ():
        cluster.start(one)
    return 0


def _squeue(cluster: FakeCluster, words: list[str]) -> int:
    form = next((word.partition("=")[2] for word in words if word.startswith("--format=")), None)
    if form is None:  # -h -t all -j JOB -O State:20,PreemptTime:30,RestartCnt:10,Reason:40
        job = cluster.job(words[words.index("-j") + 1])
        print(f"{job['state']:20}{job.get('preempt', 'N/A'):30}{job['restarts']:<10}{job['reason']:40}")
        print("squeue: warning of something", file=sys.stderr)
        return 0
    for job in cluster.jobs():
        line = form.replace("%u", "me").replace("%j", job["options"].get("job-name", ""))
        for field, key in _FIELD.items():
            line = line.replace(field, str(job[key]))
        print(line)
    return 0


def _scontrol(cluster: FakeCluster, words: list[str]) -> int:
    verb, name = words[0], words[-1]
    if not (cluster.folder / "jobs" / f"{name}.json").exists():
        sys.exit("slurm_load_jobs error: Invalid job id specified")
    job = cluster.job(name)
    if verb == "requeue":
        if "requeue" not in job["options"]:
            sys.exit("Requested operation is presently disabled for job " + name)
        cluster.write(job, state="PENDING", reason="BeginTime", nodes="", restarts=job["restarts"] + 1)
    elif verb == "show":
        print(f"JobId={name} JobName=x\n   JobState={job['state']}\n   StdOut={job['output']}\n   Power=")
    else:
        held = {"hold": ("JobHeldUser", 0), "release": ("Priority", 17)}.get(verb, (job["reason"], job["priority"]))
        cluster.write(job, reason=held[0], priority=held[1], top=verb == "top")
    return 0


def _sinfo(cluster: FakeCluster, words: list[str]) -> int:
    form = next(word.partition("=")[2] for word in words if word.startswith("--format="))
    for name, limit, gres in (
        ("gpu", "4:00:00", "gpu:a100:4(S:0-1)"),
        ("gpu", "4:00:00", "(null)"),
        ("p*", "infinite", "(null)"),
    ):
        print(form.replace("%P", name).replace("%l", limit).replace("%G", gres))
    return 0


def _scancel(cluster: FakeCluster, words: list[str]) -> int:
    job = cluster.job(words[-1])
    cluster.write(job, state="CANCELLED", reason="None")
    if job["pid"]:
        cluster.kill(job["id"])
    return 0
