"""Both stages of structural graph diffusion: they learn what is there, nothing from noise, and go on exactly."""

from __future__ import annotations

import argparse
import math
import os
import pickle
from pathlib import Path
from unittest import mock

import pytest
import torch

from tests.trainer.building import points
from tests.trainer.floor_plans import save, write_folder
from tests.trainer.running import made
from trainer import options
from trainer.__main__ import main
from trainer.control import Control
from trainer.data import synthetic_plans
from trainer.data.plan_tensors import channels_of, corners_of, plans_of, symmetric, trimmed
from trainer.data.plans import CORNERS, FEATURES, stacked
from trainer.device import Device
from trainer.errors import UsageError
from trainer.models import corner_diffusion as diffusion
from trainer.models.wall_prediction import WallPredictor
from trainer.run import run
from trainer.tasks._gsdiff_stages import CornerStage, Drawings
from trainer.tasks.gsdiff import Gsdiff

TINY = ("--width", "32", "--layers", "2", "--heads", "2", "--batch-size", "16", "--accumulate", "1", "--device", "cpu")
QUIET = ("--report-every", "1", "--samples", "2", "--sample-steps", "3")


def _parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    Gsdiff.add_arguments(parser)
    options.add_arguments(parser, Gsdiff.DEFAULTS)
    return parser.parse_args([*TINY, *QUIET, *arguments])


def _train(*arguments: str, run_dir: Path) -> None:
    args = _parsed(*arguments)
    with mock.patch.dict(os.environ, {"MPSTUI_RUN_DIR": str(run_dir)}):
        run("gsdiff", args, os.environ, Control())


def _last(run_dir: Path, name: str) -> float:
    value: float = points(run_dir, name)[-1][1]
    return value


def _batch(count: int = 4) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    corners, real, walls = stacked(synthetic_plans.generated(0, 1, count), range(count))
    return torch.from_numpy(corners), torch.from_numpy(real), torch.from_numpy(walls)


def test_noise_is_the_cosine_schedule_and_can_be_undone() -> None:
    steps = torch.tensor([0, 250, 500, 1000])
    share = diffusion.signal(steps)
    assert share[0] > 0.999
    assert share[2] == pytest.approx(0.494, abs=0.002)
    assert share[3] <= 1e-4
    clean, noise = torch.randn(2, 4, CORNERS, 10)
    noisy = diffusion.noised(clean, noise, steps)
    said = diffusion.velocity(clean, noise, steps)
    assert torch.allclose(diffusion.cleaned(noisy, said, steps), clean, atol=1e-3)


def test_padding_is_masked_as_far_as_the_noise_lets_it_be_known() -> None:
    noisy = torch.zeros(2, 2, 10)
    noisy[:, 0, -1], noisy[:, 1, -1] = 1.0, -1.0  # padding, corner
    mask = diffusion.padding_mask(noisy, torch.tensor([10, 999]))[:, 0, 0]
    assert mask[0, 0] < -20 < mask[0, 1]
    assert torch.allclose(mask[1], torch.full((2,), 0.5).log(), atol=0.05)


