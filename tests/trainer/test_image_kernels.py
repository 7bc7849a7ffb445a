"""The images of a step: a kernel on CUDA (run here by Triton's interpreter) makes what torch's operations make."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch

from tests.trainer.conftest import Interpreted
from trainer.data import images


@pytest.fixture
def own(interpreted: Interpreted) -> ModuleType:
    return interpreted("trainer.data.image_kernels")


@pytest.mark.parametrize("cut", [0, 3, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_kernel_makes_the_images_that_torch_makes(own: ModuleType, cut: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(1)
    given = torch.randint(0, 256, (5, 3, 8, 8), generator=generator, dtype=torch.uint8)
    mean, deviation = torch.tensor([0.4, 0.5, 0.6]), torch.tensor([0.2, 0.3, 0.1])
    bordered = images.padded(given, mean)
    samples = torch.tensor([4, 0, 2, 2, 1, 3, 3])
    crops = images.drawn_crops(len(samples), 2)
    assert {0, 1} == set(crops[:, 2].tolist())
    expected = images.normalised(images.cropped(bordered, samples, crops), mean, deviation)
    centres = images.drawn_centres(len(samples), 3, size=8) if cut else None
    if centres is not None:
        expected = images.cut_out(expected, centres, cut)
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype is torch.bfloat16):
        found = own.shown(bordered, torch.cat([samples[:, None], crops], dim=1), mean, deviation, centres, cut)
    assert found.dtype == dtype
    assert found.is_contiguous(memory_format=torch.channels_last)
    tolerance = 1e-2 if dtype is torch.bfloat16 else 1e-5
    torch.testing.assert_close(found, expected.to(dtype), rtol=tolerance, atol=tolerance)
