"""Operators that a device lacks, and torch.compile."""

from ..model import EAGER, EAGER_GRAPH, DeviceRule, Kind, Remedy, Rule

RULES = (
    DeviceRule(
        id="mps_op_missing",
        title="An operator has no MPS version",
        cause="The named operator has no MPS kernel in this version of torch.",
        remedy=Remedy(
            text="Start again with PYTORCH_ENABLE_MPS_FALLBACK=1: that one operator then runs on CPU (slower, with "
            "a copy there and back). It must be set before Python starts. A newer torch may have the kernel.",
            env={"PYTORCH_ENABLE_MPS_FALLBACK": "1"},
            defeated_by=(
                r"SparseMPS|convolution_overrideable",
                "PYTORCH_ENABLE_MPS_FALLBACK=1 does not reach sparse tensors, nor what torch answers itself",
            ),
            otherwise="Run it on the CPU, or with a newer torch that has the kernel.",
            otherwise_device="cpu",
        ),
        sources=("pytorch/pytorch#77764", "pytorch/pytorch#141287", "pytorch/pytorch#77754"),
        patterns=(
            r"operator \W?[\w:.]+\W? is not current(?:ly)? implemented for the MPS",
            r"is not current(?:ly)? (?:implemented|supported) (?:for|on) the MPS device",
            r"Could not run \W?[\w:.]+\W? with arguments from the \W?(?:Sparse\w*)?MPS\W? backend",
            r"is not implemented for the MPS (?:device|backend)",
            r"convolution_overrideable not implemented",
        ),
        weak_patterns=(r"set the environment variable \W?PYTORCH_ENABLE_MPS_FALLBACK=1",),
        confidence=0.92,
        clues={"fallback_on": -0.1},
        outranks=("mps_op_limit",),
    ),
    DeviceRule(
        id="mps_op_limit",
        title="The MPS version of an operator does not cover this case",
        cause="The operator exists on MPS but refuses this shape, data type or option (a limit of Metal, of this "
        "macOS or of this torch); PYTORCH_ENABLE_MPS_FALLBACK does not reach such checks.",
        remedy=Remedy(
            text="Upgrade macOS and torch, change the shape it complains about, or run on CPU.", device="cpu"
        ),
        sources=("pytorch/pytorch#144445", "pytorch/pytorch#97109", "pytorch/pytorch#83386"),
        patterns=(
            r"channels > 65536 not supported",
            r"Adaptive pool MPS",
            r"MPS\w{0,8} does not support tensor dims larger than",
            r"not (?:yet |currently |fully )?(?:supported|implemented) (?:on|at|by|for|in|with) "
            r"(?:the )?\W?MPS\b(?! (?:now|backend and|accelerator))",
            r"MPS (?:backend |device |framework )?(?:does not|doesn't) (?:yet |currently )?(?:support|implement)",
            r"(?:does not|doesn't|doesn not) support .{1,80} (?:on|for|in) (?:the )?MPS",
            r"only (?:be )?supported (?:on|in|for) (?:the )?MPS",
            r"MPS (?:backend )?(?:only|currently) supports?",
            r"only (?:be )?supported (?:on|for|natively on|starting from) mac ?OS ?\d",
            r"unsupported .{0,60} (?:on|for|in) (?:the )?MPS",
            r"MPS (?:tensors?|inputs?|device) (?:is|are) not supported",
            r"is (?:unsupported|not natively supported|not available) (?:on|for|in) (?:the )?MPS",
            r"Unsupported type byte size",
            r"MPS (?:device |backend )?only supports? ",
            r"_mps\W{1,2} not implemented for \W\w+",
            r"Trying to convert \w+ to the MPS backend but",
            r"to the MPS backend but it does not have support for that dtype",
            r"MPS: .{0,80}(?:not supported|unsupported|must be|expected)",
            r"MPS\b.{0,80} supported natively (?:on|starting from) mac ?OS ?\d",
            r"derivative for aten::(?:linear_backward|\w*mps\w*) is not implemented",
        ),
        confidence=0.78,
        outranks=("dtype_mismatch",),
    ),
    DeviceRule(
        id="mps_view_backward",
        title="An MPS backward pass failed on a non-contiguous tensor",
        cause="Tensors that are not contiguous (channels_last, permuted) break some MPS backward passes, above all "
        "in torch 2.5.",
        remedy=Remedy(
            text="Upgrade torch to 2.6 or newer, add `.contiguous()` before the view, or run on CPU.", device="cpu"
        ),
        sources=("thuml/Time-Series-Library#625", "ultralytics/ultralytics#18184"),
        patterns=(
            r"view size is not compatible with input tensor",
            r"dimension spans across two contiguous subspaces",
        ),
        confidence=0.88,
        clues={"device:cpu": -0.1},
        outranks=("shape_bug",),
    ),
    Rule(
        id="mps_fallback_warn",
        title="An operator runs on the CPU instead of the GPU",
        cause="PYTORCH_ENABLE_MPS_FALLBACK=1, or torch itself, moved an operator without MPS version to the CPU; the "
        "training continues, but every such call waits for the GPU and copies. Only the first such operator is ever "
        "named.",
        remedy=Remedy(
            text="Nothing to do. PYTORCH_MPS_LOG_PROFILE_INFO=64 prints at exit how often each operator fell back.",
        ),
        sources=("pytorch/pytorch#106594",),
        patterns=(
            r"on the MPS backend and will fall back to run on the CPU",
            r"(?:\bop\b|operator|aten::).{0,120}(?:falls?|falling) back (?:on|to) (?:run on )?(?:the )?CPU",
            r"MPS: no support for int64",
        ),
        confidence=0.6,
        kind=Kind.SYMPTOM,
    ),
    DeviceRule(
        id="compile_mps",
        title="torch.compile failed",
        cause="The compiler could not translate the model. On MPS it exists since torch 2.7 and is still called a "
        "prototype in 2.15.",
        remedy=Remedy(text="Start again with TORCH_COMPILE_DISABLE=1: eager mode, same device.", env=EAGER),
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
            r"torch\._dynamo\.exc\.(?!TorchRuntimeError\b)\w+",
            r"(?:Dynamo|torch\.compile) is not supported on",
            r"CppCompileError",
        ),
        # What fails on fake tensors most often fails without the compiler, too.
        weak_patterns=(
            r"/torch/_inductor/codegen/\w+\.py",
            r"and TORCHDYNAMO_VERBOSE=1 for more",
            r"torch\._dynamo\.exc\.TorchRuntimeError",
        ),
        confidence=0.91,
        outranks=("metal_shader_compile", "mps_op_limit", "dtype_mismatch"),
    ),
    Rule(
        id="compile_failed",
        title="torch.compile found no working C or C++ compiler",
        cause="What torch.compile writes needs a compiler that works, and Python's headers: C++ for the CPU, a bit of "
        "C for each kernel of a GPU (Triton).",
        remedy=Remedy(text="Start again with TORCH_COMPILE_DISABLE=1: eager mode, same device.", env=EAGER),
        sources=("torch/_inductor/cpp_builder.py",),
        patterns=(
            r"InvalidCxxCompiler",
            r"No working C\+\+ compiler found",
            r"CppCompileError: C\+\+ compile error",
            r"fatal error: \W?Python\.h\W? ?:? No such file or directory",
            r"Failed to find C compiler\. Please specify via CC",
            r"Command '\['[^']{0,80}(?:gcc|cc|clang)', [^\]]{1,600}-lcuda",
        ),
        outranks=("compile_mps",),
    ),
    Rule(
        id="compile_fullgraph",
        title="torch.compile(fullgraph=True) cannot be switched off this way",
        cause="TORCH_COMPILE_DISABLE=1 leaves nothing compiled, and newer torch takes that for an error where the "
        "script asks for one whole graph.",
        remedy=Remedy(
            text="Start again without TORCH_COMPILE_DISABLE and with TORCH_COMPILE_OVERRIDE_BACKENDS='>=0:eager': the "
            "graph is made and run without a compiler.",
            env=EAGER_GRAPH,
        ),
        sources=("torch/_dynamo/eval_frame.py",),
        patterns=(r"fullgraph=True found no compiled frames", r"fullgraph=True but no compiled frames"),
        confidence=0.96,
        outranks=("compile_mps", "compile_failed"),
    ),
)
