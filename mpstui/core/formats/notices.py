"""What a line says apart from its numbers, and which lines hold no readings in spite of their numbers.

Prefixes of loggers and launchers (`strip_prefix`), failures and warnings (`is_failure`, `is_warning`, `SourceLines`),
the phase that begins (`announced`), the epoch that has ended (`with_end`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from .names import NameScope, Role, classify, words_of
from .pairs import Pair
from .points import NOWHERE, Counters, LineReading, Number, Phase, parse_count
from .spelling import spell_ordinals
from .vocabulary import EPOCH_WORDS, EVAL_WORDS, STEP_WORDS, TEST_WORDS, TRAIN_WORDS

_TIME = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d{1,9})?(?: [AP]M\b)?"
_DATE = (
    r"(?:\d{4}[-/.]\d{2}[-/.]\d{2}|(?:19|20)\d{6}(?=-)|\d{2}[-/]\d{2}(?:[-/]\d{2,4})?|\d{2}\.\d{2}\.\d{2,4}|"
    r"[A-Z][a-z]{2} [ \d]\d)"
)
_STAMP = rf"{_DATE}[T ,_|-]{{1,2}}{_TIME}(?:Z|[+-]\d{{2}}:?\d{{2}})?"
_LAUNCHER = re.compile(
    r"\s*(?:"
    r"\[rank ?\d{1,5}\]:?|rank ?\d{1,5}:|\[\d{1,5},(?:mpirank:\d{1,5},[\w-]{1,40}|\d{1,5})\]<std(?:out|err)>:|"
    r"(?:worker|node|host|pod|trainer|master|server|replica|machine)[_-]\d{1,5}\s{0,8}[:|](?=\s)|"
    r"\(\w{1,40} pid=\d{1,9}(?:, ip=[\d.]{7,15})?\)|[\w.-]{1,80} logs:|"
    r"\[(?:Rank|RANK|GPU|gpu|worker|PID|pid)[ :]?\d{1,9}\]|"
    rf"\[default\d\]:|\[[A-Z]{{4,8}}\|[\w./]{{1,80}}:\d{{1,6}}\] {_STAMP} >>|"
    rf"{_STAMP} std(?:out|err) [FP](?= )|"
    rf"\[{_STAMP} [\w.]{{1,80}}\]:?|\[\w{{2,20}} [IWEDF] {_STAMP} [\w./-]{{1,80}}:\d{{1,6}}\]|"
    r"\[(?:[IWEDF]|[A-Za-z_]\w{0,60}[./][\w./:<>-]{0,100})\]:?|"
    rf"\[?{_STAMP}\]?|\[{_TIME}\]|{_TIME}(?=[ \]|-])|[IWEF]\d{{4}} {_TIME} +\d{{1,18}} [\w./-]{{1,200}}:\d{{1,6}}\]|"
    r"\d{1,4}: {1,2}(?=\[?(?i:rank)[ \]]?\d|(?i:epoch|step|iter(?:ation)?)\W{0,3}\d|"
    r"(?i:train|valid|val|test)\w{0,7} \[)|"
    r"I (?=[A-Z]\w)|"
    r"\[\d{10}(?:\.\d{1,9})?\]|\[\d{1,12}@\d{10}(?:\.\d{1,9})?\]"
    r")[\s|:;,-]{0,8}"
)
_LEVEL = re.compile(
    r"(?:^|[\s\[\]|(:\x2d])(?:INFO|WARNING|WARN|DEBUG|ERROR(?!\s?[:=]\s?[-+.\d])|CRITICAL|NOTICE|METRIC)\b[\s\]|):;\x2d]{1,12}"
)
_ORIGIN = re.compile(
    r"(?:\[?(?=[\w./<>]{0,79}[._:])[\w./<>]{1,80}(?::[\w<>]{1,60}){0,3}\]?"
    r"(?:\s*[-|]\s|\]:?\s|\s\|\s|:\s(?=[\[{A-Z])|(?<=\d):\s|\t(?=\s*[^\s\d.=:+-]))\s*)"
)
_BASIC = re.compile(r"([A-Za-z_][\w.]{1,60}):(?=[^\s\d])")
_RANK_OF = re.compile(r"\(\d{1,4}/\d{1,4}\) (?=Epoch|epoch|Train|train)")
_BEHIND_LEVEL = re.compile(rf"\[?{_STAMP}\]?[\s|:;,-]{{1,8}}")
_LEVEL_REACH = 140


def strip_prefix(line: str) -> str:
    """Return ``line`` without the time stamps, log levels, ranks and module names in front."""
    for _ in range(6):
        match = _LAUNCHER.match(line)
        if match is None:
            break
        line = line[match.end() :]
    level = _LEVEL.search(line, 0, _LEVEL_REACH)
    before = line[: level.start()] if level is not None else ""
    # Only names and numbers come before a log level, never ``key=value`` or a sentence.
    only_prefix = not any(map(before.__contains__, "={")) and len(before.split()) <= 8 and "loss" not in before.lower()
    if level is not None and only_prefix:
        line = line[level.end() :]
        stamp = _BEHIND_LEVEL.match(line)  # ``[INFO] 2024-01-02 03:04:05 Episode 3``
        line = line[stamp.end() :] if stamp is not None else line
        origin = _ORIGIN.match(line)
        word = origin.group().strip(" :|-") if origin is not None else ""
        basic = _BASIC.match(line) if origin is None else None  # ``INFO:name:text``, as Python's logging has it
        if basic is not None:
            origin, word = basic, basic[1]
        first = word.strip("[]").partition(":")[0]  # ``[epoch:3] [step:0]`` is a position
        name = classify(first) if first.isalpha() else classify("")
        # What looks like a logger's name may belong to the record: ``Epoch: [3/10]``, ``Test: [0/79]``.
        if origin is not None and name.role is Role.OTHER and name.scope is NameScope.NONE:
            line = line[origin.end() :]
    line = line.strip()
    share = _RANK_OF.match(line) if line.startswith("(") else None
    return line if share is None else line[share.end() :]


_FAILURE_WORDS = """
    rror xception arning WARN rrupt memory OOM oom- ERR CRIT FATAL fatal panic abort Abort terminating illed RESOURCE_
    PYTORCH_ TORCH_ CUDA_ OMP_ MKL_ KMP_ NCCL_ XLA_ TF_ HF_ sh: .py: .cpp: .cc: .cu: .h: .mm: argument ssertion
