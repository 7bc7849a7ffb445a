"""OpenMP runtimes are found where wheels, conda and Homebrew put them, each file once."""

from __future__ import annotations

from pathlib import Path

from mpstui.core.doctor.report import Status
from mpstui.core.doctor.torch_check import Runtime, environment_of, judge_openmp, openmp_runtimes


def put(root: Path, *places: str) -> None:
    for place in places:
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def test_two_packages_with_a_runtime_each_collide(tmp_path: Path) -> None:
    packages = tmp_path / "env/lib/python3.12/site-packages"
    put(packages, "torch/lib/libomp.dylib", "sklearn/.dylibs/libomp.dylib", "torch/lib/libtorch_cpu.dylib")
    put(packages, "numpy/random/libomptest.py", "scikit_learn.libs/libgomp-a34b3233.so.1.0.0")
    put(tmp_path, "env/lib/libiomp5.dylib", "opt/homebrew/opt/libomp/lib/libomp.dylib")
    (packages / "functorch").mkdir()
    (packages / "functorch/.dylibs").symlink_to(packages / "sklearn/.dylibs")
    found = openmp_runtimes(packages, tmp_path / "env", tmp_path)
    assert [(one.owner, one.family) for one in found] == [
        ("torch", "omp"),
        ("functorch", "omp"),
        ("scikit_learn", "gomp"),
        ("the environment", "iomp"),
        ("Homebrew", "omp"),
    ]
    (result,) = judge_openmp(found)
    assert result.status is Status.WARNING
    assert result.text.startswith("4 copies of the OpenMP runtime are installed: torch (libomp.dylib), functorch")
    assert "OMP_NUM_THREADS=1" in result.advice


def test_one_runtime_is_well_and_gnu_copies_do_not_collide(tmp_path: Path) -> None:
    (result,) = judge_openmp([Runtime("/x/libomp.dylib", "omp", "torch")])
    assert result.status is Status.OK
    assert list(judge_openmp([Runtime("/x/libgomp.so.1", "gomp", "torch"), Runtime("/y", "gomp", "sklearn")])) == []
    assert openmp_runtimes(tmp_path / "none", tmp_path / "none", tmp_path) == ()


def test_a_link_that_leads_nowhere_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "torch/lib").mkdir(parents=True)
    (tmp_path / "torch/lib/libomp.dylib").symlink_to(tmp_path / "gone")
    assert openmp_runtimes(tmp_path, tmp_path, tmp_path) == ()


def test_the_environment_is_that_of_the_examined_torch() -> None:
    torch = {"file": "/env/lib/python3.12/site-packages/torch/__init__.py", "prefix": "/env"}
    assert environment_of(torch) == (Path("/env/lib/python3.12/site-packages"), Path("/env"))
    assert environment_of(None) is None
