"""Rewrites unusual notations to the plain one: a name, then its value."""

from __future__ import annotations

import re

from .side_by_side import NUMBER, each_in_turn, each_of_both, each_of_list, each_of_statistics

_CJK = "\u2e80-\u9fff\uac00-\ud7af\uff66-\uff9f"
_ORDINAL = re.compile(
    r"第 ?(\d{1,9}(?: ?/ ?\d{1,9})?) ?(?:个|個)?(轮次?|輪|步|エポック|周期|epoch)目?[:：]?"
    r"|(?<![\w.])(\d{1,9}(?: ?/ ?\d{1,9})?) ?(エポック|에폭|에포크|ステップ|스텝)(?:目|째)?[:：]?"
)
_UNSPACED_DIGIT = re.compile(rf"(?<=[{_CJK}])(?=\d)|(?<=\d)(?=[{_CJK}])")
_DECIMAL_POINT = re.compile(r"\d\.\d")
_BEHIND_A_MARK = r"(?:(?<=\D[=:] )|(?<=\D[=:]))"
_NO_LIST = r"(?![\d,.]|\]|, ?\d)"
_DECIMAL_COMMA = re.compile(rf"{_BEHIND_A_MARK}(?:0,\d{{1,9}}|[1-9]\d{{0,5}},(?:\d{{4,9}}|\d{{1,2}})){_NO_LIST}")
_COMMA = re.compile(rf"{_BEHIND_A_MARK}(\d{{1,6}}),(\d{{1,9}}){_NO_LIST}")
_CELLS = re.compile(
    r"\A\s{0,80}[│┃]\s{1,80}([^\W\d][^│┃\s]{0,80}(?: [^│┃\s]{1,40}){0,4})\s{1,80}[│┃]"
    r"\s{1,80}([-+]?[\d.]{1,30}(?:e[-+]?\d{1,3})?)\s{1,80}[│┃]\s{0,80}\Z"
)
"""A row of two cells in a table drawn by Rich."""
_OF_SAMPLES = re.compile(
    r"((?:\b(?:[Tt]est|[Tt]rain(?:ing)?|[Vv]al(?:idation)?) )?[Aa]ccuracy) (?:of|on) [^\d:\n]{1,60}"
    r"\d[\d,]{0,12} (test|train(?:ing)?|val(?:idation)?)?[\w ]{0,24}:(?=\s{0,4}\d)"
)
"""``Accuracy of the network on the 10000 test images: 54 %``: 10000 is the number of images, 54 % the accuracy."""
_COCO = re.compile(
    r"Average (?:Precision|Recall) {1,8}\((A[PR])\) @\[ ?(?:IoU|OKS)=(?:0\.50:0\.95|0\.(\d\d)) {1,8}\| area= {0,8}"
    r"(?:all|([sml])[a-z]{4,5}) \| maxDets= {0,4}(\d{1,4}) ?\] ?= ?(?=\d)"
)
"""A line of pycocotools, read as ``AP@100``, ``AP75@100``, ``APs@100``; not with -1, which means nothing to measure."""
_SPREAD = re.compile(rf"(?<=[\d%]) ?(?:(?:±|\+/-|\+-) ?{NUMBER}%?|\((?:±|\+/-|\+-) ?{NUMBER}%?\))(?![\w.])")
"""``0.25 ± 0.05``, ``84.5% (+/- 1.2%)``: the spread is not a value of its own."""
_THREE_COUNTS = re.compile(r"(?i)\b((?:iteration|step) )\d{1,12}/(\d{1,12})/\d{1,12}(?![\w/.])")
"""``At iteration 98/100/101``: Tesseract counts the samples it learnt from, trained on and looked at."""
_LOADED_EPOCH = re.compile(r"\AEpoch loaded: (?=\d{1,9} - )")
"""What SpeechBrain prints in front of the results of an evaluation."""
_TRAINED_EPOCH = re.compile(r"\ATrain: (\d{1,6}) \[\s{0,9}(\d{1,9}/\d{1,9}) \(\s{0,2}\d{1,3}%\)\]")
"""``Train: 3 [ 50/1251 (  4%)]``, printed by timm's train.py."""
_OF_EPOCH = re.compile(r"\A\[(\d{1,6})[:,] {1,8}(\d{1,9})/ {0,8}(\d{1,9})\]")  # ``[3: 7/12] train loss: 0.5``
_RATE_TAG = re.compile(r"\A\[(LR|lr)\] (?:current|now|new): (?=\d)")  # ``[LR] current: 5.00e-04``
_OF_TASK = re.compile(r"\A\[\(\d{1,6}(?:, ?\d{1,6}){1,4}\)\]:? ")
"""``[(0, 0, 17)]: Epoch 3``: the tuple identifies one of several trainings, it is no counter."""
_APPROXIMATE = re.compile(r"(?<=[:=])(\s?)[~≈]\s?(?=-?\d{0,12}\.\d)")  # ``loss: ~0.53``
_DOTTED = re.compile(r"(?<=\w) \.{3,120} (?=\S)")  # ``epochs ........ 20``
_BEHIND_A_RULE = re.compile(r"\A(Step {1,12}\d{1,12}: (?:train|eval) {1,40}\w{1,80}) \| {1,4}(?=-?\d)")
"""``Step    500: eval  WeightedCategoryAccuracy |  0.809``, printed by Trax."""
_TAGGED_EPOCH = re.compile(r"\A\[\s?([A-Za-z]{3,12})\s?\|\s?(\d{1,6}/\d{1,6})\s?\]")
_VALUE_FIRST = re.compile(
    r"(?<=[:,|] )(\d{1,6}\.\d{1,12}\s?%?) ((?:[A-Za-z.]{1,12} ){0,2}(?:loss|Loss|acc|accuracy|Accuracy))(?=,|\Z| \|)"
)
"""``0.98 train loss, 94.3% accuracy``."""
_AT_STEP = re.compile(r"(?i)(?<=\()(epoch:? \d{1,9}, )total_(?:steps|iters)(?= \d)")
"""``(epoch 4, total_steps 1280)``: a position, not a planned total."""
_BY_COMMA = re.compile(r"([A-Za-z_]\w{0,30}),\s{1,4}(?=[-+]?\d)")
_ALL_COMMAS = re.compile(r"(?:[A-Za-z_]\w{0,30},\s{1,4}[-+]?[\d.]{1,20}(?:e[-+]?\d{1,3})?(?:,\s{0,4}|\Z)){3,30}\Z")
"""``Step, 21, Loss, 0.5, PSNR, 9.5``: names and values in turn."""
_LAST_BY_COMMA = re.compile(
    r"(?i)((?:epoch|step|iter(?:ation)?|batch) \d{1,12}, \w{0,12}(?:loss|acc|error)\w{0,12}), "
    r"(?=\d{0,12}\.\d{1,20}(?:e-?\d{1,3})?\Z)"
)
"""``epoch 1, phase train, step 10, loss_train, 0.838``: the counters have no comma after their names."""
_BY_DASH = re.compile(rf" - (?={NUMBER}%?(?:,|\Z))")
_ALL_DASHES = re.compile(
    rf"(?:\* )?(?:[A-Za-z][\w@-]{{0,20}}(?: [A-Za-z][\w@-]{{0,20}}){{0,3}} - {NUMBER}%?(?:, |\Z)){{2,12}}\Z"
)
"""``LOSS - 3.780, TOP-5 ACCURACY - 37.130``: a dash in front of each value."""
_COUNTED_UNIT = re.compile(r"(?<![\w.])(\d[\d.]{0,9}[kKM]?)it/(\d[\d.]{0,9}[kKM]?)it(?!\w)")
"""``1.53kit/200kit``, as tqdm prints its counts without a terminal."""
_COUNT_FIRST = re.compile(
    r"\A\W{0,3}(\d{1,6})(?:(?:-|-?(?:st|nd|rd|th)[- ])((?i:epoch))(?=[\s:,(](?!\s?=))| (epoch)(?=[:,] ))"
)
"""``0-epoch (99/4466): ..``, ``3rd epoch loss ..``, ``3 epoch, loss: ..``."""
_TRAINING_NTH = re.compile(
    r"(?i)(\A[^\w\n]{0,60}(?:train(?:ing)?|start(?:ing)?|begin(?:ning)?) )(?:the )?(\d{1,6})(?:st|nd|rd|th) (epoch)\b"
)
"""``-->Training 3rd epoch<--``"""
_STEPS_OF_EPOCH = re.compile(r"(?<![\w.])\d{1,9}(?= (?:steps|iters|iterations|batches|updates) per epoch\b)")
"""``Finished 3 epoch training (50 steps per epoch)``: the length of an epoch, not a step."""
_FINISHED_EPOCH = re.compile(r"(?i)\b(finished|completed) (\d{1,6}) (epoch)\b(?!\()")
_PLACE_IN_BRACKETS = re.compile(r"(?i)\A\((step|iteration|iter|update|epoch)s?[:=]? ?(\d{1,12})\) (?=\S)")
"""``(Steps: 20) eval/loss = 0.5``: a counter at the start of a line is a position, not a planned total."""
_COUNTERS = re.compile(
    r"(?i)\b(epoch)(?: and | ?[,/|] ?)(step|iter\w{0,6}|batch)\b( ?[:=])?\s{1,4}\[?(\d{1,9})(?: ?[,/|] ?| )(\d{1,9})\b"
)
"""``Epoch and iter 28 1251``, ``Epoch, Step: 3, 20``."""
_COUNT_IN_EPOCH = re.compile(r"(?i)\A(\d{1,9} ?/ ?\d{1,9}) (?:in|of) (\d{1,6})(?:st|nd|rd|th)? epoch\b")
"""``20/500 in 3 epoch finished, loss is 0.5``."""
_BARRED = re.compile(r"(?<=poch: )\[\s?(\d{1,9}) \| (\d{1,9})\s?\]")  # ``Epoch: [1 | 600]``
_SOCKEYE = re.compile(r"(?:\A|(?<=\] ))E=(\d{1,6}) B=(\d{1,12})(?=\s)")
_EPOCH_POINT = re.compile(r"\A(\W{0,8}[Ee]poch)\.(\d{1,9})(?=\s)")  # ``---Epoch.3 Val MSE: 0.5``
_TUPLE = re.compile(r"\A\('[^'\n]{1,60}', [^'\n]{1,60}(?:'[^'\n]{1,60}', [^'\n]{1,60}){0,8}\)\Z")
"""A tuple, as Python 2 prints several arguments: ``('Epoch: ', 1)``."""
_IN_TUPLE = re.compile(r"(?:\A[(\[]|'?, )'([^'\n]{1,60}?)[\s:=]{0,4}', '?")
_NAME_VALUE = r"'[A-Za-z][^'\n]{0,60}', '?[-+]?[\d.]{1,24}(?:e[-+]?\d{1,3})?'?"
_LIST = re.compile(rf"\A\[{_NAME_VALUE}(?:, {_NAME_VALUE}){{1,20}}\]\Z")
"""``['epoch', '1', 'loss', '0.5']``, a table row printed as a list."""
_HITS = re.compile(r"(?<![\w-])([A-Za-z][\w-]{0,20})( \(\w{1,24}\))? ?@ ?([1-9]\d{0,3})(?=\s?(?:=|:(?!\d)))")
"""``Hits (raw) @ 10: 0.5``: the 10 is part of the name."""
_GROUPED = re.compile(r"([Ll]oss|[Mm]etrics?), (?=[a-zA-Z]\w{0,20}: \s?-?\d)")
"""``training-loss, overall: 0.5    training-metric, acc: 0.9``: a group in front of the name."""
_TRAINED = re.compile(r"\ATrain (\d{1,6})(?=, loss: )")
"""``Train 3, loss: ..``: an epoch, printed by the PyTorch versions of PointNet and DGCNN."""
_JOINED = ("poch and ", "poch, ", "poch,", "poch/", "poch | ")
_RANKED = re.compile(r"\b([Tt]op)[ -]?(\d{1,3})[ -]([Aa]cc|[Aa]ccuracy|[Ee]rr|[Ee]rror)\b")
_WINDOW = re.compile(
    r" (?:(?:(?:over|for|of|in) )?(?:the )?((?:last|past|per) \d{1,6} [a-z]{3,12})|"
    r"(?:over|across) (?:(?:all|the) )?"
    r"(\d{1,6} (?:episodes|games|trials|runs|seeds|folds|splits|contexts|tasks|experiences)))"
    r"(?=\s?[:=]\s?[-+.\d])"
)
"""``reward last 100 episodes: 1.5``, ``accuracy over all 3 tasks: 0.9``: the size of the window is not a value."""
_WINDOW_IN_FRONT = re.compile(
    r"(?i)\A\s?(?:(?:over|for|in) )?(?:the )?(?:last|past) \d{1,6} (?:[a-z]{3,12} )?[a-z]{3,12}s: (?=[a-z])"
)
"""``Last 10 training episodes: mean reward 20.5``"""
_WINDOW_BEHIND = re.compile(r"(?<=[a-z]) \(\d{1,6} [a-z]{3,12}\) (?=-?\d{1,12}\.\d{1,20}\Z)")
"""``mean reward (100 episodes) -19.5``, without a sign in front of the value."""
_SINGLE_PRECISION = re.compile(r"(?<![\w.])(-?\d{1,12}\.\d{1,12})f(-?\d{1,2})(?!\w)")
"""``0.3125f0``, ``1.5f-5``: a 32-bit float in Julia."""
_RUN_ON = re.compile(r"(\.\d{6,20})(?=[A-Z][a-z]{0,12}[ _:=])")  # ``A loss:1.2830580643B loss:0.9392844268``
_OF_NUMPY = re.compile(r"(?<![\w.])j?np\.(?:float|u?int)\d{1,2}\(([-+\w.]{1,40})\)")  # how NumPy 2 prints a scalar
_NOT_FINITE = re.compile(r"(?<![\w.])([-+]?(?:nan|inf))\.0(?!\d)")
"""``train_loss=nan.0``, as Lightning's bar pads NaN and infinity."""
_BEST_SCORE = re.compile(
    r"(?:Monitored m|M)etric (\S{1,60}) (?:improved|did not improve)\b[^:]{0,60} (?:New b|B)est score(?=:)"
)
"""Early stopping in Lightning: ``Metric val_loss improved by 0.004 >= min_delta = 0.0. New best score: 0.028``, and at
the end ``Monitored metric val_loss did not improve in the last 9 records. Best score: 0.028``."""
_PARTS = re.compile(r"(?<=osses: )(?:[A-Za-z_]\w{0,20} -?\d{1,12}\.\d{1,20}(?:, |(?=\]|\Z))){3,20}")
"""``[Losses: x 0.27, y 0.25, conf 4.37, total 15.14, recall: 0.5]``"""
_HYPHENED = re.compile(r"(?<=\d)-(?=(?:step|iter|batch|epoch)s?\b)")  # ``epoch 29-step 50``
_GLUED = re.compile(r"(?i)(?<![\w./\\-])(epochs?|ep|steps?|iter|iteration|it|batch|loss(?=\d{1,9}\.\d))[_-]?(?=\d)")
_GLUE = re.compile(r"[hsprntHSPRNT][_-]?\d")
"""How a name glued to its number may end: a cheaper search than `_GLUED`, done first."""


