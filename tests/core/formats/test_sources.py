"""The reader is chosen by content, and a folder's best file is found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mpstui.core.formats.files import detect, find_sources, metric_files, read_log
from mpstui.core.model.errors import UsageError


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ('{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.4}\n', "json lines"),
        ("epoch,loss\n1,0.5\n", "csv"),
        ('{\n "step": 1,\n "loss": 0.5\n}\n', "json"),
        ("{'loss': 0.5, 'epoch': 1.0}\n", "log"),
        ("Epoch 1, loss 0.5\nEpoch 2, loss 0.4\n", "log"),
        ("step 1, loss 0.5, acc 0.5\nstep 2, loss 0.4, acc 0.6\n", "log"),
        ("", "log"),
        ("{", "log"),
    ],
)
def test_content_decides_whatever_the_name(tmp_path: Path, content: str, kind: str) -> None:
    path = tmp_path / "output.log"
    path.write_text(content)
    assert detect(path).name == kind


def test_a_folder_gives_its_best_file(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing here\n")
    (tmp_path / "train.log").write_text("epoch 1 loss 0.5\nepoch 2 loss 0.4\n")
    assert read_log(tmp_path).train_loss is not None
    deep = tmp_path / "lightning_logs" / "version_0"
    deep.mkdir(parents=True)
    (deep / "metrics.csv").write_text("epoch,step,train_loss\n0,9,0.75\n")
    assert find_sources(tmp_path)[0] == deep / "metrics.csv"
    found = read_log(tmp_path).train_loss
    assert found is not None
    assert found.last == 0.75


def test_what_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        detect(tmp_path / "absent.log")
    with pytest.raises(UsageError, match="holds nothing"):
        detect(tmp_path)
    os.mkfifo(tmp_path / "pipe.log")
    with pytest.raises(UsageError, match="not a regular file"):
        detect(tmp_path / "pipe.log")


def test_every_reader_of_metric_files_is_found() -> None:
    assert {kind.name for kind in metric_files()} >= {"tensorboard", "json", "json lines", "csv", "log"}
