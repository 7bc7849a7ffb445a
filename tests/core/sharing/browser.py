"""A headless browser over its debugging pipe: no port, no other package. Where none is installed, tests skip."""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PROGRAM = next((found for name in NAMES if (found := shutil.which(name))), None)

PATIENCE_SECONDS = 30.0


class Browser:
    """One page that is opened, looked at and clicked (Chrome DevTools protocol, ``--remote-debugging-pipe``)."""

    def __init__(self, profile: Path, *, width: int = 1200, height: int = 900) -> None:
        assert PROGRAM is not None
        self._numbers = itertools.count(1)
        self._rest = b""
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()

        def as_three_and_four() -> None:
            # Both are moved out of the way first: 3 and 4 may be among them.
            copies = [fcntl.fcntl(one, fcntl.F_DUPFD, 10) for one in (theirs_in, theirs_out)]
            os.dup2(copies[0], 3)
            os.dup2(copies[1], 4)

        words = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        self._process = subprocess.Popen(
            [PROGRAM, *words, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"],
            close_fds=False,
            preexec_fn=as_three_and_four,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session: str | None = None
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.send("Page.enable")
        self.resize(width, height)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._out)
        os.close(self._in)
        self._process.kill()
        self._process.wait()

    def send(self, method: str, **parameters: Any) -> Any:
        """Ask, and wait for the answer."""
        number = next(self._numbers)
        session = getattr(self, "_session", None)
        message = {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _read(self) -> Any:
        while b"\0" not in self._rest:
            assert select.select([self._in], [], [], PATIENCE_SECONDS)[0], "the browser does not answer"
            data = os.read(self._in, 1 << 16)
            assert data, "the browser has gone"
            self._rest += data
        first, _, self._rest = self._rest.partition(b"\0")
        return json.loads(first)

    def resize(self, width: int, height: int, *, phone: bool = False) -> None:
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def open(self, path: Path) -> None:
        self.send("Page.navigate", url=path.as_uri())
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def ask(self, expression: str) -> Any:
        """What JavaScript makes of it in the page; promises are awaited."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, expression: str) -> None:
        """Until it is true, asked once a frame."""
        loop = f"(async () => {{ while (!({expression})) await new Promise(requestAnimationFrame); return true; }})()"
        self.ask(loop)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """``Moved``, ``Pressed`` or ``Released`` at a pixel."""
        self.send("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, **more)

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot")["data"]))
