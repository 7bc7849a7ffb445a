"""`import mpstui` in a notebook: every value as it was measured, from any thread; the examples of docs/python.md."""

from __future__ import annotations

import contextlib
import math
import re
import sqlite3
import subprocess
import sys
import threading
import time
from array import array
from pathlib import Path

import pytest

import mpstui
from mpstui.api import handle, shown
from mpstui.core.formats import files
from mpstui.core.launching import abandoned
from mpstui.core.model.errors import OperationError, UsageError
from mpstui.core.model.home import Home
from mpstui.reporting import Report
from tests.contract.test_house_rules import ROOT
from tests.core.runs.build import NOW, RunBuilder
from tests.core.runs.test_logged import grey
from tests.core.sharing.build import labelled_run, poisoned_run, resumed_run
from tests.wandb_files import events


@pytest.fixture(name="home")
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("MPSTUI_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return Home(state=tmp_path / "home", config=tmp_path / "home")


def test_importing_mpstui_loads_nothing_until_a_name_is_used() -> None:
    code = "import sys, mpstui; print(*(name for name in sys.modules if name.startswith('mpstui'))); mpstui.runs"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == ["mpstui"]
    with pytest.raises(AttributeError):
        mpstui.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_no_runs_are_an_empty_list(home: Home) -> None:
    assert mpstui.runs() == []
    assert mpstui.runs()._repr_html_() == "no runs yet"
    with pytest.raises(UsageError, match="there is no run 'digits'"):
        mpstui.run("digits")
    with pytest.raises(UsageError):
        mpstui.runs("lr>>1")


def test_a_run_tells_what_the_screen_does(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    run = mpstui.run(resumed_run(home))
    assert (run.name, run.state, run.step, run.loss, run.dir.name) == ("digits", "finished", 40, 0.025, run.id)
    loss = run.series("loss")
    assert list(loss.step) == list(range(1, 41)), "what the resumed attempt measured again counts once"
    assert (loss.value[29], loss.time[29], loss.epoch[29], loss.axis) == (1 / 30, NOW + 30, 3, "step")
    assert math.isnan(loss.value[19])
    assert run.metrics == {"loss": 0.025, "val_loss": 0.05}
    assert run.logs() == ["step 1", "WARNING: slow", "RuntimeError: none"]
    assert (run.logs(lines=1), run.logs(lines=0), run.logs(attempt=1)) == (["RuntimeError: none"], [], [])
    assert (run.wait(), run.config["device"]) == ("finished", "cpu")
    with pytest.raises(KeyError, match="it has loss, val_loss"):
        run.series("acc")
    assert "<polyline" in run._repr_html_()
    assert "<polyline" in loss._repr_html_()
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert isinstance(run.series("loss").value, array)


def test_a_wait_goes_on_when_another_run_cannot_be_helped(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> list[str]:
        raise OperationError("no supervisor for waiting run other")

    monkeypatch.setattr(abandoned, "respawn_missing", fails)
    run = mpstui.run(resumed_run(home))
    with pytest.warns(UserWarning, match="waiting run other"):
        assert run.wait(timeout=60) == "finished"


def test_a_handle_goes_on_with_its_run_from_any_thread(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpstui.api.handle.FRESH_SECONDS", 0.0)
    live = RunBuilder(home, "live").status("running").launch().beat(step=1).hold()
    live.points({"time": NOW, "step": 1, "loss": 0.5, "attempt": 1})
    [run] = mpstui.runs("live")
    assert (run.state, run.step, len(run.series())) == ("running", 1, 1)
    assert len(run.series("val_loss")) == 0, "it may still measure that"
    with pytest.raises(TimeoutError):
        run.wait(timeout=0)
    live.points(*({"time": NOW, "step": at, "loss": 0.25, "attempt": 1} for at in range(2, 500)))
    live.beat(step=499, seq=2)
    seen: list[tuple[int | None, int]] = []
    threads = [threading.Thread(target=lambda: seen.append((run.step, len(run.series())))) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert seen == [(499, 499)] * 8
    live.beat(step=499, seq=3, phase="done").exit(code=0).status("ended").release()
    assert run.state == "finished"
    with pytest.raises(KeyError):
        run.series("val_loss")
    for action in ("dance", "fix", "remove"):  # none, one of the screen's, one that is no request
        with pytest.raises(UsageError, match="no action"):
            run.act(action)


def test_a_run_that_mpstui_did_not_start_can_be_read(home: Home, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"step {at} loss {1 / at:.4f}\n" for at in range(1, 50)))
    run = mpstui.run(str(log))
    assert (run.state, run.step, len(run.series()), run.logs(lines=1)) == ("watched", 49, 49, ["step 49 loss 0.0204"])
    with pytest.raises(UsageError, match="not started by mpstui"):
        run.stop()


def test_who_looks_again_knows_that_a_foreign_run_has_grown(home: Home, tmp_path: Path) -> None:
    table = tmp_path / "version_0" / "metrics.csv"
    table.parent.mkdir()
    table.write_text("step,train_loss\n1,0.5\n")
    assert mpstui.run(str(table.parent)).health is None
    table.write_text("step,train_loss\n1,0.5\n2,0.4\n")
    assert mpstui.run(str(table.parent)).health == "training"


def test_one_run_of_a_database_has_its_name_behind_a_mark(home: Home, tmp_path: Path) -> None:
    database = tmp_path / "digits.db"
    with contextlib.closing(sqlite3.connect(database)) as writer, writer:
        writer.execute(
            "CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step, metrics TEXT)"
        )
        rows = [
            ("2026-01-01T00:00:00", name, step, f'{{"loss": {step}}}') for name in ("one", "two") for step in (1, 2)
        ]
        writer.executemany("INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?)", rows)
    with pytest.raises(UsageError, match="holds 2 runs") as caught:
        mpstui.run(str(database))
    assert f"{database}#one" in (caught.value.hint or "")
    assert list(mpstui.run(f"{database}#one").series("loss").value) == [1, 2]
    with pytest.raises(UsageError, match="has no run three"):
        mpstui.run(f"{database}#three")


def test_images_and_texts_are_listed_and_draw_themselves(home: Home, tmp_path: Path) -> None:
    run = mpstui.run(labelled_run(home))
    assert (run.images, run.texts) == ((), ())
    report, data = Report({"MPSTUI_RUN_DIR": str(run.dir)}), grey(4, 4)
    report.image("<b>mask", data, step=10)
    report.text("once upon", name="sample", step=10)
    [image], [text] = run.images, run.texts
    assert (image.name, image.step, image.attempt, image.bytes) == ("<b>mask", 10, 1, len(data))
    assert image.path.read_bytes() == data
    assert (text.name, text.step, text.text) == ("sample", 10, "once upon")
    assert isinstance(image, mpstui.Image)
    assert isinstance(text, mpstui.Text)
    assert image._repr_html_().startswith('<img alt="&lt;b&gt;mask" src="data:image/png;base64,iVBOR')
    image.path.write_bytes(b"none")
    assert image._repr_html_().startswith("&lt;b&gt;mask: it ")
    (tmp_path / "train.log").write_text("step 1 loss 1.0\n")
    watched = mpstui.run(str(tmp_path / "train.log"))
    assert (watched.images, watched.texts) == ((), ())


def test_the_name_of_a_run_cannot_inject_html(home: Home) -> None:
    poisoned_run(home)
    told = mpstui.runs()._repr_html_() + mpstui.run(mpstui.runs()[0].id).series("loss")._repr_html_()
    assert "<script" not in told
    assert "<img" not in told


def test_a_thinned_curve_says_so(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    run = mpstui.run(labelled_run(home))
    assert not run.series().thinned
    monkeypatch.setattr("mpstui.api.MOST_POINTS", 600)
    thin = mpstui.run("digits").series()
    assert (thin.thinned, len(thin) <= 600, thin.value[-1]) == (True, True, 1 / 900)
    assert shown._picture([math.nan]) == ""


def test_every_example_runs(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    labelled_run(home, steps=60)
    (home.config / "profiles").mkdir()
    program = '["{python}", "-c", "import time; time.sleep(60)"]'
    (home.config / "profiles" / "quickstart.toml").write_text(
        f'name = "tried"\ncommand = {program}\n[args]\nepochs = 2\n'
    )
    text = (ROOT / "docs" / "python.md").read_text()
    names: dict[str, object] = {}
    for example in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(example, names)
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("digits finished 2 0.0166")
    assert out[-1] == "stopped"


def test_the_first_look_at_a_long_file_tells_where_the_run_is(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finding the best file of a folder took all of the time that a look may take."""
    folder = events(tmp_path / "seen" / "events.out.tfevents.1.host", range(20_000))
    choose = files.best_of

    def slowly(sources: list[Path]) -> Path | None:
        end = time.thread_time() + 0.3
        while time.thread_time() < end:
            pass
        return choose(sources)

    monkeypatch.setattr(files, "best_of", slowly)
    monkeypatch.setattr(handle, "_LOOK_SECONDS", 0.2)
    assert mpstui.run(str(folder)).step == 19_999
