"""What frameworks and command-line parsers refuse: Lightning, Hydra, argparse."""

from ..model import ArgumentChange, DeviceRule, Remedy, Rule

RULES = (
    Rule(
        id="lightning_precision",
        title="This Lightning does not know that precision",
        cause="Lightning 1.x calls it 'bf16' and 16; the names 'bf16-mixed' and '16-mixed' exist since 2.0, "
        "'*-true' later still.",
        remedy=Remedy(
            text="Take one of the values it lists: precision=bf16 on Lightning 1.x, bf16-mixed from 2.0 on; or "
            "upgrade Lightning.",
            args=(
                ArgumentChange("precision", "set", "bf16", before="bf16-mixed"),
                ArgumentChange("precision", "set", "16", before="16-mixed"),
            ),
        ),
        sources=("Lightning-AI/litgpt#241", "simchowitzlabpublic/nano-world-model#17"),
        patterns=(
            r"Precision \W?[\w-]+\W{0,2} is invalid",
            r"Allowed precision values",
            r"trainer\.precision\W.{0,60}(?:not validate|invalid|not valid)",
        ),
        confidence=0.95,
    ),
    DeviceRule(
        id="lightning_ddp_mps",
        title="DDP is not available on MPS",
        cause="Lightning was asked for several devices or a DDP strategy on the MPS accelerator, which has one "
        "device and no collectives.",
        remedy=Remedy(
            text="Use devices=1 and strategy=auto; for several processes use accelerator=cpu (or DISABLE_MPS=1, "
            "Lightning 2.3 or newer).",
            args=(ArgumentChange("devices", "set", 1), ArgumentChange("strategy", "set", "auto")),
        ),
        sources=("lightning/pytorch/trainer/connectors/accelerator_connector.py",),
        patterns=(
            r"DDP family are not supported on the MPS",
            r"strategies from the DDP family",
            r"(?:DDP|distributed|strategy) .{0,60}not supported (?:on|with|by) (?:the )?\W?MPS",
            r"MPS ?Accelerator\W? .{0,80}(?:DDP|strateg|multiple devices)",
        ),
        confidence=0.95,
        outranks=("mps_op_limit", "dist_mps"),
    ),
    DeviceRule(
        id="dist_mps",
        title="torch.distributed cannot use MPS",
        cause="No collective backend takes MPS tensors: gloo needs CPU tensors, NCCL needs CUDA.",
        remedy=Remedy(
            text="Train in one process, or in several on the CPU with the gloo backend.",
            args=(ArgumentChange("processes", "set", 1), ArgumentChange("backend", "set", "gloo")),
            device="cpu",
        ),
        sources=("ultralytics/ultralytics#15701",),
        patterns=(
            r"which communication backend to use for this accelerator",
            r"ProcessGroup\w+::\w+: invalid tensor type",
            r"No backend type associated with device type mps",
            r"c10d::\w+\W? with arguments from the \W?MPS",
            r"operator \W?c10d::\w+\W? is not current(?:ly)? implemented for the MPS",
            r"Distributed package doesn't have NCCL built in",
            r"ProcessGroupNCCL is only supported with GPUs",
            r"doesn't have (?:NCCL|built-in NCCL)",
            r"(?:\bgloo|\bnccl|\bdistributed\b|all_?reduce|DistributedDataParallel).{0,80}\bmps\b",
            r"Invalid backend: \W?mps",
            r"DistributedDataParallel device_ids and output_device arguments only work with",
        ),
        outranks=("mps_op_missing", "device_mismatch", "mps_op_limit", "cuda_hardcoded"),
    ),
    Rule(
        id="hydra_override",
        title="Hydra knows no such key",
        cause="The override names a key that the configuration does not have.",
        remedy=Remedy(text="Write +key=value to add it, ++key=value to add or change it, or correct the name."),
        sources=("hydra-ecosystem/hydra#1457", "hydra-ecosystem/hydra#854"),
        patterns=(
            r"Could not override \W",
            r"is not in struct",
            r"Error merging override",
            r"To append to your config use \+",
            r"Error parsing override",
            r"LexerNoViableAltException",
            r"no viable alternative at input",
            r"mismatched input .{1,40} expecting",
            r"Could not find \W[\w/.-]+\W\W{0,3}(?:Available options|Config search path)",
            r"You must specify \W\w+\W, e\.g",
            r"Key \W[\w.]+\W not in \W\w+\W",
            r"omegaconf\.errors\.Config(?:Attribute|Key)Error",
            r"hydra\.errors\.(?:MissingConfig|ConfigComposition|OverrideParse)Exception",
        ),
        confidence=0.92,
    ),
    Rule(
        id="hydra_append",
        title="Hydra has that key already",
        cause="'+key' adds a key, and this one exists.",
        remedy=Remedy(text="Drop the '+', or write ++key=value to add or change it."),
        sources=("hydra-ecosystem/hydra#947",),
        patterns=(
            r"Could not append to config",
            r"An item is already at \W",
        ),
        confidence=0.95,
        outranks=("hydra_override",),
    ),
    Rule(
        id="argparse",
        title="The command line was not understood",
        cause="An argument is unknown, missing, has a value the program does not take, or contradicts another.",
        remedy=Remedy(text="Correct the argument named in the message; the program's --help lists the choices."),
        sources=("argparse",),
        patterns=(
            r": error: argument \S",
            r": error: unrecognized arguments?",
            r": error: the following arguments are required",
            r": error: (?:ambiguous option|too few arguments|expected \w+ argument)",
            r": error: .{0,80}(?:invalid choice|invalid \w+ value|not allowed with|is required)",
            r"\bargument \S{1,60}: (?:invalid \S{1,40} value|invalid choice|expected (?:one|at least|\d+))",
            r"invalid choice: \W?.{1,80}\(choose from",
            r"are not used by the HfArgumentParser",
            r"No such option: -",
            r"Error: (?:Missing (?:option|argument|parameter)|Invalid value for|Got unexpected extra argument)",
            r"(?:error: unrecognized|the following) arguments?(?: are required|: -)",
            r"Could not consume arg",
            r"Unknown command line flag",
            r"Flags parsing error",
            r"is not a valid \w+ argument",
            r"error: Key \W[\w.]+\W is not expected",
            r"error: Parser key \W[\w.]+\W:",
            r"ValueError: --\w[\w-]{1,60} requires ",
            r"omegaconf\.errors\.(?:Validation|MissingMandatory|UnsupportedValue)\w+",
        ),
        weak_patterns=(
            r"(?:\A|\n)[\w./-]{1,80}\.py: error: (?!-?\.?\d|nan\b|inf\b)\S",
        ),  # anything else that an argument parser rejects
        confidence=0.93,
        codes=(2, 1),
        clues={"code:2": 0.04},
    ),
    Rule(
        id="metric_not_logged",
        title="A monitored metric was not logged",
        cause="Saving the best checkpoint, early stopping or lowering the learning rate depends on a metric that was "
        "never logged, or not under this name.",
        remedy=Remedy(
            text="Name one of those that the message lists (monitor=, metric_for_best_model=), or log the metric in "
            "each evaluation, and make sure that one takes place."
        ),
        sources=("vislearn/FFF#3", "nitaytech/DoCoGen#3"),
        patterns=(
            r"could not find the monitored key in the returned metrics",
            r"ModelCheckpoint\(monitor=.{1,80}\) not found in the returned metrics",
            r"conditioned on metric .{1,80} which is not available",
            r"which is not found in the evaluation metrics",
            r"KeyError: \Weval_\w{1,60}\W",
        ),
        confidence=0.94,
    ),
    Rule(
        id="quantized_base",
        title="A quantized model cannot be trained directly",
        cause="Weights of 4 or 8 bits cannot be trained, only adapters (LoRA) beside them: this model has none, or "
        "they were merged into it.",
        remedy=Remedy(
            text="Give it adapters before the trainer (`get_peft_model`, or `peft_config=` of the trainer; no "
            "`merge_and_unload()`), or load it without load_in_4bit and load_in_8bit."
        ),
        sources=("huggingface/transformers#26248", "BAAI-DCAI/Bunny#112"),
        patterns=(
            r"cannot perform fine-tuning on purely quantized models",
            r"The model you (?:want|are trying) to (?:train|fine-tune) is (?:loaded|quantized)",
        ),
        confidence=0.95,
    ),
    Rule(
        id="no_pad_token",
        title="The tokenizer has no padding token",
        cause="Sentences of a batch are made equally long with a token that this tokenizer lacks, as GPT-2's and "
        "Llama's do.",
        remedy=Remedy(
            text="Set `tokenizer.pad_token = tokenizer.eos_token` after loading it, and `model.config.pad_token_id` "
            "to its number."
        ),
        sources=("transformers/tokenization_utils_base.py",),
        patterns=(r"tokenizer does not have a padding token", r"if no padding token is defined"),
        confidence=0.95,
    ),
    Rule(
        id="not_registered",
        title="A name in the configuration is not registered",
        cause="Models, data sets and environments are looked up by name. This name is misspelled, the module that "
        "registers it was not imported, or it belongs to another package or version.",
        remedy=Remedy(
            text="Import the module that defines it before (mmengine: custom_imports in the configuration; detectron2: "
            "register the data set first), correct the name (upper and lower case count), or install the version of "
            "the package that has it."
        ),
        sources=("open-mmlab/mmpose#3033", "csuhan/ReDet#37", "fvcore/common/registry.py"),
        patterns=(
            r"\b\w{1,80} is not in the (?:[\w:.-]{1,40} ){0,3}registry",
            r"No object named \W\w{1,80}\W found in \W\w{1,60}\W registry",
            r"KeyError: .{0,20}Dataset \W[\w./-]{1,80}\W is not registered",
            r"RuntimeError: Unknown model \([\w./-]{1,80}\)",
            r"ValueError: Unknown (?:builtin )?model \w",
            r"NameNotFound: Environment \W?[\w./-]{1,80}\W? doesn't exist",
        ),
        numbers=(
            (r"KeyError: \W{1,2}(\w{1,80}) is not in the", "{0}"),
            (r"(?:No object named|Dataset|Environment) \W?([\w./-]{1,80}?)\W? (?:found|is not|doesn't)", "{0}"),
            (r"Unknown (?:builtin )?model \(?([\w./-]{1,80})", "{0}"),
        ),
        confidence=0.93,
    ),
    Rule(
        id="hydra_target",
        title="Hydra could not make what the configuration names",
        cause="The class or function of a `_target_` could not be imported, or it failed when it was called. Hydra "
        "shows the reason as an exception before its own, and hides both unless it is asked for them.",
        remedy=Remedy(
            text="Where no exception is shown, start it again with HYDRA_FULL_ERROR=1 (`mpstui restart RUN --env "
            "HYDRA_FULL_ERROR=1`); then fix what that says: a wrong name, a module that is missing, an argument."
        ),
        sources=("hydra-ecosystem/hydra#2289", "ashleve/lightning-hydra-template#350"),
        patterns=(
            r"Error (?:locating target|in call to target) \W",
            r"hydra\.errors\.InstantiationException",
        ),
        numbers=((r"Error (?:locating target|in call to target) \W([\w.]{1,120})", "{0}"),),
        confidence=0.55,  # low: any rule for the exception before it says more
    ),
    Rule(
        id="lora_targets",
        title="LoRA names no layers of this model",
        cause="Adapters are put beside the layers that `target_modules` names, and the model has none of these names: "
        "they are those of another architecture, or the list is empty.",
        remedy=Remedy(
            text="Name layers that the model has (`print(model)` lists them; q_proj and v_proj in Llama, c_attn in "
            'GPT-2, query_key_value in Bloom), or take target_modules="all-linear".'
        ),
        sources=("wp931120/baichuan_sft_lora#1", "peft/tuners/tuners_utils.py"),
        patterns=(
            r"Target modules .{1,400} not found in the base model",
            r"Please specify `target_modules` in `peft_config`",
        ),
        confidence=0.95,
    ),
)
