"""What the tests run with is what constraints.txt names, and each of its packages is pinned by version and hash."""

from __future__ import annotations

import re
from importlib.metadata import distributions, version

from tests.contract.test_house_rules import ROOT

TEXT = (ROOT / "constraints.txt").read_text(encoding="utf-8")
PINNED = dict(re.findall(r"^([\w.-]+)==(\S+) \\\n    --hash=sha256:[0-9a-f]{64}", TEXT, re.MULTILINE))


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_each_package_has_a_version_and_hashes() -> None:
    named = [line for line in TEXT.splitlines() if line and not line.startswith(("#", " "))]
    assert len(named) == len(PINNED) > 30
    assert not re.search(r"https?://|--find-links|--index", TEXT)


def test_what_is_installed_comes_from_it() -> None:
    """Of what the project needs, and what that needs; others may lie in the same environment."""
    needed, waiting = set(), ["mpstui"]
    requires = {plain(found.metadata["Name"]): found.requires or [] for found in distributions()}
    while waiting:
        name = waiting.pop()
        if name in needed or name not in requires:
            continue
        needed.add(name)
        for line in requires[name]:
            words, _, condition = line.partition(";")
            if name == "mpstui" or "extra" not in condition:
                waiting.append(plain(re.split(r"[^\w.-]", words.strip())[0]))
    for name in needed - {"mpstui", "torch", "nvidia-ml-py"}:
        assert name.startswith(("nvidia-", "triton")) or PINNED.get(name) == version(name), name
