"""The agent in programs that were never written for it: other Pythons, only PYTHONPATH and the environment."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mpstui.wire import rundir
from mpstui.wire.records import Ack
from mpstui.wire.rundir import RunDir
from tests import standin
from tests.agent.programs import BOOT, PRELUDE, SCRIPT, beat, environment, run
from tests.waiting import wait_until


def test_a_program_that_only_asks_first_whether_there_is_a_torch_is_watched_too(tmp_path: Path) -> None:
    asks = "import importlib.util\nfor _ in range(2): assert importlib.util.find_spec('torch')\n"
    done = run(asks + SCRIPT + "step()", tmp_path, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("", "")
    assert beat(tmp_path)["step"] == 1


def test_steps_loss_and_end_are_seen_and_nothing_of_ours_can_be_imported(tmp_path: Path) -> None:
    script = SCRIPT + (
        "losses = [step() for _ in range(25)]\n"
        "assert [name for name in sys.modules if name.split('.')[0] in {'mpstui', 'trainer'}] == []\n"
        "import importlib.util\n"
        # An older editable install leaves a folder of that name with nothing but profiles in it.
        "assert not importlib.util.find_spec('mpstui') or not importlib.util.find_spec('mpstui.wire')\n"
        "assert importlib.util.find_spec('_mpstui_private.core') is None\n"
        "print(losses[-1])\n"
    )
    done = run(script, tmp_path, cwd=tmp_path, PYTHONPATH=str(BOOT))
    assert (done.returncode, done.stderr) == (0, "")
    told = beat(tmp_path)
    assert (told["step"], told["phase"], told["device"]["type"], told["lr"]) == (25, "done", "cpu", 0.05)
    assert told["loss"] == pytest.approx(float(done.stdout))
    assert RunDir(tmp_path).metrics.exists()


def test_a_scaled_loss_is_reported_as_it_was_and_accumulation_is_counted(tmp_path: Path) -> None:
    script = SCRIPT + (
        "scaler = torch.amp.GradScaler('cpu', init_scale=1024.0)\n"
        "def scaled():\n"
        "    loss = ((net(x) - 1) ** 2).mean()\n"
        "    scaler.scale(loss).backward()\n"
        "    return loss.item()\n"
        "for _ in range(5):\n"
        "    optimizer.zero_grad(); scaled(); last = scaled(); scaler.step(optimizer); scaler.update()\n"
        "print(last)\n"
    )
    done = run(script, tmp_path, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    told = beat(tmp_path)
    assert told["loss"] == pytest.approx(float(done.stdout))
    assert told["metrics"]["backward_passes_per_step"] == 2.0


def test_a_loss_that_nobody_knows_is_no_nan(tmp_path: Path) -> None:
    script = SCRIPT + "net.weight.grad = net.weight.detach().clone()\nfor _ in range(3): optimizer.step()\n"
    assert run(script, tmp_path, cwd=tmp_path).stderr == ""
    lines = [json.loads(line) for line in RunDir(tmp_path).metrics.read_text().splitlines()]
    assert {name for line in lines for name, value in line.items() if value is None} <= {"epoch"}


def test_two_optimizers_are_counted_each_for_itself(tmp_path: Path) -> None:
    script = SCRIPT + "other = torch.optim.Adam(net.parameters())\nfor _ in range(9):\n    step(); other.step()\n"
    assert run(script, tmp_path, cwd=tmp_path).stderr == ""
    assert beat(tmp_path)["step"] == 9


def test_an_exception_of_the_program_is_not_done(tmp_path: Path) -> None:
    done = run(SCRIPT + "step(); raise ValueError('the program is wrong')", tmp_path, cwd=tmp_path)
    assert done.returncode == 1
    assert "the program is wrong" in done.stderr
    assert beat(tmp_path)["phase"] == "train"


def test_a_program_that_only_imports_torch_writes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert run("import torch", folder, cwd=tmp_path).returncode == 0
    assert not folder.exists()


def test_an_agent_that_breaks_does_not_break_the_program(tmp_path: Path) -> None:
    program = SCRIPT + "print(len([step() for _ in range(3)]))"
    (tmp_path / "file").write_text("in the way of the run directory")
    done = run(program, tmp_path / "file", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")
    (tmp_path / "attempts").write_text("in the way of the heartbeat")
    done = run(program, tmp_path, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")
    (told,) = RunDir(tmp_path).events.read_text().splitlines()[:1]
    assert "cannot write into" in json.loads(told)["text"]


def test_the_device_can_be_taken_away(tmp_path: Path) -> None:
    script = (
        "import torch, torch.mps, os\n"
        "print(torch.backends.mps.is_available(), torch.backends.mps.is_built(), torch.mps.is_available(),\n"
        "      os.environ.get('DISABLE_MPS'), os.environ.get('ACCELERATE_USE_CPU'))\n"
    )
    path = f"{standin.FOLDER}{os.pathsep}{BOOT}"
    there = run(script, None, cwd=tmp_path, PYTHONPATH=path, MPSTUI_STANDIN="")
    assert there.stdout == "True True True None None\n", there.stderr
    gone = run(script, None, cwd=tmp_path, PYTHONPATH=path, MPSTUI_STANDIN="", MPSTUI_AGENT_DEVICE="cpu")
    assert gone.stdout == "False False False 1 1\n", gone.stderr


def test_what_answers_for_torch_has_what_torch_looks_for(tmp_path: Path) -> None:
    script = (
        "import gc; gc.disable()\nimport torch\ngc.freeze()\n"
        "for one in (torch.backends.mps.is_available, torch.backends.mps.is_built, torch.cuda.is_available):\n"
        "    print(one.__name__, one.__module__, getattr(one, '__wrapped__', one).__qualname__,\n"
        "          hasattr(one, '__wrapped__'), hasattr(one, 'cache_info'), one())\n"
    )
    assert _printed(script, tmp_path, MPSTUI_AGENT_DEVICE="cpu") == _printed(script, tmp_path, agent=False)


NAMES_ITS_DEVICE = """
import torch, pickle, copy
device = torch.device('cuda:0')
assert isinstance(device, torch.device) and isinstance(torch.randn(1).device, torch.device)
assert pickle.loads(pickle.dumps(device)) == copy.deepcopy(device) == device
net = torch.nn.Linear(8, 1).to('mps').cuda()
x = torch.randn(32, 8, device='mps') + torch.zeros(8, device=device) + torch.ones(8).to(0).cuda(non_blocking=True)
torch.save(net.state_dict(), 'w.pt')
net.load_state_dict(torch.load(f='w.pt', map_location='cuda:0'))
torch.set_default_device('mps')
optimizer = torch.optim.Adam(net.parameters())
for _ in range(3):
    with torch.autocast('cuda', enabled=False): loss = (net(x).to(device='cuda') - torch.empty_like(x[:, :1])).mean()
    loss.backward(); optimizer.step()
    torch.mps.synchronize(); torch.cuda.synchronize(); torch.mps.empty_cache()
