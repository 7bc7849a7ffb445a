"""The agent inside other Pythons than our own: every one found on this machine from 3.9 on runs it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import mpstui
from mpstui.wire import rundir
from mpstui.wire.rundir import RunDir
from tests.waiting import wait_until

PACKAGE = Path(mpstui.__file__).parent
FAKE_TORCH = """
class Tensor: pass
class _Mps:
    @staticmethod
    def is_available(): return False
class backends: mps = _Mps
class autograd:
    @staticmethod
    def backward(*args): pass
class amp:
    class GradScaler:
        def scale(self, loss): return loss
class cuda:
    @staticmethod
    def is_initialized(): return False
import torch.optim.optimizer
"""
OPTIMIZER = """
hooks = []
def register_optimizer_step_post_hook(hook): hooks.append(hook)
class Parameter:
    class device: type = "cpu"
class Optimizer:
    param_groups = [{"params": [Parameter], "lr": 0.5}]
    def step(self):
        for hook in hooks: hook(self, (), {})
"""
PROGRAM = """
try: import sitecustomize
except ImportError: pass
import sys, time, torch, torch.optim.optimizer
def mpstui_save(): return "w.pt"
optimizer = torch.optim.optimizer.Optimizer()
while True:
    optimizer.step()
    time.sleep(0.02)
"""


TOO_OLD = ("2.7", "3.4", "3.5", "3.6", "3.7", "3.8")
OLD = tuple(f"3.{minor}" for minor in range(9, sys.version_info[1]))


def pythons(versions: Sequence[str]) -> Iterator[str]:
    """Interpreters of these versions: of pyenv, else on PATH."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for version in versions:
        built = [str(path) for path in sorted(pyenv.glob(f"{version}.*/bin/python{version}"))]
        on_path = shutil.which(f"python{version}")
        yield from built or ([on_path] if on_path else [])


@pytest.mark.parametrize("python", list(pythons(TOO_OLD)) or [""])
@pytest.mark.parametrize("source", ["print('the other one, as ' + __name__)", "1/0", None])
def test_a_python_that_is_too_old_notices_nothing(python: str, source: str | None, tmp_path: Path) -> None:
    if not python:
        pytest.skip("no Python older than 3.9 was found under pyenv or on PATH")
    if source is not None:
        (tmp_path / "sitecustomize.py").write_text(source)
    boot = tmp_path / "boot"  # 2.7 leaves its bytecode beside the source
    shutil.copytree(PACKAGE / "agent" / "boot", boot)
    code = "import sys; print(sys.path[1:3], sorted(name for name in sys.modules if 'custom' in name), sys.flags)"
    printed = []
    for folders in ([boot, tmp_path], [tmp_path]):
        command = [python, "-c", code]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders)), "MPSTUI_AGENT": "1"}
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
        printed.append((done.returncode, done.stdout, done.stderr))
    assert printed[0] == printed[1]
    assert printed[0][0] == 0


@pytest.fixture(params=list(pythons(OLD)) or [""])
def python(request: pytest.FixtureRequest) -> str:
    if not request.param:
        pytest.skip("no Python older than ours, from 3.9 on, was found on PATH or under pyenv")
    return str(request.param)


