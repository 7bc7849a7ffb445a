"""``python -m trainer fetch SET --to DIR``: public data sets in the layout the tasks read.

A file is downloaded beside its target, resumed where an earlier attempt broke off, checked against its published hash
and only then unpacked. Proxies come from the environment (``https_proxy``, ``no_proxy``).
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import json
import shutil
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from .errors import TrainingError, UsageError

_CHUNK_BYTES = 1 << 20
_TIMEOUT_SECONDS = 30.0
_ATTEMPTS = 5
_LARGEST_RECORD_BYTES = 1 << 22


@dataclass(frozen=True)
class Archive:
    """One file of a data set, and what it unpacks to."""

    url: str
    digest: str
    """``algorithm:hexadecimal``."""
    folder: str
    """The archive's top folder: it exists once the archive has been unpacked."""


@dataclass(frozen=True)
class Source:
    """Where to find a data set."""

    about: str
    base: str
    """Its address without the file's name; ``--from`` gives another."""
    archives: Callable[[str, str], Archive]
    """Returns the archive for a base address and the requested part of the set."""
    parts: Sequence[str] = ()
    """The parts of a set that has several; the first is the default."""


def _cifar(name: str, digest: str, folder: str) -> Callable[[str, str], Archive]:
    return lambda base, part: Archive(f"{base}/{name}", digest, folder)


def _benchmark(base: str, part: str) -> Archive:
    """A file of a Zenodo record, with the hash that the record itself publishes."""
    name = f"{part}_v0.zip"
    with _opened(Request(f"{base.replace('/records/', '/api/records/')}")) as answer:
        record = json.loads(answer.read(_LARGEST_RECORD_BYTES))
    found = [file for file in record.get("files", []) if file.get("key") == name]
    if not found or not isinstance(found[0].get("checksum"), str):
        raise TrainingError(f"{base} does not list {name}; look there for where it went, and name it with --from")
    return Archive(f"{base}/files/{name}?download=1", found[0]["checksum"], part)


SETS: Mapping[str, Source] = {
    # The hashes are those that Keras and TensorFlow Datasets check the same files against.
    "cifar10": Source(
        "60,000 images in 10 classes (170 MB)",
        "https://www.cs.toronto.edu/~kriz",
        _cifar(
            "cifar-10-python.tar.gz",
            "sha256:6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
            "cifar-10-batches-py",
        ),
    ),
    "cifar100": Source(
        "60,000 images in 100 classes (169 MB)",
        "https://www.cs.toronto.edu/~kriz",
        _cifar(
            "cifar-100-python.tar.gz",
            "sha256:85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
            "cifar-100-python",
        ),
    ),
    # https://github.com/ML-Bioinfo-CEITEC/genomic_benchmarks names this record as the place of the sequences.
    "genomic-benchmarks": Source(
        "DNA sequences in classes, one of nine sets (--part)",
        "https://zenodo.org/records/16605299",
        _benchmark,
        (
            "human_nontata_promoters",
            "human_enhancers_cohn",
            "human_enhancers_ensembl",
            "human_ensembl_regulatory",
            "human_ocr_ensembl",
            "drosophila_enhancers_stark",
            "dummy_mouse_enhancers_ensembl",
            "demo_human_or_worm",
            "demo_coding_vs_intergenomic_seqs",
        ),
    ),
}


def main(arguments: Sequence[str], parser: argparse.ArgumentParser) -> str:
    """Fetch one set; returns the sentence that says how to train on it.

    Raises:
        UsageError: there is no such set or part.
        TrainingError: it could not be downloaded; what was downloaded so far stays for the next attempt.
    """
    parser.add_argument(
        "set", choices=tuple(SETS), help="; ".join(f"{key}: {item.about}" for key, item in SETS.items())
    )
    parser.add_argument("--to", type=Path, required=True, metavar="DIR", help="folder to put it into")
    parser.add_argument("--part", metavar="NAME", help="of genomic-benchmarks: " + ", ".join(_parts()))
    parser.add_argument("--from", dest="base", metavar="URL", help="another address that has the same files")
    asked = parser.parse_args(arguments)
    source = SETS[asked.set]
    if asked.part and asked.part not in source.parts:
        known = f"one of {', '.join(source.parts)}" if source.parts else "nothing: the set is one"
        raise UsageError(f"{asked.set} has no part {asked.part!r}; --part takes {known}")
    part = asked.part or next(iter(source.parts), "")
    archive = source.archives(asked.base or source.base, part)
    found = fetch(archive, asked.to)
    return f"{found}: train with --data {found if source.parts else asked.to}"