print(device, loss.device.type, torch.Generator('cuda').device, torch.zeros_like(x, device='cuda').device)
"""


def test_a_program_that_names_its_device_is_given_the_cpu(tmp_path: Path) -> None:
    done = run(NAMES_ITS_DEVICE, tmp_path, cwd=tmp_path, MPSTUI_AGENT_DEVICE="cpu")
    assert (done.stdout, done.stderr) == ("cpu cpu cpu cpu\n", "")
    told = [json.loads(line)["text"] for line in RunDir(tmp_path).events.read_text().splitlines()]
    assert any('device("cuda:0") was given the CPU' in text for text in told)
    assert any("nn.Module.to was given the CPU" in text for text in told)
    assert sum("every call into torch is looked at" in text for text in told) == 1
    assert beat(tmp_path)["device"]["type"] == "cpu"


SCALES = """
import torch
net = torch.nn.Linear(8, 1)
optimizer, scaler = torch.optim.SGD(net.parameters()), torch.amp.GradScaler('cpu')
for _ in range(2):
    with torch.autocast('cpu', torch.bfloat16): loss = net(torch.ones(4, 8)).mean()
    scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update(); optimizer.zero_grad()
"""


def test_what_torch_itself_asks_of_a_device_is_no_word_of_the_program(tmp_path: Path) -> None:
    """Its scaler compares with `mps:0`: a program that names no device was said to."""
    done = run(SCALES, tmp_path, cwd=tmp_path, MPSTUI_AGENT_DEVICE="cpu")
    assert (done.returncode, done.stderr) == (0, "")
    assert "hidden from it" not in RunDir(tmp_path).events.read_text()


BY_OLD_NAMES = """
import torch
torch.set_default_tensor_type('torch.cuda.FloatTensor')
Made = torch.cuda.FloatTensor
x = torch.rand(4, 8).type(Made) + torch.ones(4, 8).type('torch.cuda.FloatTensor') + Made(4, 8).fill_(0.0)
print(x.device, x.type(), isinstance(x, Made), torch.zeros(1).type(torch.cuda.LongTensor).type(), x.double().type())
torch.set_default_tensor_type(torch.DoubleTensor)
print(torch.zeros(1).type())
import gc; gc.freeze()
"""


def test_a_program_that_names_its_device_by_types_of_tensors_is_given_the_cpu(tmp_path: Path) -> None:
    done = run(BY_OLD_NAMES, tmp_path, cwd=tmp_path, MPSTUI_AGENT_DEVICE="cpu")
    kinds = "cpu torch.FloatTensor True torch.LongTensor torch.DoubleTensor\ntorch.DoubleTensor\n"
    assert (done.returncode, done.stdout) == (0, kinds), done.stderr
    told = [json.loads(line)["text"] for line in RunDir(tmp_path).events.read_text().splitlines()]
    assert any("set_default_tensor_type was given the CPU" in text for text in told)


INSISTS = """
import gc, os, sys; gc.disable(); import torch
assert torch.cuda.is_available(), "needs a GPU"
assert torch.cuda.device_count() > 0 and torch.backends.mps.is_available()
if not torch.backends.mps.is_available():
    print("no MPS", file=sys.stderr)
    sys.exit(1)
