"""Lines to real ssh hosts: how they begin whatever is in the way, and what is said where they do not."""

from __future__ import annotations

import hashlib
import io
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from mpstui.core.hosts import arrival, ssh
from mpstui.core.hosts import line as line_of_ssh
from mpstui.core.hosts.bundle import Bundle
from mpstui.core.hosts.line import HostError, Line
from mpstui.core.hosts.ssh import connect
from mpstui.core.model.errors import UsageError
from mpstui.core.settings import HostSettings, HostsSettings
from tests.ssh_lab import SshLab
from tests.waiting import wait_until

COUNT = itertools.count()
WORDS = ("two words", 'it\'s "quoted"\\', "end\nof a line!", "--host", "-x", "ü")
START = "mpstui/start.py"
ECHO = b"""
import os, sys
here = [os.getcwd(), os.environ.get("MPSTUI_HOME", "-"), os.environ["HOME"], str(os.getpid()), sys.executable]
os.write(1, "\\0".join([*here, *sys.argv[1:]]).encode() + b"\\0\\0")
while data := os.read(0, 1 << 16):
    os.write(1, data)
"""


@pytest.fixture
def name() -> str:
    return f"host{next(COUNT)}"


@pytest.fixture(autouse=True)
def small_bundle(monkeypatch: pytest.MonkeyPatch) -> Bundle:
    """In the place of ours, a program that says where it is and sends back what it is sent."""
    out, content = io.BytesIO(), {START: ECHO, "mpstui/large.bin": os.urandom(200_000)}
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path, data in content.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    size = (len(content), sum(map(len, content.values())))
    made = Bundle(hashlib.sha256(out.getvalue()).hexdigest(), out.getvalue(), size)
    monkeypatch.setattr(ssh, "bundle", lambda: made)
    monkeypatch.setattr(ssh, "START", START)
    return made


def connected(lab: SshLab, name: str, *, patience: float = 30.0, **settings: Any) -> Line:
    hosts = HostsSettings(named={name: HostSettings(**settings)})
    return connect(name, hosts, WORDS, environ=lab.environ, patience=patience)


def heard(line: Line) -> list[str]:
    """Where the far program is: folder, MPSTUI_HOME, home, process id, Python; and then its words."""
    found = b""
    while not found.endswith(b"\0\0"):
        part = line.reads.read(1)
        assert part, line.failure()
        found += part
    return found.decode().removesuffix("\0\0").split("\0")


def refused(lab: SshLab, name: str, *, patience: float = 30.0, **settings: Any) -> HostError:
    with pytest.raises(HostError) as caught:
        connected(lab, name, patience=patience, **settings).close()
    assert caught.value.sentence.startswith(f"{name}: ")
    assert "\n" not in caught.value.sentence
    return caught.value


def caches(home: Path) -> list[str]:
    folder = home / ".cache/mpstui/bundles"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_words_and_bytes_arrive_as_they_are(ssh_lab: SshLab, name: str) -> None:
    home = ssh_lab.host(name)
    line = connected(ssh_lab, name)
    try:
        folder, mpstui_home, far_home, _, python, *words = heard(line)
        assert (folder, mpstui_home, far_home, tuple(words)) == (str(home), "-", str(home), WORDS)
        assert line.facts["python"]["executable"] == python
        every = bytes(range(256)) * 400
        with ThreadPoolExecutor() as pool:
            sent = pool.submit(line.send, every)
            back = b""
            while len(back) < len(every):
                back += line.reads.read(1 << 16) or b""
            sent.result()
        assert back == every
    finally:
        line.close()


def test_it_is_sent_once(ssh_lab: SshLab, name: str) -> None:
    ssh_lab.host(name)
    fresh = []
    for _ in range(2):
        line = connected(ssh_lab, name)
        fresh.append(line.facts["fresh"])
        line.close()
    assert fresh == [True, False]


def test_several_that_send_it_at_once_all_begin(ssh_lab: SshLab, name: str, small_bundle: Bundle) -> None:
    home = ssh_lab.host(name)
    with ThreadPoolExecutor(4) as pool:
        lines = list(pool.map(lambda _: connected(ssh_lab, name), range(4)))
    for line in lines:
        heard(line)
        line.close()
    assert caches(home) == [small_bundle.digest]


def wait_for_end(pid: int) -> None:
    def ended() -> bool:
        try:
            return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return True

    wait_until(ended, what="the end of the far process")


