"""The selective scan equals the recurrence it stands for, forward and backward, whatever the length."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from trainer.models import selective_scan as module
from trainer.models.mamba import MambaBlock, MambaMixer, RMSNorm, undecayed
from trainer.models.selective_scan import scan_, selective_scan


def _inputs(length: int, *, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(length)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=dtype)

    x, b, c = drawn(2, length, 3), drawn(2, length, 4), drawn(2, length, 4)
    delta = scale * torch.nn.functional.softplus(drawn(2, length, 3))
    return [tensor.requires_grad_() for tensor in (x, delta.detach(), -drawn(3, 4).exp(), b, c)]


def _sequential(
    x: torch.Tensor, delta: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor
) -> torch.Tensor:
    """The recurrence, one position after another."""
    state = x.new_zeros(x.shape[0], x.shape[2], a.shape[1])
    outputs = []
    for t in range(x.shape[1]):
        state = torch.exp(delta[:, t, :, None] * a) * state + (delta * x)[:, t, :, None] * b[:, t, None]
        outputs.append((state * c[:, t, None]).sum(-1))
    return torch.stack(outputs, dim=1)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 2, 3, 5, 8, 13, 64, 100])
def test_scan_equals_the_loop(length: int, reverse: bool) -> None:
    generator = torch.Generator().manual_seed(length)
    decay, values = (torch.rand(2, length, 3, generator=generator) for _ in range(2))
    expected, state = values.clone(), torch.zeros(2, 3)
    for t in reversed(range(length)) if reverse else range(length):
        state = decay[:, t] * state + values[:, t]
        expected[:, t] = state
    scan_(decay, values, reverse=reverse)
    torch.testing.assert_close(values, expected)


@pytest.mark.parametrize("chunk", [16, 10_000])
@pytest.mark.parametrize("length", [1, 7, 16, 33, 70])
def test_selective_scan_and_its_gradients_equal_the_recurrence(
    monkeypatch: pytest.MonkeyPatch, length: int, chunk: int
) -> None:
    monkeypatch.setitem(module._CHUNK_ELEMENTS, "cpu", chunk * 2 * 12)
    found_inputs, expected_inputs = _inputs(length), _inputs(length)
    found, expected = selective_scan(*found_inputs), _sequential(*expected_inputs)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    weights = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1))
    (found * weights).sum().backward()  # type: ignore[no-untyped-call]
    (expected * weights).sum().backward()  # type: ignore[no-untyped-call]
    for mine, theirs in zip(found_inputs, expected_inputs, strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-3, atol=1e-4)


def test_gradients_equal_finite_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module._CHUNK_ELEMENTS, "cpu", 1)
    apply: Any = module._SelectiveScan.apply
    assert torch.autograd.gradcheck(apply, tuple(_inputs(19, dtype=torch.float64)))


@pytest.mark.parametrize("scale", [1e-4, 50.0])
def test_long_sequences_stay_finite_for_slow_and_for_instant_decay(scale: float) -> None:
    inputs = _inputs(3000, scale=scale)
    found = selective_scan(*inputs)
    found.square().mean().backward()  # type: ignore[no-untyped-call]
    torch.testing.assert_close(found, _sequential(*_inputs(3000, scale=scale)), rtol=1e-3, atol=1e-4)
    assert all(torch.isfinite(tensor.grad).all() for tensor in inputs if tensor.grad is not None)


def test_autocast_does_not_reach_the_states() -> None:
    inputs = _inputs(40)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = selective_scan(*inputs)
    torch.testing.assert_close(found, _sequential(*inputs), rtol=1e-4, atol=1e-5)


def test_the_mixer_is_causal_and_reads_its_whole_past() -> None:
    torch.manual_seed(0)
    mixer = MambaMixer(8, states=4)
    sequence = torch.randn(1, 20, 8)
    changed = sequence.clone()
    changed[:, 10] += 1.0
    difference = (mixer(changed) - mixer(sequence)).detach().abs().sum(-1)[0]
    assert float(difference[:10].max()) == 0.0
    assert float(difference[10:].min()) > 0.0


def test_a_block_trains_under_autocast_and_names_what_must_not_decay() -> None:
    torch.manual_seed(0)
    block = MambaBlock(8, states=4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = block(torch.randn(2, 12, 8)).float().square().mean()
    loss.backward()
    assert all(parameter.grad is not None for parameter in block.parameters())
    spared = [name for name, _ in block.named_parameters() if undecayed(name)]
    assert spared == ["mixer.log_decay", "mixer.skip"]


def test_a_compiled_block_gives_the_same_around_an_uncompiled_scan() -> None:
    torch.manual_seed(0)
    block, sequence = MambaBlock(8, states=4), torch.randn(2, 12, 8)
    compiled = torch.compile(block, backend="eager")
    torch.testing.assert_close(compiled(sequence), block(sequence))


def test_the_norm_is_that_of_torch() -> None:
    vectors = torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(RMSNorm(8)(vectors), torch.nn.RMSNorm(8, eps=1e-5)(vectors))
