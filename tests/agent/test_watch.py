"""The agent in whole programs: phases, checkpoints, what it cannot see, compiled optimizers, several processes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from mpstui.agent.watch import Watch
from mpstui.wire import checkpoints
from mpstui.wire.rundir import RunDir
from tests.agent.programs import BOOT, SCRIPT, beat, ran, run

TELL = """
import json, os, time
def told():
    return json.load(open(os.environ['MPSTUI_RUN_DIR'] + '/attempts/1/heartbeat.json'))
def wait_for(phase, work=lambda: None):
    until = time.monotonic() + 30
    while told().get('phase') != phase and time.monotonic() < until: work()
    print(told().get('phase'))
"""


def _events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in RunDir(folder).events.read_text().splitlines()]


def test_evaluations_and_saves_are_phases(tmp_path: Path) -> None:
    script = SCRIPT + (
        "def evaluate():\n"
        "    with torch.no_grad(): net(x).sum()\n"
        "from torch.utils.data import DataLoader\n"
        "loader = DataLoader(x, batch_size=1)\n"
        "for batch in DataLoader(x, batch_size=8): step()\n"
        "net.eval(); wait_for('eval', evaluate); seen = told()['seq']\n"  # no loader: only Python moves
        "while told()['seq'] < seen + 2: evaluate()\n"
        "net.train(); print(told()['phase']); step(); wait_for('train')\n"
        "for _ in range(1000):\n"
        "    for batch in loader: evaluate(); time.sleep(0.01)\n"  # a loader, and nobody says eval()
        "    if told()['phase'] == 'eval': break\n"
        "print(told()['phase']); step(); print(told()['phase'])\n"
        "class Slow:\n"
        "    def __reduce__(self): return (str, (told()['phase'],))\n"
        "torch.save({'at': Slow(), 'weight': 1}, 'step4.pt'); print(torch.load('step4.pt', weights_only=False)['at'])\n"
        "print(told()['phase'])\n"
        "import io; torch.save(x, io.BytesIO())\n"
    )
    printed, last = ran(TELL + script, tmp_path)
    assert printed.split() == ["eval", "train", "train", "eval", "train", "save", "train"]
    note = last["checkpoint"]
    assert (note["path"], note["step"]) == (str(tmp_path / "step4.pt"), 6)
    assert (last["epoch"], last.get("epoch_steps"), last["batch_size"]) == (1, None, 8)


def test_an_evaluation_and_a_save_are_told_with_all_steps_before_them(tmp_path: Path) -> None:
    """Beats come once a second: an hour of evaluation must not show the step of a moment before it."""
    script = (
        "import time; at = [100.0]; time.monotonic = lambda: at[0]\n"
        + SCRIPT
        + (
            "from torch.utils.data import DataLoader\n"
            "def train():\n"
            "    for batch in DataLoader(x, batch_size=8): at[0] += 0.3; step()\n"
            "train(); train()\n"
            "for batch in DataLoader(x, batch_size=1): at[0] += 0.1\n"  # an evaluation
            "print(told()['phase'], told()['step'], told()['epoch_step'])\n"
            "at[0] += 2; train(); at[0] += 0.1\n"
            "class Slow:\n"
            "    def __reduce__(self): return (str, (f\"{told()['phase']} {told()['step']}\",))\n"
            "torch.save(Slow(), 'a.pt'); print(torch.load('a.pt', weights_only=False))\n"
        )
    )
    printed, last = ran(TELL.partition("def wait")[0] + script, tmp_path)
    assert printed.split() == ["eval", "8", "4", "save", "12"]
    steps = [json.loads(line)["step"] for line in RunDir(tmp_path).metrics.read_text().splitlines()]
    assert {8, 12} <= set(steps)
    assert last["samples_per_second"] == pytest.approx(8 * last["steps_per_second"])


def test_a_step_made_while_the_other_thread_tells_of_an_evaluation_has_the_last_word(tmp_path: Path) -> None:
    script = SCRIPT + (
        "import threading\n"
        "step(); net.eval()\n"
        "watch = sys.modules['_mpstui_private.agent.hooks']._watches[0]; watch.evaluating.since -= 60\n"
        "beat, begun, stepped = watch._reporter.beat, threading.Event(), threading.Event()\n"
        "def slow(phase=None, **facts):\n"
        "    if phase == 'eval': begun.set(); stepped.wait(60)\n"
        "    return beat(phase, **facts)\n"
        "watch._reporter.beat = slow\n"
        "other = threading.Thread(target=watch._stay_awake); other.start(); begun.wait(60)\n"
        "step(); stepped.set(); other.join(60)\n"  # train() would wait for the door
        "print(begun.is_set(), told()['phase'])\n"
    )
    assert ran(TELL + script, tmp_path)[0] == "True train\n"


@pytest.mark.parametrize("then", ["sum(range(1000))", "time.sleep(0.01)"])
def test_the_last_steps_before_something_long_are_told_though_nothing_says_that_it_begins(
    tmp_path: Path, then: str
) -> None:
    """Figures are drawn, or another process is waited for: neither an evaluation nor a save, and no hook is called."""
    script = SCRIPT + (
        "from torch.utils.data import DataLoader\n"
        "for batch in DataLoader(x, batch_size=8): step()\n"
        "until = time.monotonic() + 20\n"
        f"while told()['step'] < 4 and time.monotonic() < until: {then}\n"
        "print(*(told().get(name) for name in ('phase', 'step', 'epoch', 'epoch_step')))\n"
    )
    assert ran(TELL + script, tmp_path)[0] == "train 4 1 4\n"


def test_a_long_silence_that_computes_is_an_evaluation_though_nobody_says_so(tmp_path: Path) -> None:
    """Neither ``eval()`` nor a loader: `estimate_loss` of a program's own. One that only waits may hang."""
    script = SCRIPT + (
        "def evaluate():\n"
        "    with torch.no_grad(): net(x).sum()\n"
        "step(); step()\n"
        "watch = sys.modules['_mpstui_private.agent.hooks']._watches[0]\n"
        "looks, look = [], watch._awake._look\n"
        "watch._awake._look = lambda: (look(), looks.append(told()['phase']))\n"
        "watch._worked_at -= 40\n"
        "until = time.monotonic() + 60\n"
        "while len(looks) < 3 and time.monotonic() < until: time.sleep(0.01)\n"  # it waits for something
        "print(looks[1:3])\n"
        "wait_for('eval', evaluate); seen = told()['seq']\n"
        "while told()['seq'] < seen + 2: evaluate()\n"
        "step(); wait_for('train')\n"  # the other thread may be at the door: it tells of the step then
    )
    assert ran(TELL + script, tmp_path)[0] == "['train', 'train']\neval\ntrain\n"


