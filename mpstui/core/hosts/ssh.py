"""A line to another machine: the system's own ssh, the far program that it starts, and why that failed.

ssh runs with the user's own configuration, agent, jump hosts and shared connections; it never asks anything, and
forwards nothing. The far login shell, whichever it is, gets one command that all shells read alike: quoted words that
contain no quotes, backslashes, exclamation marks or newlines. Nothing is sent before the far program has printed its
marker, so that no start-up file can read what was meant for it.
"""

from __future__ import annotations

import base64
import os
import platform
import re
import secrets
import shlex
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ...wire import storage
from ..model.errors import UsageError
from ..settings import HostSettings, HostsSettings
from .bundle import START, bundle
from .line import HostError, Line

LOCAL = "local"
"""The name of this machine as a host; ``local:FOLDER`` is this machine with another home."""
SHARED_SECONDS = 8.0
"""Over a shared connection, silence for this long means that the connection hangs."""
PATIENCE_SECONDS = 30.0
"""Seconds from the call to the far program's first word."""
_OPTIONS = (
    *("-T", "-x", "-oBatchMode=yes", "-oConnectTimeout=15", "-oServerAliveInterval=10", "-oServerAliveCountMax=3"),
    *("-oClearAllForwardings=yes", "-oRemoteCommand=none", "-oPermitLocalCommand=no", "-oEscapeChar=none"),
)
_RESOLVED_SECONDS = 5.0
"""How long ssh's configuration for a machine is cached: not long, since somebody may be fixing it."""
_NAME = re.compile(r"[^\s\x00-\x1f\x7f\-][^\s\x00-\x1f\x7f]*")
_FIND = (  # Apple's own python3 opens a window where its tools are missing
    'm=$1; w=$2; a=$3; c=$4; f=; try() { q=$(command -v "$1" 2>/dev/null) || return 1; '
    "case $q in /usr/bin/python3) if test -x /usr/bin/xcode-select; then "
    "/usr/bin/xcode-select -p >/dev/null 2>&1 || return 1; fi;; esac; "
    'v=$("$1" -E -S -c "import sys; print(sys.version.split()[0])" </dev/null 2>/dev/null) || return 1; '
    'case $v in 3.1[1-9]*|3.[2-9][0-9]*) exec "$1" -I -c '
    '"import sys,zlib,base64;exec(zlib.decompress(base64.urlsafe_b64decode(sys.argv.pop(1))))" "$c" "$m" "$a";; '
    'esac; f="$f $1 is $v,"; }; case $w in "~/"*) w=$HOME/${w#??};; esac; '
    'if test "$w"; then try "$w"; test "$f" || f=" $w does not start,"; '
    'else for d in "" /opt/homebrew/bin /usr/local/bin /opt/local/bin "$HOME/.local/bin" '
    '"$HOME/miniforge3/bin" "$HOME/miniconda3/bin" "$HOME/anaconda3/bin" "$HOME/mambaforge/bin" /opt/conda/bin '
    '"$HOME/.pyenv/shims" "$HOME/.nix-profile/bin" /run/current-system/sw/bin /home/linuxbrew/.linuxbrew/bin '
    '/Library/Frameworks/Python.framework/Versions/Current/bin "$HOME"/.local/share/uv/python/*/bin; do '
    'for n in python3 python3.14 python3.13 python3.12 python3.11; do try "${d:+$d/}$n"; done; done; fi; '
    'echo; echo "$m python$f"'
)
"""POSIX sh: $1 is the marker, $2 the Python that settings name, $3 the program's arguments and $4 the program."""


def connect(
    name: str,
    hosts: HostsSettings,
    words: Sequence[str] = ("serve",),
    *,
    environ: Mapping[str, str] = os.environ,
    patience: float = PATIENCE_SECONDS,
    sending: Callable[[int], None] = lambda size: None,
) -> Line:
    """Start ``core/hosts/__main__.py WORDS`` on a machine, from the bundle, which is sent unless it is there.

    Args:
        name: one from ``[hosts]`` or the user's ssh configuration, or an address; ``local`` and ``local:FOLDER`` are
            this machine, without ssh.
        patience: seconds until the far program must have said its first word; sending the bundle not counted.
        sending: called with the size of the bundle before it is sent: on a slow line that takes a while.

    Raises:
        UsageError: no host can have such a name.
        HostError: it cannot be reached.
    """
    require_name(name)
    if is_local(name):
        line = Line(name, _started(name, [sys.executable, "-P", str(_HERE), *words], environ, name.partition(":")[2]))
        line.facts = {"python": {"version": platform.python_version(), "executable": sys.executable}}
        return line
    marker = secrets.token_hex(16)
    command = far_command(marker, hosts.named.get(name, HostSettings()), words)
    called = ssh_command(name, hosts, command, environ)
    line = Line(name, _started(name, called, environ))
    try:
        if not line.speaks_within(min(SHARED_SECONDS, patience / 2)) and (alone := _alone(called)):
            line.close(0)
            line = Line(name, _started(name, alone, environ))
        line.arrive(marker, bundle(), patience, sending)
    except BaseException:
        line.close(0)
        raise
    return line


