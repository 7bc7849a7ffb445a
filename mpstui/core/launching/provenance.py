"""What a run was launched from: the git commit of its folder and the changes since, packages, host.

It is recorded at the launch, since all of it may change while the training runs. Git is called at most twice, or not
at all if there is no ``.git`` above the folder, and must not run any program that the repository names (hooks, file
system monitors, external diffs). Packages are recognised by the names of their folders: nothing is imported, no
interpreter is started.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from ...wire import storage
from ...wire.records import Provenance
from ...wire.rundir import RunDir
from ...wire.secrets import masked_text

GIT_SECONDS = 3.0
"""If git takes longer, since the repository is large or on a slow network, a run starts without it."""
MOST_DIFF_BYTES = 1 << 20
BROUGHT = ".mpstui-source.json"
"""A file in a folder of code that another machine sent: the commit there, and the digests of its files."""
_QUIET = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false")
_TOLD_PACKAGES = """
torch torchvision torchaudio numpy transformers accelerate datasets lightning pytorch_lightning keras timm ultralytics
diffusers peft trl fastai torch_geometric triton safetensors wandb
"""
_INSTALLED = re.compile(r"([A-Za-z0-9_.]+)-([^-]+)\.dist-info")


class ProvenanceNotes:
    """Takes the provenance once per folder and interpreter, which the runs of a sweep share."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, str], tuple[Provenance, str]] = {}

    def write(self, run: RunDir, folder: Path, program: str, environ: Mapping[str, str]) -> None:
        """Save what is known with the run; if the disk is full, nothing is saved and the run still starts."""
        key = folder, program
        if key not in self._known:
            self._known[key] = take(folder, program, environ)
        record, diff = self._known[key]
        with contextlib.suppress(OSError):
            storage.write_json(run.provenance, storage.to_json(record), sync=False)
            if diff:
                storage.write_bytes(run.source_diff, diff.encode("utf-8", "replace"), sync=False)


def take(folder: Path, program: str, environ: Mapping[str, str]) -> tuple[Provenance, str]:
    """Return what is known now, and the changes to tracked files as a diff in which secrets are masked."""
    version, packages = _installed(program, environ)
    found = Provenance(
        host=platform.node(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=version,
        packages=packages,
    )
    if not any((parent / ".git").exists() for parent in (folder, *folder.parents)):
        return _brought(found, folder)
    until = time.monotonic() + GIT_SECONDS
    words: tuple[str, ...] = ("--porcelain=v2", "--branch", "--untracked-files=no", "--ignore-submodules")
    told = ask_git(folder, GIT_SECONDS, "status", *words)
    if told is None:
        return found, ""
    lines = told.decode("utf-8", "replace").splitlines()
    heads = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# branch.") and line.count(" ") > 1)
    commit, branch = heads.get("branch.oid", "(initial)"), heads.get("branch.head", "(detached)")
    changed = sum(not line.startswith("#") for line in lines)
    if commit == "(initial)":
        return found._replace(branch=branch, changed_files=changed, diff_is_whole=not changed), ""
    words = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD", "--")
    diff = ask_git(folder, until - time.monotonic(), *words) if changed else b""
    return found._replace(
        commit=commit,
        branch=None if branch == "(detached)" else branch,
        changed_files=changed,
        diff_is_whole=diff is not None and len(diff) <= MOST_DIFF_BYTES,
    ), masked_text((diff or b"")[:MOST_DIFF_BYTES].decode("utf-8", "replace"))


def _installed(program: str, environ: Mapping[str, str]) -> tuple[str | None, dict[str, str]]:
    """Return the interpreter's version and its packages, by the names of folders; None and none if it is not Python."""
    path = shutil.which(program, path=environ.get("PATH"))
    if path is None or "python" not in Path(path).name:
        return None, {}
    for prefix in dict.fromkeys((Path(path).parent.parent, Path(path).resolve().parent.parent)):
        for site in sorted(prefix.glob("lib/python3*/site-packages")):
            inside = site.iterdir() if os.access(site, os.R_OK) else ()
            found = (match for one in inside if (match := _INSTALLED.fullmatch(one.name)))
            packages = {match[1]: match[2] for match in found if match[1].lower() in _TOLD_PACKAGES.split()}
            return site.parent.name.removeprefix("python"), dict(sorted(packages.items()))
    return None, {}


def _brought(found: Provenance, folder: Path) -> tuple[Provenance, str]:
    """Add what the machine that sent the code knew about it."""
    for parent in (folder, *folder.parents):
        try:
            told = storage.read_json(parent / BROUGHT)
            if told is not None:
                source = storage.from_json(Provenance, told["provenance"])
                facts = {name: getattr(source, name) for name in ("commit", "branch", "changed_files", "diff_is_whole")}
                return found._replace(**facts), masked_text(str(told.get("diff", "")))[:MOST_DIFF_BYTES]
        except (OSError, storage.UnreadableRecord, KeyError, TypeError):
            break
    return found, ""


def ask_git(folder: Path, seconds: float, *words: str) -> bytes | None:
    """Return what git prints; None if it is missing, fails, or takes longer than ``seconds``."""
    environ = {
        **os.environ,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C",
    }
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_EXTERNAL_DIFF"):
        environ.pop(name, None)
    try:
        done = subprocess.run(
            ["git", "--no-pager", *_QUIET, *words],
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=max(0.1, seconds),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
