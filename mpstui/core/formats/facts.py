"""What a line says about the run as a whole: the device it trains on, that it is done, has failed or was resumed.

A device counts if the line says that it is used, never if it is only present ("MPS available: True"), offered ("use
--device mps") or holds something else ("EMA on cpu"). The newest statement wins; any statement beats a setting.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_LONGEST = 400
_SHORT = 60
_SHOWN = 200


class Fact(NamedTuple):
    """One thing that a line says about the run; what it does not say keeps its default."""

    device: str = ""
    """``cpu``, ``mps``, ``cuda:0``, or ``gpu`` if no more is said."""
    stated: bool = False
    """True if the device is said to be in use; False for a setting, which only asks for it."""
    done: bool = False
    """True if the training is over."""
    faint: bool = False
    """True if that was said in words ("done.", "train time: 12 s") that may end an epoch too."""
    failure: str = ""
    """The exception that ends a traceback, as printed, or what a shell says about the end."""
    resumed: bool = False
    """True if training goes on, usually from a checkpoint: counters that fall after this begin no other run."""
    opened: bool = False
    """True if a program begins: if its counters start again too, it is another run."""
    went_on: bool = False
    """True if so many lines have followed a traceback that it ended nothing."""


_KIND = r"(?:(?:cuda|mps|cpu|xpu|hpu|npu|tpu|xla|gpu)s?(?::\d{1,3})?(?![\w/=]|-\w|:\d|\.\w)|\bM[1-9]\b)"
_MAKER = (
    r"(?:(?:an?|the|one|single|apple(?:'s)?|silicon|metal|performance|shaders?|nvidia|amd|intel|tesla|geforce|quadro|rtx|"
    r"gtx|titan|radeon|instinct|torch|pytorch|device|backend|\d{1,3}x?|[avhbtl]\d{2,4}\w{0,3})\b[\s:(]{0,3})"
)
_NOT_THAT = (
    r"(?!\s?(?:(?:cores?|workers?|threads?|process(?:es)?|offload\w*|memory|ram|usage|utili[sz]ation|time|count|cluster|"
    r"hours?|kernels?|ops?|tensors?|adam\w*|parallel\w*|fallback|cache|version)\b|s? (?:available|found|detected)\b))"
)
_VALUE = (
    r"[\"'<({\[]{0,2}(?:(?:torch\.)?device\()?(?:type=)?[\"']?"
    rf"(?P<value>{_MAKER}{{0,6}}{_KIND}|{_MAKER}{{1,6}}){_NOT_THAT}"
)
_OF = (
    r"(?:using|use|used|training|train|running|run|execution|torch|pytorch|model|current|compute|computing|computation|default|"
    r"target|active|metal|chosen|selected|(?:auto.?)?detected|main|on|the|your|our|and|accelerator|with|is|process|\d{1,4})"
)
_NAMED = re.compile(
    rf"(?i)(?:^|\A- |[^\w\s.\x2d]\s{{0,8}}|\b{_OF}[ _])(?:{_OF}[ _]){{0,2}}"
    r"(?:(?:device|accelerator)(?:[ _](?:type|name))?|(?:使用|训练|运行|当前)?设备|(?:使用)?デバイス|(?:사용 )?장치|"
    r"Устройство|Gerät|Dispositivo|Dispositif|Appareil|Périphérique|Urządzenie|Cihaz)"
    r"(?:'(?=: (?:cuda|mps|cpu)\b))?"
    rf"\s{{0,24}}(?:is set to|set to:?|(?:is|was)(?: ?:)?|:|=|->|→|：)\s{{0,24}}{_VALUE}"
)
_USED = re.compile(
    r"(?i)\b(?:using|(?:train|runn|comput|execut|fine.?tun)ing(?: [\w./-]{1,40}){0,4}? (?:on|with)|"
    r"choose to use|train (?:on|with)(?= device)|setting (?:the )?(?:ds_)?(?:device|accelerator) to|"
    r"(?:trains|runs|will (?:train|run)|[a-z]{3,9}/s(?:ec)?) on|(?:proceed|continu)\w{1,3} (?:on|with)|"
    r"(?:fall\w{0,4}|fell|fallback|switch\w{0,4}|default\w{0,3}|revert\w{0,3})(?: back)? (?:on|to)|"
    r"(?:model|network|module|everything)(?: \w{1,20}){0,3}? (?:on|to|onto)|"
    r"на(?= (?:cuda|mps|cpu)\b)|on \d{1,3} (?:devices?|gpus?) \(|(?:^|[,;:.(] ?)device(?= (?:cuda|mps|cpu)))"
    rf"(?:(?<=on)\s?:\s{{1,3}}|\s{{1,3}}|(?<=\())(?:device\b[\s:]{{0,3}})?{_VALUE}"
)
_CUDA = re.compile(
    r"(?i)\bgpu device\s?[=:]\s?\d{1,2}\Z|\bCreat(?:ed|ing) (?:TensorFlow device \(|device )\S{0,80}GPU:\d|"
    r"\bUse GPU with device ID \d|\AUse GPU: \d{1,2}(?= for training|\Z)|"
    r"\bBackend used: \[CUDA\]|\bSelected GPU\[\d{1,2}\] |\[(?:CudaDevice|GpuDevice|cuda)\(id=|"
    r"\bdevice: \d{1,2}, GPU Compute Capability|\bdevice Place\(gpu:\d{1,2}\)"
)
_METAL = "name: METAL"
"""TensorFlow's name for the GPU of a Mac, which it otherwise reports like a CUDA device."""
_TO_BE_USED = re.compile(r"(?i)(?:the )?(cuda(?::\d{1,3})?|mps|cpu|gpu) (?:will be|is being|is) used\.?\Z")
_CPU_ALONE = re.compile(r"(?i)\b(?:run|train|running|training) (?:in|on) CPU[ -]only mode\b")
_CUDA_SET = re.compile(
    r"(?:use_)?cuda\s?[:=]\s?True\Z|GPU\s{0,20}[:=]\s{0,4}(?:NVIDIA|Tesla|GeForce|Quadro|RTX|GTX|TITAN)\b[^,;:]{0,60}\Z"
)
"""A setting, or the one GPU that a heading names: no statement, but nothing else may be said."""
_ENTRY_ALONE = re.compile(r"\{?'device': '(cuda(?::\d{1,3})?|mps|cpu)'[,}]?\Z|solver_mode: (CPU|GPU)\Z")
"""Among settings printed one to a line; Caffe calls the device the mode of its solver."""
_SAID_ALONE = re.compile(r"(?:Use (?=CPU|GPU))?(CPU|GPU|cuda(?::\d)?|mps|cpu)\.?(?:: cuda:\d)?\Z")
_COMMAND = re.compile(r"\.py [^\n]{0,300}?(?<= )--device[ =](cuda(?::\d)?|mps|cpu)(?= |\Z)")
_OPTION = re.compile(
    r"(?:[,;(|{] {0,3}| {2})[\"']?device[\"']? ?[:=] ?(?:(?:torch\.)?device\((?:type=)?)?[\"']?"
    r"(cuda(?::\d{1,3})?|mps|cpu)"
    r"(?=[\"']?(?:[,;|)}]| {2}| \||\Z))"
)
"""Among all options of a program on one line."""
_LONGEST_OPTIONS = 16_000
_LIGHTNING = re.compile(r"\bGPU available: (?:True|False)(?: \((?P<kind>\w{2,12})\))?, used: (?P<used>True|False)")
_YOLO = re.compile(r"torch-\d[\w.+]{0,30} (?P<value>CUDA:\d{1,3}|MPS|CPU)(?= \(|\Z)")
_TENSOR = re.compile(
    r"(?:\bdevice='|'device': device\(type='|device_map'?: (?:\{'[\w.]{0,20}': )?(?:device\(type=)?')"
    r"(?P<value>(?:cuda|mps|cpu|xpu)(?::\d{1,3})?)'"
)
_ONLY_SAID = re.compile(
    r"(?i)\b(?:not|never|without|instead of|if|when|unless|should|could|can|may|might|would|must|please|"
    r"recommend\w{0,5}|consider|try|option\w{0,3}|support\w{0,3}|avail\w{0,8}|requires?|eval\w{0,8}|validat\w{0,3}|test(?:ing)?|"
    r"infer\w{0,5}|compil\w{0,5}|cluster|sampl\w{0,3}|generat\w{0,3}|load\w{0,3}|data|ema|preprocess\w{0,3}|tokeniz\w{0,3}|metrics?|map)\b"
    r"[^.;:!,\x2d]{0,40}\Z|n't [^.;,]{0,30}\Z"
)
_NAMES = ("cuda", "mps", "cpu", "gpu", "xpu", "tpu", "npu", "hpu", "xla", "apple", "metal", "nvidia", "tesla", "rtx")
_EXACT = re.compile(r"(?:cuda|mps|cpu|xpu|hpu|npu|tpu|xla)(?::\d{1,3})?")
_GPU = frozenset({"gpu", "gpus"})
_APPLE = frozenset({"apple", "metal"})
_NVIDIA = frozenset({"nvidia", "tesla", "geforce", "quadro", "rtx", "gtx", "titan"})
_OUT_OF_MEMORY = re.compile(r"\b(CUDA|HIP|MPS)(?: backend)? out of memory\b")