def test_a_perfect_model_samples_the_plan_it_means() -> None:
    corners, real, _ = _batch(2)
    clean = channels_of(corners, real)

    class Perfect(torch.nn.Module):
        def forward(self, noisy: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
            share = diffusion.signal(step)[:, None, None]
            return (share.sqrt() * noisy - clean) / (1 - share).sqrt()

    torch.manual_seed(0)
    found = [
        x
        for x in diffusion.sampled(Perfect(), torch.randn_like(clean), 5, lambda: torch.randn_like(clean))
        if x is not None
    ]
    places, here = corners_of(found[-1])
    assert torch.equal(here, real)
    assert torch.allclose(places, corners, atol=1e-3)


def test_corners_are_denoised_in_reading_order_whatever_order_they_come_in() -> None:
    corners, real, walls = _batch()
    order = torch.randperm(CORNERS, generator=torch.Generator().manual_seed(1))
    stage = CornerStage(_parsed(), Drawings(Path(), 0, 1, 1), 0)
    one, other = (
        stage.batch(places, here, walls, torch.Generator().manual_seed(2))
        for places, here in ((corners, real), (corners[:, order], real[:, order]))
    )
    assert all(torch.equal(one[name], other[name]) for name in one)
    for places, here in zip(one["clean"], one["real"], strict=True):
        count = int(here.sum())
        assert here[:count].all()
        found = [(round(float(y) * 16), float(x)) for x, y in places[:count, :2]]
        assert found == sorted(found)
        assert (places[count:, -1] == 1).all()


def test_a_plan_of_more_corners_than_slots_is_refused() -> None:
    stage = CornerStage(_parsed("--slots", "4"), Drawings(Path(), 0, 1, 1), 0)
    with pytest.raises(UsageError, match="more than 4 corners; use --slots 53"):
        stage.batch(*_batch(), torch.Generator().manual_seed(2))


def test_no_generated_plan_has_more_corners_than_its_slots() -> None:
    assert max(int(plan.real.sum()) for plan in synthetic_plans.generated(0, 1, 400)) <= synthetic_plans.MOST_CORNERS


def test_walls_do_not_depend_on_the_order_of_corners() -> None:
    corners, real, _ = _batch()
    order = torch.randperm(CORNERS, generator=torch.Generator().manual_seed(1))
    torch.manual_seed(0)
    predictor = WallPredictor(FEATURES, 32, 2, 2)
    said, moved = predictor(corners, real)[1], predictor(corners[:, order], real[:, order])[1]
    assert torch.allclose(said, said.mT, atol=1e-5)
    assert torch.allclose(said[:, order][:, :, order], moved, atol=1e-4)


def test_walls_do_not_depend_on_padding() -> None:
    corners, real, walls = _batch()
    torch.manual_seed(0)
    predictor = WallPredictor(FEATURES, 32, 2, 2)
    pairs = real[:, :, None] & real[:, None]
    filled = torch.where(real[..., None], corners, torch.rand_like(corners))
    first, other = (predictor(places, real)[1][pairs] for places in (corners, filled))
    assert torch.allclose(first, other, atol=1e-4)
    short = trimmed(corners, real, walls)
    assert short[0].shape[1] == 16
    few = short[1][:, :, None] & short[1][:, None]
    assert torch.allclose(predictor(*short[:2])[1][few], first, atol=1e-4)


def test_mirroring_and_turning_change_no_wall() -> None:
    corners, real, walls = _batch(8)
    turned = symmetric(corners, torch.Generator().manual_seed(0))
    plans = plans_of(channels_of(turned, real), walls)
    before, after = (torch.cdist(places[..., :2], places[..., :2]) for places in (corners, turned))
    assert torch.allclose(before, after, atol=1e-5)
    assert not torch.equal(corners, turned)
    assert torch.equal(torch.from_numpy(plans[3].walls), walls[3])


def test_stage_2_learns_walls_and_nothing_from_shuffled_ones(tmp_path: Path) -> None:
    learning = ("--stage", "2", "--limit", "240", "--lr", "4e-3", "--sample-every", "3")
    _train(*learning, "--epochs", "3", run_dir=tmp_path / "learnt")
    _train(*learning, "--epochs", "2", "--shuffle-labels", run_dir=tmp_path / "shuffled")
    assert _last(tmp_path / "learnt", "val_wall_f1") > 0.7
    assert _last(tmp_path / "shuffled", "val_wall_f1") < 0.1
    assert _last(tmp_path / "learnt", "val_aligned") == 1
    assert (tmp_path / "learnt" / "samples" / "plans-0003.png").is_file()


@pytest.mark.parametrize("stage", ["1", "2"])
def test_stopped_inside_an_epoch_and_resumed_equals_uninterrupted(tmp_path: Path, stage: str) -> None:
    small = ("--stage", stage, "--limit", "48", "--epochs", "2", "--sample-every", "2", "--ema", "0.9")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    _train(*small, run_dir=whole)
    _train(*small, "--stop-after", "4", run_dir=parts)
    _train(*small, "--resume", "latest", run_dir=parts)
    for name in ("loss", "val_loss", "val_aligned"):
        assert points(parts, name) == points(whole, name)
    assert len(points(whole, "val_aligned")) == 1


def test_stage_2_draws_from_the_newest_checkpoint_of_stage_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    data = ("--data", str(write_folder(tmp_path / "plans")))
    _train(*data, "--epochs", "2", "--ema", "0.9", run_dir=first)
    handed_over = ("--stage1-checkpoint", str(first / "checkpoints"))
    _train(*data, "--stage", "2", "--epochs", "1", "--sample-every", "1", *handed_over, run_dir=second)
    assert "drew 2 plans" in capsys.readouterr().out
    assert "corners of stage 1" in (second / "samples" / "plans-0001.svg").read_text()
    with pytest.raises(UsageError, match=r"--stage1-checkpoint: .* it is not of gsdiff --stage 1; name a checkpoint"):
        _train("--stage", "2", "--stage1-checkpoint", str(second / "checkpoints"), run_dir=tmp_path)
    with pytest.raises(UsageError, match="--stage1-checkpoint is for --stage 2"):
        _train(*handed_over, run_dir=tmp_path)


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_bad_file_met_while_training_is_one_sentence_and_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], workers: str
) -> None:
    folder = write_folder(tmp_path / "plans")
    save(folder / "train" / "99.npy", {"edges": 1})
    options = [*TINY, "--data", str(folder), "--out", str(tmp_path / "out"), "--workers", workers]
    assert main(["gsdiff", *options]) == 2
    printed = capsys.readouterr().err.splitlines()
    assert len(printed) == 1
    assert "train/99.npy: the key corner_list_np_normalized_padding_withsemantics is missing; remove or" in printed[0]


