"""torch.compile."""

from __future__ import annotations

from ..model import Rule
from ..model import Remedy
from ..model import EAGER

RULES = (
    Rule(
        id="compile_mps",
        title="torch.compile failed",
        cause="The compiler backend could not compile the model; on MPS it exists since torch 2.7 and is still "
        "called a prototype in 2.15.",
        remedy=Remedy(text="Start again with TORCH_COMPILE_DISABLE=1: eager mode, same device.", env=EAGER),
        restart_on_cpu_helps=True,
        sources=("pytorch/pytorch#158199", "pytorch/pytorch#125254", "pytorch/pytorch#150121"),
        patterns=(
            r"InductorError",
            r"compile_mps_shader",
            r"SyntaxError: failed to compile",
            r"Device mps not supported",
            r"BackendCompilerFailed",
            r"backend=\W?\w{1,30}\W? raised",
            r"LoweringException",
            r"torch\._inductor\.exc\.",
            r"torch\._dynamo\.exc\.\w+",
            r"(?:Dynamo|torch\.compile) is not supported on",
            r"CppCompileError",
        ),
        weak_patterns=(r"/torch/_inductor/codegen/\w+\.py", r"and TORCHDYNAMO_VERBOSE=1 for more"),
        confidence=0.91,
        outranks=("metal_shader_compile", "mps_op_limit", "dtype_mismatch"),
    ),
)