@pytest.mark.parametrize("says_eval", ["net.eval()", "pass"])
def test_the_pass_after_a_validation_is_the_next_epoch(tmp_path: Path, says_eval: str) -> None:
    script = SCRIPT + (
        "from torch.utils.data import DataLoader\n"
        "train, val = DataLoader(x, batch_size=8), DataLoader(x, batch_size=4)\n"
        "for epoch in range(3):\n"
        "    net.train()\n"
        "    for batch in train: step()\n"
        f"    {says_eval}\n"
        "    for batch in val: net(batch)\n"
    )
    last = ran(script, tmp_path)[1]
    assert [last.get(name) for name in ("step", "epoch", "epoch_step", "epoch_steps")] == [12, 3, 4, 4]


CHAINED = "for epoch in range(3):\n    for batch in chain.from_iterable(loaders): step()\n"
IN_TURN = "for loader in loaders:\n    for epoch in range(2):\n        for batch in loader: step()\n"
WARMED = "for loader in loaders[:2] + loaders[1:2] * 2:\n    for batch in loader: step()\n"
VALIDATED = (
    "for epoch in range(2):\n    for loader in loaders:\n"
    "        for batch in loader: step()\n"
    "        for batch in DataLoader(x): pass\n"
)
ANEW = "for epoch in range(4):\n    loader = DataLoader(x, batch_size=8)\n    for batch in loader: step()\n"


@pytest.mark.parametrize(
    ("loop", "place"),
    [
        (CHAINED, (36, 3, 12, 12)),
        (IN_TURN, (24, 6, 4, 4)),  # one after another, each for some epochs
        (WARMED, (16, 4, 4, 4)),
        (VALIDATED, (24, 6, 4, 4)),
        (ANEW, (16, 4, 4, 4)),
    ],
)
def test_loaders_that_feed_one_epoch_in_turn_make_one_epoch(
    tmp_path: Path, loop: str, place: tuple[int, int, int, int]
) -> None:
    """As one loader for the sentences of each length does."""
    script = SCRIPT + (
        "from itertools import chain\nfrom torch.utils.data import DataLoader\n"
        "loaders = [DataLoader(x, batch_size=8) for _ in range(3)]\n"
    )
    last = ran(script + loop, tmp_path)[1]
    assert tuple(last.get(name) for name in ("step", "epoch", "epoch_step", "epoch_steps")) == place


def test_a_loader_that_only_gave_the_data_is_no_epoch_of_the_steps(tmp_path: Path) -> None:
    """Also where the first beat had believed it."""
    script = SCRIPT + (
        "from torch.utils.data import DataLoader\n"
        "x = torch.cat(list(DataLoader(x, batch_size=1)))\n"
        "for _ in range(5): step()\n"
    )
    last = ran(script, tmp_path)[1]
    assert [last.get(name) for name in ("step", "epoch", "epoch_step", "epoch_steps", "batch_size")] == [5, *[None] * 4]


def test_the_epochs_that_a_program_has_parsed_are_told(tmp_path: Path) -> None:
    parses = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--n_epochs', default=30)\n"
    script = SCRIPT + parses + "found = parser.parse_args([])\nfound.n_epochs = 20\nstep()\n"
    assert ran(script, tmp_path)[1]["planned_epochs"] == 20


def test_each_checkpoint_that_is_saved_is_told_with_its_step_and_what_is_none_is_not(tmp_path: Path) -> None:
    script = SCRIPT + (
        "step(); torch.save(net.state_dict(), 'epoch1.pt')\n"
        "step(); torch.save(net, 'epoch2.pt'); torch.save({'scores': torch.ones(3), 'epoch': 2}, 'scores.pt')\n"
        "step(); torch.save(net.state_dict(), 'best.pt'); step()\n"
        "both = {'epoch': 2, 'model': net.state_dict(), 'optim': optimizer.state_dict()}\n"
        "torch.save(net.state_dict(), 'best.pt'); torch.save(both, 'last.pt'); torch.save([x], 'x.pt')\n"
        "odd = torch.nn.Module(); odd.W = torch.nn.Parameter(x)  # of a layer of the program's own\n"
        "torch.save({'x': x}, 'y.pt'); torch.save({'epoch': 2, 'model': odd.state_dict()}, 'odd.pt')\n"
        "torch.save(both, 'last.pt')\n"
    )
    last = ran(script, tmp_path)[1]
    found = [json.loads(line) for line in RunDir(tmp_path).events.read_text().splitlines()]
    told = {Path(one["path"]).name: one for one in found if one["event"] == "checkpoint"}
    steps = {"epoch1.pt": 1, "epoch2.pt": 2, "best.pt": 4, "last.pt": 4, "odd.pt": 4}
    assert {name: one["step"] for name, one in told.items()} == steps
    assert [name for name, one in told.items() if not one.get("weights_only")] == ["last.pt"]
    assert last["checkpoint"]["path"] == str(tmp_path / "last.pt")
    assert checkpoints.told(RunDir(tmp_path).events) == [tmp_path / "last.pt"], (
        "a restart goes on from no weights alone"
    )


