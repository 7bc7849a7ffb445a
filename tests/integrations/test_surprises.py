"""Callbacks that meet what they do not know, in every framework: they say so, and the training goes on."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.integrations.conftest import Training
from tests.integrations.test_frameworks import FRAMEWORKS
from tests.integrations.test_huggingface import GIVEN as TRAINER
from tests.integrations.test_lightning import GIVEN as LIGHTNING

GIVEN = {
    **{heading: (one.module, one.given) for heading, one in FRAMEWORKS.items() if heading != "Accelerate"},
    "Transformers": ("transformers", TRAINER),
    "Lightning": ("lightning", LIGHTNING.replace("LOG", "pass")),
}
SHORTER = (("50_000", "512"), ("epochs=3", "epochs=1"), ("fit(3)", "fit(1)"))


@pytest.mark.parametrize("heading", GIVEN)
def test_a_surprise_ends_no_training(
    heading: str, example: Callable[[str, str], str], train: Callable[[str, str], Training]
) -> None:
    module, given = GIVEN[heading]
    program = example(heading, given)
    for old, new in SHORTER:
        program = program.replace(old, new)
    program = re.sub(r"time\.sleep\([\d.]+\)", "time.sleep(0.001)", program)
    ours = "huggingface" if module == "transformers" else module
    program = program.replace(
        "\nfrom mpstui.integrations", f"\nimport mpstui.integrations.{ours} as ours\nfrom mpstui.integrations", 1
    )
    broken = program.replace("as ours\n", "as ours\nours.clear_cache_if_asked = None\n", 1)
    assert broken != program
    training = train(module, broken)
    done = training.mpstui.wait_state(training.run, "finished", timeout=600)
    assert done["exit"]["code"] == 0
    said = [one["text"] for one in done["events"] if "the callback is off" in one["text"]]
    assert len(said) == 1, done["events"]
    assert done["step"] == (done["steps"] or done["step"]) > 1  # as the agent counts
