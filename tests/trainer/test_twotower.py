"""Two towers: what is a negative, what survives the shuffle, what is learnt, what bad files are told."""

from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.trainer.running import command, made, metrics, parsed, train
from trainer import tasks
from trainer.data import pairs
from trainer.data.mapped import Rows, Stored, open_npy, open_npz
from trainer.data.negatives import NegativeSampler
from trainer.errors import UsageError
from trainer.models.contrastive import info_nce, ranks
from trainer.models.twotower import BACKBONES, TwoTower
from trainer.tasks.twotower import measures

SMALL = ("--width", "16", "--layers", "1", "--embedding", "16", "--batch-size", "64")
ROWS, LENGTH, WIDTH = 60, 3, 5


def _arrays(rows: int = ROWS) -> dict[str, Any]:
    random = np.random.default_rng(0)
    return {
        "context_sequences": random.standard_normal((rows, LENGTH, WIDTH), dtype=np.float32),
        "target_vectors": random.standard_normal((rows, WIDTH), dtype=np.float32),
        "truth_keys": np.stack([np.arange(rows) // 6 + 100, np.arange(rows)], axis=1),
    }


def _written(folder: Path, **changes: Any) -> Path:
    path = folder / "pairs.npz"
    np.savez(path, **{name: value for name, value in {**_arrays(), **changes}.items() if value is not None})
    return path


def _near(folder: Path, *lines: str) -> Path:
    path = folder / "near.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_members_are_mapped_where_they_lie_and_travel_as_names(tmp_path: Path) -> None:
    path = _written(tmp_path, fortran=np.asfortranarray(np.arange(12.0).reshape(3, 4)))
    for name, stored in open_npz(path, "--x").items():
        assert isinstance(stored, Stored)
        rows = Rows(stored)
        assert isinstance(rows.array, np.memmap)
        with np.load(path) as archive:
            np.testing.assert_array_equal(rows.array, archive[name])
        if name == "context_sequences":
            assert len(pickle.dumps(rows)) < 2000
            torch.testing.assert_close(
                pickle.loads(pickle.dumps(rows)).take(torch.tensor([4])), rows.take(torch.tensor([4]))
            )


def test_a_compressed_file_is_loaded_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "pairs.npz"
    np.savez_compressed(path, **_arrays())
    task = made("twotower", "--train-npz", str(path))
    assert "context_sequences is compressed" in task.data
    assert "(in memory)" in task.data
    assert "(mapped)" in made("twotower", "--train-npz", str(_written(tmp_path))).data


def test_row_numbers_survive_the_shuffle(tmp_path: Path) -> None:
    path = _written(tmp_path)
    task, arrays = made("twotower", "--train-npz", str(path)), _arrays()
    order = torch.randperm(task.train_size, generator=torch.Generator().manual_seed(3))
    batch = task.batch(order, seed=9)
    rows = batch["rows"].numpy()
    assert sorted(rows.tolist()) != rows.tolist()
    np.testing.assert_array_equal(batch["contexts"].numpy(), arrays["context_sequences"][rows])
    np.testing.assert_array_equal(batch["targets"].numpy(), arrays["target_vectors"][rows])
    np.testing.assert_array_equal(batch["negatives"].numpy(), arrays["target_vectors"][batch["negative_rows"].numpy()])


def test_articles_are_held_out_whole(tmp_path: Path) -> None:
    found = pairs.read(_written(tmp_path), cache=None, near=None, validation_share=0.2)
    train_articles = set(found.articles[found.train_rows].tolist())
    held_out = set(found.articles[found.validation_rows].tolist())
    assert len(held_out) == 2
    assert not train_articles & held_out
    assert len(train_articles | held_out) == 10


def test_same_article_negatives_are_other_rows_of_the_article_each_once(tmp_path: Path) -> None:
    found = pairs.read(_written(tmp_path), cache=None, near=None, validation_share=0.1)
    sampler = NegativeSampler(found, same_article=8, near=0)
    rows = found.train_rows
    seen: set[tuple[int, int]] = set()
    for seed in range(20):
        negatives, usable = sampler.draw(rows, torch.Generator().manual_seed(seed))
        assert usable.sum(dim=1).tolist() == [5] * len(rows)  # six rows an article: five others
        for row, others, good in zip(rows.tolist(), negatives, usable, strict=True):
            used = others[good].tolist()
            assert len(set(used)) == 5
            assert row not in used
            assert {int(found.articles[other]) for other in used} == {int(found.articles[row])}
            seen |= {(row, int(others[0]))}
    assert len(seen) > 4 * len(rows)


def test_a_positive_is_never_among_its_negatives_not_even_as_a_copy(tmp_path: Path) -> None:
    arrays = _arrays()
    targets = arrays["target_vectors"]
    targets[1::6] = targets[0::6]  # in every article the second row has the first one's target
    cache = targets.copy()
    cache[4::6] = targets[0::6]  # and the fifth row's cached payload is that vector too
    np.save(tmp_path / "cache.npy", cache)
    near = _near(tmp_path, *(json.dumps({"q_index": i, "near_miss_indices": [i, 7, 12, 13]}) for i in range(ROWS)))
    path = _written(tmp_path, target_vectors=targets)
    found = pairs.read(path, cache=tmp_path / "cache.npy", near=near, validation_share=0.1)
    sampler = NegativeSampler(found, same_article=5, near=4)
    for seed in range(10):
        negatives, usable = sampler.draw(found.train_rows, torch.Generator().manual_seed(seed))
        for row, others, good in zip(found.train_rows.tolist(), negatives, usable, strict=True):
            assert good.any()
            for other in others[good].tolist():
                assert not np.array_equal(cache[other], targets[row])
                assert not np.array_equal(targets[other], targets[row])
                assert other in found.train_rows


def test_near_misses_follow_their_query_through_the_shuffle(tmp_path: Path) -> None:
    lists = {row: [(row + 20) % ROWS, (row + 31) % ROWS] for row in range(0, ROWS, 2)}
    near = _near(tmp_path, *(json.dumps({"q_index": q, "near_miss_indices": found}) for q, found in lists.items()), "")
    path = _written(tmp_path)
    task = made("twotower", "--train-npz", str(path), "--nearmiss-jsonl", str(near), "--same-article-k", "0")
    batch = task.batch(torch.randperm(task.train_size), seed=1)
    assert batch["negatives"].shape[1] == 4
    for row, others, good in zip(batch["rows"].tolist(), batch["negative_rows"], batch["usable"], strict=True):
        assert set(others[good].tolist()) <= set(lists.get(row, []))
        assert bool(good.any()) <= (row in lists)
    assert int(batch["usable"].sum()) > task.train_size / 2


def test_the_loss_is_the_formula_and_ignores_what_is_masked() -> None:
    generator = torch.Generator().manual_seed(0)

    def unit(*shape: int) -> torch.Tensor:
        return torch.nn.functional.normalize(torch.randn(*shape, generator=generator), dim=-1)

    queries, payloads, negatives = unit(3, 4), unit(3, 4), unit(3, 2, 4)
    ids, usable = torch.tensor([5, 6, 5]), torch.tensor([[True, False], [True, True], [False, False]])
    found, _ = info_nce(queries, payloads, ids, negatives, usable, 0.07)
    expected = []
    for i in range(3):
        others = [payloads[j] for j in range(3) if ids[j] != ids[i]] + [
            negatives[i, k] for k in range(2) if usable[i, k]
        ]
        scores = torch.stack([queries[i] @ vector for vector in [payloads[i], *others]]) / 0.07
        expected.append(scores.logsumexp(0) - scores[0])
    torch.testing.assert_close(found, torch.stack(expected).mean())


def test_ranks_count_better_others_and_towers_that_collapsed_find_nothing() -> None:
    pool = torch.eye(4)
    ids, own = torch.tensor([0, 1, 2, 2]), torch.arange(4)
    assert ranks(torch.eye(4)[[0, 0, 2, 2]], pool, ids, own).tolist() == [0, 3, 0, 2]
    for collapsed in (torch.ones(4, 4), torch.full((4, 4), float("nan"))):
        assert ranks(collapsed, collapsed, torch.arange(4), own).tolist() == [3, 3, 3, 3]


def test_the_best_checkpoint_is_told_by_a_measure_that_does_not_saturate() -> None:
    """Of a small pool everything is soon among the first ten: the checkpoint would stay that of the first epochs."""
    payloads = torch.nn.functional.normalize(torch.eye(4) + 0.1 * torch.ones(4, 4))
    ids = torch.arange(4)
    well = measures(payloads, payloads, ids, 0.07)
    worse = measures(payloads[[1, 0, 2, 3]], payloads, ids, 0.07)
    assert well["val_recall@10"] == worse["val_recall@10"] == 1
    assert well["val_mrr"] == 1
    assert worse["val_mrr"] < 0.8
    assert dict(tasks.find("twotower").DEFAULTS.better) == {"val_mrr": "max"}


@pytest.mark.parametrize("backbone", list(BACKBONES))
def test_every_backbone_gives_unit_vectors_for_any_width(backbone: str) -> None:
    model = TwoTower(7, LENGTH, backbone=backbone, width=12, layers=2, embedding=6)
    queries, payloads = model(torch.randn(4, LENGTH, 7), torch.randn(9, 7))
    assert queries.shape == (4, 6)
    assert payloads.shape == (9, 6)
    torch.testing.assert_close(queries.norm(dim=1), torch.ones(4))
    (queries.sum() + payloads.sum()).backward()
    assert all(weight.grad is not None for weight in model.parameters())


def test_synthetic_pairs_are_the_same_for_a_seed_only() -> None:
    one, same, other = (pairs.synthetic(seed, articles=6, rows=4) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.contexts.array, same.contexts.array)
    assert not np.array_equal(one.contexts.array, other.contexts.array)
    np.testing.assert_array_equal(one.contexts.array[1, -1], one.targets.array[0])  # the next row begins one later
    assert one.name.startswith("synthetic")


def test_synthetic_pairs_can_be_learnt_and_shuffled_targets_cannot(tmp_path: Path) -> None:
    wish = (*SMALL, "--backbone", "gru", "--epochs", "3", "--lr", "0.005", "--pool", "200", "--limit", "2500")
    learnt = train(
        "twotower",
        *wish,
        run_dir=tmp_path / "true",
    )
    assert learnt["val_recall@10"] > 0.6
    assert learnt["val_recall@1"] < learnt["val_recall@5"] < learnt["val_recall@10"]
    assert learnt["val_recall@1"] < learnt["val_mrr"] < learnt["val_recall@10"]
    control = train("twotower", *wish, "--shuffle-labels", run_dir=tmp_path / "shuffled")
    assert control["val_recall@10"] < 0.13  # chance is 0.05


def test_resumed_inside_an_epoch_equals_uninterrupted(tmp_path: Path) -> None:
    wish = (*SMALL, "--backbone", "mamba", "--epochs", "2", "--limit", "420", "--save-every", "0")
    stop = int(np.random.default_rng().integers(1, 6))
    train("twotower", *wish, run_dir=tmp_path / "whole")
    train("twotower", *wish, "--stop-after", str(stop), run_dir=tmp_path / "parts")
    train("twotower", *wish, "--resume", "latest", run_dir=tmp_path / "parts")
    assert len([point for point in metrics(tmp_path / "whole") if "loss" in point]) == 12  # 420 // 64, twice
    assert metrics(tmp_path / "parts") == metrics(tmp_path / "whole")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"target_vectors": None}, r"there is no array 'target_vectors' in it, only context_sequences, truth_keys"),
        (
            {"context_sequences": np.zeros((ROWS, WIDTH), np.float32)},
            r"context_sequences is float32 of shape \[60, 5\]",
        ),
        ({"target_vectors": np.zeros((ROWS, WIDTH), np.int64)}, r"target_vectors is int64"),
        ({"target_vectors": np.zeros((ROWS, 4), np.float32)}, r"vectors of 5 numbers, target_vectors of 4"),
        ({"truth_keys": np.zeros((9, 1))}, r"has 60 rows, target_vectors 60 and truth_keys 9"),
        ({"truth_keys": np.array([{}] * ROWS)}, r"truth_keys: .*Python objects is not read"),
        ({"truth_keys": np.where(np.arange(ROWS) == 7, np.nan, 1.0)}, r"truth_keys has no article id in row 7"),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_an_unusable_array_is_named(tmp_path: Path, changes: dict[str, Any], sentence: str, compressed: bool) -> None:
    path = _written(tmp_path, **changes)
    if compressed:
        _compress(path)
    with pytest.raises(UsageError, match=rf"--train-npz .*pairs\.npz: .*{sentence}"):
        made("twotower", "--train-npz", str(path))