"""
_SPACED_FAILURES = ("sage: ", "exitcode  :", "rank      :", "time      :", "host      :")
_FAILURE_HINTS = (*_FAILURE_WORDS.split(), *_SPACED_FAILURES)
"""Every failure contains one of these: a substring is found ten times as fast as a regular expression."""
_NO_VALUE = r"(?!\s{0,4}(?:[-+]?\.?\d|nan\b|inf\b))"
"""Not followed by a number, which would be the value of a metric: ``TestError: 0.12``."""
_PYTHONS_OWN = (
    r"(?:Assertion|Attribute|EOF|FileNotFound|Import|Index|Key|Memory|ModuleNotFound|Name|NotImplemented|OS|Overflow|"
    r"Permission|Recursion|Runtime|StopIteration|Syntax|Timeout|Type|Unicode(?:Decode|Encode)?|Value|ZeroDivision|IO|"
    r"(?:torch\.)?(?:cuda\.)?OutOfMemory)Error"
)
_EXCEPTION = re.compile(
    rf"(?:^|[\s:(|])(?:[\w.]{{0,80}}\b{_PYTHONS_OWN}:(?=\s|$)"
    rf"|[A-Za-z_][\w.]{{0,100}}(?:Error|Exception|Warning|Interrupt):(?=\s){_NO_VALUE})"
    rf"|^\W{{0,8}}(?:Error|ERROR|Exception):(?=\s){_NO_VALUE}"
    r"|\b[Aa]ssertion [`'\"].{1,200}failed\b"
)
_GLOG = re.compile(
    r"^\s{0,4}(?:\[rank\d{1,4}\]:\s?)?\[?[EF](?:\d{3,4})?\s[^\]\n]{0,120}\w\.(?:py|cpp|cc|cu|h|mm):\d{1,6}\]"
)
_LIBRARY = re.compile(r"\b[IW](?:\d{4})?\s[^\]\n]{0,60}?\w/[^\]\s]{1,120}\.(?:cpp|cc|cu|h):\d{1,6}\]")
"""A library's message, whose source file has a folder; Caffe's losses have none: ``I0312 .. solver.cpp:99]``."""
_REPORT = re.compile(
    r"^ {2}(?:exitcode {2}|rank {6}|time {6}|host {6}): |^(?:zsh|bash|-bash|sh|/bin/(?:ba|z)?sh): |^Killed\b"
)
"""torchrun's failure summary, and what a shell prints when a program dies."""
_ERROR_LEVEL = re.compile(rf"(?:^|[\s\[|(:\x2d])(?:ERROR|CRITICAL|FATAL)\b[\s\]|):;\x2d]{{1,12}}{_NO_VALUE}")
_FAILURE_WORD = re.compile(
    rf"\b(?:error|fatal|warning|panic|abort(?:ed|ing)?|terminating)\b\s?:(?=\s){_NO_VALUE}|oom-kill"
    r"|\bout of memory\b|\bOOMs?\b|RESOURCE_EXHAUSTED"
    r"|\b(?:[Uu]se|[Tt]ry|[Ss]et|[Ss]etting|passing|export) [A-Z][A-Z0-9]{1,20}(?:_[A-Z0-9]{1,20}){1,8}=|^Abort trap\b"
)
_USAGE = re.compile(
    r"\bargument -{1,2}[A-Za-z][\w/\x2d]{0,100}: |: argument [A-Za-z][\w\x2d]{0,60}: (?!\s{0,4}[-+]?\.?\d)"
    r"|\bunrecognized arguments: |\barguments are required: |^\s{0,8}[Uu]sage: [^\d\s][^\n]{0,160}\s\[?-{1,2}[A-Za-z]"
)
"""Errors of ``argparse``: their numbers were typed on the command line."""
_REACH = 200
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_FILE = re.compile(r'(?<=  )File "[^"\n]{1,400}", line \d{1,9}(?:, in |\s{0,4}$)')
_LONGEST_STATEMENT = 12
_WARNED = re.compile(r"\S{1,400}:\d{1,9}: [\w.]{1,80}Warning: ")
_WARNED_BEHIND = re.compile(r"(?<=[\s|,;])[\w./\\~<-]{1,400}\.py:\d{1,9}: [\w.]{1,80}Warning: ")
_WARNING_LEVEL = re.compile(r"(?:^|[\s\[|(:\x2d])(?:WARNING|WARN)\b[\s\]|):;\x2d]")


