"""Images: read without running code, generated honestly, changed as whole batches."""

from __future__ import annotations

import codecs
import os
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.trainer.building import job, train
from trainer.__main__ import main
from trainer.data import cifar, images
from trainer.data.restricted_pickle import load_restricted
from trainer.errors import UsageError


def _write_cifar10(folder: Path, per_file: int = 4) -> None:
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    for name in [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]:
        pixels = random.integers(0, 256, (per_file, 3072), dtype=np.uint8)
        record = {b"data": pixels, b"labels": random.integers(0, 10, per_file).tolist(), b"batch_label": name.encode()}
        (folder / name).write_bytes(pickle.dumps(record, protocol=2))


def test_reads_the_published_layout_from_the_folder_or_its_parent(tmp_path: Path) -> None:
    _write_cifar10(tmp_path / "cifar-10-batches-py")
    found = cifar.read(tmp_path, "cifar10")
    again = cifar.read(tmp_path / "cifar-10-batches-py", "cifar10")
    assert found.train_images.shape == (20, 3, 32, 32)
    assert found.validation_images.shape == (4, 3, 32, 32)
    assert found.train_images.dtype == torch.uint8
    assert torch.equal(found.train_images, again.train_images)
    assert found.classes == 10


def test_reads_cifar_100_by_its_fine_labels(tmp_path: Path) -> None:
    for name, count in (("train", 6), ("test", 2)):
        record = {
            b"data": np.zeros((count, 3072), np.uint8),
            b"fine_labels": [99] * count,
            b"coarse_labels": [3] * count,
        }
        (tmp_path / name).write_bytes(pickle.dumps(record, protocol=2))
    found = cifar.read(tmp_path, "cifar100")
    assert found.classes == 100
    assert found.train_labels.tolist() == [99] * 6


@pytest.mark.parametrize("action", [os.system, eval, print])
def test_a_pickle_that_names_code_is_refused_before_it_runs(tmp_path: Path, action: Any) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return action, (f"open({str(tmp_path / 'touched')!r}, 'w')",)

    with pytest.raises(pickle.UnpicklingError, match="not allowed in a data file"):
        load_restricted(pickle.dumps({b"data": Hostile()}, protocol=2))
    assert not (tmp_path / "touched").exists()


_ARRAYS = (
    np.arange(6, dtype=np.uint8).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.array([1.5], dtype=">f4"),
    np.array(["one", "other"]),
    np.float32(2),
)


@pytest.mark.parametrize("protocol", range(5))
def test_arrays_come_back_as_they_were_pickled(protocol: int) -> None:
    found, plain = (load(pickle.dumps(_ARRAYS, protocol)) for load in (load_restricted, pickle.loads))
    for array, known in zip(found, plain, strict=True):
        np.testing.assert_array_equal(array, known)
        assert (array.dtype, array.shape) == (known.dtype, known.shape)
    boxed = load_restricted(pickle.dumps(np.array({"corners": np.ones(2)}, dtype=object), protocol))
    assert boxed.item()["corners"].sum() == 2