def _compress(path: Path) -> None:
    with np.load(path, allow_pickle=True) as archive:
        arrays = dict(archive)
    np.savez_compressed(path, **arrays)


@pytest.mark.parametrize("compressed", [False, True])
def test_an_array_that_nobody_asks_for_does_no_harm(tmp_path: Path, compressed: bool) -> None:
    path = _written(tmp_path, titles=np.array([{}] * ROWS))
    if compressed:
        _compress(path)
    assert made("twotower", "--train-npz", str(path)).train_size > 0


@pytest.mark.parametrize("shape", [(2**62, 4), (-1, -8), (-5,), (2**63 - 1, 2**63 - 1)])
def test_a_shape_that_no_file_can_have_is_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = tmp_path / "x.npy"
    with path.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(bytes(64))
    with pytest.raises(UsageError, match=r"cut short|is none"):
        open_npy(path, "--x")


def test_a_damaged_compressed_array_is_named(tmp_path: Path) -> None:
    path = _written(tmp_path)
    _compress(path)
    content = bytearray(path.read_bytes())
    content[300:360] = bytes(60)
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"--train-npz .*pairs\.npz: context_sequences: .*; save it as"):
        made("twotower", "--train-npz", str(path))


def test_a_member_that_is_no_array_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "pairs.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("keys", b"no array")
    member = open_npz(tmp_path / "pairs.npz", "--train-npz")["keys"]
    assert callable(member)
    with pytest.raises(UsageError, match=r"pairs\.npz: keys: .*; save it as an array"):
        member()


