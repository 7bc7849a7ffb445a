"""What `mpstui restart --fix` applies to a failed run, or why nothing can be applied and what to do instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..core.diagnosis.engine import diagnose_run
from ..core.launching.cure import cure_of
from ..core.model.errors import OperationError, ReportedError, UsageError
from ..core.present import failed_or_stuck
from ..core.runs.monitor import Monitor
from ..wire.rundir import RunDir
from .session import Session, say_lines

if TYPE_CHECKING:
    from ..core.diagnosis.model import Finding
    from ..core.launching.cure import Cure
    from ..core.model.snapshot import RunSnapshot


def fixed(snapshot: RunSnapshot, sets: Mapping[str, str], *, accept_risk: bool) -> Cure:
    """Apply the diagnosed remedy to a run's launch; prints on standard error what that changes.

    Raises:
        OperationError: no change of the launch is known to help.
        UsageError: the remedy needs a value, an argument or a consent that was not given.
    """
    run, session, findings = RunDir(snapshot.dir), Session(), diagnose_run(snapshot.dir)
    cure = cure_of(run, findings, session.environ, session.home.arguments, ask=True)
    if cure is None:
        raise _nothing_to_apply(snapshot, findings)
    cure, title = cure.with_sets(sets), cure.finding.title
    if cure.asks:
        wanted = " ".join(f"--set {name}=..." for name in cure.asks)
        raise UsageError(f"{title}: {cure.sentence}", f"give the value with {wanted}")
    if not cure.works and not sets:
        by_hand = f"`mpstui restart {snapshot.run} --set NAME=VALUE`, or change the code and restart it as it was"
        raise UsageError(f"{title}: {cure.sentence}", f"{cure.finding.remedy.text} By hand: {by_hand}")
    if cure.risk and not accept_risk:
        raise UsageError(f"{title}: {cure.risk}", "add --accept-risk if you accept that")
    say_lines(f"{title}: {cure.sentence}", beside=True)
    return cure


def _nothing_to_apply(snapshot: RunSnapshot, findings: Sequence[Finding]) -> ReportedError:
    """Return the error that no change of the launch helps, with what to do instead."""
    name = snapshot.run
    if findings:
        return OperationError(f"{findings[0].title}: no change of the launch helps", findings[0].remedy.text)
    if not failed_or_stuck(Monitor(Session().home).snapshot(name)):
        again = f"`mpstui restart {name}` starts it again, `--set NAME=VALUE` with other arguments"
        return UsageError(f"{name} has not failed: there is nothing to fix", again)
    by_hand = (
        f"`mpstui diagnose {name}` shows how it ended; `mpstui restart {name} --set NAME=VALUE` changes an argument"
    )
    return OperationError(f"why {name} failed is not known, so neither is what helps", by_hand)
