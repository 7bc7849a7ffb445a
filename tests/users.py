"""Other users of this machine, for tests: processes with a user id that nobody has. Only root can make them."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
_MAIN = """
import contextlib, io, json, sys
from mpstui.cli.main import main
answers = []
for words in json.loads(sys.argv[1]):
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        code = main(words)
    answers.append((code, told.getvalue()))
print(json.dumps(answers))
"""


@functools.cache
def python_for_all() -> str | None:
    """A Python that every user can run, with all that mpstui needs; None where there is none."""
    there = [shutil.which(name, path="/usr/bin:/usr/local/bin") for name in ("python3", "python3.11")]
    for python in filter(None, (sys.executable, *there)):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            if User(54321, Path("/")).call([python, "-c", "import mpstui.cli.main, textual, psutil"]).returncode == 0:
                return python
    return None


class User:
    """Somebody who is neither root nor the owner of anything but ``folder``."""

    def __init__(self, uid: int, folder: Path) -> None:
        self.uid = uid
        self.folder = folder

    @property
    def home(self) -> Path:
        """Their MPSTUI_HOME."""
        return self.folder / "mpstui"

    def call(
        self, words: list[str], *, home: Path | None = None, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program as this user, without a umask, and wait for it."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "MPSTUI_HOME": str(home or self.home),
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *(path for path in sys.path if "site-packages" in path)]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return subprocess.run(
            words,
            env=environment,
            cwd=cwd or self.folder,
            user=self.uid,
            group=self.uid,
            extra_groups=(),
            umask=0,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def mpstui(self, *commands: str, home: Path | None = None, cwd: Path | None = None) -> list[tuple[int, str]]:
        """The exit codes of some commands, one after the other in one process, and all that each said."""
        words = json.dumps([shlex.split(command) for command in commands])
        done = self.call([python_for_all() or "", "-c", _MAIN, words], home=home, cwd=cwd)
        assert done.returncode == 0, done.stderr
        return [(code, told) for code, told in json.loads(done.stdout)]

    def python(self, code: str) -> str:
        """What a few lines of Python print."""
        done = self.call([python_for_all() or "", "-I", "-c", code])
        return (done.stdout + done.stderr).strip()


@contextlib.contextmanager
def two_users() -> Iterator[tuple[User, User]]:
    """Two users with a folder each, side by side in one that everybody can write, as ``/tmp`` is."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        shared = Path(name)
        shared.chmod(0o1777)
        made = [User(uid, shared / str(uid)) for uid in (54321, 54322)]
        for user in made:
            user.folder.mkdir()
            os.chown(user.folder, user.uid, user.uid)
        yield made[0], made[1]