def is_failure(text: str) -> bool:
    """Whether a line is an exception, an error or a warning from Python or a library."""
    if not any(map(text.__contains__, _FAILURE_HINTS)):
        return False
    if _EXCEPTION.search(text, 0, 2 * _REACH) or _FAILURE_WORD.search(text, 0, _REACH):
        return True
    if _GLOG.search(text) or _REPORT.search(text) or _USAGE.search(text, 0, _REACH):
        return True
    if ".cc:" in text and _LIBRARY.search(text, 0, _REACH):
        return True
    level = _ERROR_LEVEL.search(text, 0, _REACH)
    return level is not None and "=" not in text[: level.start()]


def is_warning(text: str, line: str, readings: Sequence[LineReading]) -> bool:
    """Whether a line is a logger's warning; some programs log their metrics as warnings, so its words decide.

    Args:
        text: the line with its log level in front.
        line: the line without it.
        readings: what was read of the line.
    """
    if "WARN" not in text[:_REACH] or _WARNING_LEVEL.search(text, 0, _REACH) is None:
        return False
    if any(reading.counters != NOWHERE for reading in readings):
        return False
    if not any(reading.loss is not None for reading in readings):
        return True
    names = [name for reading in readings for name in (*reading.metrics, *reading.eval_metrics)]
    return len(_LETTERS.findall(line)) > sum(len(_LETTERS.findall(name)) for name in names)


class SourceLines:
    """Recognises the source code below ``File "train.py", line 3`` and below a warning.

    It is indented further than the word above it, whatever a launcher puts in front of each line.
    """

    def __init__(self) -> None:
        self.column = 0
        """The column where source is expected to begin; 0 if none is expected."""
        self.left = 0
        """The greatest number of lines of source still to come."""

    def before_warning(self, text: str) -> str:
        """Return the part of a line before a warning that another stream has printed into it."""
        behind = _WARNED_BEHIND.search(text, 1) if "Warning: " in text and ".py:" in text else None
        if behind is None or text[: behind.start()].isspace():
            return text
        self.column, self.left = 2, 1
        return text[: behind.start()]

    def covers(self, text: str) -> bool:
        """Whether a line is source, or a ``File`` line above source."""
        file = _FILE.search(text, 0, _REACH * 2) if 'File "' in text else None
        if file is not None:
            self.column, self.left = file.start() + 2, _LONGEST_STATEMENT
            return True
        if self.left and text[max(0, self.column - 4) : self.column].isspace():
            self.left -= 1
            return True
        warned = "arning: " in text and _WARNED.match(text) is not None
        self.column, self.left = (2, 1) if warned else (0, 0)
        return False