class Knocking:
    """Check without ssh if a machine accepts a connection; see :class:`.reopening.Knock`."""

    def __init__(self, name: str, hosts: HostsSettings, environ: Mapping[str, str]) -> None:
        self._called = ssh_command(name, hosts, "", environ)
        self._is_local = is_local(name)
        self._place: tuple[str, int] | None = None
        self._asked_at: float | None = None

    def __call__(self, seconds: float) -> bool | None:
        """None: it is this machine, or is reached through another machine or a program, which only ssh can do."""
        now = time.monotonic()
        if self._asked_at is None or now - self._asked_at > _RESOLVED_SECONDS:
            self._place, self._asked_at = None if self._is_local else self._found(), now
        if self._place is None:
            return None
        try:
            with socket.create_connection(self._place, seconds):
                return True
        except OSError:
            return False

    def _found(self) -> tuple[str, int] | None:
        told = dict(line.split(" ", 1) for line in _resolved(self._called).splitlines() if " " in line)
        ways = {told.get("proxyjump", "none"), told.get("proxycommand", "none")}
        if not {"hostname", "port"} <= told.keys() or ways != {"none"}:
            return None
        return told["hostname"], int(told["port"])


def _resolved(called: list[str]) -> str:
    """The options that ssh would use for a call, one per line; empty if ssh does not say."""
    *begun, end, address, _ = called
    asked = [*begun, "-G", end, address]
    try:
        found = subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True, timeout=5, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return os.fsdecode(found)


def _started(name: str, command: list[str], environ: Mapping[str, str], home: str = "") -> subprocess.Popen[bytes]:
    own = {"MPSTUI_HOME": str(Path(home).expanduser())} if home else {}
    try:
        return subprocess.Popen(
            command,
            env={**environ, "SSH_ASKPASS_REQUIRE": "never", **own},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # keys typed here, above all ctrl+c, must not reach ssh
        )
    except OSError as error:
        raise HostError(
            name, "ssh", f"{command[0]} cannot be started: {error.strerror}", "is ssh installed?"
        ) from error


def _alone(called: list[str]) -> list[str] | None:
    """The same call over a connection of its own, if it shares one (``ControlMaster``), which may have died unnoticed
    when a laptop slept or changed networks. None if it shares none."""
    *begun, end, address, command = called
    if not any(Path(path).is_socket() for path in re.findall(r"(?m)^controlpath (.+)$", _resolved(called))):
        return None
    return [*begun, "-oControlPath=none", end, address, command]


_HERE = Path(__file__).with_name("__main__.py")


def is_local(name: str) -> bool:
    """True if it is this machine."""
    return name.partition(":")[0] == LOCAL


def require_name(name: str) -> None:
    """Refuse a name that ssh would take for an option, or that no machine can have.

    Raises:
        UsageError: it is such a name.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"no host is called {name!r}", "a name without spaces that does not begin with a dash")


def ssh_command(name: str, hosts: HostsSettings, command: str, environ: Mapping[str, str]) -> list[str]:
    """The ssh call that runs ``command``; ``MPSTUI_SSH`` or ``ssh`` in ``[hosts]`` sets the program and its options."""
    program = shlex.split(environ.get("MPSTUI_SSH", "")) or list(hosts.ssh)
    address = hosts.named.get(name, HostSettings()).address or name
    require_name(address)
    return [*program, *_OPTIONS, "--", address, command]


def far_command(marker: str, host: HostSettings, words: Sequence[str]) -> str:
    """The command line for any login shell; see the top of this file."""
    ours = bundle()
    asked = {
        "digest": ours.digest,
        "size": ours.size,
        "start": START,
        "words": list(words),
        "home": host.home,
        "folder": host.folder,
    }
    text = zlib.compress(storage.read_bytes(Path(__file__).with_name("arrival.py")), 9)
    parts = (
        marker,
        host.python,
        *(base64.urlsafe_b64encode(one).decode() for one in (storage.dump_bytes(asked), text)),
    )
    return f"exec sh -c '{_FIND}' mpstui " + " ".join(f"'{part}'" for part in parts)
