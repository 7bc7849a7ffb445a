"""The images and texts of runs of stores, from their files to what a screen and a page are given."""

from __future__ import annotations

from pathlib import Path

from mpstui import api
from mpstui.core.model.snapshot import RunSnapshot
from mpstui.core.present import newest_logged
from mpstui.core.runs.gallery import gallery_of
from mpstui.core.runs.images import MOST_BYTES
from mpstui.core.runs.logged import Seen, Wanted, seen_item
from mpstui.core.runs.monitor import Monitor
from mpstui.core.runs.report import as_json
from mpstui.core.sharing.page_images import images_on_a_page
from tests import wandb_files as w
from tests.core.runs.test_logged import grey


def wandb_run(folder: Path, *more: bytes) -> Path:
    """A run with an image every second step, and a text."""
    images = folder / "files" / "media" / "images"
    images.mkdir(parents=True)
    rows = []
    for step in range(6):
        values: dict[str, object] = {"loss": 1 / (step + 1), "said": f"text {step}"}
        if step % 2 == 0:
            (images / f"a_{step}.png").write_bytes(grey(4, 4, 40 * step))
            values["a"] = {"_type": "image-file", "path": f"media/images/a_{step}.png"}
        rows.append(w.history(step, values))
    w.write(folder / "run-a.wandb", [w.run("first", {"lr": 0.1}), *rows, *more])
    return folder


def look(snapshot: RunSnapshot, name: str, **wanted: object) -> Seen:
    return seen_item(gallery_of(snapshot), Wanted(name, box=(8, 8), **wanted))  # type: ignore[arg-type]


def test_images_and_texts_of_a_store_are_looked_at_like_our_own(monitor: Monitor, tmp_path: Path) -> None:
    shown = monitor.snapshot(monitor.watch(wandb_run(tmp_path / "offline-run-a", w.exited(0))))
    assert newest_logged(shown)[0] == 9
    seen = look(shown, "a")
    assert seen.item is not None
    assert seen.pixels is not None
    assert (seen.item.step, seen.place, seen.kind, seen.size) == (4, 2, "png", (4, 4))
    assert seen.item.bytes == len(grey(4, 4, 160))
    assert {(one.name, one.size, one.is_text) for one in seen.shelves} == {("a", 3, False), ("said", 6, True)}
    before = look(shown, "a", after=seen.item.number, by=-1).item
    assert before is not None
    assert before.step == 2
    text = look(shown, "said", is_text=True, step=3.0).item
    assert text is not None
    assert text.text == "text 3"
    matching = look(shown, "said", is_text=True, pattern="text 5")
    assert matching.shelves[-1].size == 1


def test_images_in_event_files_are_read_from_their_place(monitor: Monitor, tmp_path: Path) -> None:
    path = tmp_path / "first" / "events.out.tfevents.1"
    w.events(path, range(3))
    image = w.field(1, "img") + w.field(4, w.field(4, grey(4, 4, 200)))
    path.write_bytes(path.read_bytes() + w.event(2, image) + w.event(2, w.hparams(lr=0.5, epochs=3.0)))
    shown = monitor.snapshot(monitor.watch(path.parent))
    seen = look(shown, "img")
    assert (seen.size, seen.why_not, seen.pixels is not None) == ((4, 4), "", True)
    assert dict(shown.settings) == {"lr": "0.5", "epochs": "3"}
    assert shown.numbers.epochs == 3
    path.write_bytes(path.read_bytes()[: seen.item.offset + 30 if seen.item else 0])
    assert look(shown, "img").why_not == "it ends too early"


def test_what_cannot_be_shown_has_a_reason(monitor: Monitor, tmp_path: Path) -> None:
    path = wandb_run(tmp_path / "offline-run-a")
    shown = monitor.snapshot(monitor.watch(path))
    image = path / "files" / "media" / "images" / "a_4.png"
    image.write_bytes(b"GIF89a")
    assert look(shown, "a").why_not == "it is neither PNG nor JPEG"
    with image.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    assert "larger than" in look(shown, "a").why_not
    image.unlink()
    assert look(shown, "a").why_not == "it cannot be read: No such file or directory"


def test_a_page_has_them_too(monitor: Monitor, tmp_path: Path) -> None:
    shown = monitor.snapshot(monitor.watch(wandb_run(tmp_path / "offline-run-a")))
    images, texts = images_on_a_page([shown], str)
    assert (images["name"], images["count"]) == ("a", 3)
    assert all(one["src"].startswith("data:image/png;base64,") for one in images["shots"])
    assert [one["text"] for one in texts["shots"]] == [f"text {step}" for step in range(6)]


def test_scripts_are_told_where_they_are(monitor: Monitor, tmp_path: Path) -> None:
    path = tmp_path / "first" / "events.out.tfevents.1"
    w.events(path, range(3))
    image = w.field(1, "img") + w.field(4, w.field(4, grey(4, 4, 200)))
    path.write_bytes(path.read_bytes() + w.event(2, image) + w.event(2, w.tensor_of("said", "text", b"hello")))
    shown = as_json(monitor.snapshot(monitor.watch(path.parent)), full=True)
    [image_told], [text] = shown["images"], shown["texts"]
    data = Path(image_told["path"]).read_bytes()
    assert data[image_told["offset"] :][: image_told["bytes"]] == grey(4, 4, 200)
    assert (image_told["name"], image_told["step"], text["name"], text["text"]) == ("img", 2, "said", "hello")
    run = api.run(str(path.parent))
    assert [one.step for one in run.images] == [2]
    assert "data:image/png" in run.images[0]._repr_html_()
    assert [one.text for one in run.texts] == ["hello"]
