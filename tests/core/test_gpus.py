"""Which cards there are, and which of them CUDA_VISIBLE_DEVICES leaves."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from mpstui.core.machine import BUS_ORDER, VisibleGpus, read_driver, read_nvml, visible_gpus
from mpstui.core.telemetry.model import GpuSample
from mpstui.core.telemetry.source import Facts, SourceError, SourceRequest
from mpstui.core.telemetry.sources.nvml import Nvml

CARDS = ("GPU-aa11", "GPU-ab22", "GPU-cc33")
INFORMATION = "Model: \t\t Some Card\nGPU UUID: \t {uuid}\nBus Type: \t PCIe\nDevice Minor: \t {minor}\n"


class ListedCards:
    """Stands in NVML's place."""

    def __init__(self, *cards: GpuSample | None) -> None:
        self.cards = cards
        self.closed = False

    def read(self, request: SourceRequest) -> Facts:
        if None in self.cards:
            raise SourceError("the NVIDIA driver does not answer")
        return Facts(gpus=tuple(card for card in self.cards if card))

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("value", "names", "env"),
    [
        (None, ("0", "1", "2"), BUS_ORDER),
        ("2,0", ("2", "0"), {}),
        (" 1 , 2 ", ("1", "2"), {}),
        ("", (), {}),
        ("-1", (), {}),
        ("NoDevFiles", (), {}),
        ("1,-1,2", ("1",), {}),
        ("1,3", ("1",), {}),
        ("GPU-cc33", ("2",), BUS_ORDER),
        ("GPU-cc,GPU-aa", ("2", "0"), BUS_ORDER),
        ("GPU-a", (), {}),
        ("GPU-zz", (), {}),
        ("MIG-7f/1/0", ("MIG-7f/1/0",), {}),
        ("GPU-cc33,0", ("GPU-cc33", "0"), {}),
    ],
)
def test_the_variable_is_read_as_cuda_reads_it(value: str | None, names: tuple[str, ...], env: dict[str, str]) -> None:
    environ = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    assert visible_gpus(environ, CARDS) == VisibleGpus(names, env)


def test_what_cannot_be_known_is_not_guessed() -> None:
    assert visible_gpus({}, ()) is None
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "1,1"}, CARDS) is None
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "5,GPU-q"}, ()) == VisibleGpus(("5", "GPU-q"), {})


def test_the_driver_lists_the_cards_by_bus_and_a_container_has_only_those_it_can_open(tmp_path: Path) -> None:
    for bus, uuid, minor in (("0000:9b:00.0", "GPU-b", 0), ("0000:17:00.0", "GPU-a", 1), ("0000:c0:00.0", "GPU-c", 2)):
        folder = tmp_path / "proc" / bus
        folder.mkdir(parents=True)
        (folder / "information").write_text(INFORMATION.format(uuid=uuid, minor=minor))
    (tmp_path / "proc" / "0000:ff:00.0").mkdir()
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        (tmp_path / name).touch()
    assert read_driver(tmp_path / "proc", tmp_path) == ("GPU-a", "GPU-b")
    assert read_driver(tmp_path / "nothing", tmp_path) == ()


@pytest.mark.parametrize(
    ("cards", "found"),
    [
        ((GpuSample(index=0, uuid="GPU-a"), GpuSample(index=1, uuid="GPU-b")), ("GPU-a", "GPU-b")),
        ((GpuSample(index=0, uuid="GPU-a"), GpuSample(index=2, uuid="GPU-c")), ()),
        ((GpuSample(index=0, uuid=None),), ()),
        ((), ()),
        ((None,), ()),
    ],
)
def test_nvml_answers_only_where_every_card_does(cards: tuple[GpuSample | None, ...], found: tuple[str, ...]) -> None:
    nvml = ListedCards(*cards)
    assert read_nvml(cast(Nvml, nvml)) == found
    assert nvml.closed