_RATE_ALONE = re.compile(r"\A(lr|learning rate), (?=\d[\d.]{0,24}(?:e-\d{1,3})?\Z)")  # ``lr, 0.0005``
_BY_COLON = re.compile(r"(?<=\])\[\s{0,6}(\d{1,9}):\s{0,6}(\d{1,9})\](?=\s)")  # ``[Epoch 1/500][ 100:391]``
_EACH_IN_BRACKETS = re.compile(r"(?<=[ :\t])\[\s?(\d{1,9})\s?\]\s?/\s?\[\s?(\d{1,9})\s?\]")  # ``Epoch [0]/[199]``
_COUNTER = r"(?:epoch|step|iter[a-z]{0,8}|(?:mini)?batch)s?(?: ?#| ?:)? ?\d{1,12}(?:\s?/\s?\d{1,12})?"
_EPOCH_OF = re.compile(r"(?i)\Aep(?:och)?[_-]?(\d{1,6})[_-](train(?:ing)?|val(?:id(?:ation)?)?|test|eval)(?=[,: ])")
"""``EP3_test, avg_loss= 0.5``."""
_NAMED_PLACE = re.compile(
    rf"(?i)(?:\A|(?<=, )|(?<= : ))(?!(?:the )?(?:new )?best\b)"
    rf"(?P<name>[a-z_][\w@/-]{{0,30}}(?: (?!best )[a-z_(][\w@/()-]{{0,30}}){{0,5}}) "
    rf"(?:at|@|after|for|in|on|of) (?:the )?(?:(?P<place>{_COUNTER})(?:(?:,? (?:and )?|, ?|/)(?P<inner>{_COUNTER}))?"
    rf"|(?P<count>\d{{1,12}}) (?P<unit>epoch|step|iteration|iter|(?:mini)?batch)(?:e?s)?)"
    rf"(?=\s?(?P<sign>[:=]|(?:is|was):? |- )?\s{{0,4}}(?P<value>-?\d{{0,12}}(?P<point>\.?)\d|nan|inf))"
)
"""``loss in epoch 3 iteration 20: 0.5``: the counters stand between the name and the value. The epoch of a best value
is not the current one."""
_MAY_BE_WHOLE = ("loss", "cost", "score")
"""Endings of names whose value after a counter needs neither a sign nor decimals."""
_PLACES_BEHIND = (" at ", " @ ", " after ", " for ", " in ", " on ", " of ")
_HEADED_PLACE = re.compile(
    rf"(?i)\A\s?((?:validation|test|train(?:ing)?) )loss at ({_COUNTER})(?: on [\w -]{{1,40}})?(?=\s?\|)"
)
"""``validation loss at iteration 70 | lm loss value: 6.5``: the heading that Megatron prints before the values."""


