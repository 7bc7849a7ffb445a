"""Number formats and mixed precision on MPS."""

from ..model import FULL_PRECISION, ArgumentChange, DeviceRule, Kind, Remedy, Rule

RULES = (
    DeviceRule(
        id="mps_float64",
        title="float64 on MPS",
        cause="Metal has no 64-bit floats: a NumPy array (float64 by default), a loss, or torch.set_default_dtype "
        "brought doubles into the training.",
        remedy=Remedy(
            text="Cast to float32 where the data enters (`.astype('float32')`, `.float()`), or run on CPU. "
            "PYTORCH_ENABLE_MPS_FALLBACK does not help.",
            device="cpu",
        ),
        sources=("thu-ml/tianshou#1237",),
        patterns=(
            r"Cannot convert an? MPS Tensor to (?:float64|complex128|double)",
            r"Cannot convert MPS Tensor to (?:float64|complex128|double)",
            r"Cannot convert an? (?:float64|complex128|double) Tensor to MPS",
            r"MPS (?:\w+ )?(?:does not|doesn't) (?:have )?support (?:for )?(?:float64|double|complex128)",
            r"Trying to convert (?:Complex)?Double to the MPS backend",
            r"(?:float64|complex128) .{0,40}not supported (?:on|by) (?:the )?(?:MPS|Metal)",
        ),
        confidence=0.95,
        outranks=("mps_op_limit", "dtype_mismatch"),
    ),
    DeviceRule(
        id="mps_bf16",
        title="bfloat16 is not available on MPS here",
        cause="bfloat16 tensors on MPS need macOS 14 or newer and torch 2.3 or newer.",
        remedy=Remedy(
            text="Train in fp32 (or fp16), or upgrade to macOS 14 and torch 2.6; bfloat16 also works on CPU.",
            args=FULL_PRECISION,
        ),
        sources=("pytorch/pytorch#78168",),
        patterns=(
            r"Trying to convert BFloat16 to the MPS backend",
            r"BFloat16 is not supported (?:on|by) (?:the )?MPS",
            r"MPS BFloat16 is only supported on",
            r"bfloat16 (?:is |are )?(?:only|not(?: yet)?) (?:supported|available) .{0,20}(?:MPS|mac ?OS)",
            r"bf16 (?:is |are )?(?:only|not(?: yet)?) (?:supported|available) .{0,20}(?:MPS|mac ?OS)",
            r"MPS .{0,40}(?:does not|doesn't) support (?:the )?(?:bf16|bfloat16)",
            r"unknown type name \W?bfloat",
            r"\w_mps\W{1,3}not implemented for \W?BFloat16",
        ),
        confidence=0.93,
        clues={"precision:bf16": 0.03},
        outranks=("mps_op_limit", "dtype_mismatch", "metal_shader_compile"),
    ),
    DeviceRule(
        id="mps_autocast",
        title="This torch has no autocast for MPS",
        cause="torch.autocast('mps') exists since torch 2.5 (bfloat16 since 2.6).",
        remedy=Remedy(text="Switch mixed precision off, or upgrade torch.", args=FULL_PRECISION),
        sources=("bytedance/USO#34",),
        patterns=(
            r"unsupported autocast device_type \W?mps",
            r"autocast device_type must be",
            r"autocast.{0,40} (?:not available|not supported|unsupported) .{0,20}mps",
        ),
        confidence=0.93,
        outranks=("mps_op_limit",),
    ),
    Rule(
        id="mps_autocast_warn",
        title="Autocast switched itself off",
        cause="This torch or macOS cannot autocast to the wanted type on MPS, so the training silently runs in fp32.",
        remedy=Remedy(
            text="Ask for float16, or upgrade torch to 2.6 and macOS to 14 for bfloat16 (torch 2.5 takes only "
            "float16, although its text says bfloat16)."
        ),
        sources=("torch/amp/autocast_mode.py 2.5 to 2.15",),
        patterns=(
            r"In MPS autocast, but the target dtype is not supported",
            r"MPS Autocast only supports dtypes? of",
        ),
        confidence=0.65,
        kind=Kind.SYMPTOM,
        outranks=("mps_op_limit",),
    ),
    Rule(
        id="amp_fp16_not_mps",
        title="This library refuses fp16 mixed precision without CUDA",
        cause="accelerate before 1.10 or so, and transformers' arguments, allow fp16 mixed precision on CUDA only.",
        remedy=Remedy(
            text="Switch fp16 off (--fp16 False, --mixed_precision no, no ACCELERATE_MIXED_PRECISION), or upgrade "
            "accelerate and torch (2.8).",
            env={"ACCELERATE_MIXED_PRECISION": None},
            args=(ArgumentChange("precision", "set", "fp32"), ArgumentChange("fp16", "remove")),
        ),
        sources=("liasece/sd-webui-train-tools#11",),
        patterns=(
            r"fp16 mixed precision requires a GPU",
            r"fp16 mixed precision requires",
            r"Mixed precision training with AMP or APEX .{0,160}can only be used on",
            r"FP16 half precision evaluation .{0,60}can only be used on",
            r"can't train in fp16 on (?:mps|this device|cpu)",
        ),
        outranks=("cuda_hardcoded",),
    ),
    DeviceRule(
        id="amp_bf16_unsupported",
        title="This library finds no bfloat16 support on the device",
        cause="accelerate or transformers asked the device whether it can do bfloat16, and it said no.",
        remedy=Remedy(
            text="Switch bf16 off (--mixed_precision no, --bf16 False), or run on CPU, where it is allowed.",
            env={"ACCELERATE_MIXED_PRECISION": None},
            args=(ArgumentChange("precision", "set", "fp32"), ArgumentChange("bf16", "remove")),
        ),
        sources=("kijai/ComfyUI-FluxTrainer#181",),
        patterns=(
            r"bf16 mixed precision requires",
            r"Your setup doesn't support bf16",
            r"(?:setup|device) (?:does not|doesn't) support bf16",
        ),
        outranks=("mps_bf16", "cuda_hardcoded"),
    ),
)
