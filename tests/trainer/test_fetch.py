"""Fetching data sets from a server of our own: whole, in pieces, spoilt, and not at all."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from tests.trainer.running import command
from trainer import fetch
from trainer.errors import TrainingError
from trainer.fetch import Archive, Meter


class Files(BaseHTTPRequestHandler):
    """Serves ``files``; knows ranges where ``ranges`` is set, and breaks off after ``breaks_after`` bytes, once."""

    files: ClassVar[dict[str, bytes]] = {}
    ranges: ClassVar[bool] = True
    breaks_after: ClassVar[list[int]] = []
    asked: ClassVar[list[tuple[str, str | None]]] = []

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        wanted = self.headers.get("Range")
        self.asked.append((path, wanted))
        body = self.files.get(path)
        if body is None:
            self.send_error(404)
            return
        first = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.ranges else 0
        if first and first >= len(body):
            self.send_error(416)
            return
        self.send_response(206 if first else 200)
        self.send_header("Content-Length", str(len(body) - first))
        self.end_headers()
        body = body[first:]
        self.wfile.write(body[: self.breaks_after.pop()] if self.breaks_after else body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture(name="server")
def _server() -> Iterator[str]:
    Files.files, Files.ranges = {}, True
    Files.breaks_after.clear()
    Files.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def tarred(folder: str, **files: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, body in files.items():
            about = tarfile.TarInfo(f"{folder}/{name}")
            about.size = len(body)
            tar.addfile(about, io.BytesIO(body))
    return out.getvalue()


def archive(server: str, body: bytes, name: str = "set.tar.gz", folder: str = "set") -> Archive:
    Files.files[f"/{name}"] = body
    return Archive(f"{server}/{name}", f"sha256:{hashlib.sha256(body).hexdigest()}", folder)


NOISE = bytes(range(256)) * 4000


def test_a_set_is_downloaded_checked_and_unpacked_once(server: str, tmp_path: Path) -> None:
    wanted = archive(server, tarred("set", one=b"1", two=b"22"))
    found = fetch.fetch(wanted, tmp_path / "data")
    assert {path.name: path.read_bytes() for path in found.iterdir()} == {"one": b"1", "two": b"22"}
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["set"], "nothing else is left"
    assert fetch.fetch(wanted, tmp_path / "data") == found
    assert len(Files.asked) == 1


@pytest.mark.parametrize("ranges", [True, False])
def test_a_line_that_breaks_is_taken_up_where_it_was(server: str, tmp_path: Path, ranges: bool) -> None:
    Files.ranges = ranges
    Files.breaks_after.append(700)
    wanted = archive(server, tarred("set", noise=NOISE))
    assert (fetch.fetch(wanted, tmp_path) / "noise").read_bytes() == NOISE
    assert [asked[1] for asked in Files.asked] == [None, "bytes=700-"]


def test_a_download_goes_on_in_the_next_call(server: str, tmp_path: Path) -> None:
    body = tarred("set", noise=NOISE)
    (tmp_path / ".set.tar.gz.part").write_bytes(body[:500])
    fetch.fetch(archive(server, body), tmp_path)
    assert Files.asked == [("/set.tar.gz", "bytes=500-")]


def test_a_download_that_was_complete_is_not_repeated(server: str, tmp_path: Path) -> None:
    body = tarred("set", noise=NOISE)
    (tmp_path / ".set.tar.gz.part").write_bytes(body)
    assert fetch.fetch(archive(server, body), tmp_path).is_dir()


def test_another_file_than_the_one_that_was_meant_is_deleted(server: str, tmp_path: Path) -> None:
    wanted = archive(server, tarred("set", one=b"1"))
    Files.files["/set.tar.gz"] = tarred("set", one=b"2")
    with pytest.raises(TrainingError, match="is not the file it should be"):
        fetch.fetch(wanted, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_archive_writes_nowhere_else(server: str, tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr("set/one", b"1")
        packed.writestr("../../outside", b"bad")
    fetch.fetch(archive(server, out.getvalue(), "set.zip"), tmp_path / "data")
    with pytest.raises(TrainingError, match="cannot be unpacked"):
        fetch.fetch(archive(server, tarred("other", **{"../../outside": b"bad"}), folder="other"), tmp_path / "more")
    assert not list(tmp_path.rglob("outside"))


def test_what_is_not_there_is_one_sentence(server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("fetch", "cifar10", "--to", str(tmp_path), "--from", server) == 1
    printed = capsys.readouterr().err
    assert printed.startswith(f"trainer: {server}/cifar-10-python.tar.gz answered 404")
    assert len(printed.splitlines()) == 1
    assert command("fetch", "cifar10", "--to", str(tmp_path), "--part", "x") == 2
    assert "cifar10 has no part 'x'" in capsys.readouterr().err


def test_a_benchmark_is_checked_against_its_record(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for split in ("train", "test"):
            for kind in ("positive", "negative"):
                packed.writestr(f"demo_human_or_worm/{split}/{kind}/0.txt", "ACGT" * 8)
    body, name = out.getvalue(), "demo_human_or_worm_v0.zip"
    listed = {"files": [{"key": name, "checksum": f"md5:{hashlib.md5(body).hexdigest()}"}]}
    Files.files = {"/api/records/1": json.dumps(listed).encode(), f"/records/1/files/{name}": body}
    words = (
        "genomic-benchmarks",
        "--to",
        str(tmp_path),
        "--part",
        "demo_human_or_worm",
        "--from",
        f"{server}/records/1",
    )
    assert command("fetch", *words) == 0
    folder = tmp_path / "demo_human_or_worm"
    assert capsys.readouterr().out == f"{folder}: train with --data {folder}\n"
    assert command("genomics", "--data", str(folder), "--check-data") == 0


def test_the_meter_says_how_far_it_is_and_how_long_it_takes() -> None:
    out, now = io.StringIO(), [0.0]
    meter = Meter(0, 100_000_000, out, lambda: now[0])
    for part in (10, 11, 50, 100):
        now[0] = part / 10
        meter.show(part * 1_000_000)
    assert out.getvalue().splitlines() == [" 10% of 100 MB, 9 s left", " 50% of 100 MB, 5 s left", "100% of 100 MB"]
