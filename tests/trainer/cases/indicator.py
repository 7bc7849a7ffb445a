"""Prices as a spreadsheet exports them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from . import Case

SYNTHETIC = ("--width", "32", "--layers", "1", "--batch-size", "4")


def candles(folder: Path) -> list[str]:
    """Two symbols as a spreadsheet exports them: odd headers, semicolons, the newest day first, American dates."""
    random = np.random.default_rng(0)
    days = np.datetime64("2021-01-04") + np.arange(420)
    prices = folder / "prices"
    prices.mkdir()
    for symbol in ("ABC", "XYZ"):
        close = 50 * np.exp(random.standard_normal(len(days)).cumsum() * 0.01)
        lines = ["DATE;Close/Last;Vol;OPEN;hIGH;low"]
        for day, price in reversed(list(zip(days, close, strict=True))):
            year, month, date = str(day).split("-")
            spread = price * 0.01
            numbers = (price, 1e6 + price, price - spread / 2, price + spread, price - spread)
            lines.append(";".join([f"{month}/{date}/{year}", *(f"{number:.4f}" for number in numbers)]))
        (prices / f"{symbol}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8-sig")
    return ["--data", str(prices), "--cache-dir", str(folder / "cache")]


CASES = {"": Case(("--width", "16", "--layers", "1", "--heads", "2", "--limit", "100"), candles, files="prices")}