def device_of_failure(failure: str) -> str | None:
    """Return the device that an exception says had too little memory, where the program was about to train."""
    full = _OUT_OF_MEMORY.search(failure)
    return None if full is None else "mps" if full[1] == "MPS" else "cuda"


def device_of(line: str) -> Fact | None:
    """Return the device that a line says is used for training."""
    lightning = _LIGHTNING.search(line)
    if lightning is not None:
        kind = lightning["kind"] or "gpu"
        return Fact(device=kind.lower() if lightning["used"] == "True" else "cpu", stated=True)
    yolo = _YOLO.search(line)
    if yolo is not None:
        return Fact(device=yolo["value"].lower(), stated=True)
    if _CUDA.search(line):
        return Fact(device="mps" if _METAL in line else "cuda", stated=True)
    command = _COMMAND.search(line) if " --device" in line else None
    if command is not None:
        return Fact(device=command[1])
    if _CUDA_SET.match(line):
        return Fact(device="cuda")
    alone = _SAID_ALONE.match(line)
    if alone is not None:
        is_title = alone.group() in ("CPU", "GPU")  # perhaps of a list of options
        return Fact(device=alone[1].lower(), stated=not is_title)
    if _CPU_ALONE.search(line):
        return Fact(device="cpu", stated=True)
    alone = _TO_BE_USED.match(line)
    if alone is not None:
        return Fact(device=alone[1].lower(), stated=True)
    entry = _ENTRY_ALONE.match(line)
    if entry is not None:
        return Fact(device=entry[1] or entry[2].lower())
    found = [match for pattern in (_NAMED, _USED) for match in pattern.finditer(line)]
    meant = [match for match in found if _ONLY_SAID.search(line[: match.start("value")]) is None]
    if meant:
        last = max(meant, key=lambda match: match.start("value"))  # "cuda is missing, using cpu"
        name = _kind(last["value"], line[last.end() : last.end() + 30])
        return Fact(device=name, stated="=" not in line[last.start() : last.start("value")]) if name else None
    tensor = _TENSOR.search(line)
    return Fact(device=tensor["value"]) if tensor is not None else None


