"""Scripts written for CUDA, and CUDA running out of memory."""

from ..model import SMALLER_BATCH, DeviceRule, Remedy, Rule

RULES = (
    Rule(
        id="cuda_hardcoded",
        title="The script insists on CUDA",
        cause="The script calls `.cuda()` or names device 'cuda' on a machine or torch build without CUDA.",
        remedy=Remedy(
            text="Restart it on the CPU (`--device cpu`): it is then given the CPU wherever it names CUDA. For MPS "
            "change its device argument, or the `.cuda()` in the script; no environment variable can.",
            device="cpu",
            defeated_by=(
                r"0 active drivers|CUDA_HOME|needed for quantization|No supported gpu backend|\blibcuda",
                "What is missing are kernels that only CUDA has, so the CPU does not help",
            ),
            otherwise="Train without what needs them (quantization, Triton), or on an NVIDIA GPU.",
        ),
        sources=("zai-org/CodeGeeX2#183",),
        patterns=(
            r"Torch not compiled with CUDA enabled",
            r"Found no NVIDIA driver on your system",
            r"No CUDA GPUs are available",
            r"Invalid CUDA \W?device=",
            r"(?:Error|Exception)\b.{0,80}CUDA (?:is )?(?:unavailable|not available|required)",
            r"no CUDA-capable device is detected",
            r"CUDA error: invalid device ordinal",
            r"No GPU found\. A GPU is needed",
            r"No supported gpu backend found",
            r"make sure torch can access a CUDA device",
            r"0 active drivers \(\[\]\)",
            r"Cannot access accelerator device when none is available",
            r"Error\b.{0,120}only (?:available|supported|implemented|works?) (?:on|with|for) (?:CUDA|NVIDIA)\b",
            r"Error: CUDA_HOME (?:environment variable )?is not set",
            r"assert torch\.cuda\.is_available\(\)",
            r"\bno CUDA (?:GPUs?|devices?)\b",
            r"Expected a cuda device",
            r"cudaGetDeviceCount\(\)",
            r"requires? (?:an? )?NVIDIA\b",
            r"needs? (?:an? )?(?:NVIDIA|CUDA) GPU",
            r"(?:CUDAAccelerator|GPUAccelerator)\W? can(?: ?not|'t) run on your system",
            r"requires? (?:a )?CUDA (?:GPU|device|to be)",
            r"libcuda(?:rt)?\b.{0,60}(?:cannot open|No such file|not found)",
            r"But your machine only has: \[\]",
            r"torch\.cuda\.set_device\([^\n]{1,200}\n(?:[^\n]{0,40}[~^]\W{0,200}\n)?"
            r"[^\n]{0,40}Error: 'NoneType' object ",
        ),
        weak_patterns=(r"torch\._C\._cuda_init\(\)", r"module \W?torch\._C\W? has no attribute \W?_cuda\w+"),
        clues={"device:cuda": -0.1},
    ),
    DeviceRule(
        id="cuda_driver_old",
        title="The NVIDIA driver is too old for this torch",
        cause="torch, or the container it runs in, was built for a newer CUDA than the driver of this machine knows.",
        remedy=Remedy(
            text="Update the driver (`nvidia-smi` names the newest CUDA that it knows), or install a torch that was "
            "built for that CUDA (`pip install torch --index-url https://download.pytorch.org/whl/cu118`)."
        ),
        sources=("gpustack/gpustack#1254", "torch/csrc/cuda/Module.cpp"),
        patterns=(
            r"CUDA driver version is insufficient",
            r"The NVIDIA driver on your system is too old",
            r"forward compatibility was attempted on non supported HW",
            r"PTX was compiled with an unsupported toolchain",
        ),
        confidence=0.94,
        outranks=("cuda_hardcoded",),
    ),
    DeviceRule(
        id="cuda_arch",
        title="Nothing was compiled for this GPU",
        cause="The installed torch, or a package with kernels of its own (bitsandbytes, Triton), was built for other "
        "GPUs than this one: it is older, or newer, than those.",
        remedy=Remedy(
            text="Install a torch, or the package that is named, whose CUDA or ROCm version supports the GPU "
            "(`torch.cuda.get_arch_list()` lists what torch supports). An AMD GPU that is like a supported one may run "
            "as that one (HSA_OVERRIDE_GFX_VERSION)."
        ),
        sources=("c10/cuda/CUDAException.cpp",),
        patterns=(
            r"no kernel image is available for execution on the device",
            r"is not compatible with the current PyTorch installation",
            r"Error:? (?:CUDA error: )?named symbol not found",
            r"(?:CUDA|HIP) error: invalid device function",
            r"device kernel image is invalid",
        ),
        confidence=0.93,
        outranks=("cuda_hardcoded", "cuda_fault"),
    ),
    DeviceRule(
        id="cuda_fault",
        title="A kernel or library of the GPU failed",
        cause="A kernel read outside its memory, or cuDNN, cuBLAS or cuSOLVER could not work; they report late, so the "
        "line of the traceback may be innocent. Usual reasons: an index out of range, too little free memory, a matrix "
        "with NaN, or versions that do not fit.",
        remedy=Remedy(
            text="Start again with CUDA_LAUNCH_BLOCKING=1 (`mpstui restart RUN --env CUDA_LAUNCH_BLOCKING=1`; AMD: "
            "AMD_SERIALIZE_KERNEL=3) to see the right line, try a smaller batch, and see that no other program fills "
            "the GPU."
        ),
        sources=("seanie12/Info-HCVAE#7", "tinyvision/DAMO-YOLO#20"),
        patterns=(
            r"an illegal memory access was encountered",
            r"\b(?:cuda|hip)Error(?:IllegalAddress|LaunchFailure)\b",
            r"(?:CUDA|HIP) error: (?:misaligned address|unspecified launch failure|an illegal instruction)",
            r"Memory access fault by GPU node",
            r"CU(?:DNN|SOLVER)_STATUS_\w+",
            r"CUBLAS_STATUS_(?!ALLOC_FAILED)\w+",
            r"Unable to find a valid cuDNN algorithm",
            r"was unable to find an engine to execute this computation",
            r"cublas runtime error :",
            r"cuda runtime error \((?:77|700)\) :",
        ),
        confidence=0.8,
    ),
    Rule(
        id="bitsandbytes_gpu",
        title="bitsandbytes does not support this GPU",
        cause="Its 8-bit optimizers and models of 4 or 8 bits need kernels for the GPU, and the installed bitsandbytes "
        "has none: there are none for a Mac, or it was built for another CUDA.",
        remedy=Remedy(
            text="Use an optimizer of torch (adamw_torch for adamw_8bit, AdamW for AdamW8bit), without load_in_4bit "
            "or load_in_8bit; with an NVIDIA GPU install a newer bitsandbytes (`python -m bitsandbytes` tests it)."
        ),
        sources=("bmaltais/kohya_ss#2185", "bitsandbytes-foundation/bitsandbytes#1559", "bmaltais/kohya_ss#1445"),
        patterns=(
            r"name \W?str2optimizer\w+\W? is not defined",
            r"Error: \W?NoneType\W? object has no attribute \W?c(?:adam|quantize|dequantize|gemm|igemm|get_)\w+",
            r"CUDA Setup failed despite (?:GPU|CUDA) being available",
            r"Could not load bitsandbytes native library",
            r"supported by the bitsandbytes version you have installed",
            r"bitsandbytes \(<[\d.]+\) requires CUDA",
            r"Using `bitsandbytes` \d-bit quantization requires the latest version",
        ),
        confidence=0.94,
        outranks=("cuda_hardcoded", "library_missing", "packages_apart", "module_missing"),
    ),
    Rule(
        id="attention_kernel",
        title="An attention kernel does not run on this GPU",
        cause="FlashAttention needs an Ampere GPU or a newer one, and half precision; the script allows nothing else.",
        remedy=Remedy(
            text='Let torch choose: attn_implementation="sdpa" (transformers), or no `sdp_kernel` and no '
            '`sdpa_kernel` in the script; "eager" runs everywhere.'
        ),
        sources=("Dao-AILab/flash-attention#190", "aten/src/ATen/native/transformers/cuda/sdp_utils.cpp"),
        patterns=(
            r"FlashAttention only supports (?:Ampere|Turing|fp16|A\w+) ",
            r"No available kernel\.\s{0,20}Aborting execution",
            r"Flash ?Attention.{0,40}only support(?:s|ed).{0,40}(?:fp16|bf16|float16|bfloat16)",
        ),
        confidence=0.9,
    ),
    DeviceRule(
        id="cuda_oom",
        title="CUDA ran out of memory",
        cause="The model, its gradients, the optimizer state and the activations of this batch do not fit the GPU.",
        remedy=Remedy(
            text="Halve the batch size and double gradient accumulation (the effective batch stays the same), use "
            "gradient checkpointing or bf16.",
            args=SMALLER_BATCH,
        ),
        sources=("carolchenyx/MGFN.#35",),
        patterns=(
            r"(?:CUDA|HIP|XPU) out of memory",
            r"cuda\.OutOfMemoryError",
            r"CUDA error: out of memory",
            r"CU(?:BLAS|DNN)_STATUS_ALLOC_FAILED",
            r"CUDA_ERROR_OUT_OF_MEMORY",
            r"Cuda failure .{0,12}out of memory",
            r"cudaErrorMemoryAllocation",
            r"GPU \d+ has a total capac",
            # XLA (of JAX) and TensorFlow.
            r"RESOURCE_EXHAUSTED: Out of memory while trying to allocate",
            r"Allocator \(GPU_\d+_\w+\) ran out of memory",
            r"\bby allocator GPU_\d",
            # MXNet, Caffe and Paddle.
            r"cudaMalloc (?:retry )?failed: out of memory",
            r"Check failed: error == cudaSuccess \(2 vs\. 0\) {1,2}out of memory",
            r"Out of memory error on GPU \d",
            # The allocator asks NVML who uses the GPU's memory only once it is out of memory, and then trips over it.
            r"NVML_SUCCESS == .{1,160}INTERNAL ASSERT FAILED at \S{0,200}CUDACachingAllocator",
        ),
        numbers=(
            (
                r"Tried to allocate ([\d.]+ \w+)\. GPU \d+ has a total capacity of ([\d.]+ \w+) of which "
                r"([\d.]+ \w+) is free",
                "wanted {0} more: {2} of {1} were free",
            ),
            (r"Tried to allocate ([\d.]+ \w+)", "wanted {0} more"),
        ),
        confidence=0.94,
        outranks=("dl_worker_signal", "compile_mps"),
    ),
    DeviceRule(
        id="gpu_failed",
        title="The GPU or its driver failed",
        cause="The hardware reported an error that it could not correct, or the driver lost the device (after a sleep "
        "of the machine, or when it was updated while in use) or was not ready.",
        remedy=Remedy(
            text="Other trainings fail too until the driver is reloaded: `nvidia-smi` and `dmesg` say more, and "
            "restarting the machine helps. Until then use another GPU (CUDA_VISIBLE_DEVICES) or the CPU."
        ),
        sources=("docs.nvidia.com/deploy/xid-errors",),
        patterns=(
            r"(?:CUDA error|cuda runtime error \(\d+\)) ?: uncorrectable (?:NVLink|ECC) error",
            r"CUDA error: unknown error",
            r"CUDA unknown error - this may be due to",
            r"Error 802: system not yet initialized",
            r"GPU (?:is lost|has fallen off the bus)",
            r"NVML: Driver/library version mismatch",
        ),
        confidence=0.9,
        outranks=("cuda_hardcoded",),
    ),
    DeviceRule(
        id="cuda_assert",
        title="A CUDA kernel rejected its input",
        cause="A kernel checks what it is given, and something was outside its range: most often a label or an index. "
        "It reports late, so the line of the traceback may be innocent.",
        remedy=Remedy(
            text="Run it on the CPU (`mpstui restart RUN --device cpu`) or with CUDA_LAUNCH_BLOCKING=1, where it "
            "fails at the right line with its values; then check labels against the number of classes, tokens against "
            "the vocabulary."
        ),
        sources=("karpathy/nanoGPT#470", "WangYueFt/dcp#30"),
        patterns=(r"device-side assert triggered",),
        confidence=0.75,
    ),
)
