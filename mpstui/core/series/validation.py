"""Which validation curve is drawn over which training curve, on the screen and on pages."""

from __future__ import annotations

from collections.abc import Mapping

from ..model.snapshot import SeriesView
from .metric_words import measured, names_a_criterion


def drawn_over(series: Mapping[str, SeriesView]) -> dict[str, str]:
    """The validation series that are drawn over a training series, each with that one's name.

    At most one is drawn over each; those of another axis stay alone. Where nothing validated is called a loss, the one
    that is named by its criterion (``val_nll``) is drawn over the loss.
    """
    trained: dict[tuple[str, str], str] = {}
    for name, view in series.items():
        if not view.evaluation:
            trained.setdefault((measured(name), view.axis), name)
    found: dict[str, str] = {}
    for name, view in series.items():
        below = trained.pop((measured(name), view.axis), None) if view.evaluation else None
        if below is not None:
            found[name] = below
    criteria = [name for name, view in series.items() if view.evaluation and names_a_criterion(name)]
    if len(criteria) == 1 and criteria[0] not in found:
        below = trained.get(("loss", series[criteria[0]].axis))
        found.update({criteria[0]: below} if below is not None else {})
    return found
