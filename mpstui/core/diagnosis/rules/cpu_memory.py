"""The machine's main memory, and models that do not fit into it."""

from ..model import SMALLER_BATCH, Remedy, Rule

RULES = (
    Rule(
        id="cpu_oom",
        title="The machine ran out of memory (RAM)",
        cause="The system refused a piece of main memory: the batch, the model or the data set does not fit beside "
        "what else is loaded, or a limit of the container or shell (`ulimit -v`) is reached.",
        remedy=Remedy(
            text="Halve the batch size and double gradient accumulation (the effective batch stays the same), use "
            "fewer DataLoader workers, close other programs; a data set read whole into memory must be read in parts.",
            args=SMALLER_BATCH,
            defeated_by=(
                r"Unable to allocate [\d.]+ [GTP]iB for an array",
                "An array of this size holds the data set, and not a batch",
            ),
            otherwise="Read the data in parts: a Dataset that opens each file when it is asked for, or numpy.memmap; "
            "float32 takes half the room of float64.",
        ),
        sources=("open-edge-platform/anomalib#1094", "austinxu87/handsoff#4", "chrischute/squad#5"),
        patterns=(
            r"DefaultCPUAllocator: (?:can't allocate|not enough) memory",
            r"not enough memory: you tried to allocate",
            r"posix_memalign\(&data, gAlignment, nbytes\) == 0",
            r"\[Errno 12\] Cannot allocate memory",
            r"\bMemoryError\b(?:: Unable to allocate|:|\n|\Z)",
            r"Unable to allocate [\d.]+ [KMGTP]iB for an array",
            r"std::bad_alloc\b",
            r"Cannot allocate memory \(os error 12\)",
        ),
        numbers=(
            (r"you tried to allocate (?P<bytes>\d+) bytes", "wanted {0} more"),
            (r"Unable to allocate ([\d.]+ [KMGTP]iB) for", "wanted {0} more"),
        ),
        confidence=0.93,
        clues={"memory_near_limit": 0.02, "memory_growing": 0.02},
        signals=(6,),
        outranks=("dl_worker_signal", "segfault", "ckpt_corrupt", "compile_mps"),
    ),
    Rule(
        id="model_left_out",
        title="Part of the model was not loaded",
        cause="Some weights hold no data, so that they cannot be moved or trained. Most often `device_map` spread the "
        "model over GPU, RAM and disk because it does not fit what was free; else the checkpoint lacks them.",
        remedy=Remedy(
            text="Load it without `device_map` where it fits, else free memory first or take a smaller model or fewer "
            "bits (torch_dtype, quantization); an `offload_folder` is enough to predict, not to train."
        ),
        sources=("yuanzhoulvpi2017/zero_nlp#153", "openlm-research/open_llama#37", "Sreyan88/GAMA#15"),
        patterns=(
            r"Cannot copy out of meta tensor",
            r"`?device_map`? had weights offloaded to the disk",
            r"need an `?offload_(?:dir|folder)`? to dispatch this model",
        ),
        confidence=0.92,
    ),
)
