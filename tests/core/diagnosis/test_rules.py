"""Every rule recognises its own messages, first, in each wording."""

from __future__ import annotations

import pkgutil
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpstui.core.diagnosis import rules
from mpstui.core.diagnosis.engine import diagnose
from mpstui.core.diagnosis.log_text import literal_hints, screen_lines
from mpstui.core.diagnosis.model import Evidence, Remedy, Rule
from mpstui.core.diagnosis.rules import all_rules, rule

from .excerpts import EXCERPTS, HARMLESS


def evidence(text: str) -> Evidence:
    return Evidence(lines=tuple(screen_lines(text.split("\n"))))


@pytest.mark.parametrize(
    ("rule_id", "text"), EXCERPTS, ids=[f"{rule_id}-{n}" for n, (rule_id, _) in enumerate(EXCERPTS)]
)
def test_the_message_is_explained_by_its_rule_first(rule_id: str, text: str) -> None:
    findings = diagnose(evidence(text))
    assert [finding.id for finding in findings][:1] == [rule_id], [(f.id, f.confidence) for f in findings]


@pytest.mark.parametrize("text", [text for _, text in HARMLESS], ids=[name for name, _ in HARMLESS])
def test_what_ended_nothing_and_what_is_no_class_gives_no_finding(text: str) -> None:
    assert [(finding.id, finding.evidence) for finding in diagnose(evidence(text))] == []


TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    main()\n'
TRAINING = "".join(f"epoch 1 step {step} loss 0.{step} 3.2it/s\n" for step in range(30))
DISGUISES: dict[str, Callable[[str], str]] = {
    "coloured": lambda text: "\n".join(f"\x1b[31m{line}\x1b[0m" for line in text.split("\n")),
    "wrapped": lambda text: "\n".join(piece for line in text.split("\n") for piece in textwrap.wrap(line, 60) or [""]),
    "framed": lambda text: "\n".join(f"│ {line} │" for line in text.split("\n")),
    "after training": lambda text: TRAINING + text,
    "after a traceback": lambda text: TRACEBACK + text,
    "before a metric summary": lambda text: text + "\n" + "\n".join(f"wandb: loss {n}" for n in range(9)),
    "before srun's end": lambda text: (
        f"{text}\nsrun: error: gpu07: task 0: Exited with exit code 1\nsrun: Terminating StepId=815.0\n"
        "slurmstepd: error: *** STEP 815.0 ON gpu07 CANCELLED AT 2026-03-02T10:11:12 ***"
    ),
    "before the launcher's error": lambda text: text + "\nsubprocess.CalledProcessError: exit status 1.",
}


@pytest.mark.parametrize("disguise", DISGUISES.values(), ids=DISGUISES.keys())
def test_what_surrounds_a_message_does_not_hide_it(disguise: Callable[[str], str]) -> None:
    missed = [
        (rule_id, text)
        for rule_id, text in EXCERPTS
        if [finding.id for finding in diagnose(evidence(disguise(text)))][:1] != [rule_id]
    ]
    assert missed == []


@given(st.text(), st.integers(-70, 300) | st.none(), st.integers(1, 64) | st.none())
def test_no_text_breaks_a_diagnosis(text: str, code: int | None, signal: int | None) -> None:
    lines = tuple(screen_lines(text.split("\n")))
    for finding in diagnose(Evidence(lines=lines, exit_code=code, signal=signal)):
        assert 0 < finding.confidence < 1


def test_every_rule_has_an_excerpt() -> None:
    assert {one.id for one in all_rules()} == {rule_id for rule_id, _ in EXCERPTS}


def test_ids_are_unique_and_found_by_name() -> None:
    modules = [import_module(f"{rules.__name__}.{found.name}") for found in pkgutil.iter_modules(rules.__path__)]
    counts = Counter(one.id for module in modules for one in module.RULES)
    assert set(counts.values()) == {1}
    assert counts.keys() == {one.id for one in all_rules()}
    assert rule("mps_oom").title == "MPS ran out of memory"
    with pytest.raises(KeyError):
        rule("no_such_rule")


@pytest.mark.parametrize("one", all_rules(), ids=lambda one: one.id)
def test_a_rule_is_complete_and_names_only_rules_that_exist(one: object) -> None:
    found = next(candidate for candidate in all_rules() if candidate is one)
    assert found.title
    assert found.cause.endswith(".")
    assert found.remedy.text.endswith((".", ")"))
    assert found.sources
    assert found.patterns
    assert 0 < found.confidence < 1
    known = {candidate.id for candidate in all_rules()}
    assert set(found.outranks) <= known - {found.id}


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ModuleType]]:
    """Modules that other packages offer; all rules are loaded anew with them."""
    offered: list[ModuleType] = []
    monkeypatch.setattr(rules, "plugin_modules", lambda group: tuple(offered))
    all_rules.cache_clear()
    yield offered
    all_rules.cache_clear()


def offering(*found: object) -> ModuleType:
    module = ModuleType("plugin")
    vars(module)["RULES"] = found
    return module


MOON = Rule(
    id="full_moon", title="Full moon", cause="It shone.", remedy=Remedy(text="Wait."), patterns=(r"moonstruck tensor",)
)


def test_rules_of_other_packages_explain_too(plugins: list[ModuleType]) -> None:
    plugins.append(offering(MOON))
    assert [finding.id for finding in diagnose(evidence("ValueError: moonstruck tensor"))] == ["full_moon"]


def test_a_mistake_in_another_package_costs_its_own_rule_alone(plugins: list[ModuleType]) -> None:
    torn = replace(MOON, id="torn", patterns=("moon(",))
    shadow = replace(MOON, id="mps_oom")
    plugins += [offering(torn, "no rule", shadow, MOON), ModuleType("without_rules")]
    assert [finding.id for finding in diagnose(evidence("ValueError: moonstruck tensor"))] == ["full_moon"]
    assert rule("mps_oom").title == "MPS ran out of memory"


PATTERNS = [(one.id, pattern) for one in all_rules() for pattern in (*one.patterns, *one.weak_patterns)]


@pytest.mark.parametrize(("rule_id", "pattern"), PATTERNS)
def test_a_pattern_is_bounded_and_has_a_cheap_hint(rule_id: str, pattern: str) -> None:
    assert not re.search(r"\.[*+]|\\[sSW][*+]", pattern), "an unbounded run over anything invites backtracking"
    unescaped = re.sub(r"\\.", "", pattern)
    assert not re.search(r"\[[^\]]* [^\]]*\]", unescaped), "a space inside a class would become part of a nested class"
    assert literal_hints(pattern), "without a hint the pattern is searched in every log"


@pytest.mark.parametrize(
    ("pattern", "hints"),
    [
        (r"MPS backend out of memory", ("mps", "backend", "out", "of", "memory")),
        (r"colou?r space", ("colo", "space")),
        (r"a|b", ()),
        (r"\bbus error\b", ("bus", "error")),
        (r"Input type \(MPS\w+\)", ("input", "type", "(mps")),
        (r"ab+cdef", ("ab", "cdef")),
        (r"x{2}yz", ("yz",)),
        (r"(?:one|two) three[\s)]four!", ("three", "four!")),
    ],
)
def test_the_hints_are_part_of_every_match(pattern: str, hints: tuple[str, ...]) -> None:
    assert literal_hints(pattern) == hints
