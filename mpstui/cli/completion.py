"""`mpstui completion`: what Tab offers in bash, zsh and fish, worked out from the parsers of the commands.

The scripts ask `mpstui completion words ...` at each Tab, so that they never grow stale. What an argument takes is read
from its choices, else from its metavar: ``auto|mps|cpu`` are words, RUN, PROFILE, GROUP and PATH are looked up, and
``GROUP | slots GROUP N`` are the forms of a list of words.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Sequence

from ..core.model.errors import OperationError, UsageError
from .main import COMMANDS, command_parser, screen_parser
from .session import Session, one_line

FILES = ":files"
"""Stands among the candidates for the names of files, which each shell completes best itself."""
Candidates = Iterator[tuple[str, str]]
"""Each word with what it means."""
NEWEST_RUNS = 50
_LOOKED_UP = {"RUN": "runs", "PROFILE": "profiles", "A": "profiles", "B": "profiles", "GROUP": "groups"}
_FILES = ("PATH", "FILE", "DIR")

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
        print(SCRIPTS[args.shell], end="")
        return 0
    for word, meaning in candidates(args.words or [""]):
        print(f"{word}\t{meaning}" if meaning else word)
    return 0


def candidates(words: Sequence[str]) -> Candidates:
    """What the last of the words after ``mpstui`` can become."""
    *typed, last = words
    if not typed and not last.startswith("-"):
        yield from _starting(last, ((name, one.help) for name, one in COMMANDS.items()))
        yield from _looked_up("runs", last)
        return
    parser = command_parser(typed[0]) if typed and typed[0] in COMMANDS else screen_parser()
    option, equals, begun = last.partition("=")
    if last == "=" or (typed[-1:] == ["="]):  # bash cuts --device=cpu into three words
        option, equals, begun = typed[-1 if last == "=" else -2], "", "" if last == "=" else last
        yield from _of_option(parser, option, begun)
    elif equals and last.startswith("--"):
        yield from ((f"{option}={word}", meaning) for word, meaning in _of_option(parser, option, begun))
    else:
        yield from _of_words(parser, typed[1:] if parser.get_default("command") else typed, last)


def _of_option(parser: argparse.ArgumentParser, option: str, begun: str) -> Candidates:
    action = parser._option_string_actions.get(option)
    if action is not None:
        yield from _values(action, [], begun)


def _of_words(parser: argparse.ArgumentParser, typed: Sequence[str], last: str) -> Candidates:
    """Walk through the words as the parser would: which argument is the last one of?"""
    positionals = [action for action in parser._actions if not action.option_strings]
    waiting: argparse.Action | None = None  # the option that the next word belongs to
    values: list[str] = []  # of it, so far
    free: list[str] = []
    rest = False  # behind --
    for word in typed:
        if waiting is not None and len(values) < _most_values(waiting) and not word.startswith("--"):
            values.append(word)
        elif word == "--" or (free and positionals and positionals[0].nargs == argparse.REMAINDER):
            rest, waiting = True, None
            free.append(word)
        else:
            waiting, values = (None, values) if rest else (parser._option_string_actions.get(word), [])
            if waiting is None:
                free.append(word)
    if waiting is not None and len(values) < _most_values(waiting):
        yield from _values(waiting, values, last)
        if waiting.nargs != "?" or last:
            return
    if last.startswith("-") and not rest:
        options = ((name, action.help or "") for name, action in parser._option_string_actions.items())
        yield from _starting(last, ((name, text) for name, text in options if text != argparse.SUPPRESS))
    elif positionals:
        single = [action for action in positionals if action.nargs in (None, "?")]
        place = len(free)
        if place < len(single):
            yield from _values(single[place], [], last)
        elif positionals[-1].nargs in ("*", "+", argparse.REMAINDER):
            yield from _values(positionals[-1], free[len(single) :], last)


def _most_values(action: argparse.Action) -> int:
    return action.nargs if isinstance(action.nargs, int) else 1


def _values(action: argparse.Action, before: Sequence[str], last: str) -> Candidates:
    """What an argument can be; ``before`` are its words so far."""
    if action.choices is not None and not isinstance(action.metavar, str):
        yield from _starting(last, ((str(choice), "") for choice in action.choices))
        return
    metavar = action.metavar or ""
    forms = [list(metavar)] if isinstance(metavar, tuple) else [form.split() for form in metavar.split(" | ")]
    for form in forms:
        if form == ["--", "COMMAND", "..."]:
            yield FILES, ""
        elif len(forms) == len(form) == 1 and action.nargs == "*":
            yield from _kind(form[0], last)
        elif len(before) < len(form) and all(_fits(*pair) for pair in zip(form, before, strict=False)):
            yield from _kind(form[len(before)], last)


def _fits(wanted: str, word: str) -> bool:
    return wanted != wanted.lower() or word in wanted.split("|")


def _kind(wanted: str, last: str) -> Candidates:
    for one in re.sub(r"\[.*\]", "", wanted).split("|"):
        if one in _LOOKED_UP:
            yield from _looked_up(_LOOKED_UP[one], last)
        elif one in _FILES:
            yield FILES, ""
        elif one == one.lower():
            yield from _starting(last, [(one, "")])


def _looked_up(kind: str, last: str) -> Candidates:
    try:
        yield from _starting(last, list(_names(kind)))
    except (UsageError, OperationError, OSError):
        return


def _names(kind: str) -> Candidates:
    """Names that this home has now; nothing that a line or a tab could be cut at."""
    session = Session()
    if kind == "profiles":
        from ..core.profiles.library import list_profiles

        for entry in list_profiles(session.home, session.cwd):
            yield entry.name, one_line(entry.title)
    elif kind == "groups":
        from ..core.runs.queueing import list_groups

        for group in list_groups(session.home):
            if group.name:
                yield group.name, ""
    else:
        yield from _runs(session)


def _runs(session: Session) -> Candidates:
    """The newest runs by id, then by name where a shell needs no quotes for it."""
    from ..core.runs.find import run_dirs
    from ..wire.storage import UnreadableRecord, read_json

    found: dict[str, str] = {}
    for run in run_dirs(session.home.runs)[:NEWEST_RUNS]:
        try:
            found[run.run] = one_line(str((read_json(run.spec) or {}).get("name", "")))
        except (UnreadableRecord, OSError):
            found[run.run] = ""
    yield from found.items()
    yield from (
        (name, "newest of this name") for name in dict.fromkeys(found.values()) if re.fullmatch(r"[\w.-]+", name)
    )


def _starting(last: str, words: Iterable[tuple[str, str]]) -> Candidates:
    yield from ((word, meaning) for word, meaning in words if word.startswith(last))