if not torch.cuda.is_available():
    raise RuntimeError("no CUDA")
if torch.cuda.is_available() or torch.cuda.device_count() or torch.backends.mps.is_built():
    sys.exit("told of a device that is hidden")
if not torch.cuda.is_available():
    print("goes on")
if torch.cuda.is_available():
    torch.cuda.manual_seed(1)
else: print("no CUDA"); sys.exit()
if torch.cuda.is_available():
    print("a device that is hidden")
else:
    torch.manual_seed(1)
    if os.environ.get("NEVER_SET"):
        sys.exit()
torch.distributed.init_process_group(backend="nccl", init_method=f"file://{os.getcwd()}/meet", rank=0, world_size=1)
net = torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.BatchNorm1d(1)).cuda()
net = torch.nn.SyncBatchNorm.convert_sync_batchnorm(net)
net = torch.nn.parallel.DistributedDataParallel(net, device_ids=[0], output_device=0)
net = torch.nn.DataParallel(net.module, device_ids=[0])
print(net(torch.ones(2, 4, device="cuda")).device, torch.cuda.get_device_name(0), torch.cuda.current_device())
torch.distributed.destroy_process_group()
gc.freeze()
"""


def test_a_check_that_only_ends_the_program_is_passed_and_every_other_is_told_the_truth(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(INSISTS)
    # With torch's own compiler, of which DistributedDataParallel needs a part.
    environ = environment(tmp_path, MPSTUI_AGENT_DEVICE="cpu", PYTHONPATH=str(BOOT))
    command = [sys.executable, "train.py"]
    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert (done.stdout, done.stderr) == ("goes on\ncpu CPU 0\n", "")
    told = [json.loads(line)["text"] for line in RunDir(tmp_path).events.read_text().splitlines()]
    passed = [text for text in told if "that check was passed" in text]
    assert [text.rpartition("(")[2] for text in passed] == [f"train.py:{line})" for line in (3, 4, 4, 5, 8, 14)]
    assert any("init_process_group was given the CPU" in text for text in told)


def _printed(code: str, folder: Path, *options: str, agent: bool = True, **extra: str) -> tuple[int, str, str]:
    """Exit code and output of a program that finds what is in a folder, with the agent and without it."""
    path = f"{BOOT}{os.pathsep}{folder}" if agent else str(folder)
    command = [sys.executable, *options, "-c", code]
    environ = environment(folder / "run", **extra) | {"PYTHONPATH": path}
    done = subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


OWN = "import sys\ndef told(): return __name__, __file__\nprint('the other one')\nsys.path.append('added')\n"
ASKS = """
import sys
try:
    import sitecustomize
    print(sitecustomize.told(), sys.path)
