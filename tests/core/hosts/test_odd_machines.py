"""Machines as they are found, over a real ssh: disks that run nothing or are full, few sessions, a slow line."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import random
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mpstui.core.hosts import holding, stowing
from mpstui.core.hosts.line import HostError
from mpstui.core.hosts.link import Link
from mpstui.core.hosts.offering import Offering, launches_of
from mpstui.core.hosts.parcel import pack
from mpstui.core.hosts.sending import Sender
from mpstui.core.hosts.sources import manifest_of, source_tree
from mpstui.core.hosts.ssh import connect
from mpstui.core.hosts.talk import Place
from mpstui.core.launching.choice import LaunchChoice
from mpstui.core.model.errors import OperationError
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import State
from mpstui.core.profiles.model import profile_of_command
from mpstui.core.settings import HostSettings, HostsSettings
from mpstui.wire import storage
from mpstui.wire.records import Branch, ExitRecord
from mpstui.wire.rundir import RunDir
from tests.core.runs.build import RunBuilder
from tests.ssh_lab import SshLab, find_daemon
from tests.waiting import wait_until

from .test_ssh import sharing, sockets

__all__ = ["sockets"]

NOISE = 'echo "Welcome to the machine"; printf "no end of line"; echo more >&2'
MiB = 1 << 20


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshLab]:
    """A daemon that lets one session through a connection, and greets with a banner."""
    daemon = find_daemon()
    if daemon is None:
        pytest.skip("there is no sshd here, and so no other machine: install openssh-server")
    folder = tmp_path_factory.mktemp("strict")
    (folder / "banner").write_text("*** Authorised use only. Permission denied to all others. ***\n")
    lab = SshLab(folder, daemon, MaxSessions=1, Banner=folder / "banner")
    try:
        lab.wait_for_daemon()
        yield lab
    finally:
        lab.close()


@contextlib.contextmanager
def disk(place: Path, options: str) -> Iterator[None]:
    """Another file system at a folder."""
    place.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a disk of a test's own")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def sender(lab: SshLab, name: str, near: Home, far: Path) -> Sender:
    hosts = HostsSettings(named={name: HostSettings(home=str(far), python=sys.executable)})
    line = connect(name, hosts, ("transfer",), environ=lab.environ)
    return Sender(name, Offering(near), Place(line), ())


def toy(folder: Path, *, code_bytes: int = 0, checkpoint_bytes: int = 0) -> LaunchChoice:
    code = folder / "project"
    shutil.rmtree(code, ignore_errors=True)
    code.mkdir()
    (code / "train.py").write_text("print('trained')\n")
    if code_bytes:
        (code / "table.bin").write_bytes(random.Random(1).randbytes(code_bytes))
    made = LaunchChoice(profile_of_command((sys.executable, "train.py"), cwd=code, name="toy", agent=False))
    if not checkpoint_bytes:
        return replace(made, profile=replace(made.profile, min_free_bytes=0))
    weights = folder / "weights.pt"
    weights.write_bytes(random.Random(2).randbytes(checkpoint_bytes))
    resumes = replace(made.profile, resume_args=("--resume", "{checkpoint}"), checkpoints="*.pt", min_free_bytes=0)
    return replace(made, profile=resumes, branch=Branch(run="parent", step=7, checkpoint=str(weights)))


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_machine_that_runs_nothing_from_tmp_and_home_trains_all_the_same(tmp_path: Path, ssh_lab: SshLab) -> None:
    tmp, near = tmp_path / "tmp", Home(tmp_path / "near", tmp_path / "near")
    with disk(tmp, "size=64m,noexec,nosuid"):
        (tmp / "home").mkdir(mode=0o700)
        home = ssh_lab.host("noexec", first=f"export TMPDIR={tmp} XDG_CACHE_HOME={tmp}/cache")
        with sender(ssh_lab, "noexec", near, tmp / "home") as opened:
            (run,) = opened.launch(opened.look(launches_of([toy(tmp_path)])))["runs"]
            attempt = RunDir(tmp / "home/runs" / run).attempt(1)
            wait_until(attempt.exit.exists, what="the end of the run")
            ending = storage.read(ExitRecord, attempt.exit)
            assert ending is not None
            assert (ending.code, "trained" in attempt.output.read_text()) == (0, True)
    assert not files_below(home)


def test_a_home_that_is_full_takes_no_bundle_code_or_checkpoint_and_says_so(tmp_path: Path, ssh_lab: SshLab) -> None:
    near, full, spare = Home(tmp_path / "near", tmp_path / "near"), tmp_path / "full", tmp_path / "spare"
    spare.mkdir()
    large_ones = ("bundles", "table", "weights")
    with disk(full, "size=600k"):
        ssh_lab.host("full", first=f"export HOME={full} TMPDIR={spare}; unset XDG_CACHE_HOME XDG_RUNTIME_DIR")
        for large, told in (
            ({"code_bytes": 2 * MiB}, r"^full: the code did not arrive in .*: No space left on device$"),
            ({"checkpoint_bytes": 2 * MiB}, r"^full: only .* are free on the disk of .*/full/state/runs"),
        ):
            made = toy(tmp_path, **large)
            with sender(ssh_lab, "full", near, full / "state") as opened:
                found = opened.look(launches_of([made]))
                with pytest.raises(OperationError, match=told) as caught:
                    opened.launch(found)
                assert "\n" not in caught.value.sentence
            wait_until(lambda: not [one for one in files_below(full) if any(word in one for word in large_ones)])
        assert list(spare.glob("mpstui-*/bundles/*")), "mpstui itself went to where there was room"
    assert not list((full / "state").glob("runs/*"))


def test_a_quota_that_is_reached_is_told_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Met while the files are put in their place, by the far end in this process."""
    home = Home(tmp_path / "far", tmp_path / "far")
    toy(tmp_path, code_bytes=1000)
    tree = source_tree(tmp_path / "project")
    packed = io.BytesIO()
    pack(tuple(tree.paths()), [one.digest for one in tree.files], packed)

    def no_room(source: object, target: object) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(shutil, "copyfile", no_room)
    for put, told in ((stowing.stow, "the code did not arrive"), (holding.hold, "the checkpoint did not arrive")):
        packed.seek(0)
        with pytest.raises(OperationError, match=f"^{told} in .*: {os.strerror(errno.EDQUOT)}$"):
            put(manifest_of(tree), packed, home)
    assert files_below(tmp_path / "far") == []


