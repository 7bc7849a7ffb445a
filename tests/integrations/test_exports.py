"""What `mpstui export --to` writes, read back by the programs that it is for: every value, equal."""

from __future__ import annotations

import json
import math
import struct
import subprocess
from pathlib import Path

import pytest

from mpstui.core.runs.monitor import Monitor
from mpstui.core.sharing import export, trackers
from mpstui.core.sharing.event_file import write_event_file
from tests.core.sharing.build import home_in, labelled_run

from .conftest import ROOT, python_with

NAMES = ("loss", "val/acc")
MLFLOW = """
from mlflow.tracking import MlflowClient
client = MlflowClient(folder)
[run] = client.search_runs([one.experiment_id for one in client.search_experiments()])
assert (run.info.status, run.info.run_name, run.data.params["lr"]) == ("FINISHED", "digits", "0.5")
assert run.data.tags["mlflow.note.content"].startswith("one") and "good" in run.data.tags
assert [one.path for one in client.list_artifacts(run.info.run_id)] == ["checkpoints.json"]
told = {name: [(one.step, one.value) for one in client.get_metric_history(run.info.run_id, name)] for name in names}
"""
TRACKIO = """
os.environ["TRACKIO_DIR"] = folder
from trackio.sqlite_storage import SQLiteStorage
[run] = SQLiteStorage.get_runs("mpstui")
config = SQLiteStorage.get_run_config("mpstui", run)
assert (run, config["lr"], config["state"], config["checkpoints"][0]["step"]) == ("digits", 0.5, "finished", 900)
logs = SQLiteStorage.get_logs("mpstui", run)
told = {name: [(one["step"], float(one[name])) for one in logs if name in one] for name in names}
"""
TENSORBOARD = """
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
found = EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0})
found.Reload()
start = HParamsPluginData.FromString(found.SummaryMetadata("_hparams_/session_start_info").plugin_data.content)
end = HParamsPluginData.FromString(found.SummaryMetadata("_hparams_/session_end_info").plugin_data.content)
assert start.session_start_info.hparams["lr"].number_value == 0.5 and end.session_end_info.status == 1
assert found.Tensors("note/text_summary")[0].tensor_proto.string_val[0].startswith(b"one")
told = {name: [(one.step, one.value) for one in found.Scalars(name)] for name in names}
"""
WANDB = """
from pathlib import Path
from wandb.proto.wandb_internal_pb2 import Record
from mpstui.core.formats.files.wandb import TransactionLog
records = [Record.FromString(one) for one in TransactionLog(next(Path(folder).glob("*/run-*.wandb"))).read()]
kinds = {one.WhichOneof("record_type"): one for one in records}
run, artifact = kinds["run"].run, kinds["artifact"].artifact
assert (run.display_name, list(run.tags), run.project) == ("digits", ["good", "keep"], "mpstui")
assert {one.key: json.loads(one.value_json) for one in run.config.update}["lr"] == 0.5
assert [(one.path, one.ref[:7], one.size) for one in artifact.manifest.contents] == [("step_900.pt", "file://", 7)]
assert (kinds["exit"].exit.exit_code, kinds["exit"].exit.runtime) == (0, 499)
told = {name: [] for name in names}
for one in records:
    for item in one.history.item:
        if item.nested_key[0] in told:
            told[item.nested_key[0]].append((one.history.step.num, float(json.loads(item.value_json))))
"""


@pytest.mark.parametrize(
    ("module", "program"), [("mlflow", MLFLOW), ("trackio", TRACKIO), ("tensorboard", TENSORBOARD), ("wandb", WANDB)]
)
def test_every_value_is_read_back(module: str, program: str, tmp_path: Path) -> None:
    python, folder = python_with(module), tmp_path / module
    snapshot = Monitor(home_in(tmp_path), columns=export.MOST_POINTS).snapshot(labelled_run(home_in(tmp_path)))
    run = trackers.tracked(snapshot)
    if module == "tensorboard":
        folder.mkdir()
        write_event_file(snapshot, run, folder / "events.out.tfevents.1.x")
    else:
        trackers.write(run, module, folder)
    code = f"import json, os\nfolder, names = {str(folder)!r}, {NAMES!r}\n{program}\nprint('told', json.dumps(told))"
    environ = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "HOME": str(tmp_path),
    }
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=300, check=False, env=environ)
    assert done.returncode == 0, done.stderr
    told = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("told "))[5:])
    for name in NAMES:
        view = snapshot.series[name]
        held = [
            struct.unpack("<f", struct.pack("<f", one))[0] if module == "tensorboard" else one for one in view.values
        ]
        wanted = [[x, None if math.isnan(value) else value] for x, value in zip(view.x, held, strict=True)]
        assert sorted([step, None if math.isnan(value) else value] for step, value in told[name]) == wanted