_REMARK = re.compile(
    r"(?i)\b(?:(?-i:[A-Z]\w{2,20}Warning)|deprecat\w{2,4}|checkpoint(?!\s?\[\d)|ckpt|sav(?:ed|ing|e)|resum\w{0,4}|restor\w{0,4}|load(?:ed|ing)|best|improv\w{0,5}|early.?stop\w{0,4}|patience|lowest|"
    r"minimum|previous|expected|target|theoretical|baseline|random)\b|保存|最佳|最良|ベスト|恢复|再開"
)
_REMARK_WORDS = """
    warning deprecat ckpt sav resum restor load best improv early patience lowest minimum previous expected checkpoint
    target theoretical baseline random 保存 最佳 最良 ベスト 恢复 再開
"""
_REMARK_HINTS = tuple(_REMARK_WORDS.split())


def is_remark(line: str, loss: Pair | None) -> bool:
    """Whether a remark about a checkpoint or a best value precedes the loss: the line only repeats a reading."""
    if not any(map(line.lower().__contains__, _REMARK_HINTS)):
        return False
    match = _REMARK.search(line, 0, 200)
    if match is None or loss is None:
        return match is not None
    aside = line[match.start() - 1 : match.start()] == "(" and line.find(")", match.end(), loss.start) >= 0
    return match.start() < loss.start and not aside


_PHASE_WORDS = "best final val test dev train 验证 検証 测试 評価 评估 训练 学習 검증 평가 훈련 тест обуч entra"
_PHASE_HINTS = tuple(_PHASE_WORDS.split())
_DONE = re.compile(
    r"(?i)\b(?:done|finish\w{0,3}|complet\w{0,4}|end(?:ed|s)? of|took|saved|size|load\w{0,3}|creat\w{0,3})\b"
)
_DATA = re.compile(r"(?i)\b(?:set|samples|dataset|data|loader|images?)\b")
_EVALUATING = re.compile(r"(?i)\b(?:evaluat|validat|test)ing\b")
_PLACES = EPOCH_WORDS | STEP_WORDS
_OPTION = re.compile(r"-{0,2}[A-Za-z]\w{0,30}_\w{1,40}\s{1,40}[^\s:=]{1,160}\Z")
"""``val_batch_size 128``, ``test_path data/test.csv``."""
_SETTING = re.compile(r"[\w.-]{1,60}\s{0,4}(?:=(?!=)|:\s{0,8}\S)")
_VALUE = re.compile(r"[:=]\s{0,8}[-+]?\d")
_OF_EPOCH = re.compile(
    r"(?i)\W{0,8}[a-z]{2,12}\]?(?P<called>(?:\s?[:|,(\x2d]\s?|[ _])epoch\s?[:#]?)?\s?"
    r"\[?(?P<epoch>\d{1,9})(?:\s?/\s?\d{1,9})?\]?\W{0,8}\Z"
)
"""``Eval epoch: 4`` or ``TEST : Epoch 4``, above its results; ``Val 4`` may be a number of samples."""
_IN_EPOCH = re.compile(r"(?i)\A(\W{0,8}epoch)\s?[:=]\s{0,4}(?=\d{1,9}\b[^:=]{1,60}:?\Z)")
"""``[Epoch: 9] Validation``: this colon does not make the line a setting."""
_BEFORE_TRAINING = re.compile(r"(?i)\b(?:before|prior to|ahead of)(?: the)? (?:any )?(?:fine.?tun|train)\w{0,4}")
_REPORTS_VALIDATION = re.compile(
    r"(?i)\breport(?:ing|ed|s)\b[\w ,]{0,40}\b(?:on|of|over)(?: the)? (?:validation|valid|val|test|dev|held.?out)\b"
)
"""``Started training, reporting errors on validation set``: said of the records of all epochs below."""
_OF_THE_BEST = re.compile(r"(?i)\W{0,8}(?:the )?(?P<which>best|final) [^:=\n]{3,60}:\W{0,8}\Z")
"""``Best model at step 7000:``, above the results of that model."""
_UNDER_WAY = re.compile(r"(?i)\b(?:\w{2,12}ing|begins?|starts?|started)\b|\.\.\.|…|开始|開始|시작|中")
_ON_SO_MANY = re.compile(r"(?i)\W{0,8}(?P<phase>train|validat|evaluat|test)(?:ing|e)? on \d{1,12} \w{2,20}\W{0,3}\Z")
_SO_MANY = re.compile(
    r"(?i)\W{0,8}(?P<phase>train|validat|evaluat|val|eval|test|dev)[a-z]{0,5}(?: (?:set|phase|data|step))?"
    r"(?:\s?[:=(]|\s[-|])\s{0,4}\d[\d,]{0,12} (?:(?:[a-z]{3,10} ){0,2}(?:samples|examples|images|batches|sequences"
    r"|sentences|clips|videos|graphs|items|pairs|patches|slices|volumes|episodes))\b[^:=]{0,60}:?\Z"
)
"""``Validation: 80 samples (32 per mini-batch)``."""
_CONLLEVAL = re.compile(r"processed \d{1,12} tokens with \d{1,12} phrases; found:")
_VALIDATION_WORDS = frozenset(("val", "valid", "vali", "validation", "validating", "validate", "dev"))
_OF_FOLDS = frozenset(("cross", "fold", "folds", "kfold"))
_MAX_LENGTH = 90


