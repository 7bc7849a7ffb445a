"""DataLoader workers, processes and file descriptors."""

from ..model import NO_WORKERS, DeviceRule, Remedy, Rule

RULES = (
    Rule(
        id="dl_spawn_guard",
        title="The script has no main guard",
        cause="Python on macOS starts workers with spawn, which imports the training script again in each of them; "
        "without `if __name__ == '__main__':` every worker starts the training again.",
        remedy=Remedy(
            text="Load data without workers (num_workers=0), or put the script's main part under the guard.",
            args=NO_WORKERS,
        ),
        sources=("pytorch/pytorch#46648",),
        patterns=(
            r"before the current process has finished its bootstrapping phase",
            r"An attempt has been made to start a new process before",
            r"forgotten to use the proper idiom in the main module",
            r"you are not using fork to start your child processes",
            r"Safe importing of main module",
            r"_check_not_importing_main",
            r"\bfreeze_support\(\)",
        ),
        confidence=0.96,
        clues={"never_stepped": 0.01},
        outranks=("dl_worker_signal", "dl_pickle", "ckpt_corrupt"),
    ),
    Rule(
        id="dl_pickle",
        title="Something given to DataLoader workers cannot be pickled",
        cause="spawn has to pickle the dataset and collate_fn; lambdas, local functions and open handles cannot be.",
        remedy=Remedy(
            text="Load data without workers (num_workers=0), or move the function to the top of the module.",
            args=NO_WORKERS,
        ),
        sources=("voxel51/fiftyone#6137",),
        patterns=(
            r"Can't (?:pickle|get) local (?:object|attribute)",
            r"Can't pickle <",
            r"Can't pickle .{1,80}(?:it's not the same object|attribute lookup|not found as)",
            r"Can't get attribute .{1,120} on <module \W?__(?:mp_)?main__",
            r"can't pickle \S{1,80} objects?\b",
            r"cannot pickle \W?[\w.\s]{1,80}\W? object",
            r"cannot pickle .{1,60} objects?\b",
            r"\bPicklingError",
            r"objects? (?:cannot|can't|can not) be pickled",
            r"(?:KeyError|AttributeError): \W?__(?:get|set)state__",
        ),
        # The child's side of it: its parent failed, for whatever reason, while sending data to it.
        weak_patterns=(r"reduction\.pickle\.load\(from_parent\)",),
        clues={"never_stepped": 0.02},
        outranks=("dl_worker_signal", "ckpt_corrupt"),
    ),
    Rule(
        id="dl_worker_signal",
        title="A DataLoader worker died",
        cause="A worker process crashed in native code or was killed (fork together with Apple's frameworks, or too "
        "little memory), and the training could not continue without it.",
        remedy=Remedy(
            text="Load data without workers (num_workers=0), or use fewer; in a container give them more shared memory "
            "(`docker run --shm-size 8g`).",
            args=NO_WORKERS,
        ),
        sources=("pytorch/pytorch#78924", "pytorch/pytorch#94417"),
        patterns=(
            r"DataLoader worker \(pid(?:\(s\))?:? [\d,\s]{1,80}\) (?:is killed by signal|exited unexpectedly)",
            r"DataLoader worker .{0,80}(?:killed by signal|exited unexpectedly)",
            r"worker .{0,40}is killed by signal",
            r"Details are lost due to multiprocessing",
            r"Rerunning with num_workers=0 may give better error trace",
            r"Unexpected (?:segmentation fault|bus error|floating-point exception) encountered in worker",
        ),
        confidence=0.87,
        outranks=("killed_os", "segfault", "bus_error"),
    ),
    Rule(
        id="data_process_died",
        title="A process or thread that prepares data died",
        cause="Some programs prepare data in processes of their own (nnU-Net, with batchgenerators), torch has a "
        "thread that pins memory, and one of these died. The reason is further up, in a traceback of its own; a "
        "process without one was most likely killed for memory.",
        remedy=Remedy(
            text="Fix what that traceback shows. Without one, use fewer of these processes (nnU-Net: "
            "nnUNet_n_proc_DA=2 in the environment, 0 for none)."
        ),
        sources=("MIC-DKFZ/nnUNet#2162", "MIC-DKFZ/nnUNet#2749"),
        patterns=(
            r"(?:One or more|Some) background workers are no longer alive",
            r"Pin memory thread exited unexpectedly",
        ),
        confidence=0.5,  # low: any rule for the lines above says more
    ),
    Rule(
        id="dl_timeout",
        title="The DataLoader waited too long for a batch",
        cause="No worker gave a batch within the loader's `timeout`: the storage is slow or gone, a sample takes very "
        "long, or a worker hangs in a lock that it was forked with.",
        remedy=Remedy(
            text="Raise the loader's `timeout` where a batch may take that long; else look at what the workers wait "
            "for, use fewer of them, or start them with multiprocessing_context='spawn'. With num_workers=0 the "
            "timeout must be 0, too."
        ),
        sources=("torch/utils/data/dataloader.py", "pytorch/pytorch#33296"),
        patterns=(r"DataLoader timed out after \d+ second",),
        confidence=0.93,
    ),
    Rule(
        id="dl_shared_memory",
        title="The shared memory of the DataLoader workers is full",
        cause="Workers hand batches over through /dev/shm, which is small in containers (64 MB in Docker unless asked "
        "for more); the disk is not concerned.",
        remedy=Remedy(
            text="Load data without workers (num_workers=0), or give the container more (`docker run --shm-size 8g`, "
            "`--ipc host`).",
            args=NO_WORKERS,
        ),
        sources=("pytorch/pytorch#5040", "open-mmlab/mmsegmentation#1356", "NVIDIA/Megatron-LM#878"),
        patterns=(
            r"unable to (?:allocate|write to|resize) (?:file |shared memory ?(?:\(shm\))? for file )?</torch_",
            r"unable to allocate shared memory",
            r"No space left on device: \W?/dev/shm",
            # Linux; macOS adds the number of the signal.
            r"worker \(pid(?:\(s\))? \d+\) is killed by signal: Bus error\.",
            # Python keeps the locks of its processes there too.
            r"\bSemLock\([^:]{0,200}OSError: \[Errno 28\]",
        ),
        confidence=0.96,
        outranks=("dl_worker_signal", "bus_error", "disk_full", "too_many_files"),
    ),
    Rule(
        id="dl_mappings",
        title="Too many pieces of shared memory",
        cause="Workers hand over each tensor as a mapping of its own, and Linux allows a process 65,530 of them "
        "(vm.max_map_count): many small tensors are kept. More rarely the memory itself is full.",
        remedy=Remedy(
            text="Load data without workers (num_workers=0), put the small tensors of a sample into one, or keep a "
            "`.clone()` of each that is kept; an administrator can raise vm.max_map_count.",
            args=NO_WORKERS,
        ),
        sources=("kohya-ss/sd-scripts#1790", "pytorch/pytorch#92134", "Pointcept/Pointcept#136"),
        patterns=(r"unable to mmap \d+ bytes from file <[^>]{1,80}>: Cannot allocate memory",),
        confidence=0.93,
        outranks=("cpu_oom", "dl_worker_signal"),
    ),
    Rule(
        id="dl_shared_handle",
        title="Workers read one open HDF5 file together",
        cause="A file that was opened before the workers were forked has one position for all of them, and each moves "
        "it for the others. Where it fails without workers too, the file is damaged.",
        remedy=Remedy(
            text="Load data without workers (num_workers=0), or open the file in each worker, when its first sample is "
            "asked for.",
            args=NO_WORKERS,
        ),
        sources=("Dana-Farber-AIOS/pathml#255", "pytorch/pytorch#11887"),
        patterns=(
            r"Unable to (?:synchronously )?open object \((?!object |component |'|unable to )",
            r"Can't (?:synchronously )?read data \(",
        ),
        confidence=0.88,
    ),
    DeviceRule(
        id="dl_share_mps",
        title="An MPS tensor was sent to another process",
        cause="The dataset, its collate_fn or the model hands MPS tensors to worker processes; MPS memory cannot be "
        "shared.",
        remedy=Remedy(
            text="Load data without workers (num_workers=0), or keep the dataset's tensors on CPU and move batches in "
            "the training loop.",
            args=NO_WORKERS,
        ),
        sources=("pytorch/pytorch#87688",),
        patterns=(
            r"_share_(?:filename|fd)\w*: only available on CPU",
            r"MPS .{0,60}(?:can(?:not|'t)|not supported).{0,30}shar(?:e|ed|ing)",
        ),
        # Every tensor on its way to another process passes through this line of code.
        weak_patterns=(r"_share_(?:filename|fd)_(?:cpu_)?",),
        confidence=0.94,
        outranks=("dl_worker_signal", "mps_op_limit", "dl_pickle"),
    ),
    Rule(
        id="too_many_files",
        title="Too many open files",
        cause="The limit on open files (256 on macOS unless raised) is used up, usually by DataLoader workers "
        "that pass tensors as file descriptors.",
        remedy=Remedy(
            text="Raise the limit (`ulimit -n 4096`; mpstui raises it for runs it starts), use fewer workers, or call "
            "torch.multiprocessing.set_sharing_strategy('file_system').",
            args=NO_WORKERS,
        ),
        sources=("datalab-to/marker#181", "alanngnet/CoverHunterMPS#20"),
        patterns=(
            r"\[?Errno 24\b",
            r"Too many open files",
            r"unable to open shared memory obj",
            r"received 0 items of ancdata",
            r"\bEMFILE\b",
        ),
        confidence=0.92,
        outranks=("dl_worker_signal", "ckpt_corrupt", "dl_share_mps"),
    ),
    Rule(
        id="objc_fork",
        title="A forked process touched Apple frameworks",
        cause="fork() without exec in a process that had already used Objective-C frameworks; macOS ends such "
        "children on purpose.",
        remedy=Remedy(
            text="Load data without workers (num_workers=0), or start them with spawn. "
            "OBJC_DISABLE_INITIALIZE_FORK_SAFETY=YES only hides the problem.",
            args=NO_WORKERS,
        ),
        sources=("sparkmicro/Ki-nTree#160",),
        patterns=(
            r"in progress in another thread when fork\(\) was called",
            r"objc_initializeAfterForkError",
            r"safely call it or ignore it in the fork\(\) child",
            r"The process has forked and you cannot use this CoreFoundation",
            r"YOU_MUST_EXEC__",
            r"crashed on child side of fork",
        ),
        confidence=0.95,
        signals=(6, 9, 5),
        outranks=("dl_worker_signal", "segfault", "killed_os"),
    ),
    DeviceRule(
        id="cuda_fork",
        title="A DataLoader worker touched CUDA",
        cause="Workers are forked from a process that already uses CUDA, and CUDA cannot be used in a forked copy: "
        "the data set or its collate_fn makes tensors on the GPU.",
        remedy=Remedy(
            text="Load data without workers (num_workers=0), or keep the data set on the CPU and move batches in the "
            "training loop; multiprocessing_context='spawn' works too, slower to start.",
            args=NO_WORKERS,
        ),
        sources=("pytorch/pytorch#40403",),
        patterns=(r"Cannot re-initialize CUDA in forked subprocess",),
        confidence=0.96,
        outranks=("cuda_hardcoded", "dl_worker_signal"),
    ),
)