_TOTAL_BESIDE = re.compile(
    r"(?i)\b((epoch|step|iter(?:ation)?|batch|update)(?:e?s)?)\s?/\s?"
    r"(?:(?:total|num|max|all|n)[_ ]?\2?(?:e?s)?|\2(?:e?s)?)(?=\s?[:=]\s{0,4}[\[(]?\s{0,4}\d{1,12}\s?/)"
)
"""``step/total_step: 5/60``: both names, then both numbers."""


_BEHIND_A_WORD = re.compile(r"[a-zA-Z]\s?/")
"""Searched for first: most slashes stand between numbers."""
_WORDS_BEHIND = re.compile(
    r"(?i)(?<![\w./-])(\d{1,9}) (epoch|step|iter(?:ation)?|batch|update)(?:e?s)? ?/ ?(\d{1,9}) \2(?:e?s)?\b"
)
"""``3 epochs / 20 epochs``."""
_PASS = re.compile(r"\b[Pp]ass[ :=]{1,2}(?=\d{1,6}[ ,]{1,3}(?:(?:train|trained|training) )?[Bb]atch[ :=])")
"""``Pass 3, Batch 20``: a pass is an epoch if batches are counted after it."""


_NAMED_CELL = rf"[A-Za-z][\w@/%.-]{{0,40}}(?: |: ?|=)(?:{NUMBER}|nan|inf)%?"
_NUMBERED_CELLS = re.compile(
    rf"\A(\d{{1,9}})(?:\t|:\t| \| )({_NAMED_CELL}(?:(?:\t| \| ){_NAMED_CELL}){{1,30}})[\t |]{{0,3}}\Z"
)
_NAME_AND_VALUE = re.compile(rf"(?<![^\t ])([A-Za-z][\w@/%.-]{{0,40}})(?: |: ?|=)(?={NUMBER}|nan|inf)")
"""``3\treward_avg 44.85\tlength 120``: the line's counter, then cells of one name and one value each."""