NOISE = 'echo "Welcome to the machine"; printf "no end of line"; echo more >&2'


@pytest.mark.parametrize(
    ("shell", "first"),
    [
        ("sh", NOISE),
        ("bash", "yes | head -c 30000"),
        ("fish", NOISE),
        ("tcsh", NOISE),
        ("zsh", NOISE),
        ("dash", "exec 2>&1; stty sane; mesg n"),
    ],
)
def test_any_login_shell_and_what_its_start_up_files_print(ssh_lab: SshLab, name: str, shell: str, first: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    ssh_lab.host(name, shell=shell, first=first)
    line = connected(ssh_lab, name)
    assert tuple(heard(line)[5:]) == WORDS
    line.close()


def test_settings_name_python_home_and_folder(ssh_lab: SshLab, name: str, tmp_path: Path) -> None:
    home = ssh_lab.host(name)
    (home / "my work").mkdir()
    (home / "bin dir").mkdir()
    (home / "bin dir/py thon").symlink_to(sys.executable)
    line = connected(ssh_lab, name, python="~/bin dir/py thon", home="~/runs here", folder="~/my work")
    folder, mpstui_home, _, _, python, *_ = heard(line)
    line.close()
    assert (folder, mpstui_home) == (str(home / "my work"), str(home / "runs here"))
    assert python == str(home / "bin dir/py thon")


def test_a_start_up_file_that_waits_for_input_is_told(ssh_lab: SshLab, name: str) -> None:
    ssh_lab.host(name, first="echo Your name?; read name")
    for patience in (0.4, 2, 8):  # a busy machine is slow to log in
        error = refused(ssh_lab, name, patience=patience)
        assert error.kind == "silent"
        if "Your name?" in error.sentence:
            return
    pytest.fail(error.sentence)


def test_a_shell_that_lets_nobody_in_is_told(ssh_lab: SshLab, name: str) -> None:
    ssh_lab.host(name, first="echo This account is not available.; exit 1")
    error = refused(ssh_lab, name)
    assert error.kind == "shell"
    assert "not available" in error.sentence


def test_start_up_files_that_print_without_end_are_told(
    ssh_lab: SshLab, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_of_ssh, "MOST_NOISE", 50_000)
    ssh_lab.host(name, first="exec yes")
    assert refused(ssh_lab, name).kind == "noise"


def test_a_changed_host_key_is_told(ssh_lab: SshLab, name: str, tmp_path: Path) -> None:
    ssh_lab.host(name)
    ssh_lab.key(tmp_path / "other")
    ssh_lab.trust(tmp_path / "other.pub")
    try:
        error = refused(ssh_lab, name)
    finally:
        ssh_lab.trust(ssh_lab.folder / "hostkey.pub")
    assert error.kind == "key_changed"
    assert str(ssh_lab.known) in error.sentence


def test_a_host_key_that_is_not_known_is_told(ssh_lab: SshLab, name: str) -> None:
    ssh_lab.host(name, options="  UserKnownHostsFile /dev/null\n")
    assert refused(ssh_lab, name).kind == "key_unknown"


def test_a_key_that_does_not_fit_is_told_and_no_password_is_asked(ssh_lab: SshLab, name: str, tmp_path: Path) -> None:
    ssh_lab.key(tmp_path / "mine")
    ssh_lab.host(name, options=f"  IdentityFile {tmp_path / 'mine'}\n")
    (ssh_lab.folder / f"key-{name}").unlink()
    error = refused(ssh_lab, name)
    assert error.kind == "login"
    assert "ssh-copy-id" in error.hint


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ("  HostName no-such-host.invalid\n", "name"),
        ("  Port 1\n", "unreachable"),
        ("  NoSuchOption yes\n", "config"),
    ],
)
def test_what_keeps_ssh_from_it_is_told(ssh_lab: SshLab, name: str, options: str, kind: str, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(f"Host {name}\n  HostName 127.0.0.1\n{options}")
    if "HostName" in options:
        config.write_text(f"Host {name}\n{options}")
    environ = {**os.environ, "MPSTUI_SSH": f"ssh -F {config}"}
    with pytest.raises(HostError) as caught:
        connect(name, HostsSettings(), WORDS, environ=environ)
    assert caught.value.kind == kind


def test_an_ssh_that_is_not_there_is_told(name: str) -> None:
    with pytest.raises(HostError) as caught:
        connect(name, HostsSettings(ssh=("no-such-ssh",)), environ={"PATH": os.environ["PATH"]})
    assert caught.value.kind == "ssh"


@pytest.mark.parametrize("wrong", ["-oProxyCommand=touch x", "", "two words", "end\nof line", "-"])
def test_what_is_no_name_never_reaches_ssh(wrong: str) -> None:
    with pytest.raises(UsageError):
        connect(wrong, HostsSettings(ssh=("false",)))
    with pytest.raises(UsageError):
        connect("fine", HostsSettings(ssh=("false",), named={"fine": HostSettings(address=wrong or "-")}))


@pytest.mark.parametrize("version", ["3.9.18", None])
def test_a_python_that_is_too_old_or_missing_is_told(ssh_lab: SshLab, name: str, version: str | None) -> None:
    ssh_lab.host(name, first="PATH=$HOME/bin")
    home = ssh_lab.folder / "homes" / name
    (home / "bin").mkdir()
    for needed in ("sh", "echo"):
        (home / "bin" / needed).symlink_to(shutil.which(needed) or "")
    if version:
        (home / "bin/python3").write_text(f"#!/bin/sh\necho {version}\n")
        (home / "bin/python3").chmod(0o755)
    error = refused(ssh_lab, name)
    assert error.kind == "python"
    assert (f"python3 is {version}" if version else "there is no python3") in error.sentence
    assert f"[hosts.{name}]" in error.hint
    named = refused(ssh_lab, name, python="~/nowhere/python")
    assert (named.kind, f"{home}/nowhere/python does not start" in named.sentence) == ("python", True)


def test_a_python_that_only_interactive_shells_find_is_found(ssh_lab: SshLab, name: str) -> None:
    bare = ssh_lab.folder / f"bin-{name}"
    bare.mkdir()
    (bare / "sh").symlink_to(shutil.which("sh") or "/bin/sh")
    home = ssh_lab.host(name, first=f"PATH={bare}; export PATH", home=f"home of {name}")
    (home / ".pyenv/shims").mkdir(parents=True)
    (home / ".pyenv/shims/python3").symlink_to(sys.executable)
    line = connected(ssh_lab, name)
    assert heard(line)[4] == str(home / ".pyenv/shims/python3")
    line.close()


@pytest.fixture
def sockets() -> Iterator[Path]:
    """Paths of sockets are short."""
    with tempfile.TemporaryDirectory(prefix="cm-", dir="/tmp") as folder:
        yield Path(folder)


def sharing(sockets: Path) -> str:
    return f"  ControlMaster auto\n  ControlPath {sockets}/%n\n  ControlPersist 300\n"


def test_the_socket_of_a_shared_connection_that_is_gone_is_in_nobodys_way(
    ssh_lab: SshLab, name: str, sockets: Path
) -> None:
    ssh_lab.host(name, options=sharing(sockets).replace("auto", "no"))
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(sockets / name))
    line = connected(ssh_lab, name)
    heard(line)
    line.close()


