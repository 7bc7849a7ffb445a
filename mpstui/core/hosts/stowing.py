"""Where another machine's code arrives: a folder for each state of it, stored completely or not at all.

Files that an earlier state contains are not sent again. A folder that a program has changed since is left to the runs
that use it, and the code gets a new one.
"""

from __future__ import annotations

import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from ...wire import liveness, storage
from ...wire.records import Spec
from ...wire.rundir import RunDir
from ..launching.provenance import BROUGHT
from ..model.errors import OperationError
from ..model.home import Home, require_own
from .parcel import HINT, Item, digest_of, has, items_of, unpack
from .staging import ARRIVING, code_folder, remove_abandoned, take


def arrived(manifest: Mapping[str, Any], home: Home) -> Path | None:
    """A folder that already has exactly these files, for a returning run preferably the one that it was launched in."""
    files = items_of(manifest)
    for folder in (*_launched_in(manifest, home), *_folders(manifest, home)):
        if all(has(folder, one) for one in files):
            if folder.parent == code_folder(home):
                with suppress(OSError):
                    os.utime(folder)
            return folder
    return None


def _launched_in(manifest: Mapping[str, Any], home: Home) -> Iterator[Path]:
    """Yield the folder of a returning run: its data, environments and secrets, never sent, are still there."""
    run = RunDir(home.runs / str(manifest.get("run") or "-"))
    spec = storage.read_or_none(Spec, run.spec) if run.moved.exists() else None
    below = str(manifest.get("below", ""))
    if spec is not None and spec.launch.cwd.endswith(below):
        yield Path(spec.launch.cwd.removesuffix(below))


def place_for(manifest: Mapping[str, Any], home: Home) -> Path:
    """The folder in which this code would be put."""
    return next(folder for folder in _names(manifest, home) if not folder.exists())


def lacking(manifest: Mapping[str, Any], home: Home) -> list[str]:
    """Digests of files that no code sent earlier contains, sorted."""
    here = _at_hand(home)
    return sorted({one.digest for one in items_of(manifest) if one.digest and one.digest not in here})


def stow(manifest: Mapping[str, Any], reads: BinaryIO, home: Home) -> Path:
    """Assemble the files from those here and those sent; return the folder that they are in.

    Args:
        reads: the output of :func:`mpstui.core.hosts.parcel.pack`.

    Raises:
        OperationError: a file is missing or not as it should be, or the disk is full; nothing is left behind.
    """
    files, here, store = items_of(manifest), _at_hand(home), code_folder(home)
    try:
        require_own(home)
        storage.make_private_folder(store)
        remove_abandoned(home)
        temporary = Path(tempfile.mkdtemp(prefix=ARRIVING, dir=store))
        lock = take(temporary)
    except OSError as error:
        raise OperationError(f"no code can be kept in {store}: {error.strerror}", "see `mpstui doctor`") from error
    try:
        new = unpack(reads, temporary / "new")
        tree = temporary / "tree"
        tree.mkdir(mode=0o700)
        for one in sorted(files, key=lambda one: bool(one.link)):  # links last: nothing is written through one
            path = tree / one.name
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if one.link:
                path.symlink_to(one.link)
                continue
            source = new.get(one.digest) or here.get(one.digest)
            if source is not None:
                shutil.copyfile(source, path)
            if source is None or digest_of(path)[0] != one.digest:
                raise OperationError(f"{one.name} did not arrive whole", HINT)
            path.chmod(0o700 if one.executable else 0o600)
        storage.write_json(tree / BROUGHT, dict(manifest))
        return _placed(tree, manifest, home)
    except (OSError, tarfile.TarError, EOFError) as error:
        detail = getattr(error, "strerror", None) or str(error)
        raise OperationError(f"the code did not arrive in {store}: {detail}", "nothing was launched") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        if lock is not None:
            liveness.release(lock)


def _placed(tree: Path, manifest: Mapping[str, Any], home: Home) -> Path:
    for folder in _names(manifest, home):
        with suppress(OSError):  # it exists: with its files in another state, or just put there by another sender
            tree.rename(folder)
            return folder
        if all(has(folder, one) for one in items_of(manifest)):
            return folder
    raise OperationError(f"{code_folder(home)} has too many changed copies of this code", "remove some of them")


def _names(manifest: Mapping[str, Any], home: Home) -> Iterator[Path]:
    word = re.sub(r"[^\w.-]+", "-", str(manifest.get("name", "")), flags=re.ASCII).strip("-.")[:40] or "code"
    stem = f"{word}-{str(manifest.get('digest', ''))[:12]}"
    if not re.fullmatch(r"[\w.-]+-[0-9a-f]{12}", stem):
        raise OperationError("the list of files has no digest", HINT)
    yield code_folder(home) / stem
    yield from (code_folder(home) / f"{stem}-{number}" for number in range(2, 100))


def _folders(manifest: Mapping[str, Any], home: Home) -> Iterator[Path]:
    for folder in _names(manifest, home):
        if not folder.is_dir():
            return
        yield folder


def _at_hand(home: Home) -> dict[str, Path]:
    """Files that arrived earlier, by digest."""
    found: dict[str, Path] = {}
    for path in sorted(code_folder(home).glob(f"*/{BROUGHT}")):
        try:
            rows: Sequence[Any] = storage.read_json(path)["files"]  # type: ignore[index]
            for row in rows:
                one = Item(*row)
                if one.digest and has(path.parent, one):
                    found[one.digest] = path.parent / one.name
        except (OSError, storage.UnreadableRecord, KeyError, TypeError):
            continue
    return found
