"""Real ssh hosts on this machine: one sshd on a loopback port, and a key for each host, with a home of its own.

The key decides what a session finds: authorized_keys sets HOME, and names the login shell and what it prints first.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shlex
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from tests.waiting import wait_until

_PLACES = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin:/opt/homebrew/sbin"


class SshLab:
    """One daemon, any number of hosts. ``environ`` makes mpstui reach them by name."""

    def __init__(self, folder: Path, daemon: str, **more: object) -> None:
        """``more``: further settings of the daemon."""
        self.folder, self.config, self.keys = folder, folder / "config", folder / "authorized_keys"
        folder.chmod(0o700)
        for path in (self.config, self.keys):
            path.touch(0o600)
        self.key(folder / "hostkey")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.known = folder / "known_hosts"
        self.trust(folder / "hostkey.pub")
        settings = {
            "Port": self.port,
            "ListenAddress": "127.0.0.1",
            "HostKey": folder / "hostkey",
            "PidFile": "none",
            "AuthorizedKeysFile": self.keys,
            "PasswordAuthentication": "no",
            "StrictModes": "no",
            "UsePAM": "no",
            "PermitUserEnvironment": "yes",
            "AcceptEnv": "*",
            "MaxStartups": "100",
            "KexAlgorithms": "curve25519-sha256",  # the default takes a tenth of a second of each side
            **more,
        }
        (folder / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        with contextlib.suppress(OSError):
            Path("/run/sshd").mkdir(exist_ok=True)  # where the daemon of root goes before anybody has logged in
        self._daemon = subprocess.Popen(
            [daemon, "-D", "-e", "-f", str(folder / "sshd_config")],
            stderr=(folder / "sshd.log").open("wb"),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    @staticmethod
    def key(path: Path) -> str:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True, timeout=60)
        return path.with_suffix(".pub").read_text().strip()

    def trust(self, key: Path) -> None:
        """Make this the known host key."""
        self.known.write_text(f"[127.0.0.1]:{self.port} {key.read_text()}")

    @property
    def environ(self) -> dict[str, str]:
        return {**os.environ, "MPSTUI_SSH": f"ssh -F {self.config}"}

    def host(self, name: str, *, shell: str = "/bin/sh", first: str = "", options: str = "", home: str = "") -> Path:
        """A host of this name; its home.

        Args:
            shell: gets the command as sshd gives it to a login shell.
            first: what a start-up file of that shell does, as a line of sh.
            options: more lines for the ssh configuration.
            home: what its home is called; its name.
        """
        place = self.folder / "homes" / (home or name)
        place.mkdir(parents=True)
        public = self.key(self.folder / f"key-{name}")
        start = self.folder / f"{name}.sh"
        start.write_text(f'{first}\nexec {shell} -c "$SSH_ORIGINAL_COMMAND"\n')
        command = f"sh {shlex.quote(str(start))}"
        with self.keys.open("a") as file:
            file.write(f'environment="HOME={place}",command="{command}" {public}\n')
        lines = {
            "HostName": "127.0.0.1",
            "Port": self.port,
            "User": getpass.getuser(),
            "IdentityFile": self.folder / f"key-{name}",
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": self.known,
            "GlobalKnownHostsFile": "/dev/null",
        }
        with self.config.open("a") as file:
            file.write(f"Host {name}\n{options}" + "".join(f"  {key} {value}\n" for key, value in lines.items()))
        return place

    def sessions(self) -> list[psutil.Process]:
        """The daemon's processes for the lines that are open; what runs in them is not among them."""
        below = psutil.Process(self._daemon.pid).children(recursive=True)
        found = []
        for process in below:
            with contextlib.suppress(psutil.NoSuchProcess):
                found += [process] if process.name().startswith("sshd") else []
        return found

    def signal(self, number: signal.Signals) -> None:
        """Cut (SIGKILL), freeze (SIGSTOP) or thaw (SIGCONT) all open lines."""
        for process in self.sessions():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def close(self) -> None:
        self.signal(signal.SIGKILL)
        self._daemon.terminate()
        self._daemon.wait(20)

    def wait_for_daemon(self) -> None:
        def answers() -> bool:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return True
            assert self._daemon.poll() is None, (self.folder / "sshd.log").read_text()
            return False

        wait_until(answers, what="sshd")


def find_daemon() -> str | None:
    """The sshd that is installed here."""
    return shutil.which("sshd", path=_PLACES) if shutil.which("ssh") else None


@pytest.fixture(scope="session")
def ssh_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshLab]:
    """The hosts of all tests of one worker."""
    daemon = find_daemon()
    if daemon is None:
        pytest.skip("there is no sshd here, and so no other machine: install openssh-server")
    lab = SshLab(tmp_path_factory.mktemp("ssh"), daemon)
    try:
        lab.wait_for_daemon()
        yield lab
    finally:
        lab.close()
