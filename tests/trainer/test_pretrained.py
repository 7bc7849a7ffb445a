"""Beginning with weights of another training: ours, wrapped ones, half-fitting ones, and files that hold none."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from tests.trainer.running import command, made, train
from trainer import pretrained
from trainer.errors import UsageError

CIFAR = ("--model", "tiny", "--width", "4", "--limit", "64", "--epochs", "1", "--batch-size", "32")


def network(classes: int = 3, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.ModuleDict({"body": nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8)), "head": nn.Linear(8, classes)})


def same(one: nn.Module, other: nn.Module, part: str = "") -> bool:
    found, wanted = one.state_dict(), other.state_dict()
    return all(torch.equal(found[name], wanted[name]) for name in found if name.startswith(part))


@pytest.mark.parametrize("prefix", ["", "module.", "model._orig_mod.", "net."])
@pytest.mark.parametrize("container", [None, "state_dict", "model"])
def test_wrappers_leave_names_that_fit(tmp_path: Path, prefix: str, container: str | None) -> None:
    source, model = network(seed=1), network(seed=2)
    weights = {prefix + name: tensor for name, tensor in source.state_dict().items()}
    torch.save({container: weights, "epoch": 3} if container else weights, tmp_path / "w.pt")
    found = pretrained.fill(model, tmp_path / "w.pt")
    assert same(model, source)
    assert (found.fresh, found.misshapen, found.unused) == ((), (), ())


def test_a_body_alone_fits_into_its_place(tmp_path: Path) -> None:
    source, model = network(seed=1), network(seed=2)
    body = {name.removeprefix("body."): value for name, value in source.state_dict().items() if "body" in name}
    save_file(body, tmp_path / "body.safetensors")
    found = pretrained.fill(model, tmp_path / "body.safetensors")
    assert same(model, source, "body")
    assert found.fresh == ("head.weight", "head.bias")


def test_every_name_that_does_not_fit_is_told(tmp_path: Path) -> None:
    weights = {**network(classes=10, seed=1).state_dict(), "extra.scale": torch.ones(2)}
    torch.save(weights, tmp_path / "w.pt")
    assert list(pretrained.fill(network(), tmp_path / "w.pt").lines(Path("w.pt"))) == [
        "begun with 7 of 9 weights from w.pt",
        "2 stay as drawn, the file has them in another shape: head.weight (file 10x8, model 3x8), head.bias"
        " (file 10, model 3)",
        "1 are in the file alone: extra.scale",
    ]


class Spiteful:
    """Unpickled without care it writes a file."""

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, ("pwned", "w")


def test_a_file_that_does_not_do_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.pt").write_bytes(pickle.dumps(Spiteful()))
    torch.save({"epoch": 3}, tmp_path / "empty.pt")
    torch.save({"a": torch.ones(1)}, tmp_path / "other.pt")
    for name, sentence in {
        "gone.pt": "is no file",
        "bad.pt": "cannot be read",
        "empty.pt": "holds no tensors by name",
        "other.pt": "none of its 1 tensors fits this model",
    }.items():
        with pytest.raises(UsageError, match=sentence):
            pretrained.fill(network(), tmp_path / name)
    assert not (tmp_path / "pwned").exists()


def test_a_training_begins_with_the_weights_that_another_one_validated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train("cifar", *CIFAR, "--ema", "0.5", run_dir=tmp_path / "first")
    best = tmp_path / "first" / "checkpoints" / "best.pt"
    standing = ("--lr", "1e-12", "--weight-decay", "0", "--seed", "9", "--init-from", str(best))
    train("cifar", *CIFAR, *standing, run_dir=tmp_path / "second")
    assert "note: begun with 56 of 56 weights from" in capsys.readouterr().out
    saved = torch.load(tmp_path / "second" / "checkpoints" / "best.pt", weights_only=True)["model"]
    averaged = torch.load(best, weights_only=True)["average"]
    for name, tensor in zip(averaged["names"], averaged["average"], strict=True):
        torch.testing.assert_close(saved[name], tensor, rtol=0, atol=1e-9)


def test_a_resumed_training_has_begun_already(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save(network().state_dict(), tmp_path / "other.pt")
    start = ("cifar", *CIFAR, "--device", "cpu", "--out", str(tmp_path / "out"))
    assert command(*start) == 0
    assert command(*start, "--init-from", str(tmp_path / "other.pt")) == 2
    assert command(*start, "--init-from", str(tmp_path / "other.pt"), "--resume", "latest", "--epochs", "2") == 0
    assert "begun with" not in capsys.readouterr().out


def test_a_pretrained_caduceus_fills_every_layer_but_the_head(tmp_path: Path) -> None:
    """Its names, its sixteen tokens, and weights that both directions share, as safetensors holds them: once."""
    task = made("genomics", "--width", "16", "--layers", "2", "--limit", "8")
    theirs, model = task.build_model(), task.build_model()
    weights = {"caduceus.backbone.embeddings.word_embeddings.embedding.weight": torch.randn(16, 16)}
    spelt = {
        **{"forwards": "mixer.submodule.mamba_fwd", "backwards": "mixer.submodule.mamba_rev"},
        **{"norm": "norm.submodule", "in_projection": "in_proj", "out_projection": "out_proj"},
        **{"convolution": "conv1d", "selection": "x_proj", "step_projection": "dt_proj"},
        **{"log_decay": "A_log", "skip": "D"},
    }
    for name, tensor in theirs.state_dict().items():
        head, *rest = name.split(".")
        words = ".".join(spelt.get(word, word) for word in rest)
        shared = "backwards.in_projection" in name or "backwards.out_projection" in name
        if head == "blocks" and not shared:
            weights[f"caduceus.backbone.layers.{words}"] = tensor.clone()
        elif head == "norm":
            weights[f"caduceus.backbone.norm_f.submodule.{words}"] = tensor.clone()
    weights["lm_head.weight"] = torch.zeros(16, 16)
    save_file(weights, tmp_path / "model.safetensors")
    found = pretrained.fill(model, tmp_path / "model.safetensors", task.translated)
    assert found.fresh == ("head.weight", "head.bias")
    assert (found.misshapen, found.unused) == ((), ("lm_head.weight",))
    embedding = weights["caduceus.backbone.embeddings.word_embeddings.embedding.weight"]
    torch.testing.assert_close(model.embed.weight, embedding[[4, 3, 1, 7, 8, 9, 10, 11]], rtol=0, atol=0)
    assert same(model.blocks, theirs.blocks)


def test_two_towers_in_one_file_and_what_a_training_saves_beside_them(tmp_path: Path) -> None:
    """Networks under names of their own, an optimizer, arguments with paths, a loss that is a single numpy number."""
    model, other = network(seed=2), network(seed=1)
    body = {name.removeprefix("body."): value for name, value in other.state_dict().items() if "body" in name}
    held = {
        "epoch": 3,
        "body_state_dict": body,
        "head_state_dict": {"weight": other["head"].weight, "bias": other["head"].bias},  # type: ignore[index]
        "optimizer_state_dict": {"state": {}, "step": torch.ones(1)},
        "args": {"save_dir": tmp_path, "lr": 1e-4},
        "loss": np.float64(0.5),
    }
    torch.save(held, tmp_path / "epoch3.pt")
    found = pretrained.fill(model, tmp_path / "epoch3.pt")
    assert same(model, other)
    assert (found.fresh, found.unused) == ((), ())


@pytest.mark.parametrize("task", ["twotower", "gsdiff"])
def test_weights_of_another_network_are_refused_with_names_of_both(tmp_path: Path, task: str) -> None:
    """The original programs' networks are built otherwise: nothing of them fits, and no name is taken for another."""
    theirs = {f"transformer_layers.{layer}.self_attn.WQ.weight": torch.randn(256, 256) for layer in range(12)}
    torch.save(theirs | {"time_embedding1.0.bias": torch.randn(512)}, tmp_path / "model0100000.pt")
    model = made(task, "--width", "32", "--layers", "1", "--limit", "8").build_model()
    sentence = r"none of its 13 tensors fits this model \(it has transformer_layers.* the model \w+"
    with pytest.raises(UsageError, match=sentence):
        pretrained.fill(model, tmp_path / "model0100000.pt")
