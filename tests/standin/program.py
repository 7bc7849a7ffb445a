"""A training without torch: ``program.py CRASH [--name value ...]`` trains a little, then crashes, or is spared."""

from __future__ import annotations

import os
import sys

from refusals import strike  # type: ignore[import-not-found]  # a script finds its own folder first


def main(words: list[str]) -> None:
    """Train."""
    for step in range(1, 4):
        print(f"step {step} loss {1 / step:.4f}", flush=True)
    strike(words[0], words[1:], os.environ)
    print("the run goes on", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