_NAMES_FIRST = re.compile(
    rf"\A([A-Za-z_]\w{{0,40}}(?:, ?[A-Za-z_]\w{{0,40}}){{1,11}})[:=]?((?: {{1,2}}{NUMBER},?){{2,12}})\Z"
)
"""``loss_a,loss_b 7.187 5.516``, the output of ``print("loss_a,loss_b", a, b)``."""
_TIMES_A_NAME = re.compile(r"(?<![\w.])\d[\d.]{0,12}×(?=[^\W\d_])")
"""``Fraction within 1.025×optimal: 90.7%``: the factor is part of the name."""


def _names_first(line: str) -> str:
    """Pair the names with the values if there are equally many; with only two, one must name a loss or a measure."""
    found = _NAMES_FIRST.match(line) if "." in line else None
    if found is None:
        return line
    names, values = found[1].replace(" ", "").split(","), found[2].replace(",", "").split()
    sure = len(names) > 2 or any(map(found[1].lower().__contains__, ("loss", "acc", "err")))
    return ", ".join(map(": ".join, zip(names, values, strict=True))) if sure and len(names) == len(values) else line


def _listed(line: str) -> str:
    """Rewrite commas and dashes between names and values."""
    if line.startswith(("lr, ", "learning rate, ")):
        return _RATE_ALONE.sub(r"\1: ", line)
    if line.count(": ") == 1 and line[-1:].isdigit():
        line = each_in_turn(line)
    if "=" not in line and ":" not in line and _ALL_COMMAS.match(line):
        line = _BY_COMMA.sub(r"\1: ", line)
    if "=" not in line and ":" not in line and line[-1:].isdigit():
        line = _LAST_BY_COMMA.sub(r"\1: ", line)
    if " - " in line and "." in line and _ALL_DASHES.match(line):
        line = _BY_DASH.sub(": ", line)
    return line


