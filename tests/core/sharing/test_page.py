"""The page of a run: whole without a script, safe whatever a run is called, and it works when it is clicked."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from mpstui.core.model.snapshot import RunSnapshot, State
from mpstui.core.runs.monitor import Monitor
from mpstui.core.sharing.page import columns_for, page
from tests.core.runs.build import NOW, RunBuilder

from .browser import PROGRAM, Browser
from .build import home_in, poisoned_run, resumed_run


def data_of(html: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    made: dict[str, object] = json.loads(found[1])
    return made


@pytest.fixture(name="three")
def _three(tmp_path: Path) -> list[RunSnapshot]:
    home = home_in(tmp_path)
    runs = [resumed_run(home), resumed_run(home, 60, slope=2.0, age=9), poisoned_run(home, age=20)]
    monitor = Monitor(home, columns=columns_for(8))
    return [monitor.snapshot(run) for run in runs]


def test_a_page_says_all_without_a_script_and_loads_nothing(three: list[RunSnapshot]) -> None:
    html = page(three[:1], now=NOW + 100)
    without = re.sub(r"<script.*?</script>|<style>.*?</style>", "", html, flags=re.DOTALL)
    for part in ("✓ finished", "digits", "val_loss", "0.02500", "attempts", "WARNING: slow", "End of the log"):
        assert part in without
    assert not re.findall(r'(?:src|href)="(?!#)[^"]*"', html)
    assert "default-src 'none'" in html
    assert "reload" not in without


def test_hostile_words_stay_words_and_secrets_stay_away(three: list[RunSnapshot]) -> None:
    html = page(three, now=NOW + 100)
    assert len(re.findall(r"</script", html)) == 2, "the data and the script end once each"
    assert "<img" not in html
    assert not set("\x1b\x07\u202e\x9b") & set(html)
    assert "hunter2" not in html
    assert "hf_abcdef" not in html


def test_a_page_does_not_tell_who_made_it_nor_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/data/homes/maker")
    home = home_in(tmp_path)
    run = RunBuilder(home, "digits of /Users/alice/x", NOW, profile="digits").status("ended").exit(code=0)
    env = {"HOME": "/cluster/alice", "PATH": "/opt/alice/bin:/usr/bin", "LOGNAME": "alice", "OMP_NUM_THREADS": "4"}
    run.launch(env=env)
    launch = json.loads(run.run.attempt(1).launch.read_text())
    run.run.attempt(1).launch.write_text(json.dumps({**launch, "cwd": "/cluster/alice/work"}))
    spec = json.loads(run.run.spec.read_text())
    run.run.spec.write_text(json.dumps({**spec, "by": "alice@alices-laptop:4711"}))
    run.output("saved /cluster/alice/out/a.pt\nalice in the text\nread ")
    run.output("/data/homes/maker/b and file:///home/bob/c, /mnt/alice/d\n")
    html = page([Monitor(home).snapshot(run.run.run)], now=NOW + 100)
    without = re.sub(r"<script.*?</script>|<style>.*?</style>", "", html, flags=re.DOTALL)
    for private in ("/cluster/alice", "/opt/alice", "/Users/alice", "maker", "bob", "alices-laptop", "LOGNAME", "PATH"):
        assert private not in without, private
    for kept in ("~/out/a.pt", "~/work", "~/b and file://~/c, /mnt/user/d", "alice in the text", "OMP_NUM_THREADS"):
        assert kept in without, kept


def test_the_curves_keep_gaps_ranges_and_restarts(three: list[RunSnapshot]) -> None:
    charts = data_of(page(three[:1], now=NOW))["charts"]
    assert isinstance(charts, list)
    (loss,) = (chart for chart in charts if chart["title"] == "loss")
    assert [curve["val"] for curve in loss["curves"]] == [False, True]
    train = loss["curves"][0]
    assert train["y"][train["x"].index(20)] is None
    assert train["bad"] == [20]
    assert train["marks"] == [30]


def test_a_validation_loss_named_by_its_criterion_shares_the_chart_of_the_loss(tmp_path: Path) -> None:
    run = RunBuilder(home_in(tmp_path), "nll", NOW).status("ended").launch().exit(code=0)
    run.points(*({"time": NOW, "step": at, "train_loss": 1 / at, "val_nll": 2 / at} for at in range(1, 4)))
    charts = data_of(page([Monitor(home_in(tmp_path)).snapshot(run.run.run)], now=NOW))["charts"]
    assert isinstance(charts, list)
    assert [(chart["title"], [curve["name"] for curve in chart["curves"]]) for chart in charts] == [
        ("train_loss", ["train_loss", "val_nll"])
    ]


def test_a_page_of_many_curves_stays_small(tmp_path: Path) -> None:
    assert columns_for(1) == 1024
    assert columns_for(50 * 20) == 100
    assert columns_for(10**6) == 64
    run = RunBuilder(home_in(tmp_path), "wide", NOW).status("ended").launch().exit(code=0)
    names = [f"m{at}" for at in range(50)]
    run.points(*({"time": NOW, "step": at, **dict.fromkeys(names, at * 1.1)} for at in range(1, 1101)))
    html = page([Monitor(home_in(tmp_path), columns=columns_for(1000)).snapshot(run.run.run)])
    assert len(html) < 500_000


def test_a_run_with_nothing_in_it_has_a_page(tmp_path: Path) -> None:
    run = RunBuilder(home_in(tmp_path), "empty", NOW).status("queued")
    found = Monitor(home_in(tmp_path)).snapshot(run.run.run)
    html = page([replace(found, state=State.QUEUED)], reload_seconds=5)
    assert "empty" in html
    assert 'name="reload" content="5"' in html
    assert data_of(html)["charts"] == []


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium or Chrome on this machine")
def test_it_is_clicked_through_in_a_browser(three: list[RunSnapshot], tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(page(three, now=NOW + 100))
    with Browser(tmp_path / "profile") as browser:
        browser.open(file)
        browser.wait("document.querySelectorAll('figure svg path').length >= 5")
        assert browser.ask("document.title").endswith("mpstui")
        assert browser.ask("document.querySelectorAll('body script[src], img').length") == 0
        box = browser.ask(
            "(b => [b.x, b.y, b.width, b.height])(document.querySelector('figure svg').getBoundingClientRect())"
        )
        x, y = box[0] + box[2] / 2, box[1] + box[3] / 2
        browser.mouse("Moved", x, y)
        read = "document.querySelector('figure .read').textContent"
        browser.wait(f"/step \\d+/.test({read})")
        # A drag zooms every chart of that axis, a double click takes it back.
        browser.mouse("Pressed", x, y, button="left", clickCount=1)
        browser.mouse("Moved", x + box[2] / 4, y, button="left")
        browser.mouse("Released", x + box[2] / 4, y, button="left", clickCount=1)
        browser.wait("figures.filter(f => f.drawn).every(f => f.frame.left > 20)")
        browser.ask("document.querySelector('#reset').click()")
        browser.wait("figures[0].frame.left === 1")
        axes = "figures.filter(f => f.drawn).map(f => f.svg.querySelector('text.axis').textContent)"
        assert set(browser.ask(axes)) == {"step"}
        for named in ("minutes since the start", "step"):
            browser.ask("document.querySelector('#time').click()")
            assert named in browser.ask(axes)
        browser.ask(
            "(b => { b.value = 'val|loss'; b.dispatchEvent(new Event('input')); })(document.querySelector('#filter'))"
        )
        assert browser.ask("figures.filter(f => !f.element.hidden).map(f => f.chart.title)") == ["loss"]
        browser.ask("document.querySelector('#log').click()")
        assert browser.ask("figures[0].frame.low") > 0
        # A run is hidden by its box, and the table sorts by what is clicked.
        browser.ask("document.querySelector('#runs input').click()")
        assert browser.ask("figures[0].frame.shown.every(s => s.curve.run !== 0)")
        heads = browser.ask("[...document.querySelectorAll('#runs th')].map(h => h.textContent)")
        column = heads.index("best loss")
        first = f"document.querySelector('#runs tbody tr').cells[{column}].textContent"
        browser.ask(f"document.querySelectorAll('#runs th')[{column}].querySelector('button').click()")
        low = browser.ask(first)
        browser.ask(f"document.querySelectorAll('#runs th')[{column}].querySelector('button').click()")
        assert (low, browser.ask(first)) == ("0.02500", "0.3333")
        # On a telephone nothing is wider than the window.
        browser.resize(390, 844, phone=True)
        browser.wait("document.documentElement.scrollWidth <= innerWidth && innerWidth <= 390")


def test_words_and_curves_stand_out_from_both_grounds() -> None:
    css = (Path(page.__code__.co_filename).parent / "page.css").read_text()
    inks = {name: both for name, *both in re.findall(r"--(\w+): light-dark\((#\w{6}), (#\w{6})\)", css)}
    grounds = [inks.pop("ground"), inks.pop("raised")]
    del inks["edge"]
    assert {f"run{place}" for place in range(10)} < set(inks)
    for name, both in inks.items():
        for theme in (0, 1):
            assert min(contrast(both[theme], ground[theme]) for ground in grounds) >= 4.5, (name, both[theme])


def contrast(one: str, other: str) -> float:
    """As WCAG 2.2 has it."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(ink: str) -> float:
    parts = [int(ink[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_why_one_run_failed_is_read_before_its_curves(three: list[RunSnapshot]) -> None:
    alone, several = page(three[2:], now=NOW), page(three, now=NOW)
    assert alone.index("class=card") < alone.index("id=charts")
    assert several.index("<table id=runs>") < several.index("id=charts") < several.index("class=card")


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium or Chrome on this machine")
def test_what_ends_in_nan_has_one_point_or_a_long_name_is_drawn_as_it_is(tmp_path: Path) -> None:
    home, names = home_in(tmp_path), ("a study of many words seed=1", "a study of many words seed=2")
    monitor, file, found = Monitor(home, columns=columns_for(2)), tmp_path / "page.html", []
    for age, name in enumerate(names):
        run = RunBuilder(home, name, NOW - age).status("ended").launch().exit(code=0)
        losses = [0.5] if age else [1 / at for at in range(1, 61)] + [math.nan] * 40
        run.points(
            *({"time": NOW + at, "step": at, "loss": loss, "attempt": 1} for at, loss in enumerate(losses, start=1))
        )
        found.append(monitor.snapshot(run.run.run))
    edge = "(one) => one.getBoundingClientRect().right"
    with Browser(tmp_path / "profile") as browser:
        file.write_text(page(found, now=NOW + 200))
        browser.open(file)
        browser.wait("figures[0].drawn && figures[0].frame")
        assert browser.ask("document.querySelectorAll('figure .nan').length") == 1
        told = browser.ask("[...document.querySelectorAll('figure .read > span')].map(s => s.textContent)")
        assert sorted(told) == ["seed=1 NaN/inf", "seed=2 0.5"]
        texts = "[...figures[0].svg.children].filter(one => one.localName === 'text')"
        browser.wait(f"{texts}.length > 4 && {texts}.every(one => ({edge})(one) <= ({edge})(figures[0].svg))")
        file.write_text(page(found[1:], now=NOW + 200))
        browser.open(file)
        browser.wait("document.querySelectorAll('figure circle').length === 1")
        assert browser.ask(f"({edge})(document.querySelector('figure circle')) < ({edge})(figures[0].svg) - 20")


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium or Chrome on this machine")
def test_what_stands_beside_an_axis_is_whole_and_tells_its_marks_apart(tmp_path: Path) -> None:
    """1.25e+18 began to the left of its chart, where .25e+18 was left of it; from 30.940 to 30.950 all were 30.95."""
    home, file = home_in(tmp_path), tmp_path / "page.html"
    run = RunBuilder(home, "one", NOW).status("ended").launch().exit(code=0)
    for at in range(1, 11):
        told = {"loss": 2e6 + at, "big": 1e18 + at * 2.5e16, "near": 30.94 + at / 1000, "usual": at / 10}
        run.points({"time": NOW + at, "step": 5_000_000 + at, "attempt": 1, **told})
    file.write_text(page([Monitor(home, columns=columns_for(1)).snapshot(run.run.run)], now=NOW + 200))
    edge = "(one) => one.getBoundingClientRect().left"
    with Browser(tmp_path / "profile") as browser:
        browser.open(file)
        browser.wait("figures.length === 4 && figures.every(one => one.drawn && one.frame)")
        words = "figures.map(one => [...one.svg.querySelectorAll('text')])"
        assert browser.ask(f"{words}.every((all, i) => all.every(one => ({edge})(one) >= ({edge})(figures[i].svg)))")
        for texts in browser.ask(f"{words}.map(all => all.map(one => one.textContent))"):
            assert len(texts) > 4
            assert len(set(texts)) == len(texts)


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium or Chrome on this machine")
def test_from_the_eleventh_run_on_a_colour_comes_again_with_another_line(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    runs = [resumed_run(home, 60, slope=1 + number / 10, age=number) for number in range(12)]
    monitor = Monitor(home, columns=columns_for(1))
    file = tmp_path / "twelve.html"
    file.write_text(page([monitor.snapshot(run) for run in runs], now=NOW + 200))
    strokes = (
        "[...figures[0].svg.querySelectorAll('path[stroke]')]"
        ".map(p => p.getAttribute('stroke') + p.getAttribute('stroke-dasharray'))"
    )
    with Browser(tmp_path / "profile") as browser:
        browser.open(file)
        browser.wait("figures[0].drawn && figures[0].frame")
        found = browser.ask(strokes)
        assert len(set(found)) == len(found) >= 12
        cells = "[...document.querySelectorAll('#runs td[data-run]')]"
        edges = browser.ask(f"{cells}.map(cell => getComputedStyle(cell).borderLeftStyle)")
        assert sorted(edges) == ["dashed"] * 2 + ["solid"] * 10