def test_check_data_counts_and_names_bad_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_folder(tmp_path / "plans")
    command = ["gsdiff", "--data", str(folder), "--check-data"]
    assert main(command) == 0
    assert "train plans: 12\n  val plans: 4\n  test plans: 2\n" in capsys.readouterr().out
    save(folder / "test" / "5.npy", {"edges": 1})
    assert main(command) == 2
    printed = capsys.readouterr().out
    assert "problem: " + str(folder / "test" / "5.npy") in printed
    assert "test plans: 2\n" in printed, "a file that is no plan is counted as one"
    assert main(["gsdiff", "--data", str(tmp_path), "--check-data"]) == 2


@pytest.mark.parametrize(("stage", "cuda", "other"), [("1", (256, 1), (64, 1)), ("2", (8, 1), (4, 1))])
def test_sizes_follow_stage_and_device(stage: str, cuda: tuple[int, int], other: tuple[int, int]) -> None:
    defaults = made("gsdiff", "--stage", stage, "--limit", "4").DEFAULTS
    assert defaults.sizes("cuda") == cuda
    assert defaults.sizes("mps") == defaults.sizes("cpu") == other


class _Alone(torch.nn.Module):
    """Denoises each slot by itself, the same way whatever the others are."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("validations", torch.zeros((), dtype=torch.long))

    def forward(self, noisy: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        return self.said(noisy, noisy * 0.9, step)

    def said(self, noisy: torch.Tensor, clean: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        """The velocity that means these clean plans."""
        share = diffusion.signal(step)[:, None, None]
        return (share.sqrt() * noisy - clean) / (1 - share).sqrt()


class _Knowing(_Alone):
    """Knows the plans there are and takes the whole one that is nearest."""

    def __init__(self, plans: torch.Tensor) -> None:
        super().__init__()
        self._plans = plans

    def forward(self, noisy: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        nearest = torch.cdist(noisy.flatten(1), self._plans.flatten(1)).argmin(dim=1)
        return self.said(noisy, self._plans[nearest], step)


def test_stage_1_learns_how_corners_belong_together_and_nothing_from_shuffled_ones(tmp_path: Path) -> None:
    wish = ("--stage", "1", "--width", "48", "--heads", "4", "--batch-size", "32", "--limit", "1000", "--lr", "0.004",
            "--epochs", "4", "--eval-every", "4", "--sample-every", "0")  # fmt: skip
    _train(*wish, run_dir=tmp_path / "true")
    assert _last(tmp_path / "true", "val_structure") > 0.03
    _train(*wish, "--shuffle-labels", run_dir=tmp_path / "shuffled")
    assert _last(tmp_path / "shuffled", "val_structure") < 0  # chance is 0 or less


def test_structure_is_what_a_model_knows_of_plans_as_a_whole() -> None:
    some = synthetic_plans.generated(0, 1, 40)
    stage = CornerStage(_parsed("--sample-every", "0"), Drawings(Path(), 0, 1, 1), 0)
    plans = stage.batch(*_batch(40), torch.Generator())["clean"]
    alone, knowing = (
        [found for found in stage.evaluate(model, Device(), some) if found][-1]["val_structure"]
        for model in (_Alone(), _Knowing(plans))
    )
    assert abs(alone) < 1e-5
    assert knowing > 0.9


def test_loader_processes_are_not_handed_the_model_that_draws(tmp_path: Path) -> None:
    _train("--limit", "16", "--epochs", "1", "--sample-every", "0", run_dir=tmp_path)
    task = Gsdiff(_parsed("--stage", "2", "--limit", "16", "--stage1-checkpoint", str(tmp_path / "checkpoints")))
    alone = Gsdiff(_parsed("--stage", "2", "--limit", "16", "--stage1-checkpoint", ""))
    assert len(pickle.dumps(task)) < len(pickle.dumps(alone)) + 200
    copy = pickle.loads(pickle.dumps(task))
    numbers = torch.arange(4)
    assert all(torch.equal(value, copy.batch(numbers, 3)[name]) for name, value in task.batch(numbers, 3).items())


def test_sampling_with_exact_knowledge_draws_from_the_right_distribution() -> None:
    share_of_padding = 0.78

    class Exact(torch.nn.Module):
        """The posterior mean of independent bits that are 1 with a known probability."""

        def forward(self, noisy: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
            share = diffusion.signal(step)[:, None, None]
            before = math.log(share_of_padding / (1 - share_of_padding)) / 2
            clean = torch.tanh(before + share.sqrt() * noisy / (1 - share))
            return (share.sqrt() * noisy - clean) / (1 - share).sqrt()

    generator = torch.Generator().manual_seed(0)
    drawn = list(diffusion.sampled(Exact(), torch.randn(400, CORNERS, 1, generator=generator), 50,
                                   lambda: torch.randn(400, CORNERS, 1, generator=generator)))[-1]  # fmt: skip
    assert drawn is not None
    assert float((drawn > 0).float().mean()) == pytest.approx(share_of_padding, abs=0.015)