def test_what_is_saved_is_looked_at_without_running_any_code_of_it(tmp_path: Path) -> None:
    """A configuration beside the weights may refuse every name that it does not know, and compute its values."""
    script = SCRIPT + (
        "from collections import UserDict\n"
        "class Strict(UserDict):\n"
        "    def __getattr__(self, name): raise KeyError(name)\n"
        "    def values(self): raise KeyError('values')\n"
        "step(); torch.save({'model': net.state_dict(), 'config': Strict(lr=1)}, 'a.pt'); step()\n"
    )
    _, last = ran(script, tmp_path)
    assert (last["phase"], last["step"], last["checkpoint"]["path"]) == ("done", 2, str(tmp_path / "a.pt"))


def test_an_agent_that_gives_up_leaves_no_heartbeat_behind(tmp_path: Path) -> None:
    """It would stand there as the last word of a training that goes on."""
    script = SCRIPT + (
        "step(); print(os.path.exists(beat))\n"
        "class Odd:\n"
        "    def __fspath__(self): raise RuntimeError('none')\n"
        "try: torch.save(net, Odd())\n"
        "except RuntimeError: print(os.path.exists(beat))\n"
        "step()\n"
    )
    where = "import os; beat = os.environ['MPSTUI_RUN_DIR'] + '/attempts/1/heartbeat.json'\n"
    done = run(where + script, tmp_path, cwd=tmp_path)
    assert (done.returncode, done.stdout.split()) == (0, ["True", "False"])
    assert not RunDir(tmp_path).attempt(1).heartbeat().exists()
    assert "reporting is off" in _events(tmp_path)[-1]["text"]


def test_the_best_checkpoint_that_is_a_copy_of_the_last_one_is_told_too(tmp_path: Path) -> None:
    script = SCRIPT + (
        "import shutil\n"
        "for is_best in (True, True, False):\n"
        "    step(); torch.save({'net': net.state_dict(), 'opt': optimizer.state_dict()}, 'last.pth.tar')\n"
        "    if is_best: shutil.copyfile('last.pth.tar', 'model_best.pth.tar')\n"
        "torch.save([x], 'x.pt'); shutil.copy('x.pt', 'y.pt')  # no checkpoint\n"
    )
    _, last = ran(script, tmp_path)
    found = [one for one in _events(tmp_path) if one["event"] == "checkpoint"]
    told = {Path(one["path"]).name: one["step"] for one in found}
    assert told == {"model_best.pth.tar": 2, "last.pth.tar": 3}
    assert last["checkpoint"]["path"] == str(tmp_path / "last.pth.tar")
    assert checkpoints.told(RunDir(tmp_path).events)[0] == tmp_path / "last.pth.tar", "a restart goes on from there"


def test_links_to_a_checkpoint_are_names_of_the_same_save(tmp_path: Path) -> None:
    """Written aside, put in place and linked to, with the heartbeat before or after that."""
    script = "import os, time; at = [100.0]; time.monotonic = lambda: at[0]\n" + SCRIPT
    script += (
        "def link(place):\n"
        "    if os.path.exists(place): os.remove(place)\n"
        "    os.link('last.pt', place)\n"
        "for number in (1, 2, 3):\n"
        "    step(); at[0] += 2; both = {'net': net.state_dict(), 'opt': optimizer.state_dict()}\n"
        "    torch.save(both, 'tmp.pt'); os.replace('tmp.pt', 'last.pt'); link(f'checkpoint-{number}.pt')\n"
        "    if number == 2: link('model_best.pt')\n"
        "step(); torch.save(both, 'plain.pt'); os.link('plain.pt', 'other.pt')\n"
    )
    ran(script, tmp_path)
    found = [one for one in _events(tmp_path) if one["event"] == "checkpoint"]
    assert {Path(one["path"]).name: one["step"] for one in found} == {
        **{f"checkpoint-{number}.pt": number for number in (1, 2, 3)},
        **{"last.pt": 3, "model_best.pt": 2, "plain.pt": 4, "other.pt": 4},
    }
    newest = checkpoints.told(RunDir(tmp_path).events)[0]
    assert newest in (tmp_path / "plain.pt", tmp_path / "other.pt")


def test_a_copy_that_a_tracker_keeps_is_no_checkpoint_of_its_own(tmp_path: Path) -> None:
    script = "import os, shutil, time; at = [100.0]; time.monotonic = lambda: at[0]\n" + SCRIPT
    script += (
        "os.makedirs('artifacts'); os.makedirs('best')\n"
        "step(); at[0] += 2; both = {'net': net.state_dict(), 'opt': optimizer.state_dict()}\n"
        "torch.save(both, 'last.pt'); step(); at[0] += 2; step()\n"
        "shutil.copy2('last.pt', 'artifacts'); shutil.copy2('last.pt', 'artifacts/last.pt')\n"
        "shutil.copy('last.pt', 'best')\n"
    )
    _, last = ran(script, tmp_path)
    told = [Path(one["path"]).relative_to(tmp_path) for one in _events(tmp_path) if one["event"] == "checkpoint"]
    assert list(map(str, told)) == ["last.pt", "best/last.pt"], "one that is made for its own sake has its own time"
    assert last["checkpoint"]["path"] == str(tmp_path / "last.pt")
    assert checkpoints.told(RunDir(tmp_path).events) == [tmp_path / "last.pt", tmp_path / "best" / "last.pt"]


