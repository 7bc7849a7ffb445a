"""A training without torch: ``program.py CRASH.json [--name value ...]`` trains a little, then crashes, or is spared.

The file has the last words, the signal or code that ends the process, and the changes of its launch that spare it,
each as a person reads it: ``batch 32 -> 16``. With what stands before the arrow it crashes, with what stands behind it
trains on; anything else is an end of its own.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path


def arguments_of(words: list[str]) -> Mapping[str, str]:
    """The ``--name value`` pairs and bare ``--flags`` of a command line."""
    named = [place for place, word in enumerate(words) if word.startswith("--")]
    values = {place: words[place + 1] for place in named if place + 1 < len(words) and place + 1 not in named}
    return {words[place][2:]: values.get(place, "true") for place in named}


def main(words: list[str]) -> None:
    """Train."""
    for step in range(1, 4):
        print(f"step {step} loss {1 / step:.4f}", flush=True)
    crash, arguments = json.loads(Path(words[0]).read_text()), arguments_of(words[1:])
    made = []
    for change in crash["spared_by"]:
        name, _, values = change.partition(" ")
        before, after = values.split(" -> ")
        found = os.environ.get(name, "unset") if name.isupper() else arguments.get(name, "not given")
        if found not in (before, after):
            sys.exit(f"{name} is {found}, neither {before} nor {after}")
        made.append(found == after)
    if all(made):
        print("the run goes on", flush=True)
        return
    sys.stderr.write(crash["text"] + "\n")
    sys.stderr.flush()
    if crash["signal"]:
        os.kill(os.getpid(), crash["signal"])
    sys.exit(crash["code"])


if __name__ == "__main__":
    main(sys.argv[1:])