def test_missing_damaged_and_mismatched_files_are_named(tmp_path: Path) -> None:
    path = _written(tmp_path)
    (tmp_path / "cut.npz").write_bytes(path.read_bytes()[:500])
    np.save(tmp_path / "cache.npy", np.zeros((3, WIDTH), np.float32))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "cache.npy").read_bytes()[:-8])
    for arguments, sentence in (
        (["--train-npz", "gone.npz"], "--train-npz gone.npz: there is no such file"),
        (["--train-npz", str(tmp_path / "cut.npz")], "must be an .npz file"),
        (["--train-npz", str(path), "--p-cache-npy", str(tmp_path / "cache.npy")], r"its shape is \(3, 5\)"),
        (["--p-cache-npy", "x.npy"], "give that file too, with --train-npz"),
    ):
        with pytest.raises(UsageError, match=sentence):
            made("twotower", *arguments)
    with pytest.raises(UsageError, match="it is cut short"):
        open_npy(tmp_path / "cut.npy", "--p-cache-npy")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "line 2: not an object like"),
        ('{"q_index": 1}', "line 2: not an object like"),
        ('{"q_index": 60, "near_miss_indices": []}', "line 2: q_index must name rows from 0 to 59"),
        ('{"q_index": 1, "near_miss_indices": [2, -1]}', "line 2: near_miss_indices must name rows"),
    ],
)
def test_a_bad_near_miss_is_named_by_its_line(tmp_path: Path, line: str, sentence: str) -> None:
    near = _near(tmp_path, '{"q_index": 0, "near_miss_indices": [3]}', line)
    with pytest.raises(UsageError, match=sentence):
        made("twotower", "--train-npz", str(_written(tmp_path)), "--nearmiss-jsonl", str(near))


def test_check_data_counts_and_names_bad_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = _written(tmp_path)
    assert command("twotower", "--check-data", "--train-npz", str(good)) == 0
    printed = capsys.readouterr().out
    assert "training rows: 54" in printed
    assert "the data can be used" in printed
    arrays = _arrays()
    arrays["context_sequences"][7, 1, 2] = np.nan
    arrays["target_vectors"][9] = 0
    assert command("twotower", "--check-data", "--train-npz", str(_written(tmp_path, **arrays))) == 2
    printed = capsys.readouterr().out
    assert "problem: row 7 of context_sequences holds NaN or infinity" in printed
    assert "problem: row 9 of target_vectors is zero throughout" in printed


def test_defaults_are_those_that_were_promised() -> None:
    args, defaults = parsed("twotower"), tasks.find("twotower").DEFAULTS
    assert (args.backbone, args.tau, defaults.batch_size, defaults.drop_last) == ("mamba", 0.07, 256, True)
