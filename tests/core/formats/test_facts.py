"""What a log says of the run as a whole: its device, its end, its failure."""

from __future__ import annotations

import pytest

from mpstui.core.formats.points import Standing
from mpstui.core.formats.reader import LogReader


def standing(*lines: str) -> Standing:
    reader = LogReader()
    reader.feed("\n".join([*lines, ""]).encode())
    return reader.standing


DEVICES = [
    ("Using device: MPS (Apple Silicon GPU)", "mps"),
    ("Device: mps", "mps"),
    ("device is: cuda:0", "cuda:0"),
    ("training net/small on cuda -> out/small", "cuda"),
    ("使用设备: cuda", "cuda"),
    ("训练设备：cuda:0", "cuda:0"),
    ("Use GPU: 0 for training", "cuda"),
    ("Execution Device: CUDA", "cuda"),
    ("device=cuda:0", "cuda:0"),
    ("'device': 'cuda',", "cuda"),
    ("Training on cpu", "cpu"),
    ("Training on device: cuda", "cuda"),
    ("Using cpu device", "cpu"),
    ("Using cuda device", "cuda"),
    ("Using MPS backend", "mps"),
    ("using CPU, this will be slow", "cpu"),
    ("🚀 Using device: mps:0", "mps:0"),
    ("✓ Running on MPS", "mps"),
    ("Running on device cuda:1", "cuda:1"),
    ("Using torch device: cuda", "cuda"),
    ("device type: cuda", "cuda"),
    ("Selected device: mps", "mps"),
    ("DEVICE: cuda:0", "cuda:0"),
    ("Device set to cuda", "cuda"),
    ("[INFO] device -> mps", "mps"),
    ("device: device(type='mps')", "mps"),
    ("Using device device(type='cuda', index=0)", "cuda"),
    ("using torch.device('cpu')", "cpu"),
    ("Accelerator: mps", "mps"),
    ("Using GPU: NVIDIA GeForce RTX 3090", "cuda"),
    ("Using device: NVIDIA A100-SXM4-80GB", "cuda"),
    ("Using Apple Silicon GPU", "mps"),
    ("Using Apple's Metal Performance Shaders (MPS)", "mps"),
    ("Using 1 GPU", "gpu"),
    ("Training on 2 GPUs", "gpu"),
    ("Training on GPU", "gpu"),
    ("Model moved to mps", "mps"),
    ("Model is on cuda:0", "cuda:0"),
    ("Overriding: device = cpu", "cpu"),
    ("Autodetected device type: cuda", "cuda"),
    ("Process rank: 0, device: cuda:0, n_gpu: 1, distributed training: False", "cuda:0"),
    ("Training with a single process on 1 device (cpu).", "cpu"),
    ("Training in distributed mode with multiple processes. Process 0, total 2, device cuda:0.", "cuda:0"),
    ("GPU available: True (mps), used: True", "mps"),
    ("GPU available: True (cuda), used: False", "cpu"),
    ("GPU available: False, used: False", "cpu"),
    ("Ultralytics 8.3.1 🚀 Python-3.11.7 torch-2.5.0+cu121 CUDA:0 (Tesla T4, 15102MiB)", "cuda:0"),
    ("YOLOv5 🚀 v7.0-1 Python-3.9 torch-1.13.0 MPS", "mps"),
    ("Ultralytics 8.3.1 Python-3.11.7 torch-2.5.0 CPU (Apple M2)", "cpu"),
    ("CUDA is not available, falling back to CPU", "cpu"),
    ("WARNING: MPS not available because PyTorch was built without it; using CPU instead", "cpu"),
    ("CUDA not found. Training will run on cpu", "cpu"),
    ("2026-01-02 10:00:00,123 - INFO - train.py - Using device: mps", "mps"),
    ("MPS ran out of memory, switching to cpu", "cpu"),
    ("epoch 1 loss tensor(0.5, device='mps:0', grad_fn=<NllLossBackward0>)", "mps:0"),
    ("Using mps for training", "mps"),
    ("Torch version 2.5, device cuda", "cuda"),
    ("gpu device = 1", "cuda"),
    ("Created TensorFlow device (/job:a/replica:0/task:0/device:GPU:0 with 999 MB memory)", "cuda"),
    (
        "I tensorflow/core/a.cc:2] Created TensorFlow device (/job:a/replica:0/task:0/device:GPU:0 with 0 MB memory) "
        "-> physical PluggableDevice (device: 0, name: METAL, pci bus id: <undefined>)",
        "mps",
    ),
    ("Metal device set to: Apple M3 Max", "mps"),
    ("Created device /job:a/replica:0/task:0/device:GPU:0 with 999 MB memory:  -> device: 0, name: Tesla", "cuda"),
    ("Creating TensorFlow device (/gpu:0) -> (device: 0, name: Tesla P100, pci bus id: 0000:82:00.0)", "cuda"),
    ("cuda: True", "cuda"),
    ("cuda:0", "cuda:0"),
    ("    - device: cpu", "cpu"),
    ("[model] загружена на cuda:0", "cuda:0"),
    ("train.py bt --device cuda:0", "cuda:0"),
    ("Available devices: [cuda(id=0)]", "cuda"),
    ("Training on: cuda", "cuda"),
    ("Backend used: [CUDA]; OS: [Windows 10]", "cuda"),
    ("[GpuDevice(id=0, process_index=0), GpuDevice(id=1, process_index=0)]", "cuda"),
    ("ppocr INFO: train with paddle 2.6.1 and device Place(gpu:0)", "cuda"),
    ("W1205 12:44:41.1   27 device.cc:4] Please NOTE: device: 0, GPU Compute Capability: 7.0", "cuda"),
    ("Setting ds_accelerator to cuda (auto detect)", "cuda"),
    ("Use GPU with device ID 0", "cuda"),
    ("Use CPU", "cpu"),
    ("train with device cuda and pytorch 1.7", "cuda"),
    ("model.hf_device_map: {'': device(type='mps', index=0)}", "mps"),
    ("model_kwargs: {'device_map': 'cuda:0', 'dtype': torch.bfloat16}", "cuda:0"),
    (" 'device': device(type='cpu'),", "cpu"),
    (f"Namespace({'a_rather_long_option=None, ' * 30}device=device(type='cuda', index=1), lr=0.1)", "cuda"),
    ("loss 0.002, 121030.6 tokens/sec on cuda:0", "cuda:0"),
    ("1234.5 examples/sec on cpu", "cpu"),
    ("solver_mode: GPU", "gpu"),
    ("solver_mode: CPU", "cpu"),
    ("GPU          : NVIDIA GeForce RTX 4090", "cuda"),
    ("GPU: Tesla T4 (15.8 GB)", "cuda"),
]