class Announcement(NamedTuple):
    """A phase that a line announces."""

    phase: Phase
    sure: bool
    """True if the line says that the phase has begun; a bare ``eval:`` may head a list of settings."""
    epoch: Number | None = None
    """The epoch of the phase, or another number behind its name."""
    lasting: bool = False
    """True if the phase is that of the records of all following epochs."""
    repeats: str = ""
    """``best`` or ``final`` if the results of that model follow: printed before, or of no epoch."""
    of_samples: bool = False
    """True if the line counts samples: before any training, that is the size of a data set."""
    whose: str = ""
    """``Validation`` or ``Test`` if the line says which, as each has its own curves; or ``Training``."""


def is_heading(reading: LineReading) -> bool:
    """Whether a reading names an epoch and says nothing else."""
    told = reading.metrics or reading.eval_metrics or reading.loss is not None or reading.plan
    return not told and reading.counters.epoch is not None and reading.counters.shown_step is None


class SizesOfSets:
    """Recognises lists of data set sizes: ``Validating on 51 samples`` below ``Training on 300 samples``."""

    def __init__(self) -> None:
        self._lists = False

    def read(self, line: str) -> bool:
        """Take the next line; return True if it is the size of an evaluation set in such a list."""
        match = _ON_SO_MANY.match(line) if " on " in line else _SO_MANY.match(line)
        trains = match is not None and match["phase"].lower() == "train"
        listed = match is not None and not trains and self._lists
        self._lists = trains or listed
        return listed

    def interrupt(self) -> None:
        """End the list at a record: below it, such a line announces a phase."""
        self._lists = False


def heads_conlleval(line: str) -> bool:
    """Whether a line heads the results of conlleval, a scorer for taggers that never says that it evaluates."""
    return line.startswith("processed ") and _CONLLEVAL.match(line) is not None


