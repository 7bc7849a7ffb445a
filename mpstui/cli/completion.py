"""`mpstui completion`: what Tab offers in bash, zsh and fish, derived from the commands' parsers.

The scripts ask `mpstui completion words ...` at each Tab, so they never go stale. What an argument takes is read from
its choices, else from its metavar: ``auto|mps|cpu`` are words, RUN, PROFILE, GROUP and PATH are looked up, and
``GROUP | slots GROUP N`` are alternative forms of a list of words.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..core.model.errors import OperationError, UsageError
from ..core.settings import load_settings
from ..wire import storage
from .main import command_parser, commands, screen_parser
from .session import Session, give, one_line

FILES = ":files"
"""A candidate that stands for file names, which each shell completes best itself."""
Candidates = Iterator[tuple[str, str]]
"""Words, each with its description."""
_PROFILES = dict.fromkeys(("PROFILE", "A", "B"), "profiles")
_LOOKED_UP = {"RUN": "runs", **_PROFILES, "GROUP": "groups", "HOST": "hosts"}

BASH = """\
_mpstui() {
    local line value files= current=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    while IFS= read -r line; do
        value=${line%%$'\\t'*}
        if [[ $value == :files ]]; then files=1; else COMPREPLY+=("$(printf %q "$value")"); fi
    done < <(mpstui completion words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if [[ -n $files ]]; then
        compopt -o filenames 2>/dev/null  # bash 3.2, which macOS ships, has none
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current")
    fi
}
complete -F _mpstui mpstui
"""
ZSH = """\
#compdef mpstui
_mpstui() {
    local value meaning files=
    local -a found
    while IFS=$'\\t' read -r value meaning; do
        if [[ $value == :files ]]; then files=1; else found+=("${value//:/\\\\:}:$meaning"); fi
    done < <(mpstui completion words "${(@Q)words[2,CURRENT]}" 2>/dev/null)
    (( $#found )) && _describe mpstui found
    [[ -n $files ]] && _files
}
if [[ $funcstack[1] == _mpstui ]]; then _mpstui; else compdef _mpstui mpstui; fi
"""
FISH = """\
function __mpstui_words
    set -l words (commandline --tokenize --cut-at-cursor --current-process)
    set -l current (commandline --current-token --cut-at-cursor)
    for line in (mpstui completion words $words[2..] "$current" 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path "$current"
        else
            echo $line
        end
    end
end
complete --command mpstui --no-files --keep-order --arguments '(__mpstui_words)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "mpstui completion bash|zsh|fish"
    parser.epilog = """\
Add one of these lines to ~/.bashrc, ~/.zshrc (after compinit) or ~/.config/fish/config.fish:
  eval "$(mpstui completion bash)"
  eval "$(mpstui completion zsh)"
  mpstui completion fish | source"""
    parser.add_argument("shell", choices=[*SCRIPTS, "words"], metavar="bash|zsh|fish", help="the shell to complete in")
    parser.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    if args.shell != "words":
        give(SCRIPTS[args.shell])
        return 0
    for word, meaning in candidates(args.words or [""]):
        give(f"{word}\t{meaning}\n" if meaning else f"{word}\n")
    return 0


def candidates(words: Sequence[str]) -> Candidates:
    """Yield the completions of the last of the words after ``mpstui``."""
    *typed, last = words
    typed, last = [word for word in typed if word != "="], last.removeprefix("=")  # bash makes --device=cpu three words
    option, equals, value = last.partition("=")
    start = f"{option}=" if equals and option.startswith("--") else ""
    if start:
        typed, last = [*typed, option], value
    for word, meaning in _possible(typed, dashed=last.startswith("-")):
        if word == FILES or word.startswith(last):
            yield start + word if word != FILES else FILES, meaning


def _possible(typed: list[str], *, dashed: bool) -> Candidates:
    """Yield all that can follow, walking through the words as the parser would; ``dashed``: an option has begun."""
    while typed[:1] == ["--host"] and typed[1:]:
        typed = typed[2:]
    if typed == ["--host"]:
        yield from _looked_up("hosts")
        return
    if not typed and not dashed:
        yield from ((name, one.help) for name, one in commands().items())
        yield from _looked_up("runs")
        return
    command = commands().get(typed[0]) if typed else None
    parser = command_parser(typed.pop(0), command) if command else screen_parser()
    positionals = [action for action in parser._actions if not action.option_strings]
    option: argparse.Action | None = None
    values: list[str] = []  # the option's values so far
    free: list[str] = []
    for word in typed:
        if option is not None and len(values) < _most_values(option) and not word.startswith("--"):
            values.append(word)
            continue
        option, values = None if "--" in free else parser._option_string_actions.get(word), []
        if option is None:
            free.append(word)
    if option is not None and len(values) < _most_values(option):
        yield from _values(option, values)
        if option.nargs != "?":
            return
    if dashed and "--" not in free:
        for name, action in parser._option_string_actions.items():
            if action.help != argparse.SUPPRESS:
                yield name, action.help or ""
        return
    single = [action for action in positionals if action.nargs in (None, "?")]
    if len(free) < len(single):
        yield from _values(single[len(free)], [])
    elif positionals and positionals[-1] not in single:
        yield from _values(positionals[-1], free[len(single) :])


def _most_values(option: argparse.Action) -> int:
    return option.nargs if isinstance(option.nargs, int) else 1


def _values(action: argparse.Action, before: Sequence[str]) -> Candidates:
    """Yield what an argument can be; ``before`` are its words so far."""
    if isinstance(action.metavar, str):
        forms = [form.split() for form in action.metavar.split(" | ")]
    else:
        forms = [list(action.metavar or ())]
        yield from ((str(choice), "") for choice in action.choices or ())
    for form in forms:
        if form == ["--", "COMMAND", "..."]:
            yield FILES, ""
        elif len(forms) == len(form) == 1 and action.nargs == "*":
            yield from _kinds(form[0])
        elif len(before) < len(form) and all(
            wanted != wanted.lower() or word in wanted.split("|") for wanted, word in zip(form, before, strict=False)
        ):
            yield from _kinds(form[len(before)])


def _kinds(wanted: str) -> Candidates:
    for one in re.sub(r"\[.*\]", "", wanted).split("|"):
        if one in _LOOKED_UP:
            yield from _looked_up(_LOOKED_UP[one])
        elif one in ("PATH", "FILE", "DIR"):
            yield FILES, ""
        elif one == one.lower():
            yield one, ""


def known_hosts(session: Session, config: Path = Path("~/.ssh/config")) -> list[str]:
    """Return the names of machines in the settings and the ssh configuration."""
    settings = load_settings(session.home).hosts
    try:
        lines = storage.read_text(config.expanduser()).splitlines()
    except (OSError, RuntimeError):
        lines = []
    there = [word for line in lines if re.match(r"\s*host\s", line, re.IGNORECASE) for word in line.split()[1:]]
    plain = [word for word in there if re.fullmatch(r"[\w.-]+", word)]  # no patterns
    return list(dict.fromkeys([*settings.show, *settings.named, *plain]))


def _looked_up(kind: str) -> Candidates:
    """Yield the names that exist in this home now; none if it cannot be read."""
    from ..core.profiles.library import list_profiles
    from ..core.runs.find import run_name
    from ..core.runs.queueing import list_groups
    from ..wire.rundir import run_dirs

    session = Session()
    try:
        if kind == "profiles":
            yield from ((entry.name, one_line(entry.title)) for entry in list_profiles(session.home, session.cwd))
        elif kind == "hosts":
            yield from ((name, "") for name in known_hosts(session))
        elif kind == "groups":
            yield from ((group.name, "") for group in list_groups(session.home) if group.name)
        else:
            names = []
            for run in run_dirs(session.home.runs)[:50]:
                names.append(one_line(run_name(run) or ""))
                yield run.run, names[-1]
            # Only names that need no quotes in any shell.
            yield from (
                (name, "newest of this name") for name in dict.fromkeys(names) if re.fullmatch(r"[\w.-]+", name)
            )
    except (UsageError, OperationError, OSError):
        return
