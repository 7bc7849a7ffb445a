"""Real users of one machine, of whom one is hostile: nothing of the other's is read, nobody is steered."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from tests.core.runs.build import RunBuilder, make_home
from tests.users import User, python_for_all, two_users
from tests.waiting import wait_until

COMMANDS = ("ps", "show RUN", "logs RUN", "diagnose RUN", "wait RUN", "stop RUN", "kill RUN", "remove RUN --yes")
LOOK_AROUND = """
import os
for root, folders, files in os.walk(HOME):
    for name in folders + files:
        print("found", name)
for path in PATHS:
    try:
        print("read", open(path, "rb").read(9))
    except OSError:
        pass
for pid in PIDS:
    environ, descriptors = f"/proc/{pid}/environ", f"/proc/{pid}/fd"
    for look in (lambda: os.kill(pid, 0), lambda: open(environ).read(1), lambda: os.listdir(descriptors)):
        try:
            look()
            print("reached", pid)
        except OSError:
            pass
"""


@pytest.fixture(name="users")
def _users() -> Iterator[tuple[User, User]]:
    if os.geteuid() != 0:
        pytest.skip("only root can become other users")
    if python_for_all() is None:
        pytest.skip("there is no Python that other users can run")
    with two_users() as users:
        yield users


def test_nothing_of_a_live_run_is_read_or_steered_by_another(users: tuple[User, User]) -> None:
    ada, eve = users
    (ada.folder / "t.py").write_text("import time\nprint('loss 0.5', flush=True)\ntime.sleep(60)\n")
    ((code, told),) = ada.mpstui("run -- python3 t.py")
    assert code == 0, told
    run = told.strip().splitlines()[-1]
    folder = ada.home / "runs" / run
    try:
        wait_until(lambda: "loss" in (folder / "attempts/1/output.log").read_text())
        status = json.loads((folder / "status.json").read_text())
        pids = [status["trainer"][0], status["supervisor"][0]]
        assert status["phase"] == "running"
        wide = [path for path in (ada.home, *ada.home.rglob("*")) if path.lstat().st_mode & 0o077]
        assert wide == []
        paths = [str(path) for path in folder.rglob("*") if path.is_file()]
        assert eve.python(f"HOME, PATHS, PIDS = {str(ada.home)!r}, {paths!r}, {pids!r}\n{LOOK_AROUND}") == ""
        for code, told in eve.mpstui(*(words.replace("RUN", run) for words in COMMANDS), home=ada.home):
            assert code in (1, 2), told
            assert "Traceback" not in told
        assert json.loads((folder / "status.json").read_text())["phase"] == "running"
    finally:
        ((code, told),) = ada.mpstui(f"kill {run}")
    assert code == 0, told


def test_what_another_user_prepared_is_obeyed_by_nobody(users: tuple[User, User]) -> None:
    ada, eve = users
    mark = eve.folder.parent / "steered"
    trap = ["/bin/sh", "-c", f"touch {mark}"]
    home = make_home(eve.folder / "trap")
    spec = RunBuilder(home, "planted", created=1.0).spec
    variants = {name: variant._replace(argv=trap) for name, variant in spec.launch.variants.items()}
    planted = RunBuilder(home, "queued", created=2.0)
    planted.respec(launch=spec.launch._replace(variants=variants)).status("queued")
    (home.config / "profiles").mkdir(parents=True, exist_ok=True)
    for profile in (home.config / "profiles" / "train.toml", eve.folder / "profiles" / "quickstart.toml"):
        profile.parent.mkdir(exist_ok=True)
        profile.write_text(f"command = {json.dumps(trap)}\n")
    alerts = f'[alerts]\nhook = {json.dumps(trap)}\non = ["finish", "crash"]\nwhen = "always"\n'
    home.settings.write_text(alerts)
    for path in (eve.folder, *eve.folder.rglob("*")):
        os.chown(path, eve.uid, eve.uid)
        path.chmod(0o755 if path.is_dir() else 0o644)
    commands = ("ps", "queue", "show queued", "profiles", "alerts test", "launch train", "run -- true")
    for _, told in ada.mpstui(*commands, home=home.state):
        assert "Traceback" not in told
    ((code, told),) = ada.mpstui("launch quickstart", cwd=eve.folder)
    assert (code, "belongs to user" in told) == (2, True), told
    assert not mark.exists()


def test_a_run_that_one_may_not_read_is_one_row_and_one_sentence(users: tuple[User, User]) -> None:
    ada, _ = users
    home = make_home(ada.folder)
    runs = [RunBuilder(home, name, created=3.0).status("ended").launch().exit(code=0).run for name in ("shut", "open")]
    for path in ada.folder.rglob("*"):
        os.chown(path, ada.uid, ada.uid)
    runs[0].path.chmod(0)
    commands = [words.replace("RUN", runs[0].run) for words in ("ps", *COMMANDS)]
    for words, (code, told) in zip(commands, ada.mpstui(*commands, home=home.state), strict=True):
        assert code in (0, 1), (words, told)
        assert "Traceback" not in told
        assert words != "ps" or (runs[0].run in told and "open" in told)