def test_a_shared_connection_that_hangs_is_gone_around(
    ssh_lab: SshLab, name: str, sockets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh_lab.host(name, options=sharing(sockets))
    connected(ssh_lab, name).close()
    command = ["ssh", "-F", str(ssh_lab.config), "-O", "check", name]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    shared = psutil.Process(int(told.stderr.partition("pid=")[2].partition(")")[0]))
    try:
        shared.suspend()
        monkeypatch.setattr(ssh, "SHARED_SECONDS", 0.5)
        line = connected(ssh_lab, name, patience=60.0)
        heard(line)
        line.close()
    finally:
        shared.kill()


def test_a_folder_that_is_not_there_is_told(ssh_lab: SshLab, name: str) -> None:
    ssh_lab.host(name)
    error = refused(ssh_lab, name, folder="~/no-such-folder")
    assert error.kind == "folder"
    assert "no-such-folder" in error.sentence


def test_a_home_that_takes_nothing_is_gone_around(ssh_lab: SshLab, name: str, tmp_path: Path) -> None:
    home = ssh_lab.host(name, first=f"export TMPDIR={tmp_path}; unset XDG_RUNTIME_DIR")
    (home / ".cache").write_text("a file in the way, which not even root gets past")
    line = connected(ssh_lab, name)
    heard(line)
    line.close()
    assert line.facts["bundle"].startswith(f"{tmp_path}/mpstui-")


@pytest.mark.parametrize(("told", "is_kept"), [("/h\u00c3\u00b6me", False), ("", False), ("/", True)])
def test_a_home_that_a_shell_has_garbled_is_the_one_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, *, is_kept: bool
) -> None:
    (tmp_path / "h\u00f6me").mkdir()
    own = tmp_path if is_kept else tmp_path / "h\u00f6me"
    monkeypatch.setenv("HOME", str(tmp_path) + told if told else "")
    monkeypatch.setattr(pwd, "getpwuid", lambda user: SimpleNamespace(pw_dir=str(tmp_path / "h\u00f6me")))
    arrival.find_home()
    assert os.environ["HOME"] == (f"{own}{told}" if is_kept else str(own))


