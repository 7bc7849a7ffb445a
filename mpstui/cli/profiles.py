"""`mpstui profiles`: list, show, print as a shell script, check, save."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from ..core.launching.choice import LaunchChoice, combinations, parse_sets
from ..core.launching.command import joined_scripts
from ..core.launching.editing import recorded_choice, save_profile
from ..core.launching.planning import LaunchPlan, plan
from ..core.launching.preflight import world_problems
from ..core.machine import this_machine
from ..core.model.checks import ProfileError
from ..core.model.errors import UsageError
from ..core.profiles.library import ProfileEntry, list_profiles, load_profile
from ..core.profiles.sweep import sweep_toml
from ..wire.secrets import masked, masked_words
from .session import Session, add_repeatable, give, one_line, print_json, say


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "mpstui profiles [PROFILE | check PATH | save RUN NAME] [options]"
    parser.epilog = """\
Alone, lists all profiles. PROFILE shows one, `check` names every mistake in a file (and exits with 2),
`save` makes a profile of a run's launch. Examples:
  mpstui profiles quickstart --shell > train.sh
  mpstui profiles check ./mine.toml
  mpstui profiles save RUN baseline"""
    parser.add_argument("words", nargs="*", metavar="PROFILE | check PATH | save RUN NAME", help=argparse.SUPPRESS)
    parser.add_argument("--shell", action="store_true", help='print a shell script (with --json: under "shell")')
    parser.add_argument("--device", metavar="auto|mps|cuda|cpu", help="show the launch on this device")
    parser.add_argument("--recipe", metavar="safe|classic|fast", help="show the launch with this recipe")
    add_repeatable(parser, "--set", "KEY=VALUE", "show the launch with this argument")
    parser.add_argument("--replace", action="store_true", help="with save: replace the profile of that name")
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run(args: argparse.Namespace) -> int:
    session = Session()
    if args.shell and (len(args.words) != 1 or args.words[0] in ("check", "save")):
        raise UsageError("profiles --shell needs one profile", "such as `mpstui profiles quickstart --shell`")
    match args.words:
        case []:
            return _list(list_profiles(session.home, session.cwd), as_json=args.json)
        case ["check", path]:
            return _check(session, path, as_json=args.json)
        case ["save", run_name, name]:
            choice = recorded_choice(session.run(run_name).dir)
            path = str(save_profile(choice, name, session.home, overwrite=args.replace))
            print_json({"path": path}) if args.json else say(path)
            return 0
        case ["check", *_]:
            raise UsageError("profiles check needs one file", "such as `mpstui profiles check mine.toml`")
        case ["save", *_]:
            raise UsageError("profiles save needs a run and a name", "such as `mpstui profiles save RUN mine`")
        case [name]:
            return _show(session, name, args)
    raise UsageError("profiles: one name at a time", "see `mpstui profiles --help`")


def _list(entries: Sequence[ProfileEntry], *, as_json: bool) -> int:
    if as_json:
        print_json([{**asdict(entry), "path": str(entry.path)} for entry in entries])
        return 0
    width = max((len(entry.name) for entry in entries), default=0)
    for entry in entries:
        text = f"cannot be launched: {entry.error.splitlines()[0]}" if entry.error else entry.title
        say(f"{entry.name:<{width}}  {entry.origin:<7}  {text}")
        if entry.description:
            say(f"{'':<{width}}           {entry.description}")
    return 0


def _check(session: Session, path: str, *, as_json: bool) -> int:
    """Print all mistakes, including what the profile names and this machine lacks (exit code 2), and warnings (0)."""
    try:
        profile = load_profile(path, session.home, session.cwd)
        made = _plan(session, LaunchChoice(profile))
        warnings = made.warnings
        file, problems = profile.path, tuple(world_problems(profile, made.argv[0], session.environ))
    except ProfileError as error:
        file, problems, warnings = error.path, error.problems, ()
    if as_json:
        listed = [asdict(one) for one in problems]
        print_json({"path": str(file), "ok": not problems, "problems": listed, "warnings": list(warnings)})
        return 2 if problems else 0
    if problems:
        raise UsageError(ProfileError(file, problems).sentence)
    for warning in warnings:
        say(f"{file}: doubtful: {warning}")
    say(f"{file}: nothing {'else ' if warnings else ''}is wrong with it")
    return 0


def _show(session: Session, name: str, args: argparse.Namespace) -> int:
    profile = load_profile(name, session.home, session.cwd)
    choice = LaunchChoice(profile, device=args.device, recipe=args.recipe, sets=parse_sets(args.set))
    made = _plan(session, choice)
    script = joined_scripts([_plan(session, one).shell() for one in combinations(choice)]) if args.shell else ""
    if args.json:
        print_json({**_as_json(made), **({"shell": script} if args.shell else {})})
    elif args.shell:
        give(script)
    else:
        for line in _lines(made):
            say(line)
    return 0


def _plan(session: Session, choice: LaunchChoice) -> LaunchPlan:
    return plan(choice, environ=session.environ, machine=this_machine(), check=False)


def _as_json(made: LaunchPlan) -> dict[str, Any]:
    profile = made.choice.profile
    return {
        "name": profile.slug,
        "title": profile.name,
        "description": profile.description,
        "path": str(profile.path),
        "device": made.device,
        "recipe": made.recipe,
        "argv": list(masked_words(made.argv)),
        "cwd": made.template.cwd,
        "env": [asdict(line) for line in made.env],
        "args": dict(profile.args),
        "sweep": {key: sweep_toml(values) for key, values in profile.sweep.items()},
        "runs": len(combinations(made.choice)),
        "devices": sorted(made.template.variants),
        "resume": made.template.resume_args,
        "checkpoints": made.template.checkpoints,
        "warnings": list(made.warnings),
    }


def _lines(made: LaunchPlan) -> Iterator[str]:
    profile = made.choice.profile
    yield f"{profile.name}  ({profile.slug})"
    if profile.description:
        yield f"  {profile.description}"
    yield f"  file     {profile.path}"
    yield f"  folder   {made.template.cwd}"
    yield f"  command  {shlex.join(masked_words(made.argv))}"
    if profile.sweep:  # the command above is that without the sweep
        yield f"  sweep    {len(combinations(made.choice))} runs, one at a time on each accelerator:"
    for key, values in profile.sweep.items():
        yield f"    {key}: {', '.join(one.text for one in values)}"
        for one in values:
            if one.along:
                yield f"      with {one.text} ({', '.join(f'{name}={value}' for name, value in one.along.items())})"
    yield f"  device   {made.device} (can be: {', '.join(sorted(made.template.variants))})"
    yield "  resume   " + (" ".join(made.template.resume_args) if made.template.resume_args else "from scratch only")
    yield f"  recipe   {made.recipe}"
    for line in made.env:
        yield f"    {line.name}={masked({line.name: line.value})[line.name]}  # {one_line(line.reason)}"
    for warning in made.warnings:
        yield f"  doubtful: {warning}"
