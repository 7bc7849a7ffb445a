"""CUDA graphs of whole training steps with the agent and without it, on a real GPU; needs torch with CUDA alone.

    python -m tests.bench.cuda_capture

Three programs, each twice, at the same time as the others: a step captured by ``torch.cuda.graph``, one compiled by
``torch.compile(mode="reduce-overhead")``, and one with ``fullgraph=True`` and a compiled optimizer. Prints what was
compared (losses and weights to the last bit, warnings, exit code) and the steps that the agent counted; the last
line is the verdict, and the exit code is 1 where anything differs. ``--device cpu`` tries the two compiled ones.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BOOT = Path(__file__).parents[2] / "mpstui" / "agent" / "boot"
STEPS = 60
SETUP = f"""
import os, sys, torch
torch.manual_seed(0)
device, steps = os.environ["CAPTURE_DEVICE"], {STEPS}
net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 1)).to(device)
data, target = torch.randn(128, 64, device=device), torch.randn(128, 1, device=device)
losses = []
def report():
    weights = torch.cat([one.detach().flatten() for one in net.parameters()])
    print("loss", " ".join(float(one).hex() for one in losses))
    print("weights", float(weights.double().sum()).hex(), float(weights.double().abs().max()).hex())
"""
GRAPH = """
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, capturable=True)
aside = torch.cuda.Stream()
aside.wait_stream(torch.cuda.current_stream())
def step():
    optimizer.zero_grad(set_to_none=True)
    loss = ((net(data) - target) ** 2).mean()
    loss.backward()
    optimizer.step()
    return loss
with torch.cuda.stream(aside):
    for _ in range(3):
        losses.append(step().item())
torch.cuda.current_stream().wait_stream(aside)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    kept = step()
for _ in range(steps - 3):
    graph.replay()
    losses.append(kept.item())
report()
"""
REDUCED = """
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
forward = torch.compile(lambda x, y: ((net(x) - y) ** 2).mean(), mode="reduce-overhead")
for _ in range(steps):
    torch.compiler.cudagraph_mark_step_begin()
    loss = forward(data, target)
    loss.backward()
    losses.append(loss.item())
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
report()
"""
WHOLE = """
optimizer = torch.optim.Adam(net.parameters(), lr=torch.tensor(1e-3), capturable=device == "cuda")
@torch.compile
def update():
    optimizer.step()
forward = torch.compile(lambda x, y: ((net(x) - y) ** 2).mean(), fullgraph=True)
for _ in range(steps):
    loss = forward(data, target)
    loss.backward()
    losses.append(loss.item())
    update()
    optimizer.zero_grad(set_to_none=False)
from torch._dynamo.utils import counters
print("graph breaks", dict(counters["graph_break"]), "recompiled", counters["stats"].get("unique_graphs"))
report()
"""
PROGRAMS = {"torch.cuda.graph": GRAPH, "reduce-overhead": REDUCED, "fullgraph": WHOLE}
CHANGING = re.compile(r"0x[0-9a-f]{6,}|[VIWE]\d{4} \S+ \d+|/tmp/\S+")


def ran(program: str, folder: Path, device: str, run: Path | None) -> list[str]:
    """What it ends with and prints, on standard error too; times and addresses left out."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MPSTUI"))}
    environ |= {"CAPTURE_DEVICE": device, "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    # Each compiles anew: what comes out of the compiler's cache comes without its warnings.
    compiled = folder / ("compiled" if run is None else "compiled_watched")
    environ |= {"TORCHINDUCTOR_CACHE_DIR": str(compiled), "OMP_NUM_THREADS": "1"}
    if run is not None:
        run.mkdir()
        environ |= {"PYTHONPATH": str(BOOT), "MPSTUI_AGENT": "1", "MPSTUI_RUN_DIR": str(run), "MPSTUI_ATTEMPT": "1"}
    path = folder / "program.py"
    path.write_text(SETUP + program)
    done = subprocess.run(
        [sys.executable, str(path)], env=environ, cwd=folder, capture_output=True, text=True, check=False
    )
    texts = (CHANGING.sub("...", text) for text in (done.stdout, done.stderr))
    return [f"exit code {done.returncode}", *(line for text in texts for line in text.splitlines())]


def compared(name: str, place: Path, device: str) -> tuple[bool, str]:
    """Whether a program is the same with the agent, and the lines that say so."""
    folder, begun = place / name, time.monotonic()
    folder.mkdir()
    without = ran(PROGRAMS[name], folder, device, None)
    watched = ran(PROGRAMS[name], folder, device, run := folder / "run")
    beat = run / "attempts" / "1" / "heartbeat.json"
    told = json.loads(beat.read_text()) if beat.exists() else {}
    same, works = without == watched, without[0] == "exit code 0"
    counted = (told.get("step"), told.get("phase"), told.get("device", {}).get("type")) == (STEPS, "done", device)
    facts = (
        f"agent: step {told.get('step')} of {STEPS}, {told.get('phase')}, {told.get('device')}, loss {told.get('loss')}"
    )
    differing = [] if same else ["without: ", *without[-12:], "with the agent: ", *watched[-12:]]
    broken = [] if works else ["the program itself fails here: ", *without[-6:]]
    verdict = "the same to the last bit" if same and works else "DIFFERS" if works else "did not run"
    text = f"{name}: {verdict} ({time.monotonic() - begun:.0f} s); {facts}{'' if counted else '  WRONG COUNT'}"
    return same and works and counted, "\n    ".join([text, *differing, *broken])


def main() -> int:
    """Compare all at once, print, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    device = parser.parse_args().device
    names = [name for name in PROGRAMS if device == "cuda" or name != "torch.cuda.graph"]
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda name: compared(name, Path(place), device), names))
    for _, text in found:
        print(text)
    good = all(fine for fine, _ in found)
    print(f"VERDICT: {'the agent changes nothing and counts right' if good else 'NOT the same, see above'} on {device}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
