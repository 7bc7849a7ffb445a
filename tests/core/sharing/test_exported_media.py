"""Images and texts of a run in the files of trackers, read back: the same names, steps, words and bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpstui.core.model.home import Home
from mpstui.core.model.kept import Kept
from mpstui.core.model.snapshot import RunSnapshot
from mpstui.core.runs.gallery import Gallery, gallery_of
from mpstui.core.runs.monitor import Monitor
from mpstui.core.sharing import trackers
from mpstui.core.sharing.event_file import write_event_file
from tests import wandb_files as w
from tests.core.runs.build import FakeClock, make_home, make_monitor
from tests.core.runs.test_logged import grey

Told = tuple[str, int | None, bytes | str]


@pytest.fixture
def monitor(tmp_path: Path) -> Monitor:
    home: Home = make_home(tmp_path)
    return make_monitor(home, FakeClock())


@pytest.fixture
def exported(monitor: Monitor, tmp_path: Path) -> RunSnapshot:
    """A run with an image every second step, two of one name at one step, a text between two rows, and one of a name
    that is also a number's."""
    folder = tmp_path / "offline-run-a"
    images = folder / "files" / "media" / "images"
    images.mkdir(parents=True)
    rows = []
    for step in range(0, 8, 2):
        for part in "ab":
            (images / f"{part}_{step}.png").write_bytes(grey(4, 3, 20 * step + 5 * (part == "b") + 1))
        one = {"_type": "image-file", "path": f"media/images/a_{step}.png"}
        two = {"_type": "images/separated", "filenames": [f"media/images/{part}_{step}.png" for part in "ab"]}
        rows.append(
            w.history(step, {"loss": 1 / (step + 1), "mask/left": one, "two": two, "gone": {**one, "path": "x"}})
        )
        rows.append(w.history(step + 1, {"said": f"first é {step}\nand more"}))
    w.write(folder / "run-a.wandb", [w.run("first", {"lr": 0.1}), *rows, w.exited(0)])
    return monitor.snapshot(monitor.watch(folder))


def told(gallery: Gallery) -> list[Told]:
    """What can be read of it, images as their bytes."""
    found: list[Told] = []
    for item in gallery.items():
        try:
            found.append((item.name, item.step, gallery.image(item).data if item.text is None else item.text))
        except OSError:
            assert item.name == "gone"
    return sorted(found, key=repr)


@pytest.mark.parametrize("tracker", ["wandb", "tensorboard"])
def test_they_are_read_back_as_they_were(monitor: Monitor, exported: RunSnapshot, tmp_path: Path, tracker: str) -> None:
    run, out = trackers.tracked(exported), tmp_path / "out"
    if tracker == "wandb":
        out = trackers.write(run, tracker, out)
    else:
        out.mkdir()
        write_event_file(exported, run, out / "events.out.tfevents.1")
    again = monitor.snapshot(monitor.watch(out))
    before = told(gallery_of(exported))
    assert len(before) == 4 * (1 + 2 + 1)
    about = ("command", "note", "tags", "state", "checkpoints")
    assert [one for one in told(gallery_of(again)) if one[0] not in about] == before
    loss = again.series["loss"]
    assert (list(loss.x), len(loss.values)) == ([0, 2, 4, 6], 4)


def test_without_steps_they_lie_at_the_rows_of_their_time(monitor: Monitor, tmp_path: Path) -> None:
    image = tmp_path / "image.png"
    image.write_bytes(grey(4, 4))
    kept = (Kept(1, "a", None, w.START + 5.5, file=str(image)), Kept(2, "loss", None, w.START + 2.0, text="a word"))
    folder = tmp_path / "offline-run-a"
    w.write(folder / "run-a.wandb", [w.run("first", {}), *(w.history(at, {"loss": 0.5}) for at in range(9))])
    shown = monitor.snapshot(monitor.watch(folder))
    object.__setattr__(shown, "kept", kept)
    out = trackers.write(trackers.tracked(shown), "wandb", tmp_path / "out")
    again = gallery_of(monitor.snapshot(monitor.watch(out))).items()
    assert [(one.name, one.step) for one in again] == [("a", 5), ("loss (logged)", 2)]
