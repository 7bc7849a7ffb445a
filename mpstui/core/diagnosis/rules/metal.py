"""Metal below torch: command buffers, encoders, the shader compiler, and assertions of Apple's MPS libraries.

These lines come without a traceback, and an assertion aborts the process: no Python code can catch it.
"""

from functools import partial

from ..model import EAGER, FULL_PRECISION, NO_WORKERS, SMALLER_BATCH, DeviceRule, Remedy


def _without(words: str) -> str:
    """Return a pattern that matches evidence without any of these words."""
    return rf"\A(?![\s\S]{{0,2000}}?(?:{words}))"


_GARBAGE = " Where the program went on, trust nothing it computed since: before torch 2.15 that is garbage or NaN."

# Apple's code aborts with SIGABRT; none of it runs on the CPU.
_metal = partial(DeviceRule, signals=(6,), clues={"device:cpu": -0.2})
_gpu_fault = partial(_metal, confidence=0.93, outranks=("metal_cmdbuf", "nan_loss", "segfault"), survivable=True)

RULES = (
    _metal(
        id="metal_cmdbuf",
        title="A GPU command buffer failed",
        cause="The GPU gave up on a piece of work (internal error, time-out, page fault, or it fell with another "
        "program's error).",
        remedy=Remedy(
            text="Train with a smaller batch, or on CPU." + _GARBAGE,
            from_checkpoint="Resume from the last good checkpoint.",
            args=SMALLER_BATCH,
        ),
        sources=("pytorch/pytorch#125442", "pytorch/pytorch#125954", "pierotofy/OpenSplat#198"),
        patterns=(
            r"command buffer exited with error status",
            r"kIO(?:GPU|Accel)CommandBufferCallbackError",
            r"command buffer execution failed",
            r"\[METAL\] Command buffer ex",
            r"command buffer was aborted due to an error",
            r"Caused GPU (?:Timeout|Address Fault) Error",
            r"Discarded \(victim of GPU error/recovery\)",
            r"Ignored \(for causing prior/excessive GPU errors\)",
            r"MTLCommandBufferError\w*",
            r"Internal Error \(0000000e",
            r"check_error\(MTL(?:::)?CommandBuffer",
            r"command buffer \d+ failed with status \d",
        ),
        weak_patterns=(r"operations encoded on it may not have completed",),
        clues={"device:cpu": -0.2, "nonfinite_loss": 0.04},
        outranks=("nan_loss", "segfault"),
        survivable=True,
    ),
    _gpu_fault(
        id="metal_cmdbuf_oom",
        title="The GPU had too little memory for a command buffer",
        cause="The memory that one submission needs at once did not fit what Metal can make resident.",
        remedy=Remedy(
            text="Use a smaller batch or sequence, close other programs that use the GPU, or run on CPU." + _GARBAGE,
            args=SMALLER_BATCH,
        ),
        sources=("instructlab/instructlab#380",),
        patterns=(
            r"Insufficient Memory \(0000000\d",
            r"kIO(?:GPU|Accel)CommandBufferCallbackErrorOutOfMemory",
            r"MTLCommandBufferErrorOutOfMemory",
            r"command buffer .{0,80}Insufficient Memory",
        ),
        clues={"device:cpu": -0.2, "memory_near_limit": 0.03},
    ),
    _gpu_fault(
        id="metal_watchdog",
        title="macOS stopped the GPU work to keep the screen alive",
        cause="A GPU kernel ran so long that the display could not be drawn; macOS ends such work.",
        remedy=Remedy(
            text="Use a smaller batch or sequence, close programs that use the GPU, let the display sleep, or run on "
            "CPU." + _GARBAGE,
            args=SMALLER_BATCH,
        ),
        sources=("mrbizarro/Phosphene#61", "ml-explore/mlx#3267"),
        patterns=(
            r"Impacting Interactivity",
            r"CallbackErrorImpactingInteractivity",
            r"Metal watchdog",
            r"GPU watchdog",
        ),
    ),
    _gpu_fault(
        id="metal_hang",
        title="The GPU hung",
        cause="A kernel did not come back in time and the GPU was reset; often memory shortage or a far too long "
        "kernel in disguise.",
        remedy=Remedy(text="Use a smaller batch or sequence, or run on CPU." + _GARBAGE, args=SMALLER_BATCH),
        sources=("tinygrad/tinygrad#7172", "Blaizzy/mlx-vlm#1064"),
        patterns=(
            r"Caused GPU Hang",
            r"GPU Hang Error",
            r"kIO(?:GPU|Accel)CommandBufferCallbackErrorHang",
            r"GPU (?:has )?(?:hung|hang) (?:detected|error|and)",
        ),
    ),
    _metal(
        id="metal_encoder_thread",
        title="Two threads used MPS at the same time",
        cause="Metal work was encoded from two threads at once (a logging or evaluation thread that touches "
        "tensors, a custom Metal kernel); MPS in torch is not safe for that up to 2.15.",
        remedy=Remedy(
            text="Use MPS from one thread only, `.item()` and `.cpu()` included; or run on CPU.", device="cpu"
        ),
        sources=("huggingface/kernels#307", "pytorch/pytorch#197805"),
        patterns=(
            r"A command encoder is already encoding to this command buffer",
            r"command encoder is already encoding",
            r"tryCoalescingPrevious\w*Encoder",
            r"commit an already committed command buffer",
            r"(?:Completed|Scheduled) handler provided after (?:commit|schedule)",
            r"commit command buffer with uncommitted encoder",
            r"Command encoder released without endEncoding",
        ),
        confidence=0.95,
        codes=(),
        outranks=("mps_assert_ndarray", "metal_cmdbuf", "segfault"),
    ),
    DeviceRule(
        id="metal_xpc",
        title="The Metal compiler was lost",
        cause="The connection to Apple's shader compiler service broke; usually because Metal was used in a "
        "forked child, which cannot inherit it.",
        remedy=Remedy(
            text="Load data without workers (num_workers=0), or start them with spawn (transformers: "
            "--dataloader_multiprocessing_context spawn), never with fork once torch is loaded.",
            args=NO_WORKERS,
        ),
        sources=("huggingface/transformers#38819",),
        patterns=(
            r"XPC_ERROR_CONNECTION_(?:INVALID|INTERRUPTED)",
            r"Cannot re-initialize MPS in forked subprocess",
            r"Compiler encountered .{0,20}XPC",
            r"MTLCompilerService",
            r"compiler (?:service )?(?:is )?no longer (?:active|available)",
            r"Connection (?:init failed at lookup|invalid) .{0,60}(?:compiler|Metal)",
        ),
        confidence=0.94,
        signals=(6, 11),
        outranks=("mps_assert_ndarray", "metal_shader_compile", "metal_cmdbuf", "segfault", "compile_mps"),
    ),
    _metal(
        id="metal_shader_compile",
        title="A Metal shader does not compile",
        cause="A generated or hand-written Metal kernel is not valid for this Metal version.",
        remedy=Remedy(
            text="Run without torch.compile, upgrade torch and macOS, or run on CPU.",
            env=EAGER,
            defeated_by=(
                _without(r"program_source|metal library|MTLLibrary|generated|inductor"),
                "Nothing shows that torch.compile made this kernel",
            ),
            otherwise="Run it on the CPU, or with a newer macOS and torch.",
            otherwise_device="cpu",
        ),
        sources=("pytorch/pytorch#144648",),
        patterns=(
            r"Failed to create metal library",
            r"MTLLibraryErrorDomain",
            r"program_source:\d{1,6}:\d{1,6}: (?:fatal )?error",
            r"Failed to created? (?:a )?(?:metal |compute )?(?:function|pipeline|kernel)(?: state)?",
            r"(?:Unable|Failed) to (?:load|build|compile) (?:the )?(?:kernel|metal|metallib|shader)",
            r"AGXMetal\w{0,20} .{0,40}Code=\d",
        ),
        weak_patterns=(r"unknown type name \W\w+", r"\.metallib\b.{0,80}(?:not found|error|fail)"),
        confidence=0.88,
    ),
    _metal(
        id="mps_assert_ndarray",
        title="Metal Performance Shaders aborted the process",
        cause="A check inside Apple's MPS library failed (most often a tensor with more than 2^31 elements or a "
        "shape it cannot handle) and called abort(); Python cannot catch that.",
        remedy=Remedy(
            text="Make the tensors smaller (batch, sequence, image), upgrade macOS and torch, or run on CPU.",
            args=SMALLER_BATCH,
            defeated_by=(
                _without(r"> 2\*\*3|INT_MAX|too (?:large|big)|larger than|exceed"),
                "The size does not matter: a smaller batch fails the same check",
            ),
            otherwise="Run it on the CPU, or with a newer macOS and torch.",
            otherwise_device="cpu",
        ),
        sources=("FlagOpen/FlagEmbedding#536", "pytorch/pytorch#77886"),
        patterns=(
            r"failed assertion .{0,40}(?:MPS|NDArray)",
            r"/(?:MPSCore|MPSNDArray|MPSGraph|MetalPerformanceShaders)\S{0,200} failed assertion",
            r"/AppleInternal/Library/BuildRoots/\S{0,300} failed assertion",
            r"product of dimension sizes > 2\*\*3[12]",
            r"total bytes of NDArray > 2\*\*3[12]",
            r"MPS\w{0,20}NDArray\w{0,20} .{0,80}Error:",
            r"MPSKernel MTLComputePipelineStateCache unable to load function",
            r"NDArray dimension length > INT_MAX",
            r"Assertion failed: .{0,200}(?:encodeNDArrayOp|NDArray|GPU\w{0,30}Ops?\.mm)",
            r"\[MPS\w{1,40} \w{1,40}[\w:]{0,120}\] ?(?:Error|failed)",
            r"\bMTLReportFailure\b",
            r", file (?:GPU|MPS|CommonRuntime)\w*\.(?:mm?|h), line \d",
            r"destination kernel width and filter kernel width mismatch",
        ),
        weak_patterns=(r"failed assertion \W", r"/AppleInternal/Library/BuildRoots/"),
        confidence=0.92,
        signals=(6, 5),
        codes=(),
        outranks=("segfault", "mps_op_limit"),
    ),
    _metal(
        id="mpsgraph_llvm",
        title="MPSGraph could not compile the computation",
        cause="Apple's graph compiler rejected an operation, usually because fp16 and fp32 operands were mixed, and "
        "aborted the process.",
        remedy=Remedy(
            text="Train in fp32 (no half(), no autocast), upgrade torch and macOS, or run on CPU.",
            args=FULL_PRECISION,
            defeated_by=(
                r"\A(?=[\s\S]{0,2000}?(?:tensor<|memref<|broadcast|dimensions|invalid shape))"
                + _without(r"x?b?f16\b|element type"),
                "It names shapes or types and no half precision, so that fp32 changes nothing",
            ),
            otherwise="Run it on the CPU, or with a newer macOS and torch.",
            otherwise_device="cpu",
        ),
        sources=("pytorch/pytorch#104642", "guoyww/AnimateDiff#173"),
        patterns=(
            r"LLVM ERROR:",
            # Followed by "warning:", it only means that the neural engine declined; the GPU then does the work.
            r"\(mpsFileLoc\):.{0,400}error:",
            r"Failed to infer result type",
            r"error: \W(?:mps|anec|mpsx)\.\w+\W op",
            r"MLIR pass manager failed",
            r"op requires the same element type for all operands",
            r"\W?tensor<[\w?]{1,60}>\W? and \W?tensor<[\w?]{1,60}>\W? are not broadcast compatible",
        ),
        confidence=0.94,
        clues={"device:cpu": -0.2, "precision:fp16": 0.02},
        codes=(),
        outranks=("mps_assert_ndarray", "segfault", "dtype_mismatch"),
    ),
)
