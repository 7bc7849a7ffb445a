"""Two OpenMP runtimes in one process."""

from ..model import Remedy, Rule

RULES = (
    Rule(
        id="omp_duplicate",
        title="Two OpenMP runtimes were loaded",
        cause="torch brings its own libomp and another package (faiss, scikit-learn, OpenCV, LightGBM, conda's MKL) "
        "brought a second one; the runtime refuses to continue.",
        remedy=Remedy(
            text="Install torch and the other package from one source, so that one runtime is left; "
            "OMP_NUM_THREADS=1 does not pass this check. KMP_DUPLICATE_LIB_OK=TRUE only silences it: "
            "its vendor warns of crashes and silently wrong results (pytorch#78490 reports a segmentation "
            "fault).",
        ),
        sources=("pytorch/pytorch#78490", "ogx-ai/ogx#6304", "jianchang512/ChatTTS-ui#22"),
        patterns=(
            r"Error #15: Initializing",
            r"OMP: Error #15",
            r"Initializing lib\w+\.?[\w.]{0,12}, but found lib\w+",
            r"multiple copies of the OpenMP runtime have been linked",
            r"set the environment variable KMP_DUPLICATE_LIB_OK",
        ),
        confidence=0.96,
        clues={"duplicate_omp_allowed": -0.1},
        signals=(6,),
        outranks=("segfault", "omp_segfault"),
    ),
    Rule(
        id="omp_segfault",
        title="OpenMP crashed",
        cause="Two OpenMP runtimes share the process without having noticed each other and crash in a barrier or a "
        "lock.",
        remedy=Remedy(
            text="Start again with OMP_NUM_THREADS=1 (what runs on the CPU is slower then), import torch before faiss "
            "or scikit-learn, and remove the second runtime.",
            env={"OMP_NUM_THREADS": "1"},
            otherwise="Import torch before faiss or scikit-learn, and remove the second runtime.",
        ),
        sources=("pytorch/pytorch#136217", "pytorch/pytorch#149201"),
        patterns=(
            # Functions of the runtime in a stack; variables named KMP_... mean nothing.
            r"__kmp_[a-z]\w+",
            r"\bkmp_flag_\w+",
            r"\blibi?omp5?\.(?:dylib|so).{0,80}(?:kmp|barrier|\+ ?\d+|0x)",
            r"OMP: (?:System )?Error #(?!15\b)\d+",
            r"OMP: Error #(?!15\b)\d+",
            r"(?:crash|segfault|segmentation fault|SIGSEGV|EXC_BAD_ACCESS).{0,80}lib(?:i?omp5?|gomp)",
        ),
        confidence=0.85,
        clues={"duplicate_omp_allowed": 0.08},
        signals=(11, 6, 10, 7),
        codes=(),
        outranks=("segfault", "bus_error"),
    ),
)
