"""Stopped from outside, by a person or a cluster: the training itself did not fail."""

from ..model import Kind, Remedy, Rule

RULES = (
    Rule(
        id="time_limit",
        title="The cluster's time limit ended it",
        cause="The job had used all the time it was allowed; the scheduler ended it, it did not fail.",
        remedy=Remedy(
            text="Continue from its newest checkpoint with a longer limit, or let it save and end in time: a run "
            "that mpstui submits is asked to save before its limit, and continues in a new job."
        ),
        sources=("slurm.schedmd.com/sbatch.html#OPT_time", "openpbs/openpbs"),
        patterns=(
            r"CANCELLED AT \S{1,30} DUE TO TIME LIMIT",
            r"PBS: job killed: walltime \S{1,20} exceeded limit",
            r"TERM_RUNLIMIT: job killed after reaching",
        ),
        confidence=0.95,
        signals=(15, 9),
        codes=(),
        outranks=("killed_os", "terminated"),
    ),
    Rule(
        id="preempted",
        title="The cluster took its machine away",
        cause="A job with a higher priority took the machine (preemption), or the machine itself failed; the "
        "training did not.",
        remedy=Remedy(
            text="Continue from its newest checkpoint: submit it again, or let the queue do that (sbatch --requeue). "
            "A run that mpstui submits continues in a new job."
        ),
        sources=("slurm.schedmd.com/preempt.html",),
        patterns=(
            r"CANCELLED AT \S{1,30} DUE TO (?:PREEMPTION|NODE FAILURE)",
            r"TERM_PREEMPT: job killed after preemption",
        ),
        confidence=0.95,
        signals=(15, 9),
        codes=(),
        outranks=("killed_os", "terminated"),
    ),
    Rule(
        id="terminated",
        title="Stopped from outside (SIGTERM)",
        cause="Something asked it to end: `kill`, `scancel`, a shutdown, a container that stops. It may also be the "
        "failure of another process of the same training, whose traceback is then above this.",
        remedy=Remedy(text="If that was intended, restart it to continue from its newest checkpoint."),
        sources=("torch/distributed/elastic/multiprocessing/api.py", "slurm.schedmd.com/scancel.html"),
        patterns=(
            r"\*\*\* JOB \S{1,30} ON \S{1,60} CANCELLED AT \S{1,30} \*\*\*",
            r"Process \d+ got signal: 15\b",
            r"\bReceived (?:Signals\.)?SIGTERM(?:: 15| death signal)",
            r"\bprocess received SIGTERM\b",
            r"worker \(pid \d+\) is killed by signal: Terminated\b",
            r"\bline \d+: +\d+ Terminated\b",
        ),
        confidence=0.8,
        kind=Kind.ENDING,
        fires_on={"signal:15": 0.7},
        clues={"requested": -0.6},
        signals=(15,),
        outranks=("dl_worker_signal",),
    ),
    Rule(
        id="killed",
        title="Killed by signal 9, by somebody or the system",
        cause="SIGKILL ended it at once, which leaves no message. mpstui did not send it: somebody did (`kill -9`), "
        "or a program that kills others for using too much memory or time.",
        remedy=Remedy(
            text="If that was intended, restart it. What the system itself kills is in its log "
            "(`dmesg`, `journalctl -k`; on macOS Console, under Crash Reports)."
        ),
        sources=("man7.org/linux/man-pages/man7/signal.7.html", "github.com/rfjakob/earlyoom"),
        patterns=(r"Main process exited, code=killed, status=9/KILL",),
        confidence=0.6,
        kind=Kind.ENDING,
        fires_on={"signal:9": 0.66},
        clues={
            "no_memory_kill": 0.15,
            "memory_plentiful": 0.05,
            "memory_event": -0.6,
            "memory_near_limit": -0.2,
            "memory_growing": -0.15,
            "watermark_off": -0.1,
            "requested": -0.6,
        },
        signals=(9,),
        codes=(),
    ),
    Rule(
        id="hangup",
        title="Its terminal was closed (SIGHUP)",
        cause="The terminal or SSH session that it ran in ended, and it ended with it.",
        remedy=Remedy(text="Start it with mpstui, whose supervisor outlives the terminal, or in a tmux session."),
        sources=("torch/distributed/elastic/multiprocessing/api.py",),
        patterns=(
            r"Process \d+ got signal: 1\b",
            r"\bReceived (?:Signals\.)?SIGHUP\b",
            r"\bline \d+: +\d+ Hangup\b",
        ),
        confidence=0.85,
        kind=Kind.ENDING,
        fires_on={"signal:1": 0.75},
        clues={"requested": -0.6},
        signals=(1,),
    ),
    Rule(
        id="interrupted",
        title="Stopped by Ctrl+C (SIGINT)",
        cause="Somebody pressed Ctrl+C in its terminal, or sent it SIGINT: it was stopped, it did not fail.",
        remedy=Remedy(text="Restart it to continue."),
        sources=("docs.python.org/3/library/exceptions.html#KeyboardInterrupt",),
        patterns=(
            r"\bKeyboardInterrupt(?:\n|\Z)",
            r"\bInterrupted by user\b",
            r"(?:received|got|caught|by|Signals\.) ?SIGINT\b",
            r"\(SIGINT\) received",
        ),
        confidence=0.75,
        kind=Kind.ENDING,
        fires_on={"signal:2": 0.75},
        clues={"requested": -0.6},
        signals=(2,),
        codes=(1, 130),
    ),
)