def test_every_module_can_be_imported(python: str) -> None:
    files = [path for folder in ("wire", "agent") for path in (PACKAGE / folder).glob("*.py")]
    modules = [f"mpstui.{path.parent.name}.{path.stem}" for path in files]
    code = f"import sys; sys.path.append({str(PACKAGE.parent)!r})\n" + "".join(f"import {name}\n" for name in modules)
    done = subprocess.run([python, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


FORKS = """
import os, sys, time
from mpstui.agent.awake import Awake
looks = []
awake = Awake(lambda: looks.append(time.monotonic()), 0.01)
def wait_for_looks():
    seen, until = len(looks), time.monotonic() + 30
    while len(looks) < seen + 3 and time.monotonic() < until: pass
    return len(looks) >= seen + 3
awake.start()
assert wait_for_looks() and awake.stands_still(time.monotonic()) >= 0
for _ in range(3):
    child = os.fork()
    if not child:
        grandchild = os.fork()
        if grandchild: os.waitpid(grandchild, 0)
        seen = len(looks); time.sleep(0.05)
        os._exit(len(looks) - seen)
    assert os.waitpid(child, 0)[1] == 0
    awake.start()
    assert wait_for_looks()
awake.end()
seen = len(looks); time.sleep(0.05)
os._exit(0 if len(looks) == seen else 1)
"""


@pytest.mark.parametrize("python", [sys.executable, *pythons(("3.12", "3.13", "3.14"))])
def test_the_second_thread_is_not_there_at_a_fork(python: str) -> None:
    command = [python, "-W", "always", "-c", f"import sys; sys.path.append({str(PACKAGE.parent)!r})\n{FORKS}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


FAILS = """
import functools, gc, sys, traceback
from mpstui.agent.hooks import watched as watch
watched = functools.partial(watch, guest=None) if sys.argv[1] == "watched" else lambda original: original
class Failure(Exception): pass
@watched
def plain(text): raise Failure(text)
@watched
def deeper(text):
    try: plain(text)
    except Failure: raise
@watched
def instead(text):
    try: 1 / 0
    except ZeroDivisionError as error: raise Failure(text) from error
@watched
def leaves(text): sys.exit(text)
in_c = watched(int)
def generates(what):
    try: yield 1
    finally: what("in a generator")
def caught(what, *args):
    try: what(*args)
    except BaseException as error:
        assert sys.exc_info()[2] is error.__traceback__
        print(traceback.format_exc(), error.__context__, sys.getrefcount(error), len(gc.get_referrers(error)))
for what in (plain, deeper, instead, in_c, leaves):
    caught(what, "none")
    try: {}["another"]
    except KeyError:
        caught(what, "meanwhile"); print(sys.exc_info()[0])
    assert sys.exc_info() == (None, None, None)
    caught(list, generates(what))
gc.collect(); gc.disable()
class Kept: made = 0
Failure.__init__ = lambda self, *args: setattr(Kept, "made", Kept.made + 1)
Failure.__del__ = lambda self: setattr(Kept, "made", Kept.made - 1)
for _ in range(100):
    try: deeper("often")
    except Failure: pass
assert Kept.made == 0, Kept.made
deeper("the end")
"""


def test_tracebacks_are_without_our_frames(python: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"import sys; sys.path.append({str(PACKAGE.parent)!r})\n{FAILS}")
    printed = []
    for how in ("watched", "alone"):
        done = subprocess.run([python, str(program), how], capture_output=True, text=True, timeout=60, check=False)
        printed.append((done.returncode, done.stdout, done.stderr))
    assert printed[0] == printed[1]
    assert printed[0][2].endswith("Failure: the end\n"), printed[0]


def test_a_training_reports_and_answers(python: str, tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    for folder in (run.requests, run.attempt(1).path, tmp_path / "torch" / "optim"):
        folder.mkdir(parents=True)
    (tmp_path / "torch" / "__init__.py").write_text(FAKE_TORCH)
    (tmp_path / "torch" / "optim" / "__init__.py").touch()
    (tmp_path / "torch" / "optim" / "optimizer.py").write_text(OPTIMIZER)
    (tmp_path / "train.py").write_text(PROGRAM)
    asked = [rundir.submit(run, rundir.new_request(action, 1, time.time())) for action in ("clear_cache", "save")]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        **{"PYTHONPATH": str(PACKAGE / "agent" / "boot"), "MPSTUI_AGENT": "1"},
        **{"MPSTUI_RUN_DIR": str(run.path), "MPSTUI_ATTEMPT": "1"},
    }
    with (tmp_path / "out").open("wb") as out:
        child = subprocess.Popen([python, "-S", "train.py"], cwd=tmp_path, env=environment, stdout=out, stderr=out)
    try:
        wait_until(lambda: run.metrics.exists() and all(run.ack(request.id).exists() for request in asked))
    finally:
        child.kill()
        child.wait()
    assert (tmp_path / "out").read_text() == ""
    cleared, saved = (json.loads(run.ack(request.id).read_text()) for request in asked)
    assert (cleared["ok"], cleared["by"], saved["ok"]) == (True, "agent", True)
    assert saved["text"].endswith(": w.pt")
    beat = json.loads(run.attempt(1).heartbeat().read_text())
    assert (beat["phase"], beat["device"], beat["lr"]) == ("train", {"type": "cpu"}, 0.5)
    number, pid, _ = map(int, run.attempt(1).stack_signal.read_text().split())
    assert (number, pid) == (signal.SIGURG, child.pid)