def fetch(archive: Archive, to: Path) -> Path:
    """Download, check and unpack an archive; returns its folder. Does nothing if that exists already.

    Raises:
        TrainingError: see :func:`main`.
    """
    target = to / archive.folder
    if target.exists():
        return target
    name = PurePosixPath(archive.url.partition("?")[0]).name
    partial = to / f".{name}.part"
    try:
        to.mkdir(parents=True, exist_ok=True)
        _download(archive.url, partial)
        _check(partial, archive)
        _unpack(partial, to, archive.folder)
        partial.unlink()
    except OSError as error:
        reason = error.strerror or str(error)
        raise TrainingError(f"{target} could not be made ({reason}); run again, it continues where it was") from error
    return target


def _parts() -> list[str]:
    return [part for source in SETS.values() for part in source.parts]


def _opened(request: Request) -> http.client.HTTPResponse:
    try:
        answer = urlopen(request, timeout=_TIMEOUT_SECONDS)  # nosec B310 - an address of ours or the caller's own --from
    except HTTPError as error:
        if error.code == 416:  # the range starts at the file's end: all of it is here
            raise
        raise TrainingError(f"{request.full_url} answered {error.code} {error.reason}; see whether it moved") from error
    assert isinstance(answer, http.client.HTTPResponse)
    return answer


def _download(url: str, partial: Path) -> None:
    """Fill the partial file; a lost connection is resumed a few times."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _continue_download(url, partial)
        except (URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
            if isinstance(error, HTTPError):
                return  # 416: nothing is missing; the hash tells
            if attempt == _ATTEMPTS:
                reason = getattr(error, "reason", None) or error
                raise TrainingError(
                    f"{url} cannot be read ({reason}); run again when the connection is back, it continues where it was"
                ) from error
            time.sleep(min(2.0**attempt, 10.0) if isinstance(error, URLError) else 0.1)
        else:
            return


def _continue_download(url: str, partial: Path) -> None:
    have = partial.stat().st_size if partial.exists() else 0
    headers = {"User-Agent": "mpstui"} | ({"Range": f"bytes={have}-"} if have else {})
    with _opened(Request(url, headers=headers)) as answer:
        goes_on = answer.status == 206
        have = have if goes_on else 0  # a server without range support sends all of it again
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length and length.isdecimal() else None
        with partial.open("ab" if goes_on else "wb") as file:
            meter = Meter(have, total, sys.stderr)
            while chunk := answer.read(_CHUNK_BYTES):
                file.write(chunk)
                have += len(chunk)
                meter.show(have)
            meter.end()
        if total is not None and have < total:
            raise ConnectionError("it ended early")


def _check(partial: Path, archive: Archive) -> None:
    algorithm, _, expected = archive.digest.partition(":")
    with partial.open("rb") as file:
        found = hashlib.file_digest(file, algorithm).hexdigest()
    if found != expected:
        partial.unlink()
        raise TrainingError(
            f"{archive.url} is not the file it should be ({algorithm} {found[:12]}…, not {expected[:12]}…);"
            " it was deleted: try again, or another address with --from"
        )


def _unpack(partial: Path, to: Path, folder: str) -> None:
    """Unpack beside the target and rename, so that the folder is complete or absent. Nothing is written outside it."""
    staging = to / f".{folder}.unpacking"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir()
    try:
        if zipfile.is_zipfile(partial):
            with zipfile.ZipFile(partial) as archive:
                archive.extractall(staging)  # nosec B202 - it drops leading slashes and ".." by itself
        else:
            with tarfile.open(partial) as tar:
                tar.extractall(staging, filter="data")
        (staging / folder).rename(to / folder)
    except (tarfile.TarError, zipfile.BadZipFile, FileNotFoundError) as error:
        raise TrainingError(
            f"{partial.name} cannot be unpacked to {folder} ({error}); name another with --from"
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


class Meter:
    """The progress of a download: one line rewritten on a terminal, elsewhere a line for each tenth."""

    def __init__(
        self,
        have: int,
        total: int | None,
        out: IO[str],
        clock: Callable[[], float] = time.monotonic,
        unit: tuple[str, float] = ("MB", 1e6),
    ) -> None:
        """``unit``: the name of the unit shown, and how many counts make one."""
        self._unit = unit
        self._first, self._total, self._out, self._clock = have, total, out, clock
        self._began = clock()
        self._rewrites = out.isatty()
        self._shown = -1

    def show(self, have: int) -> None:
        """Show the progress, unless it has hardly changed."""
        step = int(have / self._total * (100 if self._rewrites else 10)) if self._total else have >> 24
        if step == self._shown:
            return
        self._shown = step
        seconds = self._clock() - self._began
        rate = (have - self._first) / seconds if seconds > 0 else 0.0
        name, size = self._unit
        words = f"{have / size:,.0f} {name}"
        if self._total:
            words = f"{have / self._total:4.0%} of {self._total / size:,.0f} {name}"
            words += f", {(self._total - have) / rate:,.0f} s left" if rate > 0 and have < self._total else ""
        self._out.write(f"\r\x1b[K{words}" if self._rewrites else f"{words}\n")
        self._out.flush()

    def end(self) -> None:
        """End the progress line."""
        if self._rewrites:
            self._out.write("\n")
