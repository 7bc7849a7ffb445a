"""What a line to another machine costs: ``python -m tests.bench.link_bytes [SECONDS]``, with ten runs that live there.

Ten runs report once a second (loss, rate, memory, two metrics, a line of output). Counted are the bytes that the far
end sends, as they travel, once the first snapshots are there: with the list in view, then with one run on the screen
(its curves, log, telemetry). Then the same on a line of 9,600 baud and 300 ms, and a log of 1 GB on one of 1 MB/s.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

from mpstui.core.hosts.joined import JoinedServices, Way
from mpstui.core.model.home import Home
from mpstui.wire.heartbeat import DeviceReading, MemoryReading
from tests.core.hosts.lines import FarServices, Wire
from tests.core.runs.build import RunBuilder, make_home

RUNS = 10
LOG_BYTES = 1 << 30
SLOW = {"rate": 960.0, "delay": 0.15}
FAST = {"rate": 1e6, "delay": 0.01}


class Trainings:
    """Runs that report once a second."""

    def __init__(self, home: Home) -> None:
        self.started = time.time()
        self.runs = [
            RunBuilder(home, f"resnet lr={place}", self.started + place).status("running").launch().hold()
            for place in range(RUNS)
        ]
        self.step = 0
        self._ended = Event()
        for _ in range(600):
            self._report()
        Thread(target=self._go_on, daemon=True).start()

    def _report(self) -> None:
        self.step += 7
        for run in self.runs:
            loss, now = 2.5 / (1 + self.step / 900) * random.uniform(0.95, 1.05), time.time()
            acc = 1 - loss / 3
            run.points(
                {
                    "attempt": 1,
                    "step": self.step,
                    "time": now,
                    "loss": loss,
                    "lr": 3e-4,
                    "train_acc": acc,
                    "grad_norm": 3 * loss,
                }
            )
            run.output(f"epoch 3 step {self.step} loss {loss:.5f} acc {acc:.4f} {random.uniform(40, 60):.1f} img/s\n")
            run.beat(
                time=now,
                seq=self.step,
                device=DeviceReading("cpu"),
                epoch=3.0,
                epochs=60.0,
                step=self.step,
                steps=90_000,
                loss=loss,
                lr=3e-4,
                metrics={"train_acc": acc},
                samples_per_second=random.uniform(4000, 4200),
                steps_per_second=random.uniform(7, 7.2),
                memory=MemoryReading(rss=random.randrange(1 << 30, 2 << 30)),
            )

    def _go_on(self) -> None:
        while not self._ended.wait(1.0):
            self._report()

    def end(self) -> None:
        self._ended.set()


class Screen:
    """A screen's services over one line, read as a screen reads them."""

    def __init__(self, home: Home, **how: float | None) -> None:
        self.far = FarServices(home)
        self.wires: list[Wire] = []

        def way() -> Wire:
            self.wires.append(Wire(self.far, **how))
            return self.wires[-1]

        own = Path(tempfile.mkdtemp())
        self.services = JoinedServices(Home(own, own), {}, own, time.time, hosts={"gpu1": Way(way)})
        self.monitor: Any = self.services.monitor()
        self.services.start()

    def bytes(self) -> int:
        return sum(wire.down.passed for wire in self.wires)

    def watch(self, seconds: float, focus: str | None = None) -> list[float]:
        """Look for so long; how old the newest step of the newest run is, each time it is seen to change."""
        until, lags, seen = time.monotonic() + seconds, list[float](), None
        while time.monotonic() < until:
            for one in self.monitor.refresh(focus, (focus,) if focus else ())[:1]:
                if one.numbers.step != seen and seen is not None and one.numbers.step is not None:
                    lags.append(0.0)
                seen = one.numbers.step
            time.sleep(0.1)
        return lags

    def close(self) -> None:
        self.services.close()
        for wire in self.wires:
            wire.close()


def until(condition: Callable[[], Any], seconds: float = 120.0) -> float:
    """How long it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, "it never came"
        time.sleep(0.02)
    return time.monotonic() - began


def measured(name: str, home: Home, seconds: float, **how: float | None) -> None:
    screen = Screen(home, **how)
    took = until(lambda: len(screen.monitor.refresh()) == RUNS)
    print(f"{name}: {RUNS} runs listed after {took:.1f} s, {screen.bytes():,} bytes")
    screen.watch(8.0)
    before = screen.bytes()
    changes = screen.watch(seconds)
    rate = (screen.bytes() - before) / seconds
    print(f"{name}: list in view: {rate:,.0f} bytes/s, a row changes every {seconds / max(1, len(changes)):.1f} s")
    focus = screen.monitor.refresh()[0].run
    began, before = time.monotonic(), screen.bytes()
    log = screen.services.open_log(screen.monitor.refresh()[0].output)
    screen.services.sampler().sample({focus: (os.getpid(),)})

    def whole() -> bool:
        one = screen.monitor.refresh(focus, (focus,))[0]
        return not one.brief and len(one.series) >= 4 and bool(log.refresh() or log.size_bytes)

    until(whole)
    print(f"{name}: a run in full after {time.monotonic() - began:.1f} s, {screen.bytes() - before:,} bytes")
    screen.watch(8.0, focus)
    before = screen.bytes()
    changes = screen.watch(seconds, focus)
    rate = (screen.bytes() - before) / seconds
    print(f"{name}: one on the screen: {rate:,.0f} bytes/s, it changes every {seconds / max(1, len(changes)):.1f} s")
    screen.close()


def long_log(home: Home) -> None:
    run = RunBuilder(home, "long log", time.time() + 60).status("running").launch().hold()
    path = run.run.attempt(1).output
    block = "".join(f"step {number:09d} loss 0.123456 acc 0.987\n" for number in range(20_000)).encode()
    with path.open("wb") as file:
        for _ in range(LOG_BYTES // len(block)):
            file.write(block)
    screen = Screen(home, **FAST)
    until(lambda: len(screen.monitor.refresh()) == RUNS + 1)
    before, began = screen.bytes(), time.monotonic()
    log = screen.services.open_log(Path(f"gpu1:{path}"))
    until(lambda: log.refresh() and log.tail(40))
    opened, bytes_opened = time.monotonic() - began, screen.bytes() - before
    began = time.monotonic()
    assert log.window(LOG_BYTES // 2, 40)
    jumped = time.monotonic() - began
    print(f"1 MB/s: a log of 1 GB opens in {opened:.2f} s ({bytes_opened:,} bytes), its middle in {jumped:.2f} s")
    screen.close()


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    with tempfile.TemporaryDirectory() as folder:
        home = make_home(Path(folder))
        trainings = Trainings(home)
        measured("no limit", home, seconds)
        measured("9,600 baud, 300 ms", home, seconds, **SLOW)
        trainings.end()
        long_log(home)


if __name__ == "__main__":
    main()
