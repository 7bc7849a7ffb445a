"""A package that is installed beside mpstui brings a log grammar and a metric file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

KALDI = """
import re
from mpstui.core.formats.grammars import LineGrammar
from mpstui.core.formats.points import Counters, LineReading, as_float, parse_count

LINE = re.compile(r"Average objective function for '(\\w{1,40})' for minibatches \\d+-(\\d{1,9}) is (-[\\d.]{1,24})")

class KaldiNnet3(LineGrammar):
    name = "kaldi nnet3"
    needles = ("Average objective",)

    def read(self, line):
        match = LINE.search(line, 0, 400)
        if match is None:
            return None
        return (LineReading.training(self.name, Counters(step=parse_count(match[2])), match[1], -as_float(match[3])),)

GRAMMAR = KaldiNnet3
"""
MLFLOW = """
from mpstui.core.formats.files import GrowingLines

class MlflowMetric(GrowingLines):
    name = "mlflow"

    @classmethod
    def recognises(cls, path, start):
        return path.parent.name == "metrics" and len(start.split(b"\\n", 1)[0].split()) == 3

    def record(self, line):
        _, value, step = line.decode().split()
        return {"step": step, self.path.name: value}

    def is_whole(self, line):
        return False

FILE = MlflowMetric
"""
BROKEN = """
from mpstui.core.formats.grammars import LineGrammar

class Broken(LineGrammar):
    name = "broken"

    def read(self, line):
        raise KeyError("loss")

    read_bar = read

GRAMMAR = Broken
"""
DAMAGED = """
from mpstui.core.formats.files import GrowingLines

class Damaged(GrowingLines):
    name = "damaged"

    @classmethod
    def recognises(cls, path, start):
        raise ValueError(path)

FILE = Damaged
"""
ENTRY_POINTS = """
[mpstui.log_grammars]
absent = my_package.absent
empty = my_package
kaldi = my_package.kaldi
broken = my_package.broken
[mpstui.metric_files]
damaged = my_package.damaged
mlflow = my_package.mlflow
"""


def test_both_are_found_whatever_else_the_package_gets_wrong(tmp_path: Path) -> None:
    for name, text in {
        "my_package/__init__.py": "",
        "my_package/kaldi.py": KALDI,
        "my_package/mlflow.py": MLFLOW,
        "my_package/broken.py": BROKEN,
        "my_package/damaged.py": DAMAGED,
        "my_package-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n",
        "my_package-1.0.dist-info/entry_points.txt": ENTRY_POINTS,
        "data/train.log": "LOG Average objective function for 'output' for minibatches 0-99 is -2.5 over 9 f.\n",
        "data/bars.log": "Epoch 1:  50%|###  | 5/10 [00:01<00:01,  4.0it/s, loss=0.5]\nepoch 1 step 6 loss 0.25\n",
        "data/metrics/loss": "1700000000000 0.75 10\n1700000001000 0.5 20\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)

    def parsed(name: str) -> tuple[object, ...]:
        command = [sys.executable, "-m", "mpstui", "parse", "--json", str(tmp_path / "data" / name)]
        env = {**os.environ, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True)
        found = json.loads(done.stdout)
        assert found["read_in_part"] == (None if "metrics" in name else "grammar 'broken': KeyError: 'loss'")
        return found["format"], found["step"], found["train_loss"]["last"]

    assert parsed("train.log") == ("kaldi nnet3", 99, 2.5)
    assert parsed("bars.log")[2] == 0.25
    assert parsed("metrics/loss") == ("mlflow", 20, 0.5)