def _signed(line: str) -> str:
    """Rewrite unusual signs between names and values, inside brackets and after values."""
    if "±" in line or "+/-" in line or "+-" in line:
        line = _SPREAD.sub("", line)
    if "~" in line or "≈" in line:
        line = _APPROXIMATE.sub(r"\1", line)
    if " ..." in line:
        line = _DOTTED.sub(": ", line)
    if line.startswith("Step ") and " | " in line:
        line = _BEHIND_A_RULE.sub(r"\1: ", line)
    if "@" in line:
        line = _HITS.sub(r"\1@\3\2", line)
    if "oss, " in line or "etric, " in line:
        line = _GROUPED.sub(r"\1 ", line)
    if "][" in line:
        line = _BY_COLON.sub(r"[\1/\2]", line)
    return line


def respelt(line: str) -> str:
    """Return the line as most programs would print it."""
    if not line.isascii():
        line = spell_ordinals(line)
    if "×" in line:
        line = _TIMES_A_NAME.sub("", line)
    if "," in line and not _DECIMAL_POINT.search(line):
        # Commas are decimal if at least one cannot separate thousands: ``0,512``, ``1,25``.
        line = _COMMA.sub(r"\1.\2", line) if _DECIMAL_COMMA.search(line) else line
    if "│" in line or "┃" in line:
        line = _CELLS.sub(r"\1: \2", line)
    line = _values_in_their_own_notation(line)
    if line[:1].isdigit() and ("\t" in line or " | " in line) and (cells := _NUMBERED_CELLS.match(line)) is not None:
        line = _with_counter(line, cells)
    if line[-1:].isdigit() and "," in line:
        line = _names_first(line)
    line = _signed(line)
    if line.startswith(("[", "(", "Train", "EP", "Ep", "ep")):
        line = _place_in_front(line)
    if line[-1:].isalpha() and "oss" in line:
        line = _VALUE_FIRST.sub(r"\2: \1", line)
    if "E=" in line:
        line = _SOCKEYE.sub(r"epoch \1 step \2", line)
    if "poch." in line:
        line = _EPOCH_POINT.sub(r"\1 \2:", line)
    if "total_" in line:
        line = _AT_STEP.sub(r"\1step", line)
    if "," in line:
        line = _listed(line)
    line = each_of_both(line)
    if "/" in line:
        line = _around_strokes(line)
    if "poch" in line or any(map(line.__contains__, _PLACES_BEHIND)):
        line = _counters_first(line)
    if any(map(line.__contains__, _JOINED)):
        line = _COUNTERS.sub(r"\1 \4 \2 \5", line)
    if "top" in line or "Top" in line:
        line = _RANKED.sub(r"\1_\2_\3", line)
    line = _without_windows(line)
    line = _HYPHENED.sub(" ", line) if "-" in line else line
    if ":" in line and line[-1:].isdigit():
        line = _RUN_ON.sub(r"\1 ", line)
    if _GLUE.search(line):
        line = _GLUED.sub(r"\1 ", line)
    return line