def _kind(value: str, behind: str) -> str:
    """Return ``mps`` for "Apple Silicon GPU", ``cuda`` for "NVIDIA A100", or nothing if no device is named."""
    exact = _EXACT.search(value.lower())
    if exact is not None:
        return exact.group()
    words = set(re.findall(r"[a-z]+", value.lower()))
    if "gpu" in words or "gpus" in words:
        words.update(re.findall(r"[a-z]+", behind.lower()))
    elif re.fullmatch(r"\s?[mM][1-9]\s?", value):
        return "mps"
    return "mps" if words & _APPLE else "cuda" if words & _NVIDIA else "gpu" if words & _GPU else ""


_TRAINING = (
    r"(?:(?:the |model |main |full |whole |all |total )?(?:pre.?|fine.?|re)?(?:training|train|traning|optimi[sz]ation|"
    r"fitting|fit|tuning|learning|experiment|run|epochs?|steps)|训练|訓練|学習|학습|обучение|entra[iî]nement|entrenamiento|"
    r"treinamento)"
)
_ENDED = (
    r"(?:complete[ds]?|finish(?:ed|es)?|done|ended|over|concluded|terminated|stopped|successful(?:ly)?|完成|结束|結束|完了|"
    r"終了|完毕|완료|종료|заверш\w{2,4}|окончен\w{0,2}|termin(?:é|ée|ado|ada|ato)|complet(?:ado|ada|ato)|finalizado|"
    r"abgeschlossen|beendet|fertig)"
)
_BEHIND = (
    r"(?:\s{0,3}(?:[!.。！~]{1,3}|$)|,| (?:in|after|at|with|on|successfully|without|for|within|by)\b|"
    r"\s?[(:;=*#\x2d–—─✓✔✅🎉🏁🚀]|しま|되었|했)"
)
_DONE = re.compile(
    rf"(?i)\W{{0,12}}(?:(?:\w{{2,12}}\W{{1,3}}){{0,2}}?{_TRAINING}(?: loop| process| phase| run| job| script)?"
    rf"[ :]{{0,3}}(?:(?:is|was|has|have|been|now|all|了|が|が|已|已经) ?){{0,3}}{_ENDED}(?:ly)?{_BEHIND}"
    rf"|(?:{_ENDED}) (?:with )?(?:the )?{_TRAINING}(?:{_BEHIND}|\Z| (?:of|the) )"
    r"|\d{1,9} (?:epochs?|steps|iterations) (?:completed|finished|done) in \d"
    r"|early.?stopp(?:ing|ed)(?:!|\.|$| triggered| at| after| activated| criter| on| because|: | with)"
    r"|end of training\b|optimi[sz]ation finished)"
)
_TRAINER_STOPPED = re.compile(r"`?Trainer\.fit`? stopped: |\{['\"]train_runtime['\"]: |\*{3,5} train metrics \*{3,5}")
_FAINT = re.compile(
    r"(?i)\W{0,8}(?:(?:all )?(?:done|finished|completed?|fertig|完成|完了)\W{0,8}\Z"
    r"|(?:total |overall )?train(?:ed|ing)?(?: in| took| time| duration| runtime)(?: \(\w{1,8}\))?\s?[:=]?\s?\d)"
)
_NOT_YET = re.compile(
    r"(?i)\b(?:not|before|when|once|until|after|if|will|would|resum\w{0,4}|tokeni\w{0,4}|validation|evaluation)\b"
    r"|\d ?%|第"
)
_OF_A_PART = re.compile(
    r"(?i)\b(?:(?:epoch|step|iteration):? ?\[?\d|per epoch|fold|stage|phase|round|warm.?up|discriminator|patience|"
    r"counter)"
)
_RESUMED = re.compile(
    r"(?i)\bresum(?:ing|ed)\b(?: \w{1,20}){0,3}? (?:from|at|with)\b(?! (?:none|null|false|scratch))"
    r"|\bcontinuing (?:training )?from (?:checkpoint|step|epoch|iter)|恢复训练|学習を再開"
)
_TYPED = re.compile(
    r"(?:\S{1,80}[@:~][^$#%>]{0,100}[$#%>]|\([\w.-]{1,40}\) [^$#%>]{1,100}[$#%>]|\$|\+)\s{0,2}"
    r"(?:[A-Z_]{2,40}=\S{1,80} ){0,4}(?:nohup |time |sudo )?"
    r"(?:\S{0,80}/)?(?:python\d?(?:\.\d{1,2})?|torchrun|accelerate|deepspeed|th|bash|sh|julia) \S"
)
"""A command typed into a shell."""
_OPENS = re.compile(
    r"(?i)config|argument|namespace|param|load|start|begin|seed|setting|command|python|device|cuda|gpu|creat|init|build|"
    r"import|log|data|experiment|running|using|nohup"
)
"""What the first line of a program is about, if not the training itself."""
_PROMPTS = ("$", "#", "%", ">", "+ ")
_FIRST, _ROW = 60, 8
_TITLE = "Traceback (most recent call last)"
_IGNORED = "Exception ignored "
_LOWER_EDGE = "╰─"
"""The lower edge of rich's box around a traceback, whose title may be cut off or lie above what is read."""
_LAST_WORDS = 100
"""More lines than launchers, trackers and aborting libraries print after a traceback: the program went on."""
_RANK = re.compile(r"(?:\[(?:rank|default) ?\d{1,5}\]:? ?|\(\w{1,40} pid=\d{1,9}[^)]{0,40}\) )")
_RAISED = re.compile(
    r"(?:[A-Za-z_]\w{0,60}\.){0,8}(?:(?<=\.)[A-Z]\w{0,80}|"
    r"\w{0,80}(?:Error|Exception|Interrupt|Exit|Iteration|Expired|Failure|Timeout))(?:\(\w{1,80}\))?(?::\s|:?\Z)"
)
_LONGEST_TRACEBACK = 300
_SHELL = re.compile(
    r"(?:[\w./-]{0,80}: line \d{1,6}: +\d{1,9} )?(?:zsh: |bash: )?"
    r"(?:[Kk]illed|[Ss]egmentation fault|Abort(?:ed| trap)|abort|Bus error)(?::? \d{1,2})?(?: +\(core dumped\))?"
    r"(?: +[\w./].{0,200})?\Z"
)