def test_a_checkpoint_that_is_written_aside_and_put_in_place_has_its_last_name(tmp_path: Path) -> None:
    script = "import os, time; at = [100.0]; time.monotonic = lambda: at[0]\n" + SCRIPT
    script += (
        "for number in range(3):\n"
        "    step(); at[0] += 2\n"
        "    both = {'model': net.state_dict(), 'optim': optimizer.state_dict()}\n"
        "    torch.save(both, 'tmp.pt'); os.replace('tmp.pt', f'step-{number}.pt')\n"
        "    torch.save(both, 'tmp.pt'); os.replace('tmp.pt', 'last.pt')\n"
        "    torch.save(both, 'gone.pt'); os.remove('gone.pt'); open('log.txt', 'w').close()\n"
        "    torch.save(both, 'tmp.pt'); os.replace('tmp.pt', 'last.pt')\n"
    )
    last = ran(script, tmp_path)[1]
    found = [json.loads(line) for line in RunDir(tmp_path).events.read_text().splitlines()]
    told = [(Path(one["path"]).name, one["step"]) for one in found if one["event"] == "checkpoint"]
    assert sorted(told) == sorted(
        (name, at) for at in (1, 2, 3) for name in (f"step-{at - 1}.pt", "gone.pt", "last.pt")
    )
    assert (last["checkpoint"]["path"], last["checkpoint"]["step"]) == (str(tmp_path / "last.pt"), 3)


@pytest.mark.parametrize(("critics", "steps"), [(1, 8), (2, 8)])
def test_optimizers_that_take_turns_make_epochs_of_whole_steps(tmp_path: Path, critics: int, steps: int) -> None:
    """A GAN's two make one step with one batch; of a critic that steps more often each step has a batch of its own."""
    script = SCRIPT + (
        "from torch.utils.data import DataLoader\n"
        "other = torch.nn.Linear(8, 1)\n"
        "second = torch.optim.Adam(other.parameters())\n"
        "for epoch in range(2):\n"
        "    for number, batch in enumerate(DataLoader(x, batch_size=8)):\n"
        "        step()\n"
        f"        if number % {critics} == 0:\n"
        "            second.zero_grad(); (other(batch) ** 2).mean().backward(); second.step()\n"
    )
    last = ran(script, tmp_path)[1]
    assert [last.get(name) for name in ("step", "epoch", "epoch_step", "epoch_steps")] == [steps, 2, 4, 4]


@pytest.mark.parametrize("before", [1, 2, 3])
def test_steps_that_one_of_two_optimizers_makes_with_one_batch_are_one_step(tmp_path: Path, before: int) -> None:
    """As the discriminator of a large GAN does, before the generator makes its own."""
    script = SCRIPT + (
        "from torch.utils.data import DataLoader\n"
        "other = torch.nn.Linear(8, 1)\n"
        "second = torch.optim.Adam(other.parameters())\n"
        "optimizer = torch.optim.Adam(net.parameters())  # counts its own steps\n"
        "for epoch in range(2):\n"
        "    for batch in DataLoader(x, batch_size=8):\n"
        f"        for _ in range({before}): step()\n"
        "        second.zero_grad(); (other(batch) ** 2).mean().backward(); second.step()\n"
    )
    last = ran(script, tmp_path)[1]
    assert [last.get(name) for name in ("step", "epoch", "epoch_step", "epoch_steps")] == [8, 2, 4, 4]


@pytest.mark.parametrize(("turn", "turns", "steps"), [(1, 8, 8), (30, 2, 100)])
def test_turns_that_all_have_the_same_batch_are_steps(tmp_path: Path, turn: int, turns: int, steps: int) -> None:
    """The whole data is one batch, fetched once: many steps of one optimizer and then many of the other, too."""
    script = SCRIPT + (
        "from torch.utils.data import DataLoader\n"
        "second = torch.optim.SGD(torch.nn.Linear(8, 1).parameters(), lr=0.1)\n"
        "other = torch.nn.Linear(8, 1); second.add_param_group({'params': list(other.parameters())})\n"
        "x = next(iter(DataLoader(x, batch_size=32)))\n"
        f"for _ in range({turns}):\n"
        f"    for _ in range({turn}): step()\n"
        f"    for _ in range({turn}):\n"
        "        second.zero_grad(); (other(x) ** 2).mean().backward(); second.step()\n"
    )
    last = ran(script, tmp_path)[1]
    assert last["step"] >= steps


def test_a_loop_that_fetches_the_batches_of_a_step_before_it_is_followed_from_epoch_to_epoch(tmp_path: Path) -> None:
    """As accelerate and Trainer do under gradient accumulation: four untrained batches are no evaluation there."""
    script = SCRIPT + (
        "from torch.utils.data import DataLoader\n"
        "for epoch in range(2):\n"
        "    batches = iter(DataLoader(x, batch_size=4))\n"
        "    for fetched in ([next(batches) for _ in range(4)] for _ in range(2)):\n"
        "        for batch in fetched: (((net(batch) - 1) ** 2).mean() / 4).backward()\n"
        "        optimizer.step(); optimizer.zero_grad()\n"
        "    for batch in DataLoader(x, batch_size=4): net(batch)\n"
    )
    last = ran(script, tmp_path)[1]
    assert [last.get(name) for name in ("step", "epoch", "epoch_step", "epoch_steps")] == [4, 2, 2, 2]


def test_an_evaluation_is_left_out_of_the_speed(tmp_path: Path) -> None:
    script = (
        "import time; at = [100.0]; time.monotonic = lambda: at[0]\n"
        + SCRIPT
        + "from torch.utils.data import DataLoader\n"
        "import json, os\n"
        "def train(forward):\n"
        "    net.train(); at[0] += forward; loss = ((net(x) - 1) ** 2).mean()\n"
        "    loss.backward(); at[0] += 1; optimizer.step()\n"
        "    told = json.load(open(os.environ['MPSTUI_RUN_DIR'] + '/attempts/1/heartbeat.json'))\n"
        "    print(told.get('steps_per_second'))\n"
        "for forward in (3, 3, 7):\n"
        "    train(forward); net.eval()\n"
        "    for batch in DataLoader(x, batch_size=8): at[0] += 4; net(batch)\n"
        "train(3); train(3); net.eval(); at[0] += 0.9; train(3)\n"
        "loss = ((net(x) - 1) ** 2).mean(); loss.backward(); optimizer.step()\n"
        "for batch in DataLoader(x, batch_size=8): at[0] += 4; net(batch)\n"
    )
    printed, last = ran(script, tmp_path)
    # The first two stand alone, then come the newest ten seconds of training.
    assert [told and float(told) for told in printed.replace("None", "0").split()] == pytest.approx(
        [0, 1 / 4, 1 / 8, 2 / 12, 3 / 16, 2 / 8], abs=0.02
    )
    assert last["steps_per_second"] == pytest.approx(0.25, abs=0.02)