def test_a_link_of_another_user_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a shared folder anybody can put a link under the name that we would use."""
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o755)
    cache, asked = tmp_path / f"mpstui-{os.geteuid()}" / "bundles", {"digest": "0" * 64, "size": [0, 0]}
    cache.parent.symlink_to(victim)
    empty = io.BytesIO()
    tarfile.open(fileobj=empty, mode="w").close()
    monkeypatch.setattr(arrival, "caches", lambda: iter([cache]))
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(arrival.Refused):
        arrival.unpack(empty.getvalue(), asked)
    assert (victim.stat().st_mode & 0o777, list(victim.iterdir())) == (0o755, [])
    monkeypatch.undo()
    monkeypatch.setattr(arrival, "caches", lambda: iter([cache]))
    assert arrival.unpack(empty.getvalue(), asked).parent == cache, "a link of one's own does"


def test_a_transfer_that_is_cut_leaves_nothing_that_is_run(
    ssh_lab: SshLab, name: str, small_bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = ssh_lab.host(name)
    half = small_bundle.packed()[:50_000]
    wrong = zlib.compress(b"another one")
    for sent, kind in ((half, "cut"), (len(wrong).to_bytes(8, "big") + wrong, "transfer")):

        def send(line: Line, _: bytes, sent: bytes = sent, kind: str = kind) -> None:
            line.writes.write(sent)
            if kind == "cut":
                line.writes.close()

        with monkeypatch.context() as patch:
            patch.setattr(Line, "send", send)
            assert refused(ssh_lab, name).kind in (kind, "transfer")
        assert not caches(home)
    line = connected(ssh_lab, name)
    line.close()
    assert caches(home) == [small_bundle.digest]


def test_one_that_lost_a_file_is_sent_again(ssh_lab: SshLab, name: str, small_bundle: Bundle) -> None:
    home = ssh_lab.host(name)
    connected(ssh_lab, name).close()
    (home / ".cache/mpstui/bundles" / small_bundle.digest / "mpstui/large.bin").unlink()
    line = connected(ssh_lab, name)
    assert line.facts["fresh"]
    heard(line)
    line.close()
    assert caches(home) == [small_bundle.digest]


def test_one_that_others_can_write_is_not_run(ssh_lab: SshLab, name: str, small_bundle: Bundle) -> None:
    home = ssh_lab.host(name)
    connected(ssh_lab, name).close()
    (home / ".cache/mpstui/bundles").chmod(0o777)
    line = connected(ssh_lab, name)
    line.close()
    assert not line.facts["bundle"].startswith(str(home))


def test_a_line_that_is_cut_before_it_begins_is_no_broken_shell(ssh_lab: SshLab, name: str) -> None:
    ssh_lab.host(name, first="kill -9 $PPID; sleep 1")
    assert refused(ssh_lab, name).kind in ("cut", "unreachable")


def test_a_line_that_is_cut_ends_the_far_process_and_is_told(ssh_lab: SshLab, name: str) -> None:
    ssh_lab.host(name)
    line = connected(ssh_lab, name)
    pid = int(heard(line)[3])
    ssh_lab.signal(signal.SIGKILL)
    assert line.reads.read(1) == b""
    assert line.failure().kind == "cut"
    line.close()
    wait_for_end(pid)


def test_closing_ends_the_far_process_and_a_line_that_hangs_is_left(ssh_lab: SshLab, name: str) -> None:
    ssh_lab.host(name)
    line = connected(ssh_lab, name)
    pid = int(heard(line)[3])
    line.close()
    wait_for_end(pid)
    frozen = connected(ssh_lab, name)
    pid = int(heard(frozen)[3])
    ssh_lab.signal(signal.SIGSTOP)
    frozen.close(0.1)
    ssh_lab.signal(signal.SIGCONT)
    wait_for_end(pid)
