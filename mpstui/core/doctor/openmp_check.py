"""Looks for OpenMP runtimes beside a torch: two of one family in a process end it, or corrupt what it computes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .report import Finding, Status

# A name of one of the runtimes: libomp.dylib (LLVM), libiomp5.so (Intel), libgomp-a34b3233.so.1 (GNU, in a wheel).
_RUNTIME = re.compile(r"lib(?P<family>i?omp|gomp)\d*(?:-[0-9a-f]+)?\.(?:\d+\.)*(?:dylib|so)(?:\.\d+)*")
# Where wheels keep their libraries: torch/lib, sklearn/.dylibs, scikit_learn.libs, faiss/.dylibs, functorch/.dylibs.
_FOLDERS_OF_WHEELS = ("*/lib", "*/.dylibs", "*/.libs", "*.libs", "*")
_BESIDE_THE_SYSTEM = ("opt/homebrew/opt/libomp/lib", "usr/local/opt/libomp/lib")
_KMP = ("omp", "iomp")
"""LLVM's and Intel's runtimes are one code base: the second one loaded ends the process with OMP Error #15."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """One OpenMP library: which family it belongs to, and which package brought it."""

    path: str
    family: str
    owner: str


def openmp_runtimes(packages: Path, prefix: Path, root: Path = Path("/")) -> tuple[Runtime, ...]:
    """Return every OpenMP library that a program of this environment can load, each file once.

    Args:
        packages: the environment's site-packages.
        prefix: the environment; conda keeps its libraries in ``lib`` there.
        root: of the file system, for Homebrew's libomp.
    """
    found: dict[Path, Runtime] = {}
    for folder, owner in _places(packages, prefix, root):
        for path in _files(folder):
            match = _RUNTIME.fullmatch(path.name)
            real = _real(path)
            if match and real is not None:
                found.setdefault(real, Runtime(str(path), match["family"], owner or folder.name))
    return tuple(found.values())


def judge_openmp(runtimes: Sequence[Runtime]) -> Iterator[Finding]:
    """Which of them collide. GNU's runtime does not look for the others; nothing is said of several copies of it."""
    kmp = [one for one in runtimes if one.family in _KMP]
    names = ", ".join(f"{one.owner} ({Path(one.path).name})" for one in kmp)
    if len(kmp) > 1:
        text = f"{len(kmp)} copies of the OpenMP runtime are installed: {names}"
        advice = (
            "a program that loads two of them can end with OMP Error #15 or crash in a barrier: install these packages "
            "from one source (all by conda, or all by pip), or launch with OMP_NUM_THREADS=1; KMP_DUPLICATE_LIB_OK "
            "only hides it"
        )
        yield Finding("openmp", Status.WARNING, text, advice)
    elif kmp:
        yield Finding("openmp", Status.OK, f"one OpenMP runtime that minds others: {names}")


def facts(runtimes: Sequence[Runtime]) -> list[dict[str, Any]]:
    """The libraries as plain data."""
    return [{"path": one.path, "family": one.family, "owner": one.owner} for one in runtimes]


def environment_of(torch: Mapping[str, Any] | None) -> tuple[Path, Path] | None:
    """Site-packages and prefix of an examined torch; None without one."""
    if torch is None or not torch.get("file") or not torch.get("prefix"):
        return None
    return Path(torch["file"]).parent.parent, Path(torch["prefix"])


def _places(packages: Path, prefix: Path, root: Path) -> Iterator[tuple[Path, str]]:
    for pattern in _FOLDERS_OF_WHEELS:
        for folder in sorted(packages.glob(pattern)):
            yield folder, folder.relative_to(packages).parts[0].removesuffix(".libs")
    yield prefix / "lib", "the environment"
    for place in _BESIDE_THE_SYSTEM:
        yield root / place, "Homebrew"


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if "omp" in path.name)
    except OSError:
        return []


def _real(path: Path) -> Path | None:
    """The file behind a link; None where the link leads nowhere."""
    try:
        return path.resolve(strict=True)
    except OSError:
        return None
