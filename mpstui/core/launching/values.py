"""Values that cannot be right: refused before anything starts, or doubted where the program may still make them so."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path

from ..model.checks import nearest
from ..model.errors import UsageError
from ..model.home import resolve_home
from ..profiles.model import ArgumentValue
from ..profiles.written import folded
from ..stakes import is_shipped_trainer
from .arguments import Argument, known_arguments

_READ = re.compile(
    r"(?:^|_)(?:annotations|bed|config|csv|fasta|init|input|load|npz|pretrained|tokenizer|train|val|valid|vocab)(?:_|$)"
)
"""Words in the names of arguments whose file is read. Files that are written, or read only if they exist, may be
missing."""
_CONFIG = re.compile(r"(?:^|_)config(?:_|$)")
"""A program reads its configuration; a vocabulary, a split or prepared data it may make where it finds none."""
_WRITTEN = re.compile(r"(?:^|_)(?:cache|dest|export|log|logdir|logs|out|output|results|save|tmp|write)(?:_|$)")
_DATA = re.compile(r"(?:^|_)(?:data|dataset|root)(?:_|$)")
_FOLDER = re.compile(r"(?:^|_)(?:base|dir|directory|folder|home|path|prefix|root)(?:_|$)")
_FILE = re.compile(r"\.(?:bed|csv|fa|fasta|h5|jsonl?|np[yz]|parquet|toml|tsv|txt|ya?ml)$", re.IGNORECASE)


def require_values(
    argv: Sequence[str],
    arguments: Mapping[str, ArgumentValue],
    cwd: Path,
    environ: Mapping[str, str],
    *,
    ask: bool = False,
) -> tuple[str, ...]:
    """Refuse values with which the program could only fail; return the names of the arguments it is known to take.

    Nothing is refused if the program's own folder does not exist yet, since its code has still to be sent there.

    Args:
        ask: ask the program for its arguments if they are unknown, which may take some seconds.

    Raises:
        UsageError: a value is not one of the program's choices or not a number, or its configuration is missing.
    """
    if not cwd.is_dir():
        return ()
    known = known_arguments(argv, cwd=cwd, environ=environ, cache=resolve_home(environ).arguments, ask=ask)
    by_name = {folded(one.name): one for one in known}
    for key, value in arguments.items():
        if isinstance(value, (bool, tuple)) or "{" in (text := str(value)):
            continue
        told = by_name.get(folded(key))
        if told is not None and not told.many:
            _require_known(key, text, told)
    ours = is_shipped_trainer(argv)
    for key, text in _missing(argv, arguments, cwd, tuple(by_name)):
        if ours or _CONFIG.search(folded(key)):
            hint = f"a path is taken from {cwd}, where the program runs"
            raise UsageError(f"{key}: there is no file or folder {text}", hint, field=f"args.{key}")
    return tuple(one.name for one in known)


def doubtful_files(
    argv: Sequence[str], arguments: Mapping[str, ArgumentValue], cwd: Path, known: Sequence[str]
) -> list[str]:
    """Return a sentence for each missing file that the program may be about to read, or to make.

    Args:
        known: the names of the arguments that the program is known to take.
    """
    if not cwd.is_dir():
        return []
    missing = _missing(argv, arguments, cwd, tuple(map(folded, known)))
    return [f"{key}: there is no file {text} in {cwd}; the program fails unless it makes it" for key, text in missing]


def _missing(
    argv: Sequence[str], arguments: Mapping[str, ArgumentValue], cwd: Path, known: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield each argument that names a missing file to read, or the missing data of a shipped trainer."""
    ours = is_shipped_trainer(argv)
    for key, value in arguments.items():
        name, text = folded(key), str(value)
        if isinstance(value, (bool, tuple)) or "{" in text or _WRITTEN.search(name) or "://" in text:
            continue
        path = Path(text).expanduser()
        if (cwd / path).exists():
            continue
        read = (_DATA.search(name) or _READ.search(name)) and _FILE.search(text)
        is_whole = path.is_absolute() or not _may_be_joined(name, {*known, *map(folded, arguments)})
        if (ours and key == "data") or (read and is_whole and not _is_below(text, cwd)):
            yield key, text


def _may_be_joined(name: str, names: Set[str]) -> bool:
    """Return whether another argument names a folder, to which the program may append this path."""
    others = names - {name}
    return any(_FOLDER.search(one) and not _WRITTEN.search(one) and not _READ.search(one) for one in others)


def _is_below(text: str, cwd: Path) -> bool:
    """True if a folder of the program has such a file, as in ``--config tiny.yml`` of a program with a ``configs``."""
    return not Path(text).is_absolute() and any(cwd.glob(f"*/{glob.escape(text)}"))


def _require_known(key: str, text: str, told: Argument) -> None:
    """Refuse what the program's parser would refuse."""
    choices = {choice.casefold(): choice for choice in told.choices}
    if choices and text.casefold() not in choices:
        likely = nearest(text, told.choices)
        hint = f"did you mean {likely!r}?" if likely else f"one of {', '.join(told.choices)}"
        raise UsageError(f"{key}: {text!r} is none of the program's choices", hint, field=f"args.{key}", near=likely)
    kinds = {"int": int, "float": float}
    if not choices and told.kind in kinds:
        try:
            kinds[told.kind](text)
        except ValueError:
            what = "a whole number" if told.kind == "int" else "a number"
            raise UsageError(f"{key} is {what}, not {text!r}", "see its --help", field=f"args.{key}") from None
