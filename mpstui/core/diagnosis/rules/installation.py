"""The installation: macOS, torch, NumPy and processor architecture that do not fit together, and missing modules."""

from ..model import PROJECT, DeviceRule, Remedy, Rule

RULES = (
    DeviceRule(
        id="macos_too_old",
        title="MPS does not accept this macOS",
        cause="This torch needs a newer macOS for MPS than is running here (12.3 up to torch 2.5, 13 up to 2.8, 14 "
        "up to 2.14, 15 from 2.15), or Metal shows no GPU at all (a virtual machine, a sandbox).",
        remedy=Remedy(text="Upgrade macOS, install an older torch, or run on CPU.", device="cpu"),
        sources=("pytorch/pytorch#164943", "pytorch/pytorch#177819", "pytorch/pytorch#139425"),
        patterns=(
            r"MPS backend is (?:only )?(?:supported|available) on Mac ?OS",
            r"MPS not available because the current MacOS version",
            r"current MacOS version is not \d",
            r"MPS requires (?:at least )?Mac ?OS",
            r"\(?built for macOS [\d.]+ which is newer than running OS",
            r"Symbol not found: \(?_?(?:_?OBJC_CLASS_\$_)?(?:MPS|MTL)\w+",
        ),
        confidence=0.95,
        signals=(6,),
        outranks=("mps_op_limit", "mps_not_built"),
    ),
    DeviceRule(
        id="mps_not_built",
        title="This torch was built without MPS",
        cause="The installed torch knows no MPS: a Linux or Intel build, or an x86_64 Python on Apple silicon.",
        remedy=Remedy(text="Install torch into an arm64 Python on macOS; meanwhile run on CPU.", device="cpu"),
        sources=("jankais3r/LLaMA_MPS#6",),
        patterns=(
            r"not linked with support for mps",
            r"(?:install|build|torch) was not (?:built|compiled) with MPS",
            r"not (?:built|compiled|linked) with (?:support for )?MPS",
            r"device type at start of device string: mps",
            r"Expected one of cpu, cuda, .{0,200}privateuseone",
            r"Expected one of cpu, cuda, \w+, (?:xpu|mkldnn)",
            r"Invalid device string: \W?mps",
            r"MPSAccelerator\W? can ?not run on your system",
            r"Invalid (?:CUDA )?\W?device=mps",
        ),
        # Many scripts print this and continue on the CPU.
        weak_patterns=(r"MPS (?:backend |device )?(?:is )?(?:not (?:available|found|built)|unavailable)",),
        confidence=0.92,
        outranks=("mps_op_limit", "cuda_hardcoded"),
    ),
    Rule(
        id="arch_mismatch",
        title="Packages for different processors are mixed",
        cause="x86_64 (Rosetta) and arm64 packages are mixed in one Python.",
        remedy=Remedy(
            text="Make a new environment with an arm64 Python and install everything again; no setting fixes this."
        ),
        sources=("dyld(1)",),
        patterns=(
            r"incompatible architecture \(?have",
            r"mach-o,? (?:file,? )?but (?:is )?(?:an )?(?:wrong|incompatible) architecture",
            r"wrong architecture",
            r"missing compatible arch",
            r"mach-o file, but is an incompatible arch",
            r"mach-o, but wrong arch",
            r"have \W?(?:x86_64|arm64e?)\W?,? need \W?(?:arm64|x86_64)",
            r"illegal hardware instruction",
            r"Illegal instruction: 4",
            r"Bad CPU type in executable",
            r"wrong ELF class",
            r"Exec format error",
        ),
        confidence=0.92,
        fires_on={"signal:4": 0.45},
        signals=(4,),
        outranks=("segfault",),
    ),
    Rule(
        id="numpy2_abi",
        title="NumPy 2 with modules built for NumPy 1",
        cause="torch before 2.3 (or another compiled module) was built for NumPy 1 and cannot work with the "
        "installed NumPy 2.",
        remedy=Remedy(text="Install 'numpy<2', or upgrade torch to 2.3 or newer."),
        sources=("Comfy-Org/ComfyUI#5664",),
        patterns=(
            r"compiled using NumPy 1\.x cannot be run in",
            r"_ARRAY_API not found",
            r"numpy\.dtype size changed",
            r"numpy\.core\.multiarray failed to import",
            r"modules must be compiled with NumPy 2",
            r"was removed in the NumPy 2\.0 release",
            r"Numpy is not available",
            r"Failed to initialize NumPy",
        ),
        in_warnings=True,
    ),
    Rule(
        id="torch_old_api",
        title="This torch is too old for the script",
        cause="The script uses something this torch does not have yet (torch.mps is loaded by itself since 2.1).",
        remedy=Remedy(text="Upgrade torch."),
        sources=("pytorch/pytorch#100165", "pytorch/examples#1134"),
        patterns=(
            r"module \W?torch(?:\.\w+)*\W? has no attribute \W?\w+",
            r"cannot import name \W\w+\W from \W?torch\b",
            r"PyTorch >= [\d.]+ is required but found",
            r"No module named \W?torch\.(?:mps|amp|compiler|export|accelerator|backends\.mps|nn\.attention)",
            r"No module named \W?torch\.distributed\.(?:_?tensor|fsdp|device_mesh|checkpoint)",
            r"requires? (?:at least )?(?:torch|PyTorch) ?(?:>=|version|v)? ?[12]\.\d+(?!.{0,40} but you have)",
            r"require users to upgrade torch to at least",
        ),
        confidence=0.88,
        outranks=("module_missing",),
    ),
    Rule(
        id="module_of_project",
        title="A module of the project itself is not found",
        cause="Python looks for modules in the folder of the script that it starts, not in the one it is started from: "
        "a project's own packages beside or above that are found where PYTHONPATH names their folder.",
        remedy=Remedy(
            text="Start it with the project's folder on PYTHONPATH, or as a module from there (`python -m "
            "package.script`); where the project can be installed, `pip install -e .` does it once.",
            env={"PYTHONPATH": PROJECT},
            otherwise="Install the project (`pip install -e .`), or start it as its README says.",
        ),
        sources=("docs.python.org/3/library/sys_path_init.html",),
        patterns=(
            r"attempted relative import with no known parent package",
            r"attempted relative import beyond top-level package",
            r"ModuleNotFoundError: No module named \W?__main__\.\w+\W?; \W?__main__\W? is not a package",
        ),
        fires_on={"module_in_project": 0.93},
        outranks=("module_missing",),
    ),
    Rule(
        id="module_missing",
        title="A module is not installed in this Python",
        cause="The Python that ran the program does not have the module. Often it is another Python than the one of "
        "the project: where no environment is active, `python` is the system's.",
        remedy=Remedy(
            text="Install the module into that Python, or run with the environment that has it: its own path in the "
            "command (such as .venv/bin/python), or `python = ` in the profile."
        ),
        sources=("docs.python.org/3/library/exceptions.html#ModuleNotFoundError",),
        patterns=(
            r"ModuleNotFoundError: No module named",
            r"python[\w.]{0,12}: No module named \w",
            r"requires the \w{1,60} library but it was not found in your environment",
            r"requires `\w{1,60}[>=][^`\n]{0,40}`: Please run `pip install",
        ),
        confidence=0.85,
        numbers=((r"No module named \W?([A-Za-z_][\w.]{0,80})", "{0} is missing"),),
    ),
    Rule(
        id="packages_apart",
        title="Two packages do not fit together",
        cause="One was built, or written, for another version of the other: torchvision or a compiled extension "
        "(flash-attn, xformers, bitsandbytes) for another torch or CUDA, a script for another transformers.",
        remedy=Remedy(
            text="Install versions that belong together: torch and torchvision of one release, an extension built for "
            "the torch that is installed; for a name that is gone, the version in the project's requirements."
        ),
        sources=("Dao-AILab/flash-attention#867", "axolotl-ai-cloud/axolotl#1157", "PrimeIntellect-ai/verifiers#96"),
        patterns=(
            r"operator torchvision::nms does not exist",
            r"undefined symbol: {0,2}_Z\w+",
            r"\.so[\d.]{0,12}: undefined symbol: {0,2}\w+",
            r"Symbol not found: \(?_{1,2}(?:Z|torch_|aoti_|c10_|Py)\w+",
            r"cannot import name \W\w{1,80}\W from \W?(?:transformers|huggingface_hub|accelerate|peft|diffusers)\b",
            r"cannot import name \W\w{1,80}\W from \W?(?:datasets|tokenizers|trl|torchvision|torchaudio|timm)\b",
            r"cannot import name \W\w{1,80}\W from \W?(?:torchmetrics|(?:pytorch_)?lightning|sklearn|scipy|keras)\b",
            r"(?:Trainer|TrainingArguments|Config)\.__init__\(\) got an unexpected keyword argument "
            r"\W(?:tokenizer|processing_class|eval(?:uation)?_strategy|no_cuda|use_mps_device|max_seq_length|gpus)\b",
            # trl renames arguments of its trainers from one version to the next.
            r"\b(?:SFT|DPO|GRPO|KTO|ORPO|PPO|RLOO|Reward)(?:Trainer|Config)\.__init__\(\) got an unexpected keyword",
            r"type object \WTrainer\W has no attribute",
            r"Dataset scripts are no longer supported, but found \S",
            r"Trainer\.compute_loss\(\) got an unexpected keyword argument \Wnum_items_in_batch",
            r"Trainer\._get_(?:train|eval)_sampler\(\) (?:takes \d|got an unexpected)",
            r"module \W?(?:transformers|datasets|trl|peft|timm|(?:pytorch_)?lightning|torchvision|torchaudio|torchtext)"
            r"[\w.]{0,80}\W? has no attribute",
            r"Couldn't load custom C\+\+ ops",
            r"lr scheduler \W\w{1,60}\W doesn't follow PyTorch's LRScheduler API",
            r"\bCUDAMismatchException\b",
            r"detected CUDA version \([\d.]+\) mismatches the version that was used to compile",
        ),
        weak_patterns=(  # may also be a mistake in the user's own class
            r"\W\w{0,20}(?:SFT|DPO|GRPO|KTO|ORPO|PPO|RLOO|Reward)(?:Env)?(?:Trainer|Config)\W? object has no attribute",
        ),
        confidence=0.9,
        outranks=("module_missing", "torch_old_api"),
    ),
    Rule(
        id="system_old",
        title="A package was built for a newer system",
        cause="It needs a newer C library (GLIBC) or C++ library (GLIBCXX) than the one that was found (the system's, "
        "where an environment has a newer one of its own), or a newer macOS.",
        remedy=Remedy(
            text="For GLIBCXX put the environment's library first (conda: `conda install -c conda-forge "
            "libstdcxx-ng`, LD_LIBRARY_PATH=$CONDA_PREFIX/lib); for GLIBC install an older version of the package, or "
            "run in a container of a newer system; on a Mac upgrade macOS, or install an older version."
        ),
        sources=("ld.so(8)", "spinalcordtoolbox/spinalcordtoolbox#1703"),
        patterns=(
            r"version \W?(?:GLIBC|GLIBCXX|CXXABI)_[\d.]+\W? not found",
            r"\(load command 0x\w+ is unknown\)",
        ),
        confidence=0.94,
        outranks=("library_missing", "packages_apart", "omp_segfault"),
    ),
    Rule(
        id="old_tokenizers",
        title="The tokenizer's file was written by a newer version",
        cause="`tokenizer.json` holds a part that the installed tokenizers does not know: it was saved with a newer "
        "one.",
        remedy=Remedy(text="Upgrade tokenizers and transformers together (`pip install -U transformers tokenizers`)."),
        sources=("huggingface/transformers#31789", "canopyai/Orpheus-TTS#191"),
        patterns=(r"data did not match any variant of untagged enum \w{1,60}(?:Wrapper|Model)",),
        confidence=0.95,
    ),
    Rule(
        id="library_missing",
        title="A shared library is missing",
        cause="A compiled package needs a library of the system, of CUDA or of another package, and the loader does "
        "not find it.",
        remedy=Remedy(
            text="Install what brings it: opencv-python-headless for libGL, torch whole from pip for the libraries of "
            "CUDA, `brew install libomp` for libomp.dylib; or put its folder on LD_LIBRARY_PATH."
        ),
        sources=("ld.so(8)", "dyld(1)"),
        patterns=(
            r"Error: lib[\w.-]{1,80}\.so[\d.]{0,20}: cannot open shared object file",
            r"Library not loaded: \S{1,200}\.dylib",
        ),
        confidence=0.88,
        outranks=("module_missing", "omp_segfault"),
    ),
    Rule(
        id="extension_build",
        title="An extension of C++ or CUDA could not be built",
        cause="A package compiles a part of itself when that is first used (DeepSpeed its optimizers), and a compiler "
        "refused. Why is said above, in the first line with `error:`.",
        remedy=Remedy(
            text="Install the CUDA toolkit that torch was built with (`torch.version.cuda`, CUDA_HOME its folder) "
            "and a C++ compiler that it accepts; or do without (DeepSpeed: an optimizer of torch)."
        ),
        sources=("torch/utils/cpp_extension.py", "deepspeedai/DeepSpeed#6912"),
        patterns=(
            r"Error building extension \W",
            r"Command \W{1,4}ninja\W{1,6}v\W{1,4} returned non-zero",
            r"ninja: build stopped: subcommand failed",
        ),
        confidence=0.85,
    ),
)
