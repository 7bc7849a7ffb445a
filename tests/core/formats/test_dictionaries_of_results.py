"""Results that a program prints as a dictionary, of whatever kind and over however many lines."""

from __future__ import annotations

import pytest

from mpstui.core.formats.reader import LogReader

TRAINED = b"Epoch 1/2 loss 2.5\nEpoch 2/2 loss 1.5\n"
FORMS = (
    "{'recall@10': 0.125, 'mrr': 0.25}\n",
    "OrderedDict([('recall@10', 0.125), ('mrr', 0.25)])\n",
    "OrderedDict([('recall@10', tensor(0.125)), ('mrr', np.float64(0.25))])\n",
    "[('recall@10', 0.125), ('mrr', 0.25)]\n",
    "{'recall@10': 0.125,\n 'mrr': 0.25}\n",
    '{\n    "recall@10": 0.125,\n    "mrr": 0.25\n}\n',
)
NO_RESULTS = (
    "OrderedDict([('conv', 0.25), ('fc', 0.5)])\n",
    "OrderedDict([('weight', tensor([0.25, 0.5])), ('bias', tensor([0.1]))])\n",
    "{'lr': 0.1,\n 'momentum': 0.9}\n",
    "Pipeline(steps=[('scale', 0.5), ('model', 3)])\n",
    "{'accuracy': 0.5,\n 'model': 'small',\n 'data': 'digits'}\n",
    "loss_weights: {'accuracy': 0.5,\n 'f1': 0.25}\n",
    "metric_weights: OrderedDict([('accuracy', 0.5), ('f1', 0.25)])\n",
)


def _measured(text: str) -> dict[str, float]:
    reader = LogReader()
    points = [*reader.feed(TRAINED), *reader.feed(text.encode()), *reader.close()]
    assert [point.loss for point in points if point.loss is not None] == [2.5, 1.5]
    told = {name: value for point in points[2:] for name, value in {**point.metrics, **point.eval_metrics}.items()}
    assert set(told) <= set(reader.summary().metrics)
    return told


@pytest.mark.parametrize("form", FORMS)
def test_results_are_metrics_however_the_dictionary_is_printed(form: str) -> None:
    assert _measured(form) == {"recall@10": 0.125, "mrr": 0.25}


@pytest.mark.parametrize("form", FORMS[:5])
def test_a_word_in_front_says_on_which_data_they_were_measured(form: str) -> None:
    assert _measured(f"test result: {form}") == {"test recall@10": 0.125, "test mrr": 0.25}


@pytest.mark.parametrize("text", NO_RESULTS)
def test_settings_and_parameters_are_no_results(text: str) -> None:
    assert _measured(text) == {}
