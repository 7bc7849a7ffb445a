"""Assertions of Apple's MPS libraries: they abort the process, no Python code can catch them."""

from __future__ import annotations

from ..model import Rule
from ..model import Remedy
from ..model import FULL_PRECISION, SMALLER_BATCH

RULES = (
    Rule(
        id="mps_assert_ndarray",
        title="Metal Performance Shaders aborted the process",
        cause="A check inside Apple's MPS library failed (most often a tensor with more than 2^31 elements or a "
        "shape it cannot handle) and called abort(); Python cannot catch that.",
        remedy=Remedy(
            text="Make the tensors smaller (batch, sequence, image), upgrade macOS and torch, or run on CPU.",
            args=SMALLER_BATCH,
        ),
        restart_on_cpu_helps=True,
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
            r"Assertion failed: .{0,200}(?:mps|encodeNDArrayOp|NDArray|GPU\w{0,30}Ops?\.mm)",
            r"\[MPS\w{1,40} \w{1,40}[\w:]{0,120}\] ?(?:Error|failed)",
            r"\bMTLReportFailure\b",
            r", file \w*(?:GPU|MPS|mps)\w*\.mm?, line \d",
            r"destination kernel width and filter kernel width mismatch",
        ),
        weak_patterns=(r"failed assertion \W", r"/AppleInternal/Library/BuildRoots/"),
        confidence=0.92,
        clues={"device:cpu": -0.2},
        signals=(6, 5),
        codes=(),
        outranks=("segfault", "mps_op_limit"),
    ),
    Rule(
        id="mpsgraph_llvm",
        title="MPSGraph could not compile the computation",
        cause="Apple's graph compiler rejected an operation, usually because fp16 and fp32 operands were mixed, and "
        "aborted the process.",
        remedy=Remedy(
            text="Train in fp32 (no half(), no autocast), upgrade torch and macOS, or run on CPU.", args=FULL_PRECISION
        ),
        restart_on_cpu_helps=True,
        sources=("pytorch/pytorch#104642", "guoyww/AnimateDiff#173"),
        patterns=(
            r"LLVM ERROR:",
            # The same place in front of "warning:" is the neural engine declining; the GPU then does the work.
            r"\(mpsFileLoc\):.{0,400}error:",
            r"Failed to infer result type",
            r"error: \W(?:mps|anec|mpsx)\.\w+\W op",
            r"MLIR pass manager failed",
            r"op requires the same element type for all operands",
            r"\W?tensor<[\w?]{1,60}>\W? and \W?tensor<[\w?]{1,60}>\W? are not broadcast compatible",
        ),
        confidence=0.94,
        clues={"device:cpu": -0.2, "precision:fp16": 0.02},
        signals=(6,),
        codes=(),
        outranks=("mps_assert_ndarray", "segfault", "dtype_mismatch"),
    ),
)
