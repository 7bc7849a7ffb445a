"""The networks have the sizes their papers give."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from trainer.data import images
from trainer.models.resnet import Conv1x1, ResNet, WideResNet
from trainer.models.whitened import WhitenedNet


@pytest.mark.parametrize(
    ("build", "parameters"),
    [(lambda: ResNet((2, 2, 2, 2), 64, 10), 11_173_962), (lambda: WideResNet(16, 4, 10), 2_748_890)],
    ids=["resnet18", "wrn-16-4"],
)
def test_parameters_and_shapes(build: Callable[[], torch.nn.Module], parameters: int) -> None:
    model = build()
    assert sum(weight.numel() for weight in model.parameters()) == parameters
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


def test_the_first_layer_of_a_whitened_network_gives_patches_equal_variance_in_every_direction() -> None:
    found = images.synthetic(0, train=400, validation=10)
    pixels = images.normalised(found.train_images, *found.statistics())
    model = WhitenedNet((8, 16, 16), 2, 10)
    model.whiten(pixels)
    answers = model.whitening(pixels).transpose(0, 1).flatten(1)
    assert torch.equal(answers[:12], -answers[12:])
    covariance = answers[:12] @ answers[:12].T / answers.shape[1]
    torch.testing.assert_close(covariance, torch.eye(12), atol=0.05, rtol=0)
    assert not model.whitening.weight.requires_grad


def test_of_equal_largest_activations_one_has_the_gradient() -> None:
    """That of amax is divided by their number, which a compiler that rounds otherwise than before may find to be 0."""
    model = WhitenedNet((2, 4, 4), 2, 10)
    equal = torch.zeros(1, 4, 3, 3, requires_grad=True)
    model.stages = torch.nn.Sequential(_Given(equal))
    model(torch.zeros(1, 3, 32, 32)).sum().backward()
    assert equal.grad is not None
    assert (equal.grad != 0).flatten(2).sum(dim=2).tolist() == [[1, 1, 1, 1]]


@pytest.mark.parametrize("convolutions", [2, 3])
def test_every_trained_weight_of_a_whitened_network_is_in_one_group(convolutions: int) -> None:
    model = WhitenedNet((8, 16, 16), convolutions, 10)
    grouped = [weight for group in model.parameter_groups() for weight in group["params"]]
    assert {id(weight) for weight in grouped} == {id(one) for one in model.parameters() if one.requires_grad}
    assert len(grouped) == len({id(weight) for weight in grouped})
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


class _Given(torch.nn.Module):
    """Answers always the same."""

    def __init__(self, answer: torch.Tensor) -> None:
        super().__init__()
        self._answer = answer

    def forward(self, _: torch.Tensor) -> torch.Tensor:
        """What was given."""
        return self._answer


@pytest.mark.parametrize("channels", [1, 4, 7, 8, 24])
@pytest.mark.parametrize("stride", [1, 2])
def test_a_convolution_of_single_pixels_has_the_right_gradient_however_narrow(channels: int, stride: int) -> None:
    """oneDNN's own, of channels-last images with few channels, ends the process."""
    convolution = Conv1x1(channels, 8, stride)
    x = torch.randn(16, channels, 9, 9).contiguous(memory_format=torch.channels_last)
    chosen = x[:, :, ::stride, ::stride]
    found = convolution(x)
    found.sum().backward()
    torch.testing.assert_close(found, torch.einsum("oi,niyx->noyx", convolution.weight[:, :, 0, 0], chosen))
    expected = chosen.sum(dim=(0, 2, 3)).expand(8, channels)
    assert convolution.weight.grad is not None
    torch.testing.assert_close(convolution.weight.grad[:, :, 0, 0], expected, rtol=1e-4, atol=1e-4)