@pytest.mark.parametrize(("line", "device"), DEVICES)
def test_a_printed_device_is_the_device(line: str, device: str) -> None:
    assert standing(line).device == device


@pytest.mark.parametrize(
    "line",
    [
        "CUDA available: True",
        "MPS available: True",
        "torch.backends.mps.is_available(): True",
        "Available devices: cpu, mps",
        "device count: 8",
        "Number of CUDA devices: 2",
        "MPS device found",
        "Found 2 CUDA devices",
        "Detected GPU: NVIDIA A100",
        "GPU: NVIDIA A100, driver 550",
        "No CUDA device found",
        "CPU cores: 8",
        "Using 8 CPU cores",
        "Using 4 CPU workers for data loading",
        "CPU memory: 12 GB",
        "GPU memory: 3.2 GB",
        "EMA model on cpu",
        "Evaluating on cpu",
        "Loading checkpoint on cpu",
        "If you are using CUDA, set pin_memory",
        "consider using cuda",
        "not using cuda",
        "You can pass --device mps",
        "Using device: auto",
        "device: auto",
        "device=0",
        "Using device mapping",
        "device_map: auto",
        "'offload': {'device': 'cpu'}",
        "Use CPU offload",
        "train without device cuda",
        "set device to cpu if you have no accelerator",
        "eval device: cpu",
        "data device: cpu",
        "offload_device=cpu",
        "Using CPU offload",
        "no_cuda=False",
        "use_cpu=False",
        "Set PYTORCH_ENABLE_MPS_FALLBACK=1 to use the CPU as a fallback for this op",
        "TPU available: False, using: 0 TPU cores",
        "HPU available: False, using: 0 HPUs",
        "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.",
        "Time on cpu: 3 s",
        "Compiled cluster using XLA!  This line is logged at most once for the lifetime of the process.",
    ],
)
def test_what_is_only_there_or_holds_something_else_is_not_the_device(line: str) -> None:
    assert standing(line).device is None


