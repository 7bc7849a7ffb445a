"""Draw the screen with made-up runs and save it as SVG: the pictures of the README.

    python scripts/picture.py docs/pictures

Nothing is started and no terminal is needed. The runs are those of the tests, so a picture shows what is tested.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import re
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FONT_FACES = re.compile(r"@font-face\s*\{[^}]*\}\s*")
MONOSPACE = "'SF Mono', Menlo, 'DejaVu Sans Mono', Consolas, monospace"
SETTLE_SECONDS = 2.0
"""Twice this is longer than the list takes to show the machine."""
CRASHED_LOG = (
    *(f"epoch 2/90  step {step}/9000  loss {2.206 - step / 200:.4f}" for step in range(8, 119)),
    "Traceback (most recent call last):",
    '  File "train.py", line 64, in <module>',
    "    train(model, batches)",
    '  File "train.py", line 41, in train',
    "    loss.backward()",
    "    ^^^^^^^^^^^^^^^",
    "RuntimeError: MPS backend out of memory (MPS allocated: 17.9 GB, max: 18.1 GB)",
)
"""Of the run that failed: its evidence is in line 118."""


async def picture(
    path: Path,
    size: tuple[int, int],
    opening: str | None,
    keys: tuple[str, ...],
    theme: str,
    log: tuple[str, ...] | None = None,
) -> None:
    """Open the screen, press keys, save what is seen."""
    from mpstui.ui.app import MpstuiApp
    from tests.ui import fakes

    runs = tuple(fakes.changed(one, loss=1.616) if one.exit and one.exit.code else one for one in fakes.several())
    app = MpstuiApp(fakes.world(runs, log=log).services, opening=opening, theme=theme)
    async with app.run_test(size=size) as pilot:
        while app.state.snapshots is None:
            await pilot.pause(0.02)
        await pilot.pause(SETTLE_SECONDS)
        await pilot.press(*keys)
        await pilot.pause(SETTLE_SECONDS)
        path.write_text(own_fonts(app.export_screenshot(title="mpstui")), encoding="utf-8")


def own_fonts(svg: str) -> str:
    """The picture with the reader's own monospace font instead of one from a server."""
    return (
        FONT_FACES.sub("", svg).replace("Fira Code", "mono").replace("font-family: mono", f"font-family: {MONOSPACE}")
    )


def main() -> None:
    """Draw all pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the pictures go")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(ROOT))
    os.environ["TZ"] = "UTC"
    time.tzset()
    platform.node = lambda: "studio"
    from mpstui.ui.theme import OWN_LIGHT_THEME, OWN_THEME
    from tests.ui import fakes

    running, failed = fakes.running().run, fakes.failed().run
    for name, size, opening, keys, theme, log in (
        ("runs", (110, 30), None, ("down",), OWN_THEME, None),
        ("run", (124, 38), running, (), OWN_THEME, None),
        ("run-light", (124, 38), running, (), OWN_LIGHT_THEME, None),
        ("failed", (100, 28), failed, ("l",), OWN_THEME, CRASHED_LOG),
    ):
        asyncio.run(picture(folder / f"{name}.svg", size, opening, keys, theme, log))


if __name__ == "__main__":
    main()
