"""The compact rules of the supervisor: plain data that the supervisor's own code understands."""

from __future__ import annotations

import json
import re

import pytest

from mpstui.core.diagnosis.engine import supervisor_rules
from mpstui.supervisor.attempt import Ending
from mpstui.supervisor.conclusion import find_cause
from mpstui.wire.records import CauseRule

from .excerpts import EXCERPTS

RULES = [CauseRule(**rule) for rule in json.loads(json.dumps(supervisor_rules()))]
NAMED = {rule.id for rule in RULES}
# Their messages wrap over lines, which a search line by line cannot see, or are symptoms of another restart cause.
ONE_LINE = [
    (rule_id, text) for rule_id, text in EXCERPTS if rule_id in NAMED and not re.search(r"out of\nmemory", text)
]


def test_the_shape_is_the_promised_one() -> None:
    assert {"mps_oom", "metal_cmdbuf", "mps_assert_ndarray", "killed_os", "disk_full"} <= NAMED
    for rule in supervisor_rules():
        assert set(rule) == {"id", "patterns", "signals", "codes", "unless"}
        assert all(isinstance(pattern, str) for pattern in (*rule["patterns"], *rule["unless"]))
        assert all(isinstance(number, int) for number in (*rule["signals"], *rule["codes"]))


def test_patterns_are_valid_in_python_3_10() -> None:
    for rule in RULES:
        for pattern in (*rule.patterns, *rule.unless):
            re.compile(pattern)
            plain = re.sub(r"\[[^\]]*\]", "x", re.sub(r"\\.", "x", pattern))
            assert not re.search(r"\(\?>|[*+?}]\+", plain), "atomic groups and possessive quantifiers are of 3.11"


@pytest.mark.parametrize(
    ("rule_id", "text"), ONE_LINE, ids=[f"{rule_id}-{n}" for n, (rule_id, _) in enumerate(ONE_LINE)]
)
def test_the_supervisor_names_a_cause_for_every_excerpt(rule_id: str, text: str) -> None:
    found = find_cause(RULES, Ending(code=1), text)
    assert found is not None
    assert found[0] == rule_id or rule_id in {"metal_cmdbuf", "segfault", "omp_duplicate", "compile_mps", "metal_xpc"}


@pytest.mark.parametrize(
    ("signal", "rule_id"), [(9, "killed_os"), (11, "segfault"), (10, "bus_error"), (7, "bus_error")]
)
def test_a_signal_alone_is_enough(signal: int, rule_id: str) -> None:
    found = find_cause(RULES, Ending(code=None, signal=signal), "step 3 loss 0.1")
    assert found is not None
    assert found[0] == rule_id


def test_an_abort_alone_says_nothing() -> None:
    assert find_cause(RULES, Ending(code=None, signal=6), "step 3 loss 0.1") is None


OTHERS = [(rule_id, text) for rule_id, text in EXCERPTS if rule_id not in NAMED]


@pytest.mark.parametrize(("rule_id", "text"), OTHERS, ids=[f"{rule_id}-{n}" for n, (rule_id, _) in enumerate(OTHERS)])
def test_what_the_card_calls_otherwise_is_not_named_here(rule_id: str, text: str) -> None:
    found = find_cause(RULES, Ending(code=1), text)
    assert found is None, f"the events would say {found[0]}, the card {rule_id}"