def test_the_newest_statement_of_a_device_wins() -> None:
    assert standing("Using device: mps", "step 1 loss 2.0", "MPS out of memory: falling back to cpu").device == "cpu"


def test_a_gpu_in_a_heading_is_not_the_device_where_another_one_is_used() -> None:
    assert standing("Using device: cpu", "GPU: NVIDIA GeForce GTX 1050").device == "cpu"


def test_what_is_used_wins_over_what_was_asked_for() -> None:
    assert standing("Using device: cpu", "Namespace(epochs=3, device='cuda')").device == "cpu"
    assert standing("Namespace(epochs=3, device='cuda')").device == "cuda"
    assert standing("Namespace(epochs=3, device='cuda')", "Using device: cpu").device == "cpu"
    assert standing("Using cpu or mps", "GPU", "  Use GPU:    0      GPU:    0").device == "cpu"
    assert standing("GPU").device == "gpu"


TRAINED = ("Epoch 1/20 loss 0.9", "Epoch 2/20 loss 0.8")


@pytest.mark.parametrize(
    "line",
    [
        "Training complete",
        "Training complete!",
        "Training complete in 1m 20s",
        "✅ Training completed successfully!",
        "Training finished in 12.3 s",
        "Training is done.",
        "Training done",
        "Finished Training",
        "Finished training the model",
        "Done training!",
        "done training in 123.4 seconds",
        "Optimization Finished!",
        "`Trainer.fit` stopped: `max_epochs=3` reached.",
        "Training completed. Do not forget to share your model on huggingface.co/models =)",
        "{'train_runtime': 9.1, 'train_samples_per_second': 3.2, 'train_loss': 3.2, 'epoch': 2.0}",
        "3 epochs completed in 0.004 hours.",
        "Early stopping at epoch 2",
        "Early stopping triggered",
        "=== Training complete ===",
        "2026-01-02 10:00:00 [INFO] Training complete.",
        "训练完成",
        "学習が完了しました",
        "Entraînement terminé.",
        "Training abgeschlossen.",
        "Entrenamiento completado.",
        "All epochs completed!",
        "Model training complete.",
    ],
)
def test_a_line_says_that_the_training_is_done(line: str) -> None:
    assert standing(*TRAINED, line).done
    assert not standing(*TRAINED, line, "Epoch 3/20 loss 0.7").done


@pytest.mark.parametrize(
    "line",
    [
        "Epoch 2 training complete",
        "Training 45% complete",
        "Training not finished",
        "Saving when training is done",
        "Once training is done, run evaluate.py",
        "Tokenizer training finished",
        "Validation finished",
        "Early stopping counter: 1 out of 5",
        "Early stopping patience: 5",
        "early_stopping=True",
        "Data loading complete",
        "Fold 1 training complete",
        "Training set loaded",
        "Training time per epoch: 12 s",
        "done.",
        "Model saved",
    ],
)
def test_other_ends_are_not_the_end_of_the_training(line: str) -> None:
    assert not standing(*TRAINED, line).done


@pytest.mark.parametrize(
    "line", ["done.", "Done!", "All done", "Finished.", "Total training time: 0:12:33", "Training took 3 s"]
)
def test_a_bare_done_counts_at_the_end_of_what_was_planned(line: str) -> None:
    assert standing("step 499/500 loss 0.8", "step 500/500 loss 0.7", line).done
    assert standing("step 499 loss 0.8", "step 500 loss 0.7", line).done
    assert not standing("Loading the data ...", line, "step 1 loss 0.8").done


def test_what_ended_an_epoch_once_is_never_the_end() -> None:
    epochs = [line for epoch in range(1, 4) for line in (f"Epoch {epoch} loss 0.{9 - epoch}", "Train time: 12.1 s")]
    assert standing(*epochs[:2]).done
    assert not standing(*epochs).done


def test_the_first_full_bar_need_not_be_the_end() -> None:
    bar = "Training: 100%|██████████| 30/30 [00:01<00:00, 20.0it/s]"
    assert not standing(bar).done
    assert standing("Total optimization steps = 30", bar).done


