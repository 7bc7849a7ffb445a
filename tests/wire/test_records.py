"""Records, heartbeats and requests: what is written is read back, what is strange is told."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mpstui.wire import heartbeat, records, rundir, secrets, storage
from mpstui.wire.heartbeat import CheckpointNote, DeviceReading, Heartbeat, MemoryReading
from mpstui.wire.liveness import ProcessIdentity
from mpstui.wire.records import Ack, ExitRecord, LaunchTemplate, RestartRule, Spec, Status, Variant
from mpstui.wire.storage import NewerSchema, UnreadableRecord

SUPERVISOR = Path(__file__).parents[2] / "mpstui" / "supervisor" / "__main__.py"
SPEC = Spec(
    "r1",
    "name",
    1.0,
    LaunchTemplate("auto", {"auto": Variant(["a", "b"], {"X": "1"})}, "/tmp", ["--resume", "{checkpoint}"], "c/*.pt"),
    restart=RestartRule(["mps_oom"], "cpu"),
    causes=[records.CauseRule("mps_oom", ["out of memory"])],
)


@pytest.mark.parametrize(
    "record",
    [
        SPEC,
        Status("r1", "running", 2, 3.0, tree=[ProcessIdentity(1, 2)], trainer=ProcessIdentity(5, 6)),
        ExitRecord(1, 2.0, code=3),
        Ack("i", True, "s", 1.0, "t"),
    ],
)
def test_a_record_survives_the_journey(record: Any) -> None:
    assert storage.from_json(type(record), {**storage.to_json(record), "from_the_future": 1}) == record


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        (Spec, {"name": 5}),
        (Spec, {"watch": {"log": 1}}),
        (Spec, {"stop": {"grace_seconds": "long"}}),
        (Spec, {"launch": {"device": "cpu", "cwd": "/", "variants": {"cpu": {"argv": "ls"}}}}),
        (Status, {"attempt": True}),
        (Status, {"tree": [[1, 2, 3]]}),
        (Status, {"trainer": [1, "2"]}),
        (Status, {"survivors": 3}),
    ],
)
def test_a_value_of_another_type_than_declared_makes_a_record_unreadable(kind: Any, changed: dict[str, Any]) -> None:
    whole = storage.to_json(SPEC if kind is Spec else Status("r1", "running", 2, 3.0))
    with pytest.raises(UnreadableRecord, match="has a value of the wrong type"):
        storage.from_json(kind, {**whole, **changed})


def test_a_newer_schema_may_be_looked_at_only() -> None:
    with pytest.raises(NewerSchema):
        storage.from_json(Status, {**storage.to_json(Status("r", "running", 1, 0.0)), "schema": 2})
    with pytest.raises(UnreadableRecord):
        storage.from_json(Status, {"run": "r"})


def test_a_process_is_a_pair_on_disk() -> None:
    status = Status("r1", "running", 2, 3.0, tree=[ProcessIdentity(1, 2)], trainer=ProcessIdentity(5, 6))
    found = storage.to_json(status)
    assert (found["trainer"], found["tree"], found["supervisor"]) == ([5, 6], [[1, 2]], None)


def test_a_heartbeat_names_what_is_not_finite() -> None:
    beat = Heartbeat(
        time=1.0,
        seq=2,
        loss=math.nan,
        step=7,
        device=DeviceReading("mps"),
        memory=MemoryReading(allocated=5),
        metrics={"val_loss": math.inf, "acc": 0.5},
        checkpoint=CheckpointNote("a.pt", 6),
    )
    record = heartbeat.to_json(beat)
    assert record["nonfinite"] == ["loss", "val_loss"]
    assert "epoch" not in record
    from mpstui.wire import storage

    back = heartbeat.from_json(storage.load_object(storage.dump(record)))
    assert (back.loss, back.step, back.device.type, back.memory.allocated) == (None, 7, "mps", 5)
    assert back.nonfinite == ("loss", "val_loss")
    assert back.checkpoint == CheckpointNote("a.pt", 6)


@example({"schema": 1, "time": 1.0, "seq": 1, "step": 10**400})
@given(
    st.dictionaries(
        st.sampled_from(["time", "seq", "schema", "step", "loss", "device", "metrics", "memory"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers()),
    )
)
def test_a_heartbeat_of_wrong_types_is_unknown_or_unreadable_and_nothing_else(record: dict[str, Any]) -> None:
    try:
        beat = heartbeat.from_json(record)
    except UnreadableRecord:
        return
    assert beat.step is None or isinstance(beat.step, int)
    assert beat.loss is None or math.isfinite(beat.loss)


def test_requests_are_handed_out_in_order_until_they_are_answered(tmp_path: Path) -> None:
    run = rundir.create_run_dir(tmp_path, "t", 1.0)
    late = rundir.submit(run, rundir.new_request("stop", 1, 20.0))
    early = rundir.submit(run, rundir.new_request("kill", 1, 10.0, by="me", options={"a": 1}))
    (run.requests / "0-torn.json").write_text("{")
    stray = storage.to_json(rundir.new_request("kill", 1, 5.0)) | {"id": "../escape"}
    storage.write_json(run.requests / "0-other.json", stray)
    assert [item.id for item in rundir.unanswered(run)] == [early.id, late.id]
    assert rundir.answer(run, Ack(early.id, True, "supervisor", 30.0, "done"))
    assert not rundir.answer(run, Ack(early.id, False, "trainer", 31.0, "too late"))
    assert list(rundir.unanswered(run)) == [late]
    found = rundir.answer_to(run, early.id)
    assert found is not None
    assert found.text == "done"
    assert rundir.answer_to(run, late.id) is None
    assert str(os.getpid()) in rundir.asker()


def test_requests_of_one_moment_keep_the_order_they_were_asked_in(tmp_path: Path) -> None:
    run = rundir.create_run_dir(tmp_path, "t", 1.0)
    asked = [rundir.submit(run, rundir.new_request("pause", 1, 20.0)).id for _ in range(12)]
    assert [item.id for item in rundir.unanswered(run)] == asked


def test_run_ids_are_never_used_twice(tmp_path: Path) -> None:
    made = [rundir.create_run_dir(tmp_path, "CIFAR-10 · ResNet", 0.0).run for _ in range(3)]
    assert made == ["19700101-000000-cifar-10-resnet" + end for end in ("", "-2", "-3")]
    assert rundir.slug("···") == "run"


def test_attempts_and_ranks_are_found_by_their_names(tmp_path: Path) -> None:
    run = rundir.create_run_dir(tmp_path, "t", 0.0)
    for name in ("2", "10", "x", "0"):
        (run.path / "attempts" / name).mkdir()
    assert run.attempt_numbers() == [2, 10]
    run.attempt(2).heartbeat(3).touch()
    assert run.attempt(2).rank_heartbeats() == {3: run.attempt(2).heartbeat(3)}
    assert rundir.RunDir(tmp_path / "none").attempt_numbers() == []


SECRET_NAMES = [
    *("HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY", "db_password", "KEY"),
    *("HF_TOKENS", "SIGNING_KEYS", "BEARER", "JWT", "AUTHORIZATION", "CREDS", "PASSCODE", "DB_PW", "SIGNATURE"),
    *("AZURE_STORAGE_CONNECTION_STRING", "api-key", "hub.token"),
    *("DB_PASS", "SSHPASS", "MYSQL_PWD", "GITHUB_PAT", "OPENAI_API_KEYS", "VAULT_SECRETS"),
]


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_names_that_look_secret(name: str) -> None:
    assert secrets.is_secret(name)
    assert secrets.without_secrets({name: "x", "HOME": "y"}) == ({"HOME": "y"}, [name])
    assert secrets.masked({name: "x"}) == {name: secrets.HIDDEN}


PLAIN_NAMES = [
    *("PATH", "KEYBOARD", "MONKEY", "TOKENIZERS_PARALLELISM", "OMP_NUM_THREADS"),
    *("PWD", "OLDPWD", "MAX_TOKENS", "NUM_PASSES", "PATTERN", "PATIENCE"),
]


@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_names_that_do_not(name: str) -> None:
    assert not secrets.is_secret(name)


def test_a_password_inside_a_url_is_masked_and_not_written() -> None:
    assert secrets.without_secrets({"PROXY": "http://ada:pw@host:1/", "HUB": "http://host:1/"}) == (
        {"HUB": "http://host:1/"},
        ["PROXY"],
    )
    assert secrets.masked({"PROXY": "http://ada:pw@host:1/"}) == {"PROXY": f"http://{secrets.HIDDEN}@host:1/"}


def test_a_supervisor_starts_without_dataclasses() -> None:
    code = (
        f"import sys; sys.argv = ['x']; sys.path.append({str(SUPERVISOR.parents[2])!r})\n"
        "import mpstui.supervisor.__main__\n"
        "print(sorted({'dataclasses', 'inspect', 'traceback', 'logging'} & set(sys.modules)))"
    )
    told = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