def test_short_epochs_with_an_evaluation_each_have_the_speed_of_their_training(tmp_path: Path) -> None:
    """Where each beat holds one, no stretch would be left to tell it; waiting for data is a part of it."""
    script = (
        "import time; at = [100.0]; time.monotonic = lambda: at[0]\n"
        + SCRIPT
        + "from torch.utils.data import DataLoader\n"
        "import json, os\n"
        "class Slow(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 8\n"
        "    def __getitem__(self, i): at[0] += 0.4 * (i == 0); return x[i]\n"
        "for epoch in range(20):\n"
        "    net.train()\n"
        "    for batch in DataLoader(Slow(), batch_size=1): at[0] += 0.02; step()\n"
        "    net.eval(); at[0] += 0.5\n"
        "    for batch in DataLoader(x, batch_size=8): at[0] += 0.2; net(batch)\n"
        "told = json.load(open(os.environ['MPSTUI_RUN_DIR'] + '/attempts/1/heartbeat.json'))\n"
        "print(told['steps_per_second'])\n"
    )
    assert float(ran(script, tmp_path)[0]) == pytest.approx(8 / (0.4 + 8 * 0.02), rel=0.1)


@pytest.mark.parametrize("then", ["torch.save(net.state_dict(), 'best.pt')", "evaluate(); evaluate()"])
def test_an_evaluation_is_left_out_of_the_speed_whatever_follows_it(tmp_path: Path, then: str) -> None:
    """A save, or an evaluation of the test set, tells the steps before all of it once more."""
    script = (
        "import time; at = [100.0]; time.monotonic = lambda: at[0]\n"
        + SCRIPT
        + "from torch.utils.data import DataLoader\n"
        "import json, os\n"
        "def evaluate():\n"
        "    net.eval()\n"
        "    for batch in DataLoader(x, batch_size=8): at[0] += 0.7; net(batch)\n"
        "    net.train()\n"
        "for epoch in range(4):\n"
        "    for batch in DataLoader(x, batch_size=1): at[0] += 0.25; step()\n"
        f"    evaluate(); {then}\n"
        "for done in range(5): at[0] += 0.25; step()\n"
        "told = json.load(open(os.environ['MPSTUI_RUN_DIR'] + '/attempts/1/heartbeat.json'))\n"
        "print(told['steps_per_second'])\n"
    )
    assert float(ran(script, tmp_path)[0]) == pytest.approx(4.0, rel=0.05)


@pytest.mark.parametrize("says_eval", ["", "net.eval()"])
@pytest.mark.parametrize("batches", [1, 8])
def test_an_evaluation_that_is_seen_by_its_loader_alone_is_left_out_of_the_speed(
    tmp_path: Path, batches: int, says_eval: str
) -> None:
    """Nothing says that it ends: a network stays in evaluation mode, or never went there. Each beat holds one."""
    script = (
        "import time; at = [100.0]; time.monotonic = lambda: at[0]\n"
        + SCRIPT
        + "from torch.utils.data import DataLoader\n"
        "import json, os\n"
        "def evaluate(data):\n"
        f"    {says_eval or 'pass'}\n"
        f"    for batch in DataLoader(data, batch_size=32 // {batches}): at[0] += 0.4 / {batches}; net(batch)\n"
        "for epoch in range(20):\n"
        "    for batch in DataLoader(x[:8], batch_size=1): at[0] += 0.1; step()\n"
        "    evaluate(x); evaluate(x)\n"
        "told = json.load(open(os.environ['MPSTUI_RUN_DIR'] + '/attempts/1/heartbeat.json'))\n"
        "print(told['steps_per_second'])\n"
    )
    assert float(ran(script, tmp_path)[0]) == pytest.approx(10.0, rel=0.05)


@pytest.mark.parametrize("support", ["DataLoader(x, batch_size=8)", "DataLoader(x, batch_size=32)"])
def test_data_that_each_step_looks_through_is_part_of_the_step(tmp_path: Path, support: str) -> None:
    """As in a few-shot training, which encodes a support set before each step, and learns from its queries."""
    script = (
        "import time; at = [100.0]; time.monotonic = lambda: at[0]\n"
        + SCRIPT
        + "from torch.utils.data import DataLoader\n"
        "import json, os\n"
        "for epoch in range(60):\n"
        f"    for batch in {support}: at[0] += 0.8 * len(batch) / 32; net(batch)\n"
        "    for batch in DataLoader(x[:1]): at[0] += 0.2; step()\n"
        "print(json.load(open(os.environ['MPSTUI_RUN_DIR'] + '/attempts/1/heartbeat.json')).get('steps_per_second'))\n"
    )
    assert ran(script, tmp_path)[0].strip() in ("None", "1.0")


def test_a_speed_is_that_of_ten_seconds_since_a_beat_may_hold_one_step_or_two(tmp_path: Path) -> None:
    script = (
        "import time; at = [100.0]; time.monotonic = lambda: at[0]\n" + SCRIPT + "import json, os\n"
        "for seconds in [9] + 9 * [0.6, 0.9]: step(); at[0] += seconds\n"
        "told = json.load(open(os.environ['MPSTUI_RUN_DIR'] + '/attempts/1/heartbeat.json'))\n"
        "print(told['steps_per_second'])\n"
    )
    assert float(ran(script, tmp_path)[0]) == pytest.approx(1 / 0.75, rel=0.05)