@pytest.mark.parametrize(
    "lines",
    [
        ("step 499/500 loss 0.8", "step 500/500 loss 0.7"),
        ("Epoch 1/2 loss 0.8", "Epoch 2/2 loss 0.7"),
        ("Epoch 0/2 loss 0.8", "Epoch 1/2 loss 0.7"),
        ("Epoch 1/2 step 10/10 loss 0.8", "Epoch 2/2 step 9/10 loss 0.7", "val_loss: 0.7"),
        ("Epoch 1/2 [90/100] loss 0.8", "Epoch 2/2 [90/100] loss 0.7", "Test: loss 0.7 accuracy 0.6"),
    ],
)
def test_a_run_that_has_come_to_the_end_of_its_plan_is_done(lines: tuple[str, ...]) -> None:
    assert standing(*lines).done
    assert not standing(*lines[:1]).done


@pytest.mark.parametrize(
    "end", ["KeyError: 'LOCAL_RANK'", "torch.OutOfMemoryError: MPS backend out of memory", "AssertionError"]
)
@pytest.mark.parametrize("rank", ["", "[rank0]: "])
def test_a_log_that_ends_in_a_traceback_has_failed(rank: str, end: str) -> None:
    lines = ("Traceback (most recent call last):", '  File "train.py", line 3, in <module>', "    main()", end)
    failed = ("step 1 loss 2.0", *(rank + line for line in lines))
    assert standing(*failed).failure == end
    assert standing(*failed, "step 2 loss 1.9").failure is None
    assert standing("Exception ignored in: <function A.__del__>", *lines).failure is None


def test_a_traceback_in_a_box_is_one_too() -> None:
    box = (
        "╭─────────── Traceback (most recent call last) ───────────╮",
        "│ train.py:3 in main                                      │",
        "│ ❱ 3 raise RuntimeError('boom')                          │",
        "╰─────────────────────────────────────────────────────────╯",
        "RuntimeError: boom",
    )
    assert standing("step 1 loss 2.0", *box).failure == "RuntimeError: boom"


def test_facts_stand_between_lines_that_are_read_in_blocks() -> None:
    lines = [f"step {step} loss {3 / step:.4f}" for step in range(1, 400)]
    reader = LogReader()
    reader.take("\n".join(["Using device: mps", *lines, "Training complete", ""]).encode())
    assert reader.standing == Standing(device="mps", done=True)
    reader.take("\n".join([*(f"step {step} loss {3 / step:.4f}" for step in range(400, 800)), ""]).encode())
    assert reader.standing == Standing(device="mps")


def test_the_head_of_the_last_epoch_is_not_its_end() -> None:
    lines = ("Epoch 1/2", "9/9 - 1s - loss: 0.9", "Epoch 2/2")
    assert not standing(*lines).done
    assert not standing(*lines, "8/9 - 1s - loss: 0.8").done
    assert standing(*lines, "9/9 - 1s - loss: 0.8").done


def test_a_plan_is_shown_beside_a_place_and_never_instead_of_one() -> None:
    reader = LogReader()
    reader.feed(b"max_iters = 5000\nnum_epochs = 3\nTraceback (most recent call last):\nKeyError: 'x'\n")
    assert (reader.summary().epochs, reader.summary().steps) == (None, None)
    reader.feed(b"step 1 loss 2.5\n")
    assert reader.summary().steps == 5000


@pytest.mark.parametrize(
    ("said", "device"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total ..", "cuda"),
        ("RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity)", "cuda"),
        ("torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB", "cuda"),
        ("RuntimeError: MPS backend out of memory (MPS allocated: 8.90 GB)", "mps"),
        ("RuntimeError: CUDA error: no kernel image is available", None),
        ("RuntimeError: DefaultCPUAllocator: can't allocate memory", None),
    ],
)
def test_an_exception_names_the_device_whose_memory_is_full(said: str, device: str | None) -> None:
    raised = ("Traceback (most recent call last):", '  File "train.py", line 3, in <module>', said)
    assert standing(*raised).device == device
    assert standing("Using device: cuda:1", *raised).device == "cuda:1"


def test_a_batch_that_was_skipped_for_want_of_memory_names_no_device() -> None:
    assert standing("WARNING: CUDA out of memory, skipping batch").device is None