def _without_windows(line: str) -> str:
    """Remove the numbers that tell the window of an average."""
    if "ast " in line or " over " in line or " per " in line or " across " in line:
        line = _WINDOW.sub(lambda match: f" ({match[1] or match[2]})", _WINDOW_IN_FRONT.sub("", line))
    return _WINDOW_BEHIND.sub(" ", line) if ") " in line and line[-1:].isdigit() else line


def _with_counter(line: str, cells: re.Match[str]) -> str:
    """Read the number in front of cells as a step: ``step 3 reward_avg: 44.85``.

    Beside a loss the line is left as it is: its context tells what the number counts.
    """
    if "." not in cells[2] or "oss" in cells[2] or "LOSS" in cells[2]:
        return line
    return f"step {cells[1]} " + _NAME_AND_VALUE.sub(r"\1: ", cells[2])


def _values_in_their_own_notation(line: str) -> str:
    """Rewrite values that single programs print in a notation of their own, or under a longer phrase than a name."""
    if "ccuracy o" in line:
        line = _OF_SAMPLES.sub(lambda m: f"{m[1]}:" if " " in m[1] else f"{m[2] or ''} {m[1]}:", line)
    if "maxDets=" in line:
        line = _COCO.sub(r"\1\2\3@\4: ", line)
    if "f0" in line or "f-" in line or "f1" in line:
        line = _SINGLE_PRECISION.sub(r"\1e\2", line)
    if "np." in line:
        line = _OF_NUMPY.sub(r"\1", line)
    if "n.0" in line or "f.0" in line:
        line = _NOT_FINITE.sub(r"\1", line)
    if "osses: " in line:
        line = _PARTS.sub(_with_signs, line)
    if "est score" in line:
        line = _BEST_SCORE.sub(r"best \1", line)
    return line