class _Forged:
    """Pickled as a type, an array or a number that a pickle puts together by itself."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __reduce__(self) -> tuple[Any, ...]:
        return self.parts


_OBJECTS_WITHOUT_THEIR_FLAG = _Forged(np.dtype, ("O8", False, True), (3, "|", None, None, None, -1, -1, 0))
_RECORD_OF_OBJECTS = _Forged(
    np.dtype,
    ("V8", False, True),
    (3, "|", None, ("a",), {"a": (np.dtype(object), 0)}, 8, 1, 0),
)
_EMPTY = (np.ndarray, (0,), b"b")
_BUILD = np.zeros(0).__reduce__()[0]


@pytest.mark.parametrize(
    "forged",
    [
        _Forged(_BUILD, _EMPTY, (1, (1,), _OBJECTS_WITHOUT_THEIR_FLAG, False, b"A" * 8)),
        _Forged(_BUILD, _EMPTY, (1, (1,), _RECORD_OF_OBJECTS, False, b"A" * 8)),
        _Forged(_BUILD, _EMPTY, (1, (4,), np.dtype(object), False, [None])),
        _Forged(_BUILD, _EMPTY, (1, (2**62, 4), np.dtype(np.uint8), False, b"")),
        _Forged(_BUILD, _EMPTY, (1, (-1, -8), np.dtype(np.uint8), False, b"A" * 8)),
        _Forged(np.ndarray, ((1,), np.dtype(object))),
        _Forged(np.float64(1).__reduce__()[0], (_OBJECTS_WITHOUT_THEIR_FLAG, b"A" * 8)),
        _Forged(np.float64(1).__reduce__()[0], (np.dtype(np.float64), b"A")),
        _Forged(codecs.encode, ("A" * 8, "rot13")),
    ],
)
@pytest.mark.parametrize("protocol", [2, 4])
def test_a_pickle_cannot_forge_a_type_or_an_array(forged: Any, protocol: int) -> None:
    with pytest.raises((pickle.UnpicklingError, TypeError)):
        load_restricted(pickle.dumps([forged], protocol))


def _zeros_in_the_memo(size: int) -> bytes:
    """The pickle of a state that fills an array with ``size`` zeros, in the memo as 1."""
    return pickle.dumps((1, (size,), np.dtype("u1"), False, b"\0" * size), 2)[2:-1] + b"q\xf0"


_AN_ARRAY = b"cnumpy._core.multiarray\n_reconstruct\n)R"
_MEBIBYTE = 1 << 20


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02Nr\xff\xff\xff\x7f.",
        b"Np999999999\n.",
        b"N" + b"0N" * 100 + b"r\xff\xff\xff\x0f.",
        b"\x80\x02]" + b"c_codecs\nencode\nq\x010" + pickle.dumps("x" * _MEBIBYTE, 2)[2:-1]
        + b"U\x06latin1\x86q\x020" + b"h\x01h\x02Ra" * 200 + b".",
        b"\x80\x02]" + _zeros_in_the_memo(_MEBIBYTE) + b"0" + (_AN_ARRAY + b"h\xf0ba") * 200 + b".",
    ],
    ids=["memo", "memo-text", "memo-behind", "texts", "arrays"],
)  # fmt: skip
def test_a_small_pickle_does_not_take_gigabytes(content: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(pickle.UnpicklingError):
            load_restricted(content)
        assert tracemalloc.get_traced_memory()[1] < 8 * len(content) + 20 * _MEBIBYTE
    finally:
        tracemalloc.stop()


def test_a_hostile_batch_becomes_one_sentence(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return os.system, (f"touch {tmp_path}/touched",)

    _write_cifar10(tmp_path / "cifar-10-batches-py")
    bad = tmp_path / "cifar-10-batches-py" / "data_batch_3"
    bad.write_bytes(pickle.dumps(Hostile(), protocol=2))
    with pytest.raises(UsageError, match=r"data_batch_3 is not a cifar10 batch \(posix\.system is not allowed"):
        cifar.read(tmp_path, "cifar10")
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize(
    "record",
    [
        {b"data": np.zeros((2, 3071), np.uint8), b"labels": [0, 1]},
        {b"data": np.zeros((2, 3072), np.float32), b"labels": [0, 1]},
        {b"data": np.zeros((2, 3072), np.uint8), b"labels": [0, 10]},
        {b"data": np.zeros((2, 3072), np.uint8)},
    ],
)
def test_batches_of_another_shape_are_refused(tmp_path: Path, record: dict[bytes, Any]) -> None:
    _write_cifar10(tmp_path / "cifar-10-batches-py")
    (tmp_path / "cifar-10-batches-py" / "test_batch").write_bytes(pickle.dumps(record, protocol=2))
    with pytest.raises(UsageError, match="test_batch is not a cifar10 batch"):
        cifar.read(tmp_path, "cifar10")


def test_a_folder_that_is_not_cifar_is_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=rf"--data {tmp_path}: no cifar10 there .* unpack https://"):
        cifar.read(tmp_path, "cifar10")


def test_a_batch_that_is_missing_is_named(tmp_path: Path) -> None:
    _write_cifar10(tmp_path / "cifar-10-batches-py")
    missing = tmp_path / "cifar-10-batches-py" / "data_batch_4"
    missing.unlink()
    with pytest.raises(UsageError, match=rf"^{missing} is missing; unpack https://"):
        cifar.read(tmp_path, "cifar10")


def test_synthetic_images_are_the_same_for_a_seed_and_differ_between_sets() -> None:
    images.synthetic.cache_clear()
    one = images.synthetic(3, train=40, validation=20)
    images.synthetic.cache_clear()
    same, other = images.synthetic(3, train=40, validation=20), images.synthetic(4, train=40, validation=20)
    assert torch.equal(one.train_images, same.train_images)
    assert not torch.equal(one.train_images, other.train_images)
    assert not torch.equal(one.train_images[:20], one.validation_images)
    assert one.name.startswith("synthetic")


@pytest.mark.parametrize("limit", [1, 30, 40, 50])
def test_of_synthetic_images_only_those_are_drawn_that_are_asked_for(limit: int) -> None:
    all_of_them = images.synthetic(3, train=40, validation=20).limited(limit)
    found = images.synthetic(3, train=40, validation=20, limit=limit)
    assert found.name == all_of_them.name
    for part in ("train_images", "train_labels", "validation_images", "validation_labels"):
        assert torch.equal(getattr(found, part), getattr(all_of_them, part)), part


def _accuracy(folder: Path, *arguments: str) -> float:
    train("--limit", "400", "--epochs", "4", "--out", str(folder), "--lr", "0.01", *arguments)
    best: float = torch.load(folder / "best.pt", weights_only=True)["progress"]["best"]
    return best


def test_synthetic_images_can_be_learnt_and_shuffled_labels_cannot(tmp_path: Path) -> None:
    assert _accuracy(tmp_path / "true") > 0.5
    assert _accuracy(tmp_path / "shuffled", "--shuffle-labels") < 0.17


def test_label_noise_changes_exactly_its_share_of_the_training_labels() -> None:
    clean = images.synthetic(0, train=200, validation=50)
    noisy = clean.with_label_noise(0.25, seed=1)
    assert int((clean.train_labels != noisy.train_labels).sum()) == 50
    assert torch.equal(clean.validation_labels, noisy.validation_labels)
    assert torch.equal(noisy.train_labels, clean.with_label_noise(0.25, seed=1).train_labels)
    assert "25% of the labels wrong" in noisy.name


def test_crops_and_flips_move_every_image_by_its_own_amount() -> None:
    pictures = torch.randint(0, 256, (9, 3, 32, 32), dtype=torch.uint8)
    colour = torch.tensor([0.1, 0.5, 0.9])
    samples = torch.tensor([8, 0, 3, 3, 7, 1])
    crops = images.drawn_crops(6, seed=5)
    found = images.cropped(images.padded(pictures, colour), samples, crops)
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert set(crops[:, 2].tolist()) == {0, 1}
    for sample, (top, left, flip), result in zip(samples, crops.tolist(), found, strict=True):
        padded = (colour * 255).round().to(torch.uint8)[:, None, None].expand(3, 40, 40).clone()
        padded[:, 4:36, 4:36] = pictures[sample]
        expected = padded[:, top : top + 32, left : left + 32]
        assert torch.equal(result, expected.flip(-1) if flip else expected)


def test_a_border_is_where_the_images_are_whatever_has_its_colour() -> None:
    pictures = torch.zeros(2, 3, 32, 32, dtype=torch.uint8, device="meta")
    assert images.padded(pictures, torch.tensor([0.1, 0.5, 0.9])).device == pictures.device


def test_a_border_may_reflect_the_image() -> None:
    pictures = torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8)
    found = images.padded(pictures, None).permute(0, 3, 1, 2)
    assert torch.equal(found, F.pad(pictures.float(), (4, 4, 4, 4), mode="reflect").to(torch.uint8))


def test_a_shift_bounds_how_far_images_move() -> None:
    corners = images.drawn_crops(400, seed=1, shift=2)[:, :2]
    assert (corners.min().item(), corners.max().item()) == (2, 6)
    assert (images.drawn_crops(9, seed=1, shift=0)[:, :2] == 4).all()


def test_views_are_the_image_its_mirror_image_and_both_moved() -> None:
    pixels = torch.arange(2 * 3 * 16.0).view(2, 3, 4, 4)
    assert [torch.equal(view, pixels) for view in images.views(pixels, 1)] == [True]
    plain, mirrored = images.views(pixels, 2)
    assert torch.equal(mirrored, plain.flip(3))
    six = images.views(pixels, 6)
    assert [view.shape for view in six] == [pixels.shape] * 6
    assert torch.equal(six[2][..., 1:, 1:], pixels[..., :-1, :-1])
    assert torch.equal(six[4][..., :-1, :-1], pixels[..., 1:, 1:])


def test_alternate_flips_show_each_image_both_ways_in_any_two_epochs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = job("--limit", "48", "--flips", "alternate", folder=tmp_path)
    monkeypatch.setattr(made.task, "_flips", True)  # as on images of things, which are not generated
    monkeypatch.setattr(made.task, "_cropped", lambda numbers: {"crops": numbers})
    mirrored = [
        {int(sample): int(flip) for batch, _ in made.feed.epoch(epoch) for sample, _, _, flip in batch["crops"]}
        for epoch in (1, 2, 3)
    ]
    assert mirrored[0] == mirrored[2]
    assert all(mirrored[0][sample] + mirrored[1][sample] == 1 for sample in range(48))
    assert set(mirrored[0].values()) == {0, 1}


def test_statistics_are_those_of_the_pixels() -> None:
    found = images.synthetic(0, train=300, validation=10)
    pixels = found.train_images.double() / 255
    mean, deviation = found.statistics()
    torch.testing.assert_close(mean, pixels.mean(dim=(0, 2, 3)).float())
    torch.testing.assert_close(deviation, pixels.std(dim=(0, 2, 3)).float())


def test_normalised_images_have_mean_0_and_deviation_1() -> None:
    found = images.synthetic(0, train=300, validation=10)
    pixels = images.normalised(found.train_images, *found.statistics())
    torch.testing.assert_close(pixels.mean(dim=(0, 2, 3)), torch.zeros(3), atol=1e-3, rtol=0)
    torch.testing.assert_close(pixels.std(dim=(0, 2, 3)), torch.ones(3), atol=1e-3, rtol=0)


def test_cut_out_zeroes_one_square_an_image_and_clips_it_at_the_edge() -> None:
    centres = torch.tensor([[0, 0], [16, 16], [31, 31]])
    cut = images.cut_out(torch.ones(3, 3, 32, 32), centres, 8)
    assert (cut == 0).sum(dim=(2, 3)).tolist() == [[16] * 3, [64] * 3, [25] * 3]


def test_check_data_counts_the_images_and_names_every_bad_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    _write_cifar10(folder)
    command = ["cifar", "--data", str(tmp_path), "--check-data"]
    assert main(command) == 0
    assert "training images: 20\n  validation images: 4\nthe data can be used" in capsys.readouterr().out
    (folder / "data_batch_2").write_bytes(b"no pickle")
    (folder / "test_batch").unlink()
    assert main(command) == 2
    told = capsys.readouterr().out
    assert "training images: 16\n  validation images: 0\n" in told
    assert f"problem: {folder / 'data_batch_2'} is not a cifar10 batch" in told
    assert f"problem: {folder / 'test_batch'} is missing; unpack https://" in told
    assert "2 problems found" in told
    assert main(["cifar", "--data", str(tmp_path / "elsewhere"), "--check-data"]) == 2


def test_check_data_of_generated_images_says_that_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cifar", "--limit", "50", "--check-data"]) == 0
    assert "data: synthetic" in capsys.readouterr().out
