"""What loggers and launchers put in front of a line: times, levels, ranks, module names. Removed before matching."""

from __future__ import annotations

import re

from .names import Role, Scope, classify

_TIME = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d{1,9})?"
_DATE = r"(?:\d{4}[-/.]\d{2}[-/.]\d{2}|\d{2}[-/]\d{2}(?:[-/]\d{2,4})?|[A-Z][a-z]{2} [ \d]\d)"
_STAMP = rf"{_DATE}[T ,_-]{{1,2}}{_TIME}(?:Z|[+-]\d{{2}}:?\d{{2}})?"
_LAUNCHER = re.compile(
    r"\s*(?:"
    r"\[rank ?\d{1,5}\]:?|rank ?\d{1,5}:|\[\d{1,5},mpirank:\d{1,5},[\w-]{1,40}\]<std(?:out|err)>:|"
    r"\(\w{1,40} pid=\d{1,9}(?:, ip=[\d.]{7,15})?\)|[\w.-]{1,80} logs:|"
    r"\[(?:Rank|RANK|GPU|gpu|worker|PID|pid)[ :]?\d{1,9}\]|"
    r"\[default\d\]:|"
    rf"{_STAMP} std(?:out|err) [FP](?= )|"
    rf"\[{_STAMP} [\w.]{{1,80}}\]:?|"
    r"\[(?:[IWEDF]|[A-Za-z_]\w{0,60}[./][\w./:<>-]{0,100})\]:?|"
    rf"\[?{_STAMP}\]?|\[{_TIME}\]|{_TIME}(?=[ \]|-])|[IWEF]\d{{4}} {_TIME} +\d{{1,18}} [\w./-]{{1,200}}:\d{{1,6}}\]|"
    r"\[\d{10}(?:\.\d{1,9})?\]|\[\d{1,12}@\d{10}(?:\.\d{1,9})?\]"
    r")[\s|:;,-]{0,8}"
)
_LEVEL = re.compile(
    r"(?:^|[\s\[|(:\x2d])(?:INFO|WARNING|WARN|DEBUG|ERROR(?!\s?[:=]\s?[-+.\d])|CRITICAL|NOTICE|METRIC)\b[\s\]|):;\x2d]{1,12}"
)
_ORIGIN = re.compile(
    r"(?:\[?(?=[\w./<>]{0,79}[._:])[\w./<>]{1,80}(?::[\w<>]{1,60}){0,3}\]?(?:\s*[-|]\s|\]:?\s|\s\|\s|:\s(?=[\[{A-Z])|(?<=\d):\s)\s*)"
)
_RANK_OF = re.compile(r"\(\d{1,4}/\d{1,4}\) (?=Epoch|epoch|Train|train)")
_LEVEL_REACH = 140


def strip_prefix(line: str) -> str:
    """``line`` without time stamps, log levels, ranks and module names in front."""
    for _ in range(6):
        match = _LAUNCHER.match(line)
        if match is None:
            break
        line = line[match.end() :]
    level = _LEVEL.search(line, 0, _LEVEL_REACH)
    if level is not None and _only_prefix(line[: level.start()]):
        line = line[level.end() :].removeprefix("root:")
        origin = _ORIGIN.match(line)
        if origin is not None and not _says_what_follows(origin.group()):
            line = line[origin.end() :]
    line = line.strip()
    share = _RANK_OF.match(line) if line.startswith("(") else None
    return line if share is None else line[share.end() :]


def _only_prefix(text: str) -> bool:
    """Whether what stands before a log level can be a prefix: names and numbers, no ``key=value``, no sentence."""
    return "=" not in text and "{" not in text and len(text.split()) <= 8 and "loss" not in text.lower()


def _says_what_follows(origin: str) -> bool:
    """Whether what looks like a logger's name is a word of the record: ``Epoch: [3/10]``, ``Test: [0/79]``."""
    word = origin.strip(" :|-")
    if not word.isalpha():
        return False
    name = classify(word)
    return name.role is not Role.OTHER or name.scope is not Scope.NONE
