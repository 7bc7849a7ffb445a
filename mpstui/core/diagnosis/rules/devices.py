"""Tensors on the wrong device or of the wrong type, and pinned memory."""

from ..model import ArgumentChange, DeviceRule, Kind, Remedy, Rule

_NO_PINNING = (ArgumentChange("pin_memory", "remove"),)

RULES = (
    DeviceRule(
        id="device_mismatch",
        title="Tensors are on different devices",
        cause="Part of the model or of the batch stayed on another device (the script forgot a `.to(device)`).",
        remedy=Remedy(
            text="Move the model and every tensor of the batch to the same device; on CPU everything is in one place.",
            device="cpu",
        ),
        sources=("YaoYinYing/RFdiffusion#5", "pytorch/ignite#2977"),
        patterns=(
            r"Placeholder storage has not been allocated on MPS",
            r"Input type \(MPS\w+\) and (?:weight|bias) type \(torch\.(?:cuda\.)?\w+\)",
            r"Input type \(torch\.(?:cuda\.)?\w+\) and (?:weight|bias) type \(MPS\w+\)",
            r"Input type \(torch\.cuda\.\w+\) and (?:weight|bias) type \(torch\.[A-Z]\w+\)",
            r"Input type \(torch\.[A-Z]\w+\) and (?:weight|bias) type \(torch\.cuda\.\w+\)",
            r"Expected all tensors to be on the same device",
            r"at least two devices, \w",
            r"(?:must|should|expected to) (?:all )?be on (?:the )?same (?:device|backend|GPU)",
            r"Device should be \w+, got \w+",
            r"not at the same device, found",
            r"tensor on device \w+(?::\d+)? is not on the expected device",
            r"should be either on (?:\w+ or on )?the same device as the indexed tensor",
            r"Passed CPU tensor to MPS op",
            r"(?:Tensor|argument) .{0,60}is on cpu,? but .{0,40}(?:GPU|mps|cuda)",
            r"on (?:the )?cpu,? but expected (?:it |them )?(?:to be )?on (?:the )?(?:mps|GPU|cuda)",
            r"can't convert (?:mps|cuda)(?::\d+)? device type tensor to numpy",
            r"self must be on the same device",
            r"is on (?:the )?(?:cpu|mps),? .{0,60}is on (?:the )?(?:mps|cpu)\b",
            r"should be on (?:mps|cuda|cpu)(?::\d+)?,? but (?:found|got|is)",
            r"expected (?:device )?\W?mps(?::\d+)?\W? but (?:found|got) \W?(?:device )?\W?cpu",
            r"device of .{0,40}does not match",
            r"Unhandled FakeTensor Device Propagation",
            r"Mismatched Tensor types in NNPack",
        ),
        confidence=0.92,
        outranks=("mps_op_limit",),
    ),
    DeviceRule(
        id="device_module",
        title="The code asks this device for what only CUDA has",
        cause="A library, or the script, takes every accelerator for CUDA: `torch.mps` has no devices to choose from, "
        "no streams and no peak of its memory.",
        remedy=Remedy(
            text="Run it on the CPU, or with a newer version of the library that the traceback names; in code of your "
            "own call it where the device is CUDA alone.",
            device="cpu",
        ),
        sources=("meta-pytorch/torchtune#2486", "pytorch/pytorch#150091", "pytorch/pytorch#127676"),
        patterns=(
            r"module \W?torch\.mps\W? has no attribute \W?(?:set_|current_|get_)?device\w*",
            r"module \W?torch\.mps\W? has no attribute \W?(?:\w*stream|Stream|memory_\w+|max_memory\w+|reset_\w+)",
            r"module \W?torch\.mps\W? has no attribute \W?(?:is_initialized|manual_seed_all|\w*rng_state_all)\b",
        ),
        confidence=0.94,
        outranks=("torch_old_api",),
    ),
    Rule(
        id="device_kind",
        title="A device is named where only its kind is understood",
        cause="The code looks up `torch.<kind>` (torch.cuda, torch.xpu) by the name that it was given, finds none, "
        "and continues with None: the name has a number ('cuda:0'), or this torch has no such part.",
        remedy=Remedy(
            text="Give the kind alone ('cuda', not 'cuda:0') to what the traceback names, such as a device mesh, and "
            "choose the GPU with `torch.cuda.set_device` before."
        ),
        sources=("pytorch/pytorch#124327",),
        patterns=(r"NoneType\W? object has no attribute \W?(?:set_device|current_device|device_count|get_device_\w+)",),
        confidence=0.85,
    ),
    Rule(
        id="dtype_mismatch",
        title="Tensors have different types",
        cause="The model and its input have different number formats (half against float, integers against floats).",
        remedy=Remedy(
            text="Use one precision throughout: fp32, or autocast instead of `.half()`; cast integer inputs with "
            "`.float()`.",
            args=(ArgumentChange("precision", "set", "fp32"),),
            defeated_by=(
                r"(?i)\A(?![\s\S]{0,2000}?(?:half|float16))",
                "No half precision is involved, so the precision of the training makes no difference",
            ),
            otherwise="Cast what goes into the line that is named: `.float()` for inputs, `.long()` for labels.",
        ),
        sources=("pytorch/pytorch#88978",),
        patterns=(
            r"Input type \(MPS\w+\) and (?:weight|bias) type \(MPS\w+\)",
            r"Input type \(torch\.cuda\.\w+\) and (?:weight|bias) type \(torch\.cuda\.\w+\)",
            r"Input type \(torch\.[A-Z]\w+\) and (?:weight|bias) type \(torch\.[A-Z]\w+\)",
            r"Input type \((?:c10::)?\w+\) and (?:weight|bias) type \((?:c10::\w+|float|double|long \w+|\w*char)\)",
            r"expected scalar type \w+ but (?:found|got)",
            r"expected (?:m1 and m2|mat1 and mat2|.{1,40}) to have the same dtype",
            r"must have the same dtype",
            r"flatten tensors with uniform dtype but got",
            r"Found dtype \w+ but expected",
            r"result type \w+ can't be cast to",
            r"to have (?:one of the following )?scalar types?:? ",
            r"expected dtype \w+ for .{0,40}but got dtype",
            r"(?<!_mps\W )not implemented for \W(?:Half|BFloat16|Long|Int|Byte|Char|Bool)\W",
        ),
        confidence=0.88,
    ),
    DeviceRule(
        id="generator_device",
        title="A random generator lives on another device than its tensors",
        cause="A generator of one device was used to make or shuffle tensors of another, usually because of "
        "torch.set_default_device('mps') with a shuffling DataLoader.",
        remedy=Remedy(
            text="Drop torch.set_default_device, or pass generator=torch.Generator(device=...); or run on CPU.",
            device="cpu",
        ),
        sources=("pytorch/pytorch#110820",),
        patterns=(
            r"Expected an? \W?\w+(?::\d+)?\W? (?:generator )?device(?: type)?(?: for generator)? but found",
            r"Device type \w+ is not supported for torch\.Generator",
            r"Cannot generate an? \w+(?::\d+)? tensor from a generator of type",
            r"generator (?:device|of type) .{0,40}(?:does not match|but (?:found|got))",
        ),
        confidence=0.94,
        outranks=("device_mismatch", "mps_op_limit"),
    ),
    Rule(
        id="pin_memory_mps",
        title="Pinned memory does not work on MPS",
        cause="The script calls pin_memory() on a tensor itself; with an MPS accelerator present that fails, even "
        "in a run on CPU.",
        remedy=Remedy(
            text="Remove the pin_memory() calls or pass pin_memory=False; it gains nothing on a Mac.", args=_NO_PINNING
        ),
        sources=("pytorch/pytorch#86060",),
        patterns=(
            r"Attempted to set the storage of a tensor on device",
            r"to a storage on different device \W?mps",
            r"cannot pin \W?torch\.\S{1,40} only dense CPU tensors can be pinned",
            r"Need to provide pin_memory allocator",
            r"aten::_?(?:pin_memory|is_pinned)\W",
            r"pin_memory.{0,60}(?:Error|failed|not implemented).{0,40}mps",
        ),
        confidence=0.92,
        outranks=("device_mismatch", "mps_op_limit", "mps_op_missing"),
    ),
    Rule(
        id="pin_memory_warn",
        title="pin_memory is ignored on MPS",
        cause="Since torch 2.7 the DataLoader says that it ignores pin_memory on MPS (it always did). Harmless.",
        remedy=Remedy(text="Nothing to do; pin_memory=False silences it.", args=_NO_PINNING),
        sources=("torch/utils/data/dataloader.py 2.7 to 2.15",),
        patterns=(
            r"pin_memory\W? argument is set as true",
            r"device pinned memory won't be",
        ),
        confidence=0.6,
        kind=Kind.SYMPTOM,
        outranks=("mps_op_limit",),
    ),
    Rule(
        id="fused_optimizer",
        title="The optimizer has no fused version for this device",
        cause="`fused=True` takes kernels that a torch has for some devices alone: CUDA first, the CPU since 2.4, MPS "
        "since 2.5.",
        remedy=Remedy(
            text='Leave `fused=True` away (transformers: optim="adamw_torch" in place of adamw_torch_fused), or '
            "upgrade torch."
        ),
        sources=("jbarnes850/deepseek-r1-finetune#1", "torch/optim/adamw.py"),
        patterns=(r"`fused=True` requires all the params to be floating point Tensors of supported devices",),
        confidence=0.95,
    ),
)