def test_the_speed_of_slow_rounds_is_that_of_all_their_optimizers(tmp_path: Path) -> None:
    """Beats come in the middle of such a round too, where no step is done."""
    script = (
        "import time; at = [100.0]; time.monotonic = lambda: at[0]\n" + SCRIPT + "import json, os\n"
        "nets = [torch.nn.Linear(8, 1) for _ in range(3)]\n"
        "several = [torch.optim.SGD(one.parameters(), lr=0.1) for one in nets]\n"
        "for batch in torch.utils.data.DataLoader(x.repeat(20, 1), batch_size=8):\n"
        "    for one, its in zip(nets, several):\n"
        "        at[0] += 1.1; its.zero_grad(); one(batch).mean().backward(); its.step()\n"
        "told = json.load(open(os.environ['MPSTUI_RUN_DIR'] + '/attempts/1/heartbeat.json'))\n"
        "print(told['step'], told['steps_per_second'])\n"
    )
    step, speed = ran(script, tmp_path)[0].split()
    assert int(step) == 80
    assert float(speed) == pytest.approx(1 / 3.3, rel=0.05)


def test_a_compiled_optimizer_is_neither_traced_nor_lost(tmp_path: Path) -> None:
    script = (
        SCRIPT.replace("SGD", "Adam")
        + """
import json, os, _mpstui_boot, torch._dynamo
phases = []
def backend(graph, inputs):
    told = os.environ['MPSTUI_RUN_DIR'] + '/attempts/1/heartbeat.json'
    phases.append(os.path.exists(told) and json.load(open(told))['phase'])
    return graph.forward
def breaks(count, train=step):
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled, whole = (torch.compile(one, backend=backend) for one in (optimizer.step, train))
    for _ in range(count):
        optimizer.zero_grad()
        ((net(x) - 1) ** 2).mean().backward()
        compiled()
        whole()
    return dict(torch._dynamo.utils.counters['graph_break'])
without = breaks(2)
hooks, phases = _mpstui_boot._load_agent(), []
hooks.install(torch, os.environ)
hooks.imported(torch._dynamo.callback)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
print(breaks(3) == without, set(phases))
"""
    )
    done = run(script, tmp_path, cwd=tmp_path, MPSTUI_AGENT="0", PYTHONPATH=str(BOOT))
    assert (done.returncode, done.stdout) == (0, "True {'compile'}\n"), done.stderr
    assert "mpstui" not in done.stderr
    assert (beat(tmp_path)["step"], beat(tmp_path)["lr"]) == (6, 0.05)


def test_after_a_long_start_the_next_step_may_take_as_long(tmp_path: Path) -> None:
    script = (
        "import time; at = [100.0]; time.monotonic = lambda: at[0]\n"
        + SCRIPT
        + (
            "import json, os; place = os.environ['MPSTUI_RUN_DIR'] + '/attempts/1/heartbeat.json'\n"
            "for seconds in (200, 2, 2):\n"
            "    at[0] += seconds; step()\n"
            "    print(json.load(open(place))['expect_next_in'])\n"
        )
    )
    assert ran(script, tmp_path)[0].split() == ["400.0", "100.0", "100.0"]


def test_what_it_cannot_see_it_says(tmp_path: Path) -> None:
    script = SCRIPT + (
        "for _ in range(4):\n"
        "    ((net(x) - 1) ** 2).mean().backward()\n"
        "    with torch.no_grad():\n"
        "        for weight in net.parameters(): weight -= 0.01 * weight.grad; weight.grad = None\n"
    )
    _, last = ran(script, tmp_path)
    assert (last["phase"], last.get("step"), last["device"]["type"], last["loss"] > 0) == ("done", None, "cpu", True)
    assert "saw no step of a torch optimizer" in _events(tmp_path)[0]["text"]


def test_what_is_saved_before_anything_is_told_is_told_later(tmp_path: Path) -> None:
    """Without an optimizer it takes a while to know that a program trains, which may have saved a network by then."""
    script = SCRIPT + (
        "torch.save(net, 'untrained.pt')\n"
        "for _ in range(4): ((net(x) - 1) ** 2).mean().backward()\n"
        "with open('model.pt', 'wb') as file: torch.save(net, file)\n"
    )
    ran(script, tmp_path)
    saved = [Path(one["path"]).name for one in _events(tmp_path) if one["event"] == "checkpoint"]
    assert saved == ["model.pt"]


def test_nothing_is_said_behind_the_last_word(tmp_path: Path) -> None:
    """The thread that beats on through an evaluation may just be at it when the program ends."""
    script = SCRIPT + (
        "import gc, threading, time\n"
        "for _ in range(3): step()\n"
        "gc.unfreeze()  # the stand-in has put it away, with all that torch keeps\n"
        "watch = next(one for one in gc.get_objects() if type(one).__name__ == 'Watch')\n"
        "beat = watch._reporter.beat\n"
        "def then_the_other_thread(phase=None, **facts):\n"
        "    beat(phase, **facts)\n"
        "    if phase == 'done':\n"
        "        other = threading.Thread(target=watch._beat_on, args=('eval', time.monotonic()), daemon=True)\n"
        "        other.start(); other.join(0.5)\n"
        "watch._reporter.beat = then_the_other_thread\n"
    )
    assert ran(script, tmp_path)[1]["phase"] == "done"


def test_a_beat_says_that_the_agent_tells_it_also_where_it_knows_no_loss(tmp_path: Path) -> None:
    script = SCRIPT + (
        "for _ in range(4):\n"
        "    optimizer.zero_grad(); torch.nn.functional.mse_loss(net(x)[:, 0], x[:, 0], reduction='sum').backward()\n"
        "    optimizer.step()\n"
    )
    _, last = ran(script, tmp_path)
    assert (last.get("loss"), last["metrics"].keys(), last["loss_seen"]) == (None, {"loss_sum"}, "backward")
    assert last["accumulate"] == 1, "one backward pass makes a step, whatever is passed to it"


