"""Distributed training: collectives that wait for ever, unused parameters."""

from ..model import Remedy, Rule

RULES = (
    Rule(
        id="dist_timeout",
        title="The processes of this training lost each other",
        cause="One process waited in a collective until its time was up: another one had crashed, hung, did other work "
        "(saving, evaluating, a longer shard of the data) or came to the collectives in another order.",
        remedy=Remedy(
            text="Look for the process that failed first: its traceback is above this. If all of them lived, give "
            "each the same number of batches, and raise the timeout of init_process_group for long pauses."
        ),
        sources=("pytorch/pytorch#97191", "lsdefine/simple_GRPO#46", "hiyouga/LlamaFactory#8261"),
        patterns=(
            r"Watchdog caught collective operation timeout",
            r"watchdog thread terminated with exception",
            r"Some NCCL operations have failed or timed out",
            r"Timed out waiting \d+ms for (?:send|recv)",
            r"DistStoreError: (?:Socket Timeout|Timed out)",
            r"\[c10d\] .{0,80}timed out",
            r"watchdog got stuck for \d+ seconds",
            r"Detected mismatch between collectives on ranks",
        ),
        confidence=0.86,
        signals=(6,),
        outranks=("segfault",),
    ),
    Rule(
        id="dist_unreachable",
        title="The processes of this training did not find each other",
        cause="They meet at the address of the first one (MASTER_ADDR, MASTER_PORT). Its name is not known on this "
        "machine, nothing listens there yet or any more, or a firewall stands between.",
        remedy=Remedy(
            text="On one machine use torchrun --standalone, or MASTER_ADDR=127.0.0.1. On several see that the first is "
            "started, that its name is known on the others (`ping`) and that its port is open there."
        ),
        sources=("torch/csrc/distributed/c10d/socket.cpp",),
        patterns=(
            r"Error: The client socket has (?:timed out|failed to connect)",
            r"DistNetworkError: .{0,60}(?:failed to (?:connect|recv)|timed out|Connection (?:reset|refused))",
            r"RendezvousConnectionError: ",
            r"RendezvousTimeoutError",
            r"connection to the C10d store has failed",
            r"connectFullMesh failed",
        ),
        confidence=0.92,
        outranks=("dist_timeout", "no_network", "server_refused"),
    ),
    Rule(
        id="port_taken",
        title="The port that the processes meet at is taken",
        cause="The processes of a training find each other at a port, 29500 unless another is named. Another "
        "training on this machine has it, or the remains of one that was not ended.",
        remedy=Remedy(
            text="Give it another one: torchrun --standalone takes a free port (several machines: --master-port 29501, "
            "accelerate: --main_process_port 29501); `lsof -i :29500` names who has it."
        ),
        sources=("torch/csrc/distributed/c10d/TCPStore.cpp",),
        patterns=(
            r"server socket has failed to (?:listen|bind)",
            r"(?:DistNetworkError|TCPStore|c10d)\b.{0,200}address already in use",
            r"ConnectionError: Tried to launch distributed communication on port",
        ),
        numbers=((r"port:? `?(\d{2,5})\b", "port {0}"),),
        confidence=0.92,
        outranks=("dist_timeout", "dist_unreachable"),
    ),
    Rule(
        id="ddp_unused",
        title="Some parameters took no part in the loss",
        cause="DistributedDataParallel waits for the gradient of every parameter, and this step left some without one.",
        remedy=Remedy(
            text="Pass find_unused_parameters=True (transformers: --ddp_find_unused_parameters True), or use every "
            "output of forward in the loss. TORCH_DISTRIBUTED_DEBUG=DETAIL names the parameters."
        ),
        sources=("pytorch/pytorch#57473", "modelscope/DiffSynth-Studio#1001"),
        patterns=(
            r"Expected to have finished reduction in the prior iteration",
            r"module has parameters that were not used in producing",
        ),
        confidence=0.95,
        outranks=("dist_timeout",),
    ),
    Rule(
        id="ddp_ready_twice",
        title="A parameter got two gradients in one step",
        cause="DistributedDataParallel counts one gradient for each parameter of a step, and one came twice: gradient "
        "checkpointing goes through its part again, or a part of the model is used twice.",
        remedy=Remedy(
            text="With gradient checkpointing set use_reentrant=False (transformers: "
            "gradient_checkpointing_kwargs={'use_reentrant': False}), or DistributedDataParallel(static_graph=True) "
            "where each step uses the same parts; call the model once a step."
        ),
        sources=("modelscope/ms-swift#3171", "huggingface/accelerate#389"),
        patterns=(
            r"Expected to mark a variable ready only once",
            r"has been marked as ready twice",
        ),
        confidence=0.95,
        outranks=("ddp_unused", "dist_timeout"),
    ),
    Rule(
        id="nccl_failed",
        title="NCCL, which joins the GPUs, failed",
        cause="The processes of the training could not reach each other's GPUs: a network interface or shared memory "
        "that NCCL cannot use, two processes on one GPU, or an error of CUDA underneath.",
        remedy=Remedy(
            text="The line after `Last error:` names it, NCCL_DEBUG=INFO says more. In a container give it shared "
            "memory (`--shm-size 8g`); give each process a GPU of its own; NCCL_P2P_DISABLE=1 rules out a broken "
            "link of two GPUs."
        ),
        sources=("torch/csrc/distributed/c10d/NCCLUtils.hpp",),
        patterns=(
            r"\bNCCL error in: ",
            r"\bnccl(?:System|Internal|Remote|UnhandledCuda)Error: ",
            r"\bncclInvalidUsage: ",
        ),
        confidence=0.88,
        outranks=("dist_timeout",),
    ),
    Rule(
        id="deepspeed_config",
        title="DeepSpeed's configuration contradicts the trainer's",
        cause="Batch size, accumulation, precision or clipping are set in DeepSpeed's JSON and, to other values, in "
        "the arguments or in accelerate's own configuration.",
        remedy=Remedy(
            text='Write "auto" for them in the JSON, so that the trainer fills them in, or set them in one place. '
            "train_batch_size is the micro batch times accumulation times the number of processes."
        ),
        sources=("hiyouga/LlamaFactory#201", "yuvalkirstain/PickScore#2", "deepspeed/runtime/config.py"),
        patterns=(
            r"correct the following DeepSpeed config values that mismatch",
            r"train_batch_size is not equal to micro_batch_per_gpu",
            r"deepspeed_config_file\W{1,2}, the following accelerate config variables will be ignored",
            r"requires you to pass at least one of training or evaluation dataloaders",
        ),
        confidence=0.94,
    ),
)
