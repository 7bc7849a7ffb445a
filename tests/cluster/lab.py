"""A real Slurm of two nodes on this machine: munged, slurmctld and two slurmd, all on loopback, ended by their pids.

``python -m tests.cluster.lab FOLDER`` starts one to try things in, until enter is pressed. Debian's packages
``slurm-wlm`` and ``munge`` are all it takes; it runs as whoever starts it, root or not.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
NODES = ("n1", "n2")
# Where a job is requeued, it may start again when its credentials have run out: two minutes, unless it is said.
CONF = """\
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldPort={port}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
MpiDefault=none
KillWait=5
SlurmdTimeout=60
SchedulerParameters=bf_interval=2,sched_interval=5
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=1 RealMemory=1000
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=1 RealMemory=1000
PartitionName=p Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=off
PartitionName=low Nodes=n1,n2 MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=requeue GraceTime=0
PartitionName=spot Nodes=n1,n2 MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=cancel GraceTime=0
"""


def missing() -> str:
    """Why there can be no cluster here; empty where there can."""
    lacking = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    return f"{', '.join(lacking)} not installed (Debian: apt install slurm-wlm munge)" if lacking else ""


def _path() -> str:
    return f"{os.environ['PATH']}:/usr/sbin:/sbin"


class Lab:
    """One cluster, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {"SLURM_CONF": str(folder / "slurm.conf")}

    def start(self) -> Lab:
        """Start everything, and wait until both nodes are idle."""
        for name in ("state", "spool"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        host, ports = socket.gethostname().partition(".")[0], _free_ports(3)
        names = {"host": host, "user": getpass.getuser(), "folder": self.folder, "port": ports[0]}
        text = CONF.format(**names, first=ports[1], second=ports[2])
        (self.folder / "slurm.conf").write_text(text)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        own = [f"--{name}={self.folder}/munge.{end}" for name, end in (("pid-file", "pid"), ("log-file", "log"))]
        own += [f"--{name}={self.folder}/munge.{end}" for name, end in (("seed-file", "seed"), ("socket", "socket"))]
        # Forced: its folder may be one that others can write, and it may be root that runs it.
        self._run("munged", "--force", f"--key-file={key}", *own)
        self.start_controller()
        for node in NODES:
            self._run("slurmd", "-N", node)
        self.wait(lambda: self.ask("sinfo", "-h", "-p", "p", "-t", "idle", "-o", "%D").strip() == "2", "the nodes")
        return self

    def start_controller(self) -> None:
        self._run("slurmctld")

    def stop_controller(self) -> None:
        """As where it is restarted or its machine is down: jobs go on, nothing answers."""
        self._end("slurmctld.pid")

    def stop(self) -> None:
        """End every process of it, jobs first."""
        with contextlib.suppress(AssertionError, OSError):
            self.ask("scancel", f"--user={getpass.getuser()}")
            self.wait(lambda: not self.ask("squeue", "-h").strip(), "the jobs", seconds=20)
        for name in (*(f"slurmd.{node}.pid" for node in NODES), "slurmctld.pid", "munge.pid"):
            self._end(name)

    def ask(self, *words: str) -> str:
        """What one of its commands prints."""
        done = subprocess.run(words, env=self._environ(), capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def wait(self, condition: object, what: str, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not condition():  # type: ignore[operator]
            assert time.monotonic() < deadline, f"waited {seconds} s for {what}; see {self.folder}"
            time.sleep(0.3)

    def _environ(self) -> dict[str, str]:
        return {**os.environ, **self.environ, "PATH": _path()}

    def _run(self, *words: str) -> None:
        done = subprocess.run(words, env=self._environ(), capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{words[0]} does not start: {done.stderr[-500:]}"

    def _end(self, name: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            pid = int((self.folder / name).read_text())
            os.kill(pid, signal.SIGTERM)
            for _ in range(100):
                os.kill(pid, 0)
                time.sleep(0.1)


def _free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    found: list[int] = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return found


if __name__ == "__main__":
    lab = Lab(Path(sys.argv[1]).absolute()).start()
    try:
        input(f"export SLURM_CONF={lab.environ['SLURM_CONF']}\nenter ends it ")
    finally:
        lab.stop()
