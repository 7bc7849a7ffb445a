"""A rule's remedy is offered because it was seen to work."""

from __future__ import annotations

from mpstui.core.diagnosis.model import Kind
from mpstui.core.diagnosis.rules import all_rules
from tests.end_to_end.test_remedies import CASES, MOVED


def test_each_remedy_that_can_be_applied_has_its_proof_end_to_end() -> None:
    """A new rule with a remedy needs an entry in ``tests/end_to_end/test_remedies.py: CASES``."""
    offered = {one.id: one.remedy for one in all_rules() if one.kind is not Kind.SYMPTOM and one.remedy.can_be_applied}
    assert set(CASES) == set(offered)
    assert set(MOVED) == {one.id for one in all_rules() if one.remedy.otherwise_device}
    for name, remedy in offered.items():
        made = {change.partition(" ")[0] for change in CASES[name].says}
        variables = {name for name in made if name.isupper()}
        assert variables <= remedy.env.keys()
        assert ("device" in made) == (remedy.device is not None)
        assert (made - variables - {"device"} != set()) == bool(remedy.args)
