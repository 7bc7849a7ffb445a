"""NaN in checkpoints, found without torch in what torch has written."""

from __future__ import annotations

import io
import math
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest

from mpstui.wire import storage, tensors
from mpstui.wire.tensors import Health, health, newest_finite
from tests.tensor_files import safetensors


def saved(path: Path, *, value: float | None = None, dtype: str = "float32", **options: Any) -> Path:
    """What a training saves: a model, its optimizer's state, and infinities that are no fault."""
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.BatchNorm1d(4)).to(getattr(torch, dtype))
    optimizer = torch.optim.Adam(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 0.1 if value is None else value)
    optimizer.step()
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "best_loss": math.inf,
        "lowest": torch.tensor(math.nan),
        "mask": torch.full((4, 4), -math.inf, dtype=getattr(torch, dtype)),
        "order": torch.arange(100),
    }
    torch.save(state, path, **options)
    return path


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nan_is_found_in_what_torch_saves_and_infinity_is_none(tmp_path: Path, dtype: str, protocol: int) -> None:
    good = health(saved(tmp_path / "good.pt", dtype=dtype, pickle_protocol=protocol))
    bad = health(saved(tmp_path / "bad.pt", value=math.nan, dtype=dtype, pickle_protocol=protocol))
    assert good is not None
    assert bad is not None
    assert (good.broken, good.diverged, bad.diverged) == (0, False, True)
    assert good.tensors == bad.tensors == 15, "4 parameters, 8 moments of theirs, 2 running statistics and a mask"
    assert bad.broken == 12


def test_a_whole_model_is_looked_into_without_its_code_being_run(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "model.pt"
    torch.save(torch.nn.Linear(3, 3), path)
    assert health(path) == Health(2, 0)


def test_an_old_file_and_another_format_tell_nothing(tmp_path: Path) -> None:
    old = saved(tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    other = tmp_path / "model.h5"
    other.write_bytes(b"\x89HDF")
    with zipfile.ZipFile(tmp_path / "arrays.npz", "w") as file:
        file.writestr("a.npy", b"x" * 99)
    found = [health(path) for path in (old, other, tmp_path / "arrays.npz", tmp_path / "gone.pt")]
    assert found == [None] * 4


def test_safetensors_and_folders_are_read_too(tmp_path: Path) -> None:
    assert health(safetensors(tmp_path / "good.safetensors", [1.0, -math.inf, 0.5])) == Health(1, 0)
    folder = tmp_path / "checkpoint-5"
    safetensors(folder / "model.safetensors", [1.0, math.nan], count=3)
    saved(folder / "optimizer.pt")
    (folder / "trainer_state.json").write_text("{}")
    assert health(folder) == Health(18, 3)


def test_of_a_large_file_the_beginning_of_each_tensor_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "MOST_BYTES", 1 << 16)
    read = 0

    class Counting(io.FileIO):
        def read(self, size: int | None = -1, /) -> Any:
            nonlocal read
            found = super().read(size)
            read += len(found or b"")
            return found

    monkeypatch.setattr(storage, "open_file", Counting)
    path = safetensors(tmp_path / "large.safetensors", [1.0] * (1 << 18), count=4)
    assert health(path) == Health(4, 0)
    assert read < 2 << 16
    assert health(safetensors(path, [math.nan] + [1.0] * (1 << 18), count=4)) == Health(4, 4)


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")
@pytest.mark.parametrize("name", ["a.pt", "a.safetensors"])
def test_a_damaged_file_ends_nothing(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    whole = (saved(path) if name == "a.pt" else safetensors(path, [1.0, 2.0])).read_bytes()
    chance, outcomes = random.Random(1), set()
    for _ in range(400):
        damaged = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged[: chance.choice([len(damaged), chance.randrange(len(damaged))])])
        outcomes.add(health(path) is None)
    assert outcomes == {True, False}, "some can still be read, and none raised"


@pytest.mark.parametrize(
    ("found", "taken", "passed"),
    [
        ([(9, 0), (9, 0)], 0, 0),
        ([(9, 9), None], 1, 1),
        ([(9, 8), (9, 5), (9, 0)], 2, 2),
        ([(9, 1), (9, 0)], 1, 1),
        ([(9, 1), (9, 1)], 0, 0),  # what is in all of them from the start is no sign of anything
        ([(9, 9), (9, 9)], None, 2),
        ([], None, 0),
    ],
)
def test_the_newest_finite_one_is_taken(found: list[tuple[int, int] | None], taken: int | None, passed: int) -> None:
    paths = [Path(str(place)) for place in range(len(found))]
    told = {path: Health(*one) if one else None for path, one in zip(paths, found, strict=True)}
    path, over = newest_finite(paths, told.__getitem__)
    assert (path, list(over)) == (None if taken is None else paths[taken], paths[:passed])
