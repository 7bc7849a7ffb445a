"""What a training says that it is trained with (``report.config``), wherever a run is looked at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import RunSnapshot
from mpstui.core.runs.comparison import differences
from mpstui.core.runs.details import details
from mpstui.core.runs.listing import column, columns_of
from mpstui.core.runs.query import findable, parse_query
from mpstui.core.runs.report import as_json
from mpstui.core.runs.run_settings import settings_of
from mpstui.core.runs.summaries import Summaries
from mpstui.core.sharing.page import page
from mpstui.core.sharing.trackers import tracked
from mpstui.wire.secrets import HIDDEN
from tests.core.runs.build import FakeClock, RunBuilder, make_monitor


def ended(home: Home, *words: str, **config: Any) -> RunBuilder:
    """A run that was started with these words, and said what it is trained with."""
    run = RunBuilder(home).status("ended").launch().exit(code=0)
    launched_with(run, 1, *words)
    if config:
        run.run.attempt(1).config.write_text(json.dumps(config))
    return run


def launched_with(run: RunBuilder, attempt: int, *words: str) -> None:
    launch = run.run.attempt(attempt).launch
    launch.write_text(json.dumps({**json.loads(launch.read_text()), "argv": ["python", "t.py", *words]}))


def shown(home: Home, run: RunBuilder) -> RunSnapshot:
    return make_monitor(home, FakeClock()).snapshot(run.run.run)


def section(snapshot: RunSnapshot, title: str) -> dict[str, str]:
    return dict(next((one.pairs for one in details(snapshot) if one.title == title), ()))


def test_it_is_seen_wherever_a_run_is_looked_at(home: Home) -> None:
    config = {"lr": 0.001, "optimizer": {"name": "adam", "betas": [0.9, 0.99]}, "hub_token": "xyz", "none": None}
    one = shown(home, ended(home, "--batch-size", "8", "--ema", batch_size=8, ema=True, **config))
    assert section(one, "arguments")["batch_size"] == "8"
    assert section(one, "settings") == {
        "lr": "0.001",
        "optimizer.name": "adam",
        "optimizer.betas": "[0.9, 0.99]",
        "hub_token": HIDDEN,
        "none": "none",
    }
    settings = as_json(one, full=True)["settings"]
    assert {"lr": "0.001", "batch_size": "8", "optimizer.name": "adam"}.items() <= settings.items()
    assert not [name for name in settings if "-" in name]  # what both tell is there once
    for words in ("lr>=0.001", "lr<0.01", "optimizer.name=adam", "batch-size=8", "ema=true"):
        assert parse_query(words).matches(findable(one)), words
    assert not parse_query("lr>0.001").matches(findable(one))
    names = [item.id for item in columns_of([one])]
    assert "set:optimizer.name" in names
    found = column("set:lr")
    assert found is not None
    assert found.value(one, 0.0) == 0.001
    assert tracked(one).config["lr"] == 0.001
    html = page([one])
    assert "optimizer.name" in html
    assert "xyz" not in html


def test_runs_are_compared_by_what_is_meant(home: Home) -> None:
    """One says it in its command, another one in its code: only what differs is told."""
    first = shown(home, ended(home, "--lr", "1e-3", "--amp", "--batch-size=8"))
    second = shown(home, ended(home, lr=0.001, amp=True, batch_size=16, model={"depth": 3}))
    assert [(one.name, one.values) for one in differences([first, second])] == [
        ("batch_size", ("8", "16")),
        ("model.depth", (None, "3")),
    ]


def test_the_newest_attempt_that_said_it_counts(home: Home) -> None:
    run = ended(home, "--lr", "0.1", lr=0.1, seed=1)
    ended_again = run.status("ended", 2).launch(2).run.attempt(2)
    launched_with(run, 2, "--lr", "0.2")
    before = settings_of(shown(home, run))  # it has not said anything yet: what its command names holds
    assert (before["lr"], before["seed"]) == ("0.2", "1")
    ended_again.config.write_text('{"lr": 0.2, "see')
    assert settings_of(shown(home, run))["lr"] == "0.2"  # half a file
    ended_again.config.write_text('{"lr": 0.3, "warmup": 5}')
    now = shown(home, run)
    assert (settings_of(now)["lr"], settings_of(now).get("seed")) == ("0.3", None)
    told = next(one.pairs for one in details(now) if one.title == "attempts")
    assert ("", "with lr=0.1 seed=1") in told


def test_a_run_that_goes_on_is_followed_and_a_kept_one_remembered(home: Home, tmp_path: Path) -> None:
    run = RunBuilder(home).status("running", trainer=[77, 5]).launch().hold()
    monitor, path = make_monitor(home, FakeClock()), run.run.attempt(1).config
    assert "lr" not in settings_of(monitor.refresh()[0])
    path.write_text('{"lr": 0.5}')
    assert settings_of(monitor.refresh()[0])["lr"] == "0.5"
    run.status("ended").exit(code=0).release()
    for _ in range(2):
        monitor = make_monitor(home, FakeClock(), kept=Summaries(tmp_path / "kept"))
        assert settings_of(monitor.refresh_whole()[0])["lr"] == "0.5"
    path.unlink()
    path.write_text('{"lr": 0.25}')
    monitor = make_monitor(home, FakeClock(), kept=Summaries(tmp_path / "kept"))
    assert settings_of(monitor.refresh_whole()[0])["lr"] == "0.25"


def test_ten_thousand_settings_are_cut_and_it_is_said(home: Home) -> None:
    one = shown(home, ended(home, **{f"layer{place}": {"rows": place} for place in range(10_000)}))
    assert len(one.settings) == 500
    (found,) = [item for item in details(one) if item.title == "settings"]
    assert found.lines[0].startswith("only the first 500 are read; all of them are in ")
    assert shown(home, ended(home, **{"deep": json.loads('{"a":' * 60 + "1" + "}" * 60)})).settings
