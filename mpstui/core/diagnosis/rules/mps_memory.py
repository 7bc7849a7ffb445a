"""Memory on MPS: the allocator's cap, its two watermarks, the maximum size of a buffer."""

from ..model import DEFAULT_WATERMARKS, SMALLER_BATCH, DeviceRule, Remedy

RULES = (
    DeviceRule(
        id="mps_oom",
        title="MPS ran out of memory",
        cause="The process reached the MPS allocator's cap (1.7 times Metal's recommended working set by default); "
        "'other allocations' is memory that Metal and MPSGraph hold outside torch's own cache.",
        remedy=Remedy(
            text="Halve the batch size and double gradient accumulation (the effective batch stays the same), use "
            "gradient checkpointing, and keep the cap: PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 turns this error "
            "into swapping and a kill by macOS.",
            args=SMALLER_BATCH,
        ),
        sources=("pytorch/pytorch#130112", "gensyn-ai/rl-swarm#355", "gensyn-ai/rl-swarm#59"),
        patterns=(
            r"MPS backend out of memory",
            r"\(MPS allocated: [\d.]+ \w+",
            r"MPS\w* (?:ran )?out of memory",
        ),
        weak_patterns=(r"Tried to allocate [\d.]+ \w+ on (?:private|shared) pool",),
        numbers=(
            (
                r"MPS allocated: ([\d.]+ \w+), other allocations: ([\d.]+ \w+), max allowed: ([\d.]+ \w+)\)\. "
                r"Tried to allocate ([\d.]+ \w+)",
                "wanted {3} more: {0} + {1} of {2} were in use",
            ),
            (r"Tried to allocate ([\d.]+ \w+)", "wanted {0} more"),
        ),
        confidence=0.93,
        clues={"memory_near_limit": 0.03, "memory_growing": 0.02, "device:cpu": -0.2},
        outranks=("weights_only", "killed_os", "dl_worker_signal", "mps_op_limit", "compile_mps"),
    ),
    DeviceRule(
        id="mps_buffer_too_big",
        title="One tensor is too big for a Metal buffer",
        cause="A single tensor is larger than the longest buffer this GPU allows (MTLDevice.maxBufferLength); the "
        "watermark variables do not change that.",
        remedy=Remedy(
            text="Make that tensor smaller: shorter sequences, smaller images or batch, chunked attention; or run "
            "on CPU.",
            args=SMALLER_BATCH,
        ),
        sources=("jwohlwend/boltz#14",),
        patterns=(
            r"Invalid buffer size: [\d.]+",
            r"greater than the maximum allowed buffer size",
            r"newBufferWith.{0,200}must not exceed",
            r"exceeds? (?:the )?(?:Metal|MTL)?\w* ?(?:max(?:imum)? ?)buffer ?(?:length|size)",
        ),
        clues={"device:cpu": -0.2},
        signals=(6,),
        outranks=("mps_assert_ndarray",),
    ),
    DeviceRule(
        id="mps_watermark_invalid",
        title="The MPS watermark ratios contradict each other",
        cause="The soft limit (PYTORCH_MPS_LOW_WATERMARK_RATIO, 1.4 by default) must not lie above the cap "
        "(PYTORCH_MPS_HIGH_WATERMARK_RATIO), and neither may lie outside 0 to 2.",
        remedy=Remedy(
            text="Unset both variables, or always set both with LOW not above HIGH.",
            env=DEFAULT_WATERMARKS,
        ),
        sources=("pytorch/pytorch#91268", "kohya-ss/sd-scripts#603"),
        patterns=(r"invalid (?:low|high) watermark ratio",),
        confidence=0.97,
        outranks=("mps_oom",),
    ),
    DeviceRule(
        id="mps_internal_assert",
        title="An internal check of torch's MPS backend failed",
        cause="torch's MPS backend tripped one of its own checks: the allocator's garbage collection in 1.13.1 is the "
        "best known, another refuses tensors without any element.",
        remedy=Remedy(
            text="Upgrade torch; until then run on CPU.",
            device="cpu",
        ),
        sources=("pytorch/pytorch#92208",),
        patterns=(
            r"INTERNAL ASSERT FAILED at \S{0,200}(?:/mps/|MPS)\S{0,80}",
            r"m_(?:low|high)_watermark_limit INTERNAL ASSERT FAILED",
            r"mps\S{0,80} INTERNAL ASSERT FAILED",
            r"Placeholder tensor is empty",
        ),
        weak_patterns=(r"INTERNAL ASSERT FAILED at \W?/Users/",),  # the path on which torch is built for Macs
        outranks=("mps_oom",),
    ),
)
