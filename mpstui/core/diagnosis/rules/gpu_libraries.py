"""Libraries that were installed without their GPU part, and Triton's kernels that a GPU cannot hold."""

from ..model import Remedy, Rule

RULES = (
    Rule(
        id="library_without_gpu",
        title="A library was installed without GPU support",
        cause="The program asks a library for the GPU, and the installed build of that library has only its CPU part.",
        remedy=Remedy(
            text="Install the build with GPU support (`jax[cuda12]`, `faiss-gpu`, LightGBM built with its GPU option, "
            "XGBoost's wheel for Linux or Windows), or have the program ask that library for the CPU."
        ),
        sources=("jax/_src/xla_bridge.py", "xgboost/src/common/common.h", "lightgbm/src/treelearner/tree_learner.cpp"),
        patterns=(
            r"Unknown backend:? \W?(?:gpu|cuda|rocm|metal)\W? requested, but no platforms",
            r"Error: Unable to initialize backend \W?(?:gpu|cuda|rocm|metal)\W?: "
            r"Backend \W?\w+\W? is not in the list of known backends",
            r"XGBoost version not compiled with GPU support",
            r"(?:GPU|CUDA) Tree Learner was not enabled in this build",
            r"module \W?faiss\W? has no attribute \W?(?:StandardGpuResources|GpuIndex\w*|index_cpu_to_\w*gpu\w*)",
        ),
        confidence=0.93,
    ),
    Rule(
        id="kernel_too_large",
        title="A Triton kernel needs more than this GPU has",
        cause="A kernel was written or tuned for a GPU with more shared memory or registers in each block than this "
        "one has. It is not the GPU's main memory that is short, so a smaller batch rarely helps.",
        remedy=Remedy(
            text="Choose smaller blocks or fewer stages (`num_stages`) for the kernel, or a version of its library "
            "that knows this GPU; a kernel of torch.compile is not needed with TORCH_COMPILE_DISABLE=1."
        ),
        sources=("triton/runtime/errors.py",),
        # The tuner of torch.compile prints the same about a choice that it then ignores.
        patterns=(
            r"out of resources?: (?:shared memory|threads|registers|tensor memory)(?!.{0,200}\s?Ignoring this choice)",
        ),
        numbers=((r"Required: (\d+), Hardware limit: (\d+)", "wants {0}, the GPU has {1}"),),
        confidence=0.95,
        outranks=("cuda_oom", "compile_mps"),
    ),
)
