"""What is sent to a far machine: the same bytes from the same sources, whole, and not for ever."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import time
import zlib
from pathlib import Path

import pytest

from mpstui.core.hosts.arrival import ARRIVING
from mpstui.core.hosts.bundle import KEPT_SECONDS, START, Bundle, bundle, remove_old
from mpstui.core.launching.command import environment_again
from mpstui.core.machine import this_machine
from mpstui.core.profiles.library import shipped_profile
from tests.core.runs.build import RunBuilder, make_home

AGAIN = "from mpstui.core.hosts.bundle import bundle; from mpstui.core.machine import bundled_trainers as t"


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Bundle, Path]:
    made, folder = bundle(), tmp_path_factory.mktemp("bundles")
    root = folder / made.digest
    with tarfile.open(fileobj=io.BytesIO(made.archive)) as archive:
        archive.extractall(root, filter="data")
    return made, root


def inside(root: Path, code: str) -> str:
    """What a Python that has nothing else prints."""
    first = f"import sys; sys.path[:0] = [{str(root)!r}, {str(root / 'vendor')!r}]; "
    told = subprocess.run(
        [sys.executable, "-I", "-S", "-c", first + code], capture_output=True, text=True, check=False, timeout=60
    )
    assert told.returncode == 0, told.stderr
    return told.stdout.strip()


def test_it_has_all_but_the_screen(unpacked: tuple[Bundle, Path]) -> None:
    made, root = unpacked
    files = [path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert made.size == (len(files), sum(path.stat().st_size for path in files))
    assert not (root / "mpstui/ui").exists()
    assert (root / START).exists()
    assert {path.name for path in (root / "mpstui/profiles").iterdir()} >= {"quickstart.toml"}
    packed = made.packed()
    assert len(packed) < 1_500_000
    assert zlib.decompress(packed[8:]) == made.archive


def test_what_was_sent_sends_the_same(unpacked: tuple[Bundle, Path]) -> None:
    made, root = unpacked
    assert inside(root, f"{AGAIN}; print(bundle().digest, t())") == f"{made.digest} {root}"


def test_what_nobody_used_goes_and_what_a_run_needs_stays(tmp_path: Path) -> None:
    home, cache, now = make_home(tmp_path), tmp_path / "bundles", time.time()
    used, needed, old = ("a" * 64, "b" * 64, "c" * 64)
    ages = {used: 0.9, needed: 1.1, old: 1.1, f"{ARRIVING}x": 0.01, f"{ARRIVING}y": 0.1, "not ours": 9.0}
    for name, age in ages.items():
        (cache / name).mkdir(parents=True)
        (cache / name / "file").touch()
        os.utime(cache / name, (now, now - age * KEPT_SECONDS))
    RunBuilder(home, "one").respec(pid_file=f"{cache / needed}/mpstui/agent/boot")
    remove_old(home, now, cache)
    assert {path.name for path in cache.iterdir()} == {used, needed, f"{ARRIVING}x", "not ours"}


def test_a_launch_again_leaves_the_folders_of_an_older_bundle() -> None:
    old = f"/home/ada/.cache/mpstui/bundles/{'d' * 64}"
    then = {"PATH": "/bin", "PYTHONPATH": f"{old}/mpstui/agent/boot:{old}:/home/ada/lib"}
    profile = shipped_profile("quickstart", Path.cwd())
    again = environment_again(then, profile, "safe", {}, environ={}, machine=this_machine())
    assert again["PYTHONPATH"] == "/home/ada/lib"