class Facts:
    """Reads the facts off the lines of one log; a traceback spans several."""

    def __init__(self) -> None:
        self._open = 0
        """In a traceback: the number of lines within which its exception has to come."""
        self._ignored = False
        self._spoken: int | None = None
        """Lines since the newest failure; None if there was none, or long ago."""

    @property
    def at_rest(self) -> bool:
        """True if no line above the next one changes what it says."""
        return not (self._open or self._ignored) and self._spoken is None

    def read(self, text: str, line: str) -> Fact | None:
        """Return what a line says about the run.

        Args:
            text: the line without control sequences.
            line: the same, without the prefix of a logger.
        """
        failure = self._failure(text)
        if failure or self._open:
            self._spoken = 0 if failure else self._spoken
            return Fact(failure=failure) if failure else None
        if self._spoken is not None and text.strip() and not text[0].isspace():
            self._spoken = self._spoken + 1 if self._spoken < _LAST_WORDS else None
            if self._spoken is None:
                return Fact(went_on=True)
        if len(line) > _LONGEST:
            option = _OPTION.search(line, 0, _LONGEST_OPTIONS) if "device" in line else None
            return None if option is None else Fact(device=option[1])
        lower = line.lower()
        device = device_of(line) if any(map(lower.__contains__, _NAMES)) else None
        if device is not None:
            return device
        done = _DONE.match(line)
        whole = done is not None and ("arly" in done.group() or _OF_A_PART.search(line) is None)
        if (done is not None and whole and not _NOT_YET.search(done.group())) or _TRAINER_STOPPED.search(line):
            return Fact(done=True)
        if len(line) < _SHORT and _FAINT.match(line):
            return Fact(done=True, faint=True)
        return Fact(resumed=True) if _RESUMED.search(line) else None

    def _failure(self, text: str) -> str:
        """Return the exception that ends a traceback, or what a shell says about the end; else an empty string."""
        if _TITLE in text:
            self._open = 0 if self._ignored else _LONGEST_TRACEBACK
            return ""
        if text.lstrip().startswith(_LOWER_EDGE):
            self._open = max(self._open, 1)
            return ""
        if not self._open:
            self._ignored = _IGNORED in text or (self._ignored and text[:1].isspace())
            shell = _SHELL.match(text)
            return shell.group() if shell is not None else ""
        self._open -= 1
        rank = _RANK.match(text)
        bare = text[rank.end() :] if rank is not None else text
        if _RAISED.match(bare) is None:
            return ""
        self._open = 0
        return bare.strip()[:_SHOWN]


