"""Residual networks for small images: ResNet (He et al., 2016) with a 3x3 stem, Wide ResNet (Zagoruyko, 2016)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from .batch_norm import BatchNorm

_NARROW = 16
"""Channels that fill a vector of AVX-512; AVX2's hold 8."""


class Conv1x1(nn.Conv2d):
    """A convolution of single pixels, without bias.

    With a stride, and fewer channels-last channels than fill a vector, oneDNN computes the weight's gradient beyond its
    workspace: it crashes, hangs or is wrong (oneDNN#6035, in torch 2.13). So the pixels are selected first.
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__(inputs, outputs, 1, stride=stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, inputs, height, width) -> (batch, outputs, height / stride, width / stride)."""
        if self.in_channels >= _NARROW or x.device.type != "cpu":
            return super().forward(x)
        down, right = self.stride
        return F.conv2d(x[:, :, ::down, ::right], self.weight)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut; batch norm after each convolution."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _conv3x3(inputs, outputs, stride)
        self.bn1 = BatchNorm(outputs)
        self.conv2 = _conv3x3(outputs, outputs, 1)
        self.bn2 = BatchNorm(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(Conv1x1(inputs, outputs, stride), BatchNorm(outputs))

    def forward(self, both: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """(batch, inputs, height, width) -> (batch, outputs, height / stride, width / stride).

        Input and output are pairs of equal activations: for the convolutions and for the shortcut
        (:meth:`BatchNorm.twice`).
        """
        x, again = both
        out = self.bn1(self.conv1(x), relu=True)
        return self.bn2.twice(self.conv2(out), self.shortcut(again))


class ResNet(nn.Module):
    """The CIFAR variant: 3x3 stem without max-pool, one stage for each width, the first at full resolution."""

    HAS_KERNELS = True
    """Those of :class:`BatchNorm`; compiled, it is slower."""

    def __init__(self, blocks: Sequence[int], width: int, classes: int, channels: int = 3) -> None:
        super().__init__()
        self.conv1 = _conv3x3(channels, width, 1)
        self.bn1 = BatchNorm(width)
        stages: list[nn.Module] = []
        inputs = width
        for stage, count in enumerate(blocks):
            outputs = width << stage
            strides = [1 if stage == 0 else 2] + [1] * (count - 1)
            stages += [BasicBlock(inputs if i == 0 else outputs, outputs, stride) for i, stride in enumerate(strides)]
            inputs = outputs
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(inputs, classes)
        _initialise(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, channels, height, width) -> logits (batch, classes)."""
        out, _ = self.stages(self.bn1.twice(self.conv1(x)))
        return self.head(out.mean(dim=(2, 3)))  # type: ignore[no-any-return]


class PreActivationBlock(nn.Module):
    """Batch norm and ReLU before each convolution, as in Wide ResNets."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.bn1 = BatchNorm(inputs)
        self.conv1 = _conv3x3(inputs, outputs, stride)
        self.bn2 = BatchNorm(outputs)
        self.conv2 = _conv3x3(outputs, outputs, 1)
        self.shortcut: nn.Module | None = None
        if stride != 1 or inputs != outputs:
            self.shortcut = Conv1x1(inputs, outputs, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, inputs, height, width) -> (batch, outputs, height / stride, width / stride)."""
        activated = self.bn1(x, relu=True)
        kept = x if self.shortcut is None else self.shortcut(activated)
        out = self.conv1(activated)
        return kept + self.conv2(self.bn2(out, relu=True))  # type: ignore[no-any-return]


class WideResNet(nn.Module):
    """WRN-depth-factor: three stages of (depth - 4) / 6 blocks, widths 16, 32 and 64 times ``factor``."""

    def __init__(self, depth: int, factor: int, classes: int, channels: int = 3) -> None:
        super().__init__()
        self.conv1 = _conv3x3(channels, 16, 1)
        stages: list[nn.Module] = []
        inputs = 16
        for stage in range(3):
            outputs = (16 << stage) * factor
            for block in range((depth - 4) // 6):
                stages.append(PreActivationBlock(inputs, outputs, 2 if stage and block == 0 else 1))
                inputs = outputs
        self.stages = nn.Sequential(*stages)
        self.bn = BatchNorm(inputs)
        self.head = nn.Linear(inputs, classes)
        _initialise(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, channels, height, width) -> logits (batch, classes)."""
        out = self.bn(self.stages(self.conv1(x)), relu=True)
        return self.head(out.mean(dim=(2, 3)))  # type: ignore[no-any-return]


def _conv3x3(inputs: int, outputs: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)


def _initialise(model: nn.Module) -> None:
    """He initialisation by fan-out for convolutions (He et al., 2015); torch's default elsewhere."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
