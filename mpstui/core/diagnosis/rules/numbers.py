"""Losses that are NaN or infinite, and indices outside their tensor."""

from ..model import FULL_PRECISION, Remedy, Rule

_NONFINITE = r"\b(?:nan|-?inf(?:inite|inity)?|non-?finite|not finite)\b"
_LOSS_IS = r"\bloss (?:value )?(?:is|was|are|became|becomes|has become|turned|went|goes to|->|=>) (?:now |to |a )?"

RULES = (
    Rule(
        id="nan_loss",
        title="The loss is NaN or infinite",
        cause="NaN or infinity entered the training: too high a learning rate, fp16 overflow, bad data, or on MPS "
        "an operator that computes wrongly or a failed GPU command.",
        remedy=Remedy(
            from_checkpoint="Go back to the last good checkpoint.",
            text="Train in fp32 or bf16 where it was fp16, and lower the learning rate; on MPS compare a few steps "
            "with the CPU's and drop non_blocking=True copies.",
            args=FULL_PRECISION,
        ),
        sources=("princeton-nlp/TransformerPrograms#6", "pytorch/pytorch#139550", "pytorch/pytorch#84936"),
        patterns=(
            _LOSS_IS + _NONFINITE,
            r"\bloss\b.{0,60} (?:is|was|are|became) " + _NONFINITE,
            _NONFINITE + r"(?: (?:or|and) \w+)? (?:train(?:ing)? )?loss",
            r"\bgrad(?:ient)?s?(?: norm)? (?:is|are|became) (?:now )?" + _NONFINITE,
            _NONFINITE + r" grad(?:ient)?s?(?: norm)?\b.{0,120}\b(?:stop|abort|exit|terminat|halt)",
            r"is non-finite, so it cannot be clipped",
            r"The total norm of order .{1,20} for gradients from",
            r"TerminateOnNan: Output",
            r"\[nan, nan, nan",
            r"`nan` or element < 0",
            r"loss (?:is probably exploding|exploded|has exploded)",
            r"loss scale (?:reached|already at minimum|has reached its minimum)",
            _NONFINITE + r" values? (?:found |detected )?(?:in|for) (?:the )?\w{0,20} ?loss",
            r"returned nan values in its \d+th output",
            r"probability tensor contains either .{0,20}(?:inf|nan)",
            r"normal expects all elements of std >= 0",
            r"Input contains (?:NaN|infinity)",
            # Every cuSOLVER failure "may appear if the input matrix contains NaN".
            r"(?<!if the input matrix )(?:found|detected|encountered|contains?|got|produced|has) (?:an? )?nans?\b",
            r"(?:found|detected|encountered|contains?|got|produced|has) (?:an? )?(?:\+|-)?inf(?:s|inity)?\b",
            r"(?:found|detected|encountered|contains?|got|produced|has) (?:an? )?non-?finite\b",
            r"\bnans? (?:or inf(?:inity)?s? )?(?:value )?(?:was |were |is )?(?:found|detected|encountered)",
            r"found invalid values: .{0,40}\bnan",
            r"parameter \w+ has invalid values",
            r"\bloss (?:or its gradient )?became non-finite",
            r"(?:training|model) diverged",
            r"invalid loss, (?:stopping|terminating|aborting)",
        ),
        weak_patterns=(
            r"\b\w*loss\w*\W{0,4}(?:[=:]\W{0,3}|\b)(?:tensor\()?nan\b",
            # The best loss so far starts at infinity.
            r"(?<!best )(?<!min )\b(?!\w*best|\w*min)\w*loss\w*\W{0,4}(?:[=:]\W{0,3}|\b)(?:tensor\()?-?inf\b",
            r"grad_?norm\W{1,5}(?:nan|inf)\b",
            r"\bnan\b.{0,10}\bloss",
            # In a list, it may be the score of a class that does not occur.
            r"(?<![,\[] )(?<!\[)tensor\((?:nan|-?inf)\b",
        ),
        confidence=0.88,
        clues={"nonfinite_loss": 0.06, "precision:fp16": 0.03},
        codes=(1, 0),
        in_warnings=True,
        passes=True,
    ),
    Rule(
        id="probability_range",
        title="A loss of probabilities was given other numbers",
        cause="`BCELoss` takes predictions from 0 to 1 and was given others: no sigmoid stands before it, or the "
        "model's output has become NaN.",
        remedy=Remedy(
            text="Put a sigmoid before the loss, or take BCEWithLogitsLoss for the model's raw output; where earlier "
            "losses were growing or NaN, resume from a checkpoint with a lower learning rate."
        ),
        sources=("HypoX64/DeepMosaics#64", "aten/src/ATen/native/cuda/Loss.cu"),
        patterns=(
            r"Assertion \W?input_val >= zero && input_val <= one",
            r"all elements of input should be between 0 and 1",
        ),
        confidence=0.93,
        outranks=("label_bug", "mps_index_assert", "cuda_assert"),
    ),
    Rule(
        id="fp16_weights",
        title="Gradients are scaled of weights that are fp16 themselves",
        cause="A gradient scaler keeps small gradients of fp32 weights alive in fp16. Here the weights were loaded, or "
        "turned, into fp16: their gradients cannot be unscaled.",
        remedy=Remedy(
            text="Load the model in fp32 (no `.half()`, no torch_dtype=float16) and leave fp16 to autocast; or train "
            "in bf16, which needs no scaler."
        ),
        sources=("torch/amp/grad_scaler.py",),
        patterns=(r"Attempting to unscale FP16 gradients",),
        confidence=0.94,
    ),
    Rule(
        id="silent_oob",
        title="An index is out of range",
        cause="A token, label, position or step is outside the table or array it indexes. On MPS the same access often "
        "silently reads 0; the CPU only reveals the bug.",
        remedy=Remedy(
            text="Check vocabulary size, number of classes and sequence length against the data; of an array of NumPy "
            "(`for axis 0`) its length against the steps or samples that are counted."
        ),
        sources=("pytorch/pytorch#144824",),
        patterns=(
            r"index out of range in self",
            r"index -?\d+ is out of bounds for (?:dimension|axis) \d+ with size",
            r"index \w+ is out of bounds for dimension",
            r"Assertion \W?srcIndex < srcSelectDimSize",
            r"indexSelect(?:Large|Small)Index: block",
            r"\bidx < data_size\b",
            r"Index \d+ is out of bounds: -?\d+, range",
            r"Assertion \W?.{0,60}index out of bounds",
        ),
        weak_patterns=(r"IndexError: (?!list|tuple|string|pop|deque|range|bytes).{0,40}out of (?:range|bounds)",),
        outranks=("label_bug", "cuda_assert"),
    ),
    Rule(
        id="mps_index_assert",
        title="A GPU kernel got an index that is out of range",
        cause="Since torch 2.10 some MPS kernels check indices and report later, at the next wait for the GPU; the "
        "traceback may point at an unrelated line.",
        remedy=Remedy(
            text="Run it on CPU (`mpstui restart RUN --device cpu`), where it fails at the right line; then fix the "
            "data or the sizes."
        ),
        sources=("pytorch/pytorch#166615", "pytorch/pytorch#178079"),
        patterns=(
            r"AcceleratorError: .{0,60}(?:out of bounds|out of range|index)",
            r"AcceleratorError: (?!(?:CUDA|HIP|XPU) error)",
            r"index -?\d+ is out of bounds,? range",
        ),
        outranks=("silent_oob",),
    ),
)