def test_the_last_beat_has_the_last_learning_rate(tmp_path: Path) -> None:
    script = SCRIPT + (
        "schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=9)\n"
        "for _ in range(8): step(); schedule.step()\n"
        "print(schedule.get_last_lr()[0])\n"
    )
    printed, last = ran(script, tmp_path)
    assert last["lr"] == pytest.approx(float(printed))


def test_of_two_processes_that_are_both_rank_0_each_has_a_heartbeat(tmp_path: Path) -> None:
    script = SCRIPT + (
        "import os\n"
        "if 'SECOND' not in os.environ:\n"
        "    import subprocess\n"
        "    step()\n"
        "    subprocess.run([sys.executable, '-S', __file__], env=dict(os.environ, SECOND='1'), check=True)\n"
        "else:\n"
        "    step()\n"
        "step()\n"
    )
    done = run(script, tmp_path, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = beat(tmp_path), beat(tmp_path, rank=1)
    assert (first["rank"], second["rank"]) == (0, 1)
    assert first["pid"] != second["pid"]
    points = [json.loads(line) for line in RunDir(tmp_path).metrics.read_text().splitlines()]
    assert [point["step"] for point in points] == sorted({point["step"] for point in points}), "of the first alone"
    assert any(f"process {second['pid']} trains beside" in event["text"] for event in _events(tmp_path))


def test_threads_that_train_at_once_share_one_heartbeat(tmp_path: Path) -> None:
    script = SCRIPT + (
        "import threading\n"
        "def trains():\n"
        "    net = torch.nn.Linear(8, 1); optimizer = torch.optim.SGD(net.parameters(), lr=0.05)\n"
        "    for _ in range(200): net(x).mean().backward(); optimizer.step()\n"
        "sys.setswitchinterval(1e-5)\n"
        "watch = sys.modules['_mpstui_private.agent.hooks']._watches[0]\n"
        "sys.modules['_mpstui_private.agent.watch'].BEAT_SECONDS = 0.0\n"
        "threads = [threading.Thread(target=trains) for _ in range(8)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
    )
    last = ran(script, tmp_path)[1]
    assert (last["phase"], last["rank"]) == ("done", 0)
    assert [event["event"] for event in _events(tmp_path)] == ["first_step"]
    assert sorted(path.name for path in (tmp_path / "attempts" / "1").iterdir()) == [
        "heartbeat.json",
        "rank0.lock",
        "stack_signal",
    ]


def test_steps_that_a_cuda_graph_captures_count_when_it_is_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "mpstui.agent.reporter")  # programs that have it report by themselves
    net = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    moment = iter(range(1000))
    watch = Watch(torch, {"MPSTUI_RUN_DIR": str(tmp_path)}, monotonic=lambda: float(next(moment)))

    def step() -> None:
        loss = net(torch.ones(2)).mean()
        watch.before_backward(loss)
        watch.after_step(optimizer)

    class Graph:
        """Can be referred to weakly, as torch's."""

    step()
    graph, other = Graph(), Graph()
    with monkeypatch.context() as capture:
        capture.setattr(torch.Tensor, "item", lambda tensor: pytest.fail("this waits for the device"))
        watch.captured.after_begin(None, graph)
        step()
        step()
        watch.captured.before_end(graph)
        watch.captured.after_end(None, graph)
    assert watch.steps.count == 1
    for replayed in (graph, other, graph):
        watch.captured.after_replay(None, replayed)
    assert watch.steps.count == 5
    watch.at_exit()
    assert beat(tmp_path)["step"] == 5


SAFETENSORS = "def serialize_file(tensors, filename, metadata=None): open(filename, 'w').write(str(sorted(tensors)))\n"
SAVES_FILE = """
import torch
from safetensors import serialize_file
def save_file(tensors, filename, metadata=None):
    serialize_file({name: {} for name in tensors}, filename, metadata=metadata)
"""


@pytest.mark.parametrize("first", ["import safetensors\n", ""], ids=["imported before torch", "behind it"])
def test_safetensors_files_are_checkpoints(tmp_path: Path, first: str) -> None:
    folder = tmp_path / "safetensors"
    folder.mkdir()
    (folder / "__init__.py").write_text(SAFETENSORS)
    (folder / "torch.py").write_text(SAVES_FILE)
    (tmp_path / "out").mkdir()
    script = SCRIPT + (
        "from safetensors.torch import save_file\n"
        "step(); save_file(net.state_dict(), 'first.safetensors')\n"
        "step(); save_file(net.state_dict(), filename='out/model.safetensors', metadata={'format': 'pt'})\n"
        "step(); print(open('out/model.safetensors').read())\n"
    )
    printed, last = ran(first + script, tmp_path)
    assert printed == "['bias', 'weight']\n"
    note = last["checkpoint"]
    assert (note["path"], note["step"]) == (str(tmp_path / "out" / "model.safetensors"), 2)


def test_a_limit_on_file_sizes_costs_the_program_nothing(tmp_path: Path) -> None:
    script = SCRIPT + (
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))\n"
        "sys.modules['_mpstui_private.agent.watch'].BEAT_SECONDS = 0.0\n"
        "for _ in range(400): step()\n"
        "print('the end')\n"
    )
    done = run(script, tmp_path, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "the end\n", "")
    assert 8_000 < RunDir(tmp_path).metrics.stat().st_size <= 16_384
    assert "too large" in _events(tmp_path)[-1]["text"]


def test_a_traceback_and_a_pickled_function_are_as_without_it(tmp_path: Path) -> None:
    script = SCRIPT + (
        "import pickle\n"
        "assert pickle.loads(pickle.dumps([torch.save, torch.load, torch.autograd.backward]))[0] is torch.save\n"
        "try: torch.load('none.pt')\n"
        "except OSError: pass\n"
        "step(); torch.zeros(()).backward()\n"
    )
    with_agent = run(script, tmp_path, cwd=tmp_path)
    without = run(script, tmp_path, cwd=tmp_path, MPSTUI_AGENT="0")
    assert "does not require grad" in without.stderr
    assert (with_agent.returncode, with_agent.stderr) == (1, without.stderr)


