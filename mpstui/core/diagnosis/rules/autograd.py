"""What autograd refuses: a graph used twice, a value overwritten in place, a loss without a gradient."""

from ..model import Remedy, Rule

RULES = (
    Rule(
        id="backward_twice",
        title="backward() went through the same graph twice",
        cause="backward() frees the graph of a loss. Something from an earlier step is still part of this one: a "
        "hidden state, a running sum of losses, an output that two losses share.",
        remedy=Remedy(
            text="Use `.detach()` on what is carried from step to step, add losses up with `.item()`, and call "
            "backward() once on the sum of losses that share a part; retain_graph=True only where both are meant."
        ),
        sources=("torch/csrc/autograd/saved_variable.cpp",),
        patterns=(r"Trying to backward through the graph a second time",),
        confidence=0.95,
    ),
    Rule(
        id="changed_in_place",
        title="A value that backward() needs was overwritten",
        cause="An operation in place (`+=`, `x[...] = `, relu_, inplace=True) changed a tensor between forward and "
        "backward; an optimizer's step between the two does so too.",
        remedy=Remedy(
            text="Write `x = x + y` for `x += y`, use `.clone()` first, or set inplace=False; step optimizers after "
            "all backward passes. torch.autograd.set_detect_anomaly(True) shows the line of the forward pass."
        ),
        sources=("PKU-EPIC/DREDS#6", "yunik1004/SAiD#8"),
        patterns=(
            r"has been modified by an inplace operation",
            r"is a view and (?:is being|its base or another view of its base has been) modified inplace",
            r"leaf Variable that requires grad (?:is being|has been) used in an in-place operation",
            r"leaf variable has been moved into the graph interior",
        ),
        confidence=0.95,
        outranks=("backward_twice",),
    ),
    Rule(
        id="no_gradient",
        title="The loss has no gradient",
        cause="No trained parameter took part in it: all of them are frozen, or it was computed under "
        "torch.no_grad(), or a `.detach()`, `.item()` or argmax cut the graph.",
        remedy=Remedy(
            text="Look where the graph ends (`loss.requires_grad`, and back from there). With frozen embeddings and "
            "gradient checkpointing call model.enable_input_require_grads()."
        ),
        sources=("torch/csrc/autograd/python_engine.cpp",),
        patterns=(
            r"element 0 of tensors does not require grad and does not have a grad_fn",
            r"none of output has requires_grad=True, this checkpoint\(\) is not necessary",
        ),
        confidence=0.95,
    ),
    Rule(
        id="recomputed_otherwise",
        title="Gradient checkpointing computed something else the second time",
        cause="It computes each layer again in backward(), and the second pass made other tensors than the first: a "
        "cache of keys and values had grown, parameters were gathered again (DeepSpeed ZeRO-3), or the code "
        "branches.",
        remedy=Remedy(
            text="Switch the model's cache off (use_cache=False), or set use_reentrant=True (transformers: "
            "gradient_checkpointing_kwargs={'use_reentrant': True}), which does not compare; else train without "
            "gradient checkpointing and with a smaller batch."
        ),
        sources=("torch/utils/checkpoint.py", "pytorch/pytorch#155171"),
        patterns=(
            r"checkpoint: Recomputed values for the following tensors have different metadata",
            r"checkpoint: A different number of tensors was saved during the original forward and recomputation",
            r"checkpoint: trying to save more tensors during recomputation than during the original forward",
        ),
        confidence=0.95,
    ),
)
