"""The text in front of a number: its name, the sign that joins the two, and an opening bracket in between."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from .measures import is_duration, is_measure
from .names import Name, Role, classify
from .vocabulary import EVAL_WORDS, TRAIN_WORDS

_IN_NAME = r"[\w./@*%#&'^+\x2d]"
_OPENS = r"[\[('\"`{$*×#№]{0,2}"
_OF_SHOTS = r"(?:tohs|yaw|marg)-\d{1,2}"  # ``1-shot``
_REVERSED_KEY = re.compile(
    rf"\s{{0,8}}(?:{_OPENS}?(?:\(rosnet|\(yarr[aA](?:eciveD)?|\(\d\dtaolf\.pn)|{_OPENS})\s{{0,24}}"
    r"(?P<mark>(?<=\s):?(?:si|saw)(?=\s{1,24}['\"`*)])|=:|>=|>-|→|:|=|：|＝|~|≈|\s-\s)?\s{0,24}"
    r"['\"`*]{0,2}(?:[)\]](?:(?P<beside>[^()\[\]=:]{0,24})[(\[]\s|[^()\[\]=:]{0,12} [^()\[\]=:]{0,12}[(\[]))?"
    r"(?P<name>(?:\)(?:[^()\s=:]{1,12}|\)[^()\s=:]{1,8}\([^()\s=:]{0,8})\((?=\w))?"
    r"(?:(?=\S{0,15}\d)[\d.e+-]{1,16} (?:[*×] )?)?"
    rf"(?:{_IN_NAME}{{0,40}}(?:[^\W\d_]|{_OF_SHOTS})[ _]){{0,5}}(?:{_OF_SHOTS}(?![\w-])|{_IN_NAME}{{0,60}}[^\W\d])"
    r"(?:\*|(?:(?<=_)\d{2,5}|\d)(?=[\s,;|(\[]|\Z))?)"  # ``16_h1``, ``3d_loss``
)
"""A name, a sign and an opening bracket, backwards: the text is matched from its end, right in front of the number, as
a search from its start would try every word of a sentence."""
_COUNTED_THINGS = (" steps ", " batches ", " iters ", " iterations ", " samples ", " examples ", " images ")
_SENTENCE_END = re.compile(r"(?i)(?<!\bavg)(?<!\bave)\. ")
"""The full stop of an abbreviation (``mem avg. loss``) ends no sentence."""
_SHORTENED = re.compile(r"(?i)\A(?:[^\W\d_]{1,12}-)?(?P<word>[^\W\d_]{1,4}[^\W\d_aeiou])\. (?=\w)")
"""An abbreviation at the start of a name: ``Rec. Loss``, ``Mel-Spec. Error``; a word at the end of a sentence is longer
or ends in a vowel: ``Done. Loss``."""
_BEFORE_A_NAME = (",", ";", "|", ":", "(", "-", "\t")
_OPENING_WORDS = re.compile(
    r"(?i)\A(?:(?:the|new) (?=best\b)|(?:(?:finished|completed|done|ended) (?=with ))?"
    r"(?:(?:and|with|has|got|its|our|an?|the|was|of) )+)"
)
_CLAUSES = " and the "  # "is done and the best AP is 0.5"
_INDEX = re.compile(r"\s?\(\d{1,9}\)\Z")  # ``training score(324): 3``
_UNITS = frozenset("s ms sec seconds db nats bits percent higher lower avg".split())  # noqa: SIM905
_BESIDE = re.compile(r"(?:[^\W\d_]{1,2}-)?\w{1,24}|[^\W\d_]{2,12} \d{1,4}")
_BESIDE_A_NAME = TRAIN_WORDS | EVAL_WORDS | _UNITS
"""Units and words for the data, which in brackets after a name are not part of it."""


class Named(NamedTuple):
    """What the text in front of a number says about it."""

    key: str
    name: Name
    marked: bool
    bracketed: bool
    of_two: bool
    """True if the name may be that of two losses side by side: ``G/D loss``."""


@lru_cache(maxsize=8192)
def named_by(gap: str) -> Named:
    """Parse the text in front of a number; the name is at its end.

    Cached, as the texts between the numbers of a log are few and recur on every line.
    """
    if gap.startswith(_COUNTED_THINGS):
        gap = gap.lstrip().partition(" ")[2]  # ``6629 of 6629 steps Loss: 0.5``
    found = _REVERSED_KEY.match(gap[::-1]) if gap and not gap.isspace() else None
    bracketed = gap.rstrip()[-1:] in ("[", "【", "(", "（")
    if found is None:
        return Named("", classify(""), False, bracketed, False)
    key = _last_sentence(found["name"][::-1], gap[: len(gap) - found.end()])
    key = key.rpartition(_CLAUSES)[2]
    sign, rest = gap[len(gap) - found.end() - 1 : len(gap) - found.end()], key.partition(" ")[2]
    if rest and (sign == "=" or (sign == ":" and classify(rest).role in (Role.EPOCH, Role.STEP))):
        key = rest  # ``method=net_mse seeds=1``, ``outdir:results step:20``: its first word is a value
    key = _INDEX.sub("", _OPENING_WORDS.sub("", key))
    clause, _, measured = key.rpartition(" with ")
    if clause and is_measure(measured) and not is_measure(clause):
        key = measured  # ``best model saved with BLEU-2: 65.8``
    clause, _, measured = key.rpartition(" is ")
    if clause and is_measure(measured) and not is_measure(clause):
        key = measured  # ``the result of Net is test acc: 65.8``
    name, said = classify(key), False
    if key.endswith((" is", " was", " are")):
        bare = key.rpartition(" ")[0]  # ``val loss is 0.5``, ``Epoch is [1/20]``
        meant = classify(bare)
        said = meant.role is not Role.OTHER or is_measure(bare) or is_duration(bare)
        key, name = (bare, meant) if said else (key, name)
    beside = (found["beside"] or "")[::-1]
    if _BESIDE.fullmatch(beside) is not None and beside.lower() not in _BESIDE_A_NAME and is_measure(key):
        key = f"{key} ({beside})"  # ``F1 (macro): 0.5``, ``Loss (policy): 0.5``
        name = classify(key)
    of_two = "/" in key and name.role is Role.LOSS and name.rank > 0
    return Named(key, name, bool(found["mark"]) or said, bracketed, of_two)


def _last_sentence(text: str, before: str) -> str:
    """Return the name in ``text``, without any sentence that ends in it; ``before`` is the text in front."""
    shortened = _SHORTENED.match(text)
    start = 0
    if shortened is not None and shortened["word"].lower() not in TRAIN_WORDS | EVAL_WORDS:
        opens = not before.strip(" ") or before.rstrip(" ").endswith(_BEFORE_A_NAME)
        start = shortened.end() if opens else 0
    *sentences, last = _SENTENCE_END.split(text[start:])
    return (last if sentences else text[:start] + last).rpartition("..")[2].strip().lstrip("*.")
