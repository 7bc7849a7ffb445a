"""Writing and loading checkpoints."""

from ..model import Remedy, Rule

_LACKS = r"load_state_dict\([^\n]{0,160}\n(?:[^\n]{0,40}[~^]{3}[^\n]{0,160}\n)?[^\n]{0,20}KeyError: "
"""Matches a ``KeyError`` in ``load_state_dict``, up to the name of the entry that the loaded state lacks."""

RULES = (
    Rule(
        id="weights_only",
        title="torch.load refuses what the checkpoint contains",
        cause="Since torch 2.6 torch.load admits only tensors and plain containers unless told otherwise; this "
        "checkpoint holds other Python objects.",
        remedy=Remedy(
            text="If you trust the file, start again with TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1 (it works where the "
            "script did not pass weights_only itself).",
            env={"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"},
            defeated_by=(
                r"weights_only ?= ?True\b",
                "the script says weights_only=True itself, and that beats the variable",
            ),
            risk="A checkpoint loaded this way can run any code on this machine: only for files whose origin you "
            "trust.",
        ),
        sources=("gpoesia/minimo#21", "ROCm/Megatron-LM#56"),
        patterns=(
            r"torch\.load\(.{0,120}weights_only ?= ?True",
            r"Weights only load failed",
            r"WeightsUnpickler error",
            r"was not an allowed global by default",
            r"add_safe_globals",
            r"default value of the \W?weights_only\W? argument",
            r"Re-running \W?torch\.load\W? with \W?weights_only",
            r"Unsupported (?:global|class) \S{1,120} ",
        ),
        clues={"never_stepped": 0.02},
        outranks=("dl_pickle",),
    ),
    Rule(
        id="ckpt_corrupt",
        title="The checkpoint file is incomplete or corrupt",
        cause="The file is cut short or something else altogether: a Git LFS pointer, an error page, an interrupted "
        "download or save.",
        remedy=Remedy(text="Download the file again, or resume from the previous checkpoint."),
        sources=("torch/serialization.py",),
        patterns=(
            r"Unsupported operand \d+",
            r"invalid load key",
            r"PytorchStreamReader failed",
            r"failed finding central directory",
            r"unexpected EOF, expected \d+ more bytes",
            r"file (?:might|may) be corrupt",
            r"archive is corrupt",
            r"Unable to load weights from (?:pytorch )?checkpoint file",
            r"pickle data was truncated",
            r"Error while deserializing header",
            r"HeaderTooLarge",
            r"InvalidHeader",
            r"MetadataIncompleteBuffer",
            r"incomplete metadata",
            r"header too (?:large|small)",
            r"file in archive is not in a subdirectory",
            r"not a ZIP (?:archive|file)",
            r"BadZipFile",
            r"version https://git-lfs",
            r"(?:checkpoint|model|weights?) .{0,80}(?:is|are|may be|seems?) corrupt",
            r"(?:checkpoint|model|weights?) .{0,80}(?:is|are|may be|seems?) truncated",
            r"storage has wrong (?:byte )?size",
            r"Invalid magic number",
        ),
        weak_patterns=(r"Ran out of input",),
        outranks=("weights_only",),
    ),
    Rule(
        id="ckpt_map_location",
        title="The checkpoint was saved on a device that is missing here",
        cause="The checkpoint's tensors carry a device (mps or cuda) that is not available here, or that this torch "
        "or safetensors is too old to know.",
        remedy=Remedy(
            text="Load with map_location='cpu' (safetensors: device='cpu') and move the model afterwards; or upgrade "
            "torch and safetensors."
        ),
        sources=("invoke-ai/InvokeAI#3442", "Lightning-AI/pytorch-lightning#17618"),
        patterns=(
            r"don't know how to restore data location",
            r"Storage device not recognized",
            r"Attempting to deserialize object on (?:an? )?\w+ device",
            r"with map_location=torch\.device\(",
            r"to map your storages to the CPU",
            r"SafetensorError: device \w+(?::\d+)? is invalid",
        ),
        confidence=0.94,
        outranks=("cuda_hardcoded", "weights_only"),
    ),
    Rule(
        id="ckpt_shape",
        title="The checkpoint belongs to another model",
        cause="Names or shapes in the checkpoint differ from those the program looks for: another architecture, number "
        "of classes or wrapper, or a file that another program has arranged otherwise.",
        remedy=Remedy(text="Build the model with the settings the checkpoint was trained with, or start from scratch."),
        sources=("Helias/Car-Model-Recognition#2",),
        patterns=(
            r"size mismatch for [\w.]+: copying",
            r"size mismatch for",
            r"Error\(s\) in loading state_dict for",
            r"(?:Missing|Unexpected) key\(s\) in state_dict",
            r"(?:missing|unexpected) key .{1,80} in state_dict",
            r"copying a param with shape",
            r"loaded state dict (?:contains a parameter group|has a different number)",
            _LACKS + r"\W\w{0,20}(?:state_dict|model|net|weights|ema)\w{0,20}\W",
        ),
        confidence=0.92,
        outranks=("shape_bug",),
    ),
    Rule(
        id="ckpt_no_state",
        title="The checkpoint holds weights alone",
        cause="The program wants to resume from the checkpoint, which has no state of an optimizer: it was "
        "saved for use, or by another program.",
        remedy=Remedy(
            text="Resume from a checkpoint that was saved with its optimizer, or load this one as weights to start "
            "from (Lightning: `load_from_checkpoint` in place of `ckpt_path=`)."
        ),
        sources=("bytedance/music_source_separation#20",),
        patterns=(
            r"checkpoint contains only the model",
            r"KeyError: \Woptim(?:izer)?s?_(?:states?|state_dict)\W",
            _LACKS + r"\W\w{0,20}(?:optim|sched|scaler)\w{0,20}\W",
        ),
        confidence=0.9,
    ),
    Rule(
        id="shared_tensors",
        title="The checkpoint was not saved: two weights share their memory",
        cause="safetensors saves each weight once, and the model uses one memory for two names (an embedding that is "
        "also the output layer).",
        remedy=Remedy(
            text="Save as torch does (transformers before 5: save_safetensors=False), or with "
            "safetensors.torch.save_model, which leaves out the second name."
        ),
        sources=("Improbable-AI/curiosity_redteam#6", "ShiZhengyan/DePT#4"),
        patterns=(r"Some tensors share memory, this will lead to duplicate memory",),
        confidence=0.95,
    ),
    Rule(
        id="save_pickle",
        title="What is to be saved cannot be pickled",
        cause="torch.save pickles what is not a tensor, and a lambda, a function within a function or an open handle "
        "is part of it: in a model, a scheduler or the arguments.",
        remedy=Remedy(
            text="Save `state_dict()` and plain values in place of whole objects, or move the function to the top of "
            "its module."
        ),
        sources=("torch/serialization.py",),
        patterns=(
            r"\n[^\n]{0,20}pickler\.dump\(obj\)\n(?:[^\n]{0,20}[~^]{3}[^\n]{0,80}\n)?"
            r"[^\n]{1,60}Error: (?:Can't|cannot) (?:pickle|get)",
        ),
        confidence=0.95,
        outranks=("dl_pickle",),
    ),
    Rule(
        id="save_folder",
        title="The folder to save into cannot be written",
        cause="torch.save makes no folders: the one that the checkpoint should go into does not exist, or its disk "
        "takes no more files.",
        remedy=Remedy(
            text="Make the folder before the start (or in the script), and see that its disk has free space."
        ),
        sources=("Sachini/ronin#51",),
        patterns=(
            r"Parent directory \S{1,200} does not exist",
            r"RuntimeError: File \S{1,200} cannot be opened",
            r"Cannot save file into a non-existent directory",
        ),
        confidence=0.92,
    ),
    Rule(
        id="storage_failed",
        title="A disk or a network folder could not be read",
        cause="The file is there and the storage behind it is not: a network folder that was lost or mounted again, "
        "or a disk that fails.",
        remedy=Remedy(
            text="Mount the folder again, or copy the data to a disk of this machine; `dmesg` shows whether a disk "
            "is failing. Then resume from the newest checkpoint."
        ),
        sources=("facebookresearch/dino#155", "hiyouga/LlamaFactory#3388"),
        patterns=(
            r"Stale (?:NFS )?file handle",
            r"Errno 5\] Input/output error: ?[bu]?['\"]",
            r"Transport endpoint is not connected",
            r"\[Errno \d+\] (?:Remote I/O error|Host is down)",
        ),
        confidence=0.94,
        outranks=("disk_full", "dl_worker_signal"),
    ),
    Rule(
        id="disk_full",
        title="The disk is full (or refused to write)",
        cause="A write, usually of a checkpoint, failed: no space, quota reached, or the volume gave an error.",
        remedy=Remedy(
            text="Free space first, or keep fewer checkpoints.",
            from_checkpoint="Resume from the checkpoint before the last, which may be cut short.",
        ),
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