def test_one_session_a_connection_is_enough(strict: SshLab, sockets: Path) -> None:
    """A shared connection that takes no second session is gone around by a connection of its own."""
    home = strict.host("single", options=sharing(sockets), first=NOISE)
    hosts = HostsSettings(named={"single": HostSettings(home=str(home / "state"), python=sys.executable)})
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            line = connect("single", hosts, ("transfer",), environ=strict.environ)
            place = stack.enter_context(contextlib.closing(Place(line)))
            assert place.ask("nothing", {})["ok"]


def test_a_banner_is_no_reason(strict: SshLab) -> None:
    strict.host("greets", first="echo Come back tomorrow. >&2; exit 1")
    with pytest.raises(HostError) as caught:
        connect("greets", HostsSettings(), ("transfer",), environ=strict.environ)
    assert (caught.value.kind, "Come back tomorrow." in caught.value.sentence) == ("shell", True)
    strict.host("cut", first="kill -9 $PPID; sleep 1")
    with pytest.raises(HostError) as caught:
        connect("cut", HostsSettings(), ("transfer",), environ=strict.environ)
    assert caught.value.kind in ("cut", "unreachable")
    assert "Authorised" not in caught.value.sentence


SLOW = """
import os, select, socket, sys, time
host, port, rate, delay = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
far = socket.create_connection((host, port))
ways = {0: [far.fileno(), [], 0.0], far.fileno(): [1, [], 0.0]}
while ways:
    now = time.monotonic()
    for way in ways.values():
        while way[1] and way[1][0][0] <= now:
            data = way[1].pop(0)[1]
            while data:
                data = data[os.write(way[0], data):]
    due = [way[1][0][0] - now for way in ways.values() if way[1]]
    listening = [one for one, way in ways.items() if len(way[1]) < 64]
    for one in select.select(listening, [], [], max(0.0, min(due, default=1.0)))[0]:
        data = os.read(one, 64)
        if not data:
            sys.exit()
        way = ways[one]
        way[2] = max(time.monotonic(), way[2]) + len(data) / rate
        way[1].append((way[2] + delay, data))
"""


def test_a_slow_line_shows_the_list_and_answers(tmp_path: Path, ssh_lab: SshLab) -> None:
    """So many bytes a second, each so long on its way: everything that ssh itself says goes over it as well."""
    program = tmp_path / "slow.py"
    program.write_text(SLOW)
    rate, delay = os.environ.get("MPSTUI_TEST_LINE", "9600 0.1").split()
    ssh_lab.host("slow", home="of slow")
    fast = ssh_lab.config.read_text()
    home = Home(ssh_lab.folder / "homes/of slow/state", ssh_lab.folder / "homes/of slow/state")
    home.runs.mkdir(parents=True)
    run = RunBuilder(home, "far").status("running").launch().hold()
    hosts = HostsSettings(named={"slow": HostSettings(home=str(home.state), python=sys.executable)})
    connect("slow", hosts, ("transfer",), environ=ssh_lab.environ).close()  # mpstui itself is there
    way = " ".join(map(shlex.quote, [sys.executable, str(program), "127.0.0.1", str(ssh_lab.port), rate, delay]))
    config = tmp_path / "config"
    config.write_text(fast.replace("Host slow\n", f"Host slow\n  ProxyCommand {way}\n"))
    environ = {**ssh_lab.environ, "MPSTUI_SSH": f"ssh -F {config}"}
    link = Link("slow", lambda: connect("slow", hosts, ("serve",), environ=environ))
    begun = time.monotonic()
    link.start()
    try:
        wait_until(lambda: "list" in link.values, what="the list", timeout=120)
        print(f"the list after {time.monotonic() - begun:.1f} s")
        wait_until(lambda: [one.state for one in link.values["list"].runs.values()] == [State.RUNNING], timeout=120)
        run.release().exit(code=0).status("ended")
        begun = time.monotonic()
        wait_until(lambda: [one.state for one in link.values["list"].runs.values()] == [State.FINISHED], timeout=120)
        print(f"a state that turned after {time.monotonic() - begun:.1f} s")
        wait_until(lambda: link.sentence == "", what="a line with which nothing is wrong")
        assert [*link.values["list"].runs] == [run.run.run]
    finally:
        link.stop()