def test_a_search_makes_its_trainings_one_after_another(tmp_path: Path) -> None:
    script = (
        "import time; at = [100.0]; time.monotonic = lambda: at[0]\n"
        + SCRIPT
        + (
            "from torch.utils.data import DataLoader\n"
            "for trial in range(3):\n"
            "    net = torch.nn.Linear(8, 1); optimizer = torch.optim.Adam(net.parameters(), lr=0.05)\n"
            "    for epoch in range(2):\n"
            "        for batch in DataLoader(x, batch_size=8): step(); at[0] += 2\n"
        )
    )
    last = ran(script, tmp_path)[1]
    told = [last.get(name) for name in ("training", "step", "step_from", "epoch", "epoch_step", "epoch_steps")]
    assert told == [3, 24, None, 2, 4, 4]
    points = [json.loads(line)["step"] for line in RunDir(tmp_path).metrics.read_text().splitlines()]
    assert points == sorted(points), "one curve through all of them"


def test_what_is_done_between_two_steps_without_a_word_is_no_slowness_of_the_training(tmp_path: Path) -> None:
    """A plot or an evaluation under `no_grad` alone, each twenty steps; but slow data does make a slow training."""
    script = (
        "import time; at = [100.0]; time.monotonic = lambda: at[0]\n" + SCRIPT + "import json, os\n"
        "from torch.utils.data import DataLoader, IterableDataset\n"
        "def speed():\n"
        "    return json.load(open(os.environ['MPSTUI_RUN_DIR'] + '/attempts/1/heartbeat.json'))['steps_per_second']\n"
        "for done in range(1, 401):\n"
        "    at[0] += 0.125; step()\n"
        "    if done % 20 == 0: at[0] += 3\n"
        "print(speed())\n"
        "class Slow(IterableDataset):\n"
        "    def __iter__(self):\n"
        "        for done in range(1, 401):\n"
        "            at[0] += 3 if done % 20 == 0 else 0\n"
        "            yield torch.zeros(1)\n"
        "for batch in DataLoader(Slow()): at[0] += 0.125; step()\n"
        "print(speed())\n"
        "for done in range(40): at[0] += 1.5; step()\n"  # and from here on every step is slow
        "print(speed())\n"
    )
    plain, waiting, slow = map(float, ran(script, tmp_path)[0].split())
    assert [plain, slow] == pytest.approx([8.0, 1 / 1.5], rel=0.02)
    assert waiting < 5.0


def test_what_comes_between_short_epochs_is_part_of_the_training(tmp_path: Path) -> None:
    """Nobody sees the speed of seven steps alone where the loop collects garbage after each seven."""
    script = (
        "import time; at = [100.0]; time.monotonic = lambda: at[0]\n" + SCRIPT + "import json, os\n"
        "for done in range(1, 141):\n"
        "    at[0] += 0.02; step()\n"
        "    if done % 7 == 0: at[0] += 0.6 if done % 14 == 0 else 0.4\n"  # one of them is no pause at all
        "told = json.load(open(os.environ['MPSTUI_RUN_DIR'] + '/attempts/1/heartbeat.json'))\n"
        "print(told['steps_per_second'])\n"
    )
    assert float(ran(script, tmp_path)[0]) == pytest.approx(7 / (7 * 0.02 + 0.5), rel=0.1)


@pytest.mark.parametrize("several", [False, True])
def test_the_loss_of_the_first_step_is_told_once_it_is_known_to_be_the_only_one(tmp_path: Path, several: bool) -> None:
    """A program whose steps take minutes has its first loss in the curve; the first of several has another name."""
    script = "import time; at = [100.0]; time.monotonic = lambda: at[0]\n" + SCRIPT
    second = "errG = (net(x) ** 2).mean(); errG.backward()\n    " if several else ""
    script += (
        "for done in range(3):\n"
        "    errD = ((net(x) - 1) ** 2).mean(); errD.backward(); optimizer.step(); print(errD.item())\n"
        f"    {second}at[0] += 60\n"
    )
    printed, _ = ran(script, tmp_path)
    points = [json.loads(line) for line in RunDir(tmp_path).metrics.read_text().splitlines()]
    assert [point["step"] for point in points] == [1, 2, 3]
    losses = [float(line) for line in printed.split()]
    wanted = [None] * 3 if several else losses
    assert [point.get("loss") for point in points] == [loss and pytest.approx(loss) for loss in wanted]


def test_passes_before_the_first_step_of_a_resumed_training_tell_no_loss(tmp_path: Path) -> None:
    """How many of them a step takes is not known yet, and each may be divided by as many."""
    script = "import time; at = [100.0]; time.monotonic = lambda: at[0]\n" + SCRIPT.replace("SGD", "Adam")
    script += (
        "step(); state = optimizer.state_dict(); state['state'] = {at: {**one, 'step': torch.tensor(80.0)} "
        "for at, one in state['state'].items()}\n"
        "torch.save(state, 'optimizer.pt')\n"
    )
    run(script, None, cwd=tmp_path)
    script = "import time; at = [100.0]; time.monotonic = lambda: at[0]\n" + SCRIPT.replace("SGD", "Adam")
    script += (
        "optimizer.load_state_dict(torch.load('optimizer.pt'))\n"
        "for done in range(3):\n"
        "    for part in range(4):\n"
        "        loss = ((net(x) - 1) ** 2).mean(); (loss / 4).backward(); at[0] += 2\n"
        "    optimizer.step(); optimizer.zero_grad(); print(loss.item())\n"
    )
    printed, _ = ran(script, tmp_path)
    points = [json.loads(line) for line in RunDir(tmp_path).metrics.read_text().splitlines()]
    losses = [pytest.approx(float(line)) for line in printed.split()]
    assert [(point["step"], point["loss"]) for point in points] == list(zip((81, 82, 83), losses, strict=True))
