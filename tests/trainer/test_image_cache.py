"""Decoded images that the next run finds again."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from trainer.data import image_cache
from trainer.data.cache_folder import cache_folder
from trainer.data.image_cache import Split


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "data_batch_1"
    path.write_bytes(b"as it was")
    return path


class Decoder:
    """Counts how often it had to work."""

    def __init__(self) -> None:
        self.turns = 0

    def __call__(self) -> Split:
        self.turns += 1
        generator = torch.Generator().manual_seed(self.turns)
        shown = torch.randint(0, 256, (5, 3, 32, 32), dtype=torch.uint8, generator=generator)
        return shown, torch.arange(5)


def found(folder: Path, source: Path, decode: Decoder) -> Split:
    return image_cache.decoded(folder, [source], decode, worth_bytes=1)


def test_a_second_run_maps_what_the_first_decoded(tmp_path: Path, source: Path) -> None:
    folder, decode = tmp_path / "cache" / "images", Decoder()
    first, second = found(folder, source, decode), found(folder, source, decode)
    assert decode.turns == 1
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(first, second, strict=True))
    assert {path.stat().st_mode & 0o077 for path in (folder, *folder.iterdir())} == {0}
    assert sorted("".join(path.suffixes) for path in folder.iterdir()) == [".images.npy", ".labels.npy"]


def test_a_file_that_changed_is_decoded_again(tmp_path: Path, source: Path) -> None:
    decode = Decoder()
    found(tmp_path / "cache", source, decode)
    source.write_bytes(b"as it is by now")
    found(tmp_path / "cache", source, decode)
    assert decode.turns == 2


@pytest.mark.parametrize("damage", [b"", b"\x93NUMPY", b"cut"])
@pytest.mark.parametrize("which", ["images", "labels"])
def test_a_damaged_cache_costs_time_alone(damage: bytes, which: str, tmp_path: Path, source: Path) -> None:
    folder, decode = tmp_path / "cache", Decoder()
    found(folder, source, decode)
    (path,) = folder.glob(f"*.{which}.npy")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if damage == b"cut" else damage)
    found(folder, source, decode)
    found(folder, source, decode)
    assert decode.turns == 2, "decoded again, and kept"


def test_a_cache_that_cannot_be_written_costs_time_alone(tmp_path: Path, source: Path) -> None:
    decode = Decoder()
    (tmp_path / "file").touch()
    for _ in range(2):
        assert len(found(tmp_path / "file" / "images", source, decode)[1]) == 5
    assert decode.turns == 2


def test_small_sets_are_not_kept_and_missing_files_are_told_by_who_reads_them(tmp_path: Path, source: Path) -> None:
    decode = Decoder()
    image_cache.decoded(tmp_path / "cache", [source], decode)
    image_cache.decoded(tmp_path / "cache", [source, tmp_path / "none"], decode, worth_bytes=1)
    assert decode.turns == 2
    assert not (tmp_path / "cache").exists()


def test_the_folder_is_the_users(tmp_path: Path) -> None:
    assert cache_folder({"XDG_CACHE_HOME": str(tmp_path)}, "images") == tmp_path / "mpstui" / "images"
    assert cache_folder({}, "images") == Path("~/.cache/mpstui/images").expanduser()
