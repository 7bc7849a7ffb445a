"""The doctor computes before it says that something works, and outlives a device that does not."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mpstui.core.doctor import CheckResult, Status, examine
from mpstui.core.doctor import machine_check as machine
from mpstui.core.doctor.torch_check import examine_torch
from mpstui.core.model.home import Home
from tests import standin

FAKE_TORCH = """
import os, sys, types
{first}
__version__ = "9.9"
version = types.SimpleNamespace(cuda={cuda!r})
cuda = types.SimpleNamespace(is_available=lambda: False)
backends = types.SimpleNamespace(mps=types.SimpleNamespace(is_built=lambda: {built}, is_available=lambda: {available}))
get_num_threads = lambda: 1
def manual_seed(seed):
    if "mps" in sys.argv:
        {test}
    raise SystemExit("no tensors here")
"""
Torch = Callable[..., dict[str, str]]


@pytest.fixture
def torch_that(tmp_path: Path) -> Torch:
    """An environment whose torch is a small file of ours."""

    def build(**parts: Any) -> dict[str, str]:
        defaults = {"first": "", "cuda": None, "built": False, "available": False, "test": "pass"}
        (tmp_path / "torch.py").write_text(FAKE_TORCH.format(**{**defaults, **parts}))
        return {**os.environ, "PYTHONPATH": str(tmp_path)}

    return build


def by_id(results: tuple[CheckResult, ...]) -> dict[str, CheckResult]:
    return {result.id: result for result in results}


@pytest.mark.torch
def test_the_real_torch_computes_and_learns(tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(standin.FOLDER)}
    report = examine(Home(tmp_path, tmp_path), environ, python=sys.executable, train=True)
    told = report.as_json()
    cpu = told["devices"]["cpu"]
    assert cpu["works"]
    assert cpu["losses"][2] < cpu["losses"][1] < cpu["losses"][0]
    assert told["home"] == {"path": str(tmp_path), "writable": True, "locks": True, "error": None, "distrusted": ""}
    assert told["memory"]["total"] > told["memory"]["available"] > 0
    assert told["ok"]
    assert list(tmp_path.iterdir()) == []


def test_a_device_that_aborts_is_a_problem_and_no_crash(torch_that: Torch) -> None:
    env = torch_that(built=True, available=True, test="os.abort()")
    found = by_id(examine_torch(sys.executable, env, system="Darwin", train=False).results)
    assert found["mps"].status is Status.PROBLEM
    assert "SIGABRT" in found["mps"].text
    assert "no tensors here" in found["cpu"].text


@pytest.mark.skipif(not hasattr(signal, "SIGRTMIN"), reason="this system has no real-time signals")
def test_a_device_that_ends_by_a_signal_without_a_name_is_told_too(torch_that: Torch) -> None:
    env = torch_that(built=True, available=True, test="os.kill(os.getpid(), 36)")
    found = by_id(examine_torch(sys.executable, env, system="Linux", train=False).results)
    assert "ended by signal 36" in found["mps"].text


def test_a_mac_without_mps_is_told_why_and_linux_is_not(torch_that: Torch) -> None:
    for built, part in ((False, "built without MPS"), (True, "finds no device")):
        env = torch_that(built=built)
        assert part in by_id(examine_torch(sys.executable, env, system="Darwin", train=False).results)["mps"].text
    assert "mps" not in by_id(examine_torch(sys.executable, torch_that(), system="Linux", train=False).results)


def test_cuda_built_and_absent(torch_that: Torch) -> None:
    found = examine_torch(sys.executable, torch_that(cuda="12.4"), system="Linux", train=False)
    assert by_id(found.results)["cuda"].status is Status.NOTE


def test_no_torch_names_the_command(torch_that: Torch) -> None:
    env = torch_that(first="raise ModuleNotFoundError('x', name='torch')")
    found = examine_torch(sys.executable, env, system="Linux", train=False)
    assert found.torch is None
    assert found.results[0].status is Status.WARNING
    assert "pip install 'mpstui[train]'" in found.results[0].advice
    with_training = examine_torch(sys.executable, env, system="Linux", train=True)
    assert with_training.results[0].status is Status.PROBLEM


def test_a_torch_that_cannot_be_imported(torch_that: Torch) -> None:
    env = torch_that(first="raise ImportError('symbol not found in flat namespace')")
    found = examine_torch(sys.executable, env, system="Darwin", train=False).results[0]
    assert found.status is Status.PROBLEM
    assert "flat namespace" in found.text


def test_no_such_interpreter() -> None:
    found = examine_torch("/no/python", {}, system="Linux", train=False).results[0]
    assert "cannot be started" in found.text


def test_a_home_that_others_can_write_is_a_problem(tmp_path: Path) -> None:
    home = Home(tmp_path / "state", tmp_path / "config")
    assert [one.status for one in machine.judge_home(machine.home_facts(home))] == [Status.OK]
    home.config.mkdir()
    home.settings.touch()
    home.settings.chmod(0o666)
    (result,) = machine.judge_home(machine.home_facts(home))
    assert (result.status, result.text) == (Status.PROBLEM, f"{home.settings} can be written by everybody")


def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    facts = machine.home_facts(Home(tmp_path / "file" / "home", tmp_path))
    result = next(machine.judge_home(facts))
    assert result.status is Status.PROBLEM
    assert "MPSTUI_HOME" in result.advice


def test_judgements() -> None:
    assert next(machine.judge_limits({"open_files": 256})).status is Status.WARNING
    assert next(machine.judge_limits({"open_files": None})).status is Status.OK
    assert next(machine.judge_disk({"free": 10**8, "path": "/"})).status is Status.WARNING
    assert next(machine.judge_memory({"available": 10**8, "total": 8 * 10**9})).status is Status.WARNING
    rosetta = {"system": "Darwin", "release": "15.1", "architecture": "x86_64", "translated": True}
    assert next(machine.judge_system(rosetta)).status is Status.PROBLEM
    assert "watermark" in str(list(machine.judge_environment({"PYTORCH_MPS_HIGH_WATERMARK_RATIO": "3"}))).lower()
