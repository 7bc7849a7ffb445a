"""Each source has its line: ok, or n/a with the reason; what no recording has shown is marked."""

from __future__ import annotations

import sys

import psutil  # type: ignore[import-untyped]
import pytest

from mpstui.core.doctor.machine_check import judge_telemetry, read_sources
from mpstui.core.doctor.report import Status
from mpstui.core.telemetry.model import HostFacts
from mpstui.core.telemetry.sampler import Sampler
from mpstui.core.telemetry.source import Facts, NotYet, Source, SourceError, SourceRequest


class Told(Source):
    """Answers, at once or at the second reading."""

    name = "told"
    gives = ("memory_used_bytes", "cpu_percent")
    period_seconds = 0.0

    def __init__(self, late: bool = False) -> None:
        self.late = late

    def read(self, request: SourceRequest) -> Facts:
        if self.late:
            self.late = False
            raise NotYet("the first line is on its way")
        return Facts(host=HostFacts(cpu_percent=1.0))


class Silent(Source):
    """Never answers, and was never seen."""

    name = "silent"
    verified = False

    def read(self, request: SourceRequest) -> Facts:
        raise SourceError("the program is not installed")


def test_every_source_has_a_line_with_its_reason_and_its_mark() -> None:
    reports = read_sources(lambda: Sampler([Told(), Silent()]))
    ok, silent = judge_telemetry(reports, "Linux")
    assert (ok.status, ok.text) == (Status.OK, "telemetry: told: memory used, cpu %")
    assert silent.status is Status.NOTE, "a silent source stops no training"
    assert silent.text.startswith("telemetry: silent: n/a, the program is not installed (unverified")
    assert [(report.name, report.reason) for report in reports] == [
        ("told", ""),
        ("silent", "the program is not installed"),
    ]


def test_a_first_value_is_waited_for_and_not_for_ever() -> None:
    (report,) = read_sources(lambda: Sampler([Told(late=True)]))
    assert report.reason == ""
    (report, _) = read_sources(lambda: Sampler([Told(late=True), Silent()]), patience_seconds=-1.0)
    assert report.waits


def test_on_a_mac_the_reports_of_memory_kills_are_marked() -> None:
    assert "JetsamEvent" in list(judge_telemetry((), "Darwin"))[-1].text
    assert list(judge_telemetry((), "Linux")) == []


@pytest.mark.skipif(sys.platform != "linux", reason="the list of Linux")
def test_this_machine_is_read_and_no_child_stays() -> None:
    before = {child.pid for child in psutil.Process().children()}
    lines = {report.name: report for report in read_sources()}
    assert lines["psutil memory"].reason == ""
    assert lines["process table"].reason == ""
    assert {child.pid for child in psutil.Process().children()} <= before