def _counters_first(line: str) -> str:
    """Move counters that follow a name, or have an unusual order or brackets, to the front."""
    if "oss at " in line:
        line = _HEADED_PLACE.sub(r"\1\2", line)
    line = _NAMED_PLACE.sub(_place_first, line)
    line = _COUNT_FIRST.sub(r"\2\3 \1", line, count=1) if _COUNT_FIRST.match(line) else line
    line = _COUNT_IN_EPOCH.sub(r"epoch \2 [\1]", line) if line[:1].isdigit() else line
    if " epoch" in line:
        line = _TRAINING_NTH.sub(r"\1\3 \2", line)
        line = _FINISHED_EPOCH.sub(r"\1 \3 \2", _STEPS_OF_EPOCH.sub("", line))
    return _BARRED.sub(r"[\1/\2]", line) if "poch: [" in line else line


def _place_first(match: re.Match[str]) -> str:
    """``Valid MRR at step 50: 0.25`` as ``step 50 Valid MRR: 0.25``; not if the value may not be a measurement."""
    name, place = match["name"], match["place"] or f"{match['unit']} {match['count']}"
    measured = match["sign"] and (match["point"] or match["value"][-1:] in "nNfF")
    if not measured and not name.lower().endswith(_MAY_BE_WHOLE):
        return match.group()
    return f"{place} {match['inner'] or ''} {name}"


