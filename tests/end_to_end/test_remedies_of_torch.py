"""Remedies of crashes that torch itself makes: the same program fails, is changed as its remedy says, and trains on.

``test_remedies.py`` proves every remedy on a program that crashes with a rule's words. Here the words are torch's.
"""

from __future__ import annotations

import json
import sys

import pytest

from tests.end_to_end.conftest import STANDIN, CommandLine

pytestmark = pytest.mark.end_to_end

PROGRAM = """
import argparse, resource
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self):
        self.scale = lambda value: value  # what a process of its own cannot be given

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.scale(torch.ones(4))

class Extra:
    pass

def train(kind, workers, batch, precision):
    net = torch.nn.Linear(4, 1)
    if kind == "workers":
        loader = DataLoader(Rows(), num_workers=workers, multiprocessing_context="spawn" if workers else None)
        for rows in loader:
            net(rows).sum().backward()
    elif kind == "checkpoint":
        torch.save({"extra": Extra()}, "extra.pt")
        torch.load("extra.pt")
    elif kind == "device":
        net.cuda()(torch.ones(2, 4).cuda()).sum().backward()
    elif kind == "precision":
        rows = torch.ones(2, 4)
        net(rows.half() if precision == "fp16" else rows).sum().backward()
    elif kind == "memory":
        pages = int(open("/proc/self/statm").read().split()[0])
        most = pages * resource.getpagesize() + (600 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        torch.empty(batch, 100 << 20, dtype=torch.uint8)

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--precision", default="fp16")
    given = parser.parse_args()
    print("step 1 loss 0.5", flush=True)
    train(given.kind, given.workers, given.batch_size, given.precision)
    print("the run goes on", flush=True)
"""
REMEDIED = {
    "workers": ("dl_pickle", "workers 2 -> 0"),
    "checkpoint": ("weights_only", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD unset -> 1"),
    "device": ("cuda_hardcoded", "device auto -> cpu"),
    "precision": ("dtype_mismatch", "precision fp16 -> fp32"),
    "memory": ("cpu_oom", "batch-size 8 -> 4, accumulate 1 -> 2"),
}
"""By what is wrong with the program: the rule that says so, and what its remedy changes."""


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does, and finds no CUDA")
def test_what_torch_refuses_goes_on_with_its_remedy(mpstui: CommandLine) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("CUDA is there")
    (mpstui.cwd / "fit.py").write_text(PROGRAM)
    given = ("--workers", "2", "--batch-size", "8", "--accumulate", "1", "--precision", "fp16")
    runs = {}
    for kind in REMEDIED:
        words = ("--name", kind, "--env", f"PYTHONPATH={STANDIN}", "--json")
        done = mpstui.call("run", *words, "--", sys.executable, "fit.py", kind, *given)
        assert done.returncode == 0, done.stderr
        runs[kind] = str(json.loads(done.stdout)["run"])
    for kind, (rule_id, changed) in REMEDIED.items():
        failed = mpstui.wait_state(runs[kind], "failed", timeout=180)
        assert failed["diagnosis"]["findings"][0]["id"] == rule_id
        fixed = mpstui.call("restart", runs[kind], "--fix", "--accept-risk")
        assert fixed.returncode == 0, fixed.stderr
        assert f"Changed by the remedy: {changed}." in fixed.stderr
    for run in runs.values():
        assert mpstui.wait_state(run, "finished", "failed", timeout=180)["state"] == "finished"
        assert mpstui.call("logs", run).stdout.endswith("the run goes on\n")
