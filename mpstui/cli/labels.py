"""`mpstui note`, `tag` and `rename`: what people add to runs, kept with them."""

from __future__ import annotations

import argparse

from ..core.model.errors import UsageError
from ..core.runs.find import find_run
from ..core.runs.labelling import annotate, rename, tag, tag_changes
from ..wire import labels
from ..wire.labels import Labels
from ..wire.records import Spec
from ..wire.rundir import RunDir
from ..wire.storage import read_or_none
from .session import RUN_HELP, Session, print_json, say, say_lines


def configure_note(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
Examples:
  mpstui note RUN warmup of 500 steps, seed of the paper
  mpstui note RUN ""    removes it
  mpstui note RUN       prints it"""
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("text", nargs="*", metavar="TEXT", help="the note; without one, print the present note")
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run_note(args: argparse.Namespace) -> int:
    found = find_run(Session().home, args.run)
    if args.text:
        after = annotate(found, " ".join(args.text))
        told = f"{found.run}: {'note saved' if after.note else 'note removed'}"
    else:
        after = labels.read(found)
        told = after.note or f"{found.run} has no note"
    print_json(_json(found, after)) if args.json else say_lines(told)
    return 0


def configure_tag(parser: argparse.ArgumentParser) -> None:
    parser.usage = "mpstui tag [--json] RUN [RUN ...] [+TAG ...] [-TAG ...]"
    parser.epilog = """\
Without a tag, prints the tags that the runs have. Examples:
  mpstui tag RUN +baseline -draft
  mpstui tag RUN1 RUN2 +paper"""
    parser.add_argument("--json", action="store_true", help="print the runs with their tags as a JSON array")
    parser.add_argument(
        "words", nargs=argparse.REMAINDER, metavar="RUN", help=f"{RUN_HELP}; then +TAG to add and -TAG to remove"
    )


def run_tag(args: argparse.Namespace) -> int:
    words = [word for word in args.words if word not in ("--json", "--")]
    changes = [word for word in words if word[:1] in ("+", "-")]
    named = [word for word in words if word not in changes]
    if not named:
        raise UsageError("tag needs RUN", "such as `mpstui tag RUN +baseline`; see `mpstui tag --help`")
    home = Session().home
    runs = list(dict.fromkeys(find_run(home, name) for name in named))  # if one is not found, none is changed
    added, dropped = tag_changes(changes)
    found = [(run, tag(run, added, dropped) if changes else labels.read(run)) for run in runs]
    if args.json or "--json" in args.words:
        print_json([_json(run, after) for run, after in found])
        return 0
    for run, after in found:
        say(f"{run.run}  {' '.join(f'#{word}' for word in after.tags) or 'no tags'}")
    return 0


def configure_rename(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
The run's id and its folder stay as they are. Examples:
  mpstui rename RUN baseline, second try
  mpstui rename RUN ""    restores the name it was launched under"""
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("name", nargs="+", metavar="NAME", help="the new name")
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run_rename(args: argparse.Namespace) -> int:
    found = find_run(Session().home, args.run)
    after = rename(found, " ".join(args.name))
    print_json(_json(found, after)) if args.json else say(f"{found.run} is called {_json(found, after)['name']}")
    return 0


def _json(run: RunDir, found: Labels) -> dict[str, object]:
    name = labels.name_of(run, read_or_none(Spec, run.spec))
    return {"run": run.run, "name": name, "tags": found.tags, "note": found.note or None}