class Openings:
    """Knows where the programs of one log begin: with their command, or with the line that the log began with."""

    def __init__(self) -> None:
        self.first: str | None = None
        """The beginning of the log; empty if that is not about a program."""
        self._row = 0

    def may_be_first(self, line: str) -> bool:
        """True if a line that differs from this one only in its numbers may be the one that the log began with."""
        return self.first is None or (self.first != "" and _letters(line).startswith(_letters(self.first)))

    def note(self, line: str, fact: Fact | None) -> Fact | None:
        """Return the fact of a line that is no record, with ``opened`` set if a program begins there."""
        if self.first is None and line:
            self.first = line[:_FIRST] if _OPENS.search(line[:_FIRST]) else ""
            return fact or (Fact() if self.first else None)  # a kind of line with a fact is never skipped as silent
        typed = line[-1:].isalnum() and len(line) <= _LONGEST and any(map(line.__contains__, _PROMPTS))
        command = typed and _TYPED.match(line) is not None
        again = line != "" and line[:_FIRST] == self.first
        self._row = self._row + (len(line) <= _LONGEST) if again else 0  # a long one is no record: it lists options
        if self._row > _ROW:
            self.first = ""  # a line that comes again and again begins nothing
        opens = command or again
        return (fact or Fact())._replace(opened=True) if opens else fact


def _letters(line: str) -> str:
    """Return a line's letters without those of exponents: what its numbers cannot change."""
    return "".join(character for character in line if character.isalpha() and character not in "eE")
