"""How a process ended if nothing it printed says why: signals, and the traces they leave behind."""

from ..model import DEFAULT_WATERMARKS, SMALLER_BATCH, DeviceRule, Kind, Remedy, Rule

_BY_SIGNAL = r"(?:terminated|killed|died|exited|ended|crashed|stopped|received)"
_EXIT_CODE = r"exit(?:ed)?[\s_-]?(?:with |code|status|value)?[\s_]?(?:code|status)?\W{0,4}"
_RETURN_CODE = r"return[\s_]?code\W{0,4}"

RULES = (
    Rule(
        id="killed_os",
        title="Killed from outside, most likely for memory",
        cause="SIGKILL ended the process without a message. When nobody sent it, that is the system freeing memory (on "
        "macOS jetsam, which counts GPU memory that RSS does not show).",
        remedy=Remedy(
            text="Use less memory: a smaller batch with accumulation, fewer workers, a smaller model; a cluster or a "
            "container can be asked for more (Slurm: --mem). On a Mac the CPU uses the same RAM, and without "
            "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 torch fails first, with an error that can be caught.",
            env=DEFAULT_WATERMARKS,
            args=SMALLER_BATCH,
        ),
        sources=("gensyn-ai/rl-swarm#59", "aedocw/epub2tts-chatterbox#19", "amazon-science/mm-cot#25"),
        patterns=(
            r"\b(?:ba|z)?sh: (?:line \d+: )?.{0,40}\bkilled\b",
            r"\bKilled: 9",
            r"(?:\A|\n)\W{0,3}\d+ killed (?:python|/|\./|nohup|torchrun|accelerate)",
            r"\[\d+\][^\S\n]{0,3}[+-]?[^\S\n]{0,3}\d+[^\S\n]killed\b",
            r"(?:\A|\n)\W{0,3}killed\W{0,2}(?:python|\n|\Z)",
            r"Signals\.SIGKILL",
            r"\bSIGKILL\b",
            r"memorystatus: ?kill",
            r"\bvm-(?:compressor-space|page)-?shortage\b",
            r"\W?largestProcess\W{1,5}\w",
            r"\W?bug_type\W{1,5}298\b",
            r"memory limit exceeded",
            r"Namespace\W{1,5}JETSAM\b",
            r"\bEXC_RESOURCE\b.{0,20}MEMORY",
            r"(?<!un)" + _BY_SIGNAL + r" (?:by |with |due to )?signal:? (?:9\b|SIGKILL)",
            _EXIT_CODE + r"(?:-9|137)\b",
            _RETURN_CODE + r"(?:-9|137)\b",
            r"exitcode\W{1,6}-9\b",
            r"Out of memory: Kill(?:ed)? process",
            r"total-vm:\d+kB, anon-rss",
            r"memorystatus_available_pages",
            r"\boom[-_\s]kill(?:er|ed)?\b(?! due to high memory usage)",
            r"your system has run out of application memory",
            r"JetsamEvent",
            r"\[\d+\][+-]? Killed\b",
            # Printed by a shell, right after a progress bar.
            r"(?:it/s|s/it)[^\]\n]{0,80}\] ?Killed\b",
            r"\bsignal: killed\b",
            r"killed due to (?:the node running low on memory|memory pressure)",
            r"\bOOM ?Killed\b",
            r"line \d+: +\d+ Killed",
        ),
        confidence=0.82,
        kind=Kind.ENDING,
        fires_on={"signal:9": 0.6, "memory_event": 0.9},
        clues={
            "memory_event": 0.12,
            "memory_growing": 0.05,
            "memory_near_limit": 0.06,
            "watermark_off": 0.05,
            "no_memory_kill": -0.55,
            "memory_plentiful": -0.25,
            "requested": -0.6,
        },
        signals=(9,),
        codes=(),
    ),
    Rule(
        id="segfault",
        title="Native crash",
        cause="The process died in native code with no traceback (a segmentation fault, or an abort that left no "
        "message); on Macs with faiss or scikit-learn beside torch that is usually a second OpenMP runtime.",
        remedy=Remedy(
            text="No fix is known. Start from the line of Python in the log (PYTHONFAULTHANDLER=1 puts "
            "it there); OMP_NUM_THREADS=1 rules out OpenMP (`mpstui restart RUN --env NAME=VALUE`).",
        ),
        sources=("Om-Alve/smolGPT#12", "pytorch/pytorch#136217"),
        patterns=(
            r"Segmentation fault\b",
            r"\bsegfault\b",
            r"\bSIGSEGV\b(?! or (?:an)?other unexpected)",
            r"EXC_BAD_ACCESS",
            r"KERN_INVALID_ADDRESS",
            r"Trace/BPT trap",
            r"Assertion failed: .{1,200}, function \w{1,80}, file \S{1,80}, line \d",
            _BY_SIGNAL + r" (?:by |with |due to )?signal:? 11\b",
            _EXIT_CODE + r"(?:-11|139)\b",
            _RETURN_CODE + r"(?:-11|139)\b",
            r"exitcode\W{1,6}-11\b",
        ),
        weak_patterns=(
            r"Abort trap: 6",
            r"zsh: (?:abort|trace trap|illegal hardware instruction)",
            r"\bSIGABRT\b",
            r"\bSIGTRAP\b",
            r"Fatal Python error",
            _EXIT_CODE + r"(?:-6|134)\b",
            _RETURN_CODE + r"(?:-6|134)\b",
            r"exitcode\W{1,6}-6\b",
            r"libc\+\+abi: terminating",
            r"terminate called after throwing",
            r"Aborted \(core dumped\)",
        ),
        confidence=0.8,
        kind=Kind.ENDING,
        fires_on={"signal:11": 0.6, "signal:6": 0.4, "signal:5": 0.4, "signal:4": 0.35},
        clues={"duplicate_omp_allowed": 0.03},
        signals=(11, 6, 5, 4),
        codes=(),
    ),
    DeviceRule(
        id="bus_error",
        title="Bus error",
        cause="SIGBUS: native code touched memory that was not there. On MPS the same training usually works on "
        "CPU; on Linux it can also be a full /dev/shm.",
        remedy=Remedy(
            text="Run on CPU; upgrade torch and macOS.",
            device="cpu",
            defeated_by=(
                r"(?i)exitcode\W{1,6}-7\b|signal 7 \(SIGBUS\) received|core dumped|physical address|"
                r"process \d+ terminated with signal",
                "This was not on MPS",
            ),
            otherwise="Give it more shared memory (`docker run --shm-size 8g`), or load data without workers "
            "(num_workers=0); else use a smaller batch, and see that the disk of what is mapped into memory is not "
            "full.",
        ),
        sources=("apple/ml-stable-diffusion#8",),
        patterns=(
            r"\bbus error\b",
            r"\bSIGBUS\b",
            _BY_SIGNAL + r" (?:by |with |due to )?signal:? (?:10|7)\b",
            _EXIT_CODE + r"(?:-10|138|135)\b",
            r"exitcode\W{1,6}-(?:7|10)\b",
            _RETURN_CODE + r"(?:-10|138|135)\b",
        ),
        confidence=0.82,
        kind=Kind.ENDING,
        fires_on={"signal:10": 0.6, "signal:7": 0.6},
        signals=(10, 7),
        codes=(),
        outranks=("segfault",),
    ),
    Rule(
        id="leaked_semaphore_only",
        title="Leaked semaphores: the process ended without cleaning up",
        cause="Python's resource tracker noticed that its parent was gone (or left without joining its workers). "
        "That is a symptom; why the parent ended is not in this log.",
        remedy=Remedy(
            text="Look at how the process ended: signal 9 means killed, 6 aborted, 11 crashed; with code 0 this "
            "line is harmless.",
        ),
        sources=("multiprocessing/resource_tracker.py",),
        patterns=(
            r"resource_tracker: There appear to be \d+ leaked",
            r"leaked (?:semaphore|shared_memory|folder)",
        ),
        confidence=0.4,
        kind=Kind.SYMPTOM,
    ),
)
