"""Mistakes in the training script itself, which no device or setting can avoid."""

from ..model import Remedy, Rule

RULES = (
    Rule(
        id="shape_bug",
        title="Tensor shapes do not fit",
        cause="The model or the data has shapes that cannot be combined; every device says the same.",
        remedy=Remedy(text="Compare the sizes in the message with the layer or the data named in the traceback."),
        sources=("CrossmodalGroup/HREM#3",),
        patterns=(
            r"shapes cannot be multiplied",
            r"invalid argument \d: sizes do not match",
            r"must match the size of tensor [ab]",
            r"The size of tensor a \(\d+\) must match",
            r"The expanded size of the tensor",
            r"shape \W{0,2}[\d,\s-]{1,80}\W{0,2} is invalid for input of size",
            r"to have \d+ channels, but got",
            r"expected \d+D or \d+D .{0,40}input",
            r"Sizes of tensors must match except in dimension",
            r"stack expects each tensor to be equal size",
            r"Given groups=\d+, weight of size",
            r"Expected input batch_size \(\d+\) to match target batch_size",
            r"Given normalized_shape",
            r"Dimension out of range \(expected to be in range",
            r"Calculated (?:padded input|output) size",
            r"Expected more than 1 value per channel when training",
            r"doesn't match the broadcast shape",
            r"target size .{1,60} that is different to the input size",
            r"Expected \d+-dimensional input for \d+-dimensional weight",
            r"Expected \d+D .{0,60}(?:tensor|input)",
            r"size mismatch, (?:m1|got)",
            r"Target size .{1,60} must be the same as input size",
            r"einsum\(\): ",
            r"could not be broadcast together",
            r"cannot be broadcast",
            r"expected sequence of length \d+ at dim",
            r"expecting embedding dimension of \d+, but got",
            r"Error: .{0,40}(?:size|shape|dim(?:ension)?|channel|feature)s? mismatch(?:ed)?\b(?! for)",
            r"expected (?:input|the) .{1,60} to (?:have|be) .{1,40}, but got",
            r"the number of sizes provided \(\d+\) must be greater or equal",
            r"batch[12] must be a 3D tensor",
            r"must have (?:the )?same reduction dim, but got",
            r"weight tensor should be defined either for all",
            r"number of dimensions in the tensor input does not match the length of the desired ordering",
            r"logits and labels must (?:be broadcastable|have the same)",
            r"\bShapes? .{1,60} and .{1,60} (?:are|is) incompatible",
            r"Incompatible shapes: \[",
            r"incompatible shapes for broadcasting",
            r"Input \d+ of layer .{1,60} is incompatible with the layer",
            r"requires contracting dimensions to have the same shape",
        ),
        confidence=0.86,
    ),
    Rule(
        id="view_layout",
        title="view() was called on a tensor that is not contiguous",
        cause="view() takes memory in its present order, and a permute, a transpose or a slice before it has left "
        "this tensor in another order; every device says the same.",
        remedy=Remedy(text="Write `.reshape(...)` for `.view(...)` in that line, or `.contiguous()` before it."),
        sources=("aten/src/ATen/TensorUtils.cpp",),
        patterns=(
            r"\.view\([^\n]{0,160}\n(?:[^\n]{0,40}[~^]{3}[^\n]{0,160}\n)?RuntimeError: view size is not compatible",
        ),
        confidence=0.95,
        outranks=("mps_view_backward", "shape_bug"),
    ),
    Rule(
        id="label_bug",
        title="A label is outside the number of classes",
        cause="The data holds a label that is negative or not below the model's number of classes.",
        remedy=Remedy(text="Set the number of classes to the largest label plus one, or renumber the labels from 0."),
        sources=("torch/nn/functional.py",),
        patterns=(
            r"Target -?\d+ is out of bounds",
            r"t >= 0 && t < n_classes",
            r"cur_target >= 0 && cur_target < n_classes",
            r"Class values must be (?:smaller|non-negative)",
            r"label value.{0,20} outside (?:the )?(?:valid )?range",
            r"all elements of target should be between 0 and 1",
        ),
        weak_patterns=(r"device-side assert triggered",),
        confidence=0.93,
        outranks=("silent_oob", "mps_index_assert", "cuda_assert"),
    ),
    Rule(
        id="setting_missing",
        title="The program reads a setting that nothing defines",
        cause="Its arguments or its configuration have no value of the name that the message gives: it is spelled "
        "differently, belongs to another version of the program, or is defined only for other choices.",
        remedy=Remedy(
            text="Define it where the others are (`add_argument`, the configuration file), or take the configuration "
            "that belongs to this version of the program."
        ),
        sources=("docs.python.org/3/library/argparse.html",),
        patterns=(r"AttributeError: \W?(?:Namespace|EasyDict|AttrDict|AttributeDict)\W? object has no attribute ",),
        numbers=((r"object has no attribute '([^']{1,80})'", "{0}"),),
        confidence=0.85,
    ),
    Rule(
        id="no_python",
        title="Python cannot read a line of code",
        cause="A line is not valid Python, or is that of another version: `print` without brackets is Python 2, "
        "`async` as a name is 3.6 or older, `match` is 3.10. Nothing of that file was run.",
        remedy=Remedy(
            text="Fix the line that is named, or start the script with the Python that it was written for; what was "
            "`async=True` of a tensor is `non_blocking=True` now."
        ),
        sources=("docs.python.org/3/whatsnew/3.7.html", "bearpaw/pytorch-classification"),
        patterns=(r"SyntaxError: (?!failed to compile)", r"IndentationError: ", r"TabError: "),
        confidence=0.9,
    ),
)