def _around_strokes(line: str) -> str:
    """Rewrite a count and its total, with both names before them or each name after its number, as ``name 3/20``."""
    line = _EACH_IN_BRACKETS.sub(r"[\1/\2]", line) if "]/[" in line else line
    if line.count("/") > 1:
        line = each_of_list(_THREE_COUNTS.sub(r"\1\2", line))
    if "it/" in line:
        return _COUNTED_UNIT.sub(r"\1/\2", line)
    if _BEHIND_A_WORD.search(line) is None:
        return line
    line = each_of_statistics(line)
    return _WORDS_BEHIND.sub(r"\2 \1/\3", _TOTAL_BESIDE.sub(r"\1", line))


def _place_in_front(line: str) -> str:
    """Rewrite the counters that a line starts with."""
    if line.startswith("[Pass "):
        return _PASS.sub("epoch ", line, count=1)
    if line[:1] in "Ee":
        line = _LOADED_EPOCH.sub("epoch ", line)
        return _EPOCH_OF.sub(r"epoch \1 \2", line)
    if line.startswith("['"):
        return _IN_TUPLE.sub(r" \1: ", line).rstrip("']") if _LIST.match(line) else line
    if line.startswith("("):
        line = _PLACE_IN_BRACKETS.sub(r"\1 \2: ", line)
        return _IN_TUPLE.sub(r" \1: ", line)[:-1] if _TUPLE.match(line) else line
    if line.startswith("Train"):
        line = _TRAINED_EPOCH.sub(r"Train epoch \1 [\2]", line)
        return _TRAINED.sub(r"epoch \1", line) if ", loss: " in line else line
    if line.startswith("[("):
        return _OF_TASK.sub("", line)
    line = _RATE_TAG.sub(r"\1: ", line)
    line = _OF_EPOCH.sub(r"epoch \1 [\2/\3]", line) if "]" in line[:32] else line
    return _TAGGED_EPOCH.sub(r"[\1] epoch \2 ", line) if "|" in line[:20] else line


def _with_signs(match: re.Match[str]) -> str:
    return re.sub(r"([A-Za-z_]\w{0,20}) (?=-?\d)", r"\1: ", match.group())


def spell_ordinals(line: str) -> str:
    """``第 3 轮`` as ``epoch 3``; also separate digits from letters in scripts without spaces between words."""

    def spell_out(match: re.Match[str]) -> str:
        number, word = (match[1] or match[3]).replace(" ", ""), match[2] or match[4]
        return f" {'step' if word in ('步', 'ステップ', '스텝') else 'epoch'} {number} "

    return _UNSPACED_DIGIT.sub(" ", _ORDINAL.sub(spell_out, line))