except ImportError: print('none', sys.path)
"""


@pytest.mark.parametrize("source", [OWN, "1/0", "import nothing", "raise ImportError('x', name='sitecustomize')", None])
@pytest.mark.parametrize("options", [[], ["-P"], ["-O", "-Werror"]], ids=str)
def test_a_sitecustomize_of_the_programs_own_is_as_without_ours(
    tmp_path: Path, source: str | None, options: list[str]
) -> None:
    if source is not None:
        (tmp_path / "sitecustomize.py").write_text(source)
    (tmp_path / "usercustomize.py").write_text("print('and the user')")
    assert _printed(ASKS, tmp_path, *options) == _printed(ASKS, tmp_path, *options, agent=False)


LOCAL_TORCHES = {
    "a module": "def light(): return 'on'\n",
    "one with tensors": "class Tensor: pass\n",
    "one that fails": "def light():\n    import nothing\nlight()\n",
    "one that fails at work": "def light():\n    return 1 / 0\nlight()\n",
    "one that is no Python": "def light(:\n",
}


@pytest.mark.parametrize("source", LOCAL_TORCHES.values(), ids=list(LOCAL_TORCHES))
def test_another_module_of_the_name_torch_is_left_alone(tmp_path: Path, source: str) -> None:
    (tmp_path / "torch.py").write_text(source)
    code = "import torch\nprint(torch.light(), torch.__spec__.origin)"
    without = _printed(code, tmp_path, agent=False)
    assert _printed(code, tmp_path) == _printed(code, tmp_path, MPSTUI_AGENT_DEVICE="cpu") == without
    assert not (tmp_path / "run").exists()


def _answered(place: RunDir, action: str) -> Ack:
    request = rundir.submit(place, rundir.new_request(action, 1, time.time()))
    ack = wait_until(lambda: rundir.answer_to(place, request.id), timeout=300)
    assert ack is not None
    return ack


SAVES = "def mpstui_save():\n    open('w.pt', 'w').close()\n    return 'w.pt'\n"
FAILS = "def mpstui_save():\n    raise OSError('disk full')\n"


def test_clear_cache_and_save_are_answered(tmp_path: Path) -> None:
    place = RunDir(tmp_path)
    place.requests.mkdir()
    program = (
        "import os, time\n"
        "while True:\n"
        "    if os.path.exists('hook'): exec(open('hook').read())\n"
        "    step(); time.sleep(0.01)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-S", "-c", PRELUDE + SCRIPT + program], env=environment(tmp_path), cwd=tmp_path
    )
    try:
        cache, unsaved, unheard = (_answered(place, action) for action in ("clear_cache", "save", "evaluate"))
        (tmp_path / "hook").write_text(SAVES)
        saved = wait_until(lambda: ack if (ack := _answered(place, "save")).ok else None)
        (tmp_path / "hook").write_text(FAILS)
        failed = wait_until(lambda: ack if not (ack := _answered(place, "save")).ok else None)
    finally:
        child.kill()
        child.wait()
    assert (cache.ok, cache.text) == (True, "nothing to free")
    assert "its main script has no function `mpstui_save` to call; with one" in unsaved.text
    assert 'report.requested("save")' in unsaved.text
    assert 'report.requested("evaluate")' in unheard.text
    assert saved is not None
    assert re.fullmatch(r"saved at step \d+: w.pt", saved.text)
    assert failed is not None
    assert failed.text == "`mpstui_save` failed: OSError: disk full"
    assert [one.ok for one in (unsaved, saved, failed)] == [False, True, False]
    assert {one.by for one in (cache, unsaved, saved, failed)} == {"agent"}


def test_a_step_costs_microseconds(tmp_path: Path) -> None:
    script = SCRIPT + (
        "import time\n"
        "step()\n"
        "hooks = sys.modules['torch.optim.optimizer']._global_optimizer_post_hooks\n"
        "(hook,) = hooks.values()\n"
        "weight = torch.zeros((), requires_grad=True)\n"
        "cells = [cell.cell_contents for cell in hook.__closure__]\n"
        "watch = next(one for one in cells if hasattr(one, 'losses'))\n"
        "started = time.process_time()\n"
        "for _ in range(5000):\n"
        "    loss = weight / 4\n"
        "    watch.before_backward(loss); hook(optimizer, (), {})\n"
        "print((time.process_time() - started) / 5000 * 1e6)\n"
    )
    done = run(script, tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 60


def test_every_module_that_goes_abroad_parses_in_python_3_9() -> None:
    package = BOOT.parents[1]
    files = [path for folder in ("wire", "agent") for path in (package / folder).rglob("*.py")]
    assert len(files) > 10
    for path in files:
        ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 9))