def announced(line: str) -> Announcement | None:
    """Return the phase that a line without values announces, or None."""
    if heads_conlleval(line):
        return Announcement(Phase.EVAL, sure=True)
    if len(line) > _MAX_LENGTH or not any(map(line.lower().__contains__, _PHASE_HINTS)):
        return None
    if line.endswith(("{", "[")):
        return None  # ``"eval": {`` heads a list of options
    if "eport" in line and _REPORTS_VALIDATION.search(line):
        return Announcement(Phase.EVAL, sure=True, lasting=True)
    if (counted := _SO_MANY.match(line)) is not None:
        trains = counted["phase"].lower() == "train"
        return Announcement(Phase.TRAIN if trains else Phase.EVAL, sure=False, of_samples=True)
    line = _BEFORE_TRAINING.sub("", line) if "rain" in line or "tun" in line else line
    line = _IN_EPOCH.sub(r"\1 ", line)
    words, numbered = words_of(line), _OF_EPOCH.match(line)
    summary = _OF_THE_BEST.match(line)
    which = "" if summary is None else summary["which"].lower()
    if which == "best" or (which and EVAL_WORDS.isdisjoint(words)):
        return Announcement(Phase.EVAL, sure=True, repeats=which)
    of_epoch = numbered is not None and numbered["called"] is not None
    is_setting = _VALUE.search(line) or (_SETTING.match(line) and not EVAL_WORDS.issuperset(words))  # ``evaluate:dev``
    if (is_setting or (_OPTION.match(line) and _PLACES.isdisjoint(words))) and not of_epoch:
        return None
    if words[:1] in (["end"], ["ended"]) and not EVAL_WORDS.isdisjoint(words) and "of" not in words:
        return Announcement(Phase.TRAIN, sure=True)
    if len(words) > 8 or _DONE.search(line) or (_DATA.search(line) and not _EVALUATING.search(line)):
        return None
    if not _OF_FOLDS.isdisjoint(words):
        return None  # ``== Cross validation (1/5) ==`` heads a training
    evaluation, training = not EVAL_WORDS.isdisjoint(words), not TRAIN_WORDS.isdisjoint(words)
    if evaluation == training:
        return None
    phase, epoch = Phase.EVAL if evaluation else Phase.TRAIN, parse_count(numbered["epoch"]) if numbered else None
    validates, tests = (not known.isdisjoint(words) for known in (_VALIDATION_WORDS, TEST_WORDS))
    whose = ("Training" if training else "") if validates == tests else "Validation" if validates else "Test"
    return Announcement(phase, of_epoch or _UNDER_WAY.search(line) is not None, epoch, whose=whose)


_END_HINTS = ("poch", "POCH", "poc", "ép", "Ép", "пох", "ПОХ", "ep ", "Ep ", "[ep", "轮", "輪", "エポック", "에폭")
_EPOCH = r"(?:epoche?n?|époque|época|epoca|эпоха|эпохи|エポック|에폭|ep)"
_COUNT = r"\s{0,4}[#№:=]?\s{0,4}\[?\(?(?P<epoch>\d{1,9})(?:\s{0,4}(?:/|of|von|sur|de|из)\s{0,4}(?P<epochs>\d{1,9}))?"
_END = (
    r"(?:done|finished|completed?|ended|ends?|over|took|fertig|beendet|abgeschlossen|termin(?:ée?|ada|ado|ata)|finie|"
    r"complet(?:ada|ata)|fin|завершена|окончена|закончена|完了|終了|完成|结束|結束|完毕|완료|종료)"
)
_NUMBER_FIRST = re.compile(
    rf"(?i)\W{{0,8}}(?:train(?:ing)? )?{_EPOCH}{_COUNT}[\])\s:.,|\x2d]{{0,6}}"
    rf"(?:(?:is|was|has been|has|training|train|est|ist|wurde|训练|訓練|学習|학습) ?){{0,2}}{_END}(?!\w)"
    r"(?!\W{0,3}\d[\d.]{0,8}+(?!:|\s?(?:s|secs?|seconds|ms|m|mins?|minutes|h|hours?)\b))"
    r"(?!\s{1,3}(?:of|to|early|with errors?)\b)"
)
_WORD_FIRST = re.compile(
    rf"(?i)\W{{0,60}}(?:(?:the )?end(?:ed)? of|finish(?:ed|ing)|completed|done with|fin d(?:e l|e la|e)?|ende(?: von)?)"
    rf"[ '’](?:training )?{_EPOCH}{_COUNT}(?![\w.])"
)


def with_end(line: str, readings: Sequence[LineReading] | None) -> Sequence[LineReading] | None:
    """Return the readings of a line, marked (or with one added) if it says that an epoch has ended."""
    if not any(map(line.__contains__, _END_HINTS)):
        return readings
    text = line if line.isascii() else spell_ordinals(line)
    found = _NUMBER_FIRST.match(text) or _WORD_FIRST.match(text)
    if found is None:
        return readings
    ended = Counters(epoch=parse_count(found["epoch"]), epochs=parse_count(found["epochs"] or ""))
    if readings and any(reading.counters.epoch == ended.epoch for reading in readings):
        return [replace(r, epoch_done=r.counters.epoch == ended.epoch) for r in readings]
    return readings or (LineReading("end of epoch", ended, epoch_done=True),)
