"""What is said before a launch."""

from __future__ import annotations

import pytest

from mpstui.core.diagnosis.preflight import LaunchFacts, preflight, starts_work_on_import, version

HIGH = "PYTORCH_MPS_HIGH_WATERMARK_RATIO"
LOW = "PYTORCH_MPS_LOW_WATERMARK_RATIO"
ROLES = {
    "workers": "num_workers",
    "persistent_workers": "persistent",
    "precision": "precision",
    "compile": "compile",
}
UNGUARDED = "import torch\nmodel = build()\ntrain(model)\n"
GUARDED = UNGUARDED + "if __name__ == '__main__':\n    main()\n"


def ids(plan: LaunchFacts) -> list[str]:
    return [warning.id for warning in preflight(plan)]


def test_a_plain_plan_is_fine() -> None:
    assert preflight(LaunchFacts()) == ()
    assert (
        ids(LaunchFacts(environment={"PYTORCH_ENABLE_MPS_FALLBACK": "1", "OMP_NUM_THREADS": "4"}, device="mps")) == []
    )


@pytest.mark.parametrize(("value", "warned"), [("true", True), ("yes", True), ("", True), ("1", False), ("0", False)])
def test_the_fallback_must_be_a_number(value: str, warned: bool) -> None:
    found = ids(LaunchFacts(environment={"PYTORCH_ENABLE_MPS_FALLBACK": value}))
    assert found == (["fallback_not_a_number"] if warned else [])


@pytest.mark.parametrize(
    ("high", "low", "expected"),
    [
        ("0.7", None, "watermark_pair"),
        ("0.7", "0.5", None),
        ("1.4", None, None),
        (None, "1.8", "watermark_pair"),
        (None, "1.7", None),
        ("0.0", None, "watermark_off"),
        ("0.0", "2.5", "watermark_pair"),
        ("2.5", None, "watermark_invalid"),
        ("-1", None, "watermark_invalid"),
        ("lots", None, "watermark_invalid"),
        (None, None, None),
    ],
)
def test_watermarks_follow_the_allocators_rules(high: str | None, low: str | None, expected: str | None) -> None:
    environment = {name: value for name, value in ((HIGH, high), (LOW, low)) if value is not None}
    assert ids(LaunchFacts(environment=environment)) == ([expected] if expected else [])


def test_a_silenced_openmp_check_is_named() -> None:
    assert ids(LaunchFacts(environment={"KMP_DUPLICATE_LIB_OK": "TRUE"})) == ["duplicate_omp_allowed"]
    assert ids(LaunchFacts(environment={"KMP_DUPLICATE_LIB_OK": "FALSE"})) == []


@pytest.mark.parametrize(
    ("script", "workers", "macos", "warned"),
    [
        (UNGUARDED, 4, (15, 1), True),
        (UNGUARDED, "2", (15, 1), True),
        (UNGUARDED, 0, (15, 1), False),
        (UNGUARDED, 4, None, False),
        (GUARDED, 4, (15, 1), False),
        (None, 4, (15, 1), False),
    ],
)
def test_workers_need_a_main_guard_on_macos(
    script: str | None, workers: object, macos: tuple[int, ...] | None, warned: bool
) -> None:
    plan = LaunchFacts(script=script, arguments={"num_workers": workers}, roles=ROLES, macos_version=macos)
    warnings = preflight(plan)
    assert [warning.id for warning in warnings] == (["no_main_guard"] if warned else [])
    assert all(warning.sentence.startswith(f"{workers} DataLoader workers") for warning in warnings)


@pytest.mark.parametrize(
    ("source", "works"),
    [
        ("", False),
        ("import torch\nX = 3\ndef main(): pass\n", False),
        ("for epoch in range(3):\n    pass\n", True),
        ("main()\n", True),
        ("import logging\nlogging.basicConfig()\n", False),
        ("try:\n    main()\nexcept Exception:\n    pass\n", True),
        ("if '__main__' == __name__:\n    main()\n", False),
        ("def broken(:\n", False),
    ],
)
def test_a_module_that_only_defines_may_be_imported(source: str, works: bool) -> None:
    assert starts_work_on_import(source) is works


def test_persistent_workers_need_workers() -> None:
    arguments = {"num_workers": 0, "persistent": True}
    assert ids(LaunchFacts(arguments=arguments, roles=ROLES)) == ["persistent_without_workers"]
    assert ids(LaunchFacts(arguments=arguments | {"num_workers": 2}, roles=ROLES)) == []


@pytest.mark.parametrize(
    ("torch", "macos", "device", "warned"),
    [
        ((2, 5, 1), (15, 0), "mps", True),
        ((2, 6, 0), (13, 6), "mps", True),
        ((2, 6, 0), (14, 0), "mps", False),
        ((2, 5, 1), (15, 0), "cpu", False),
        (None, None, "mps", False),
    ],
)
def test_bf16_needs_torch_and_macos(
    torch: tuple[int, ...] | None, macos: tuple[int, ...] | None, device: str, warned: bool
) -> None:
    plan = LaunchFacts(
        arguments={"precision": "bf16"}, roles=ROLES, torch_version=torch, macos_version=macos, device=device
    )
    assert ("bf16_on_mps" in ids(plan)) is warned


def test_mixed_names_are_unknown_to_lightning_1() -> None:
    plan = LaunchFacts(arguments={"precision": "bf16-mixed"}, roles=ROLES, lightning_version=(1, 9, 5))
    (warning,) = preflight(plan)
    assert warning.id == "lightning_precision"
    assert warning.remedy.args[0].value == "bf16"
    assert ids(LaunchFacts(arguments={"precision": "bf16-mixed"}, roles=ROLES, lightning_version=(2, 0))) == []


@pytest.mark.parametrize(
    ("torch", "macos", "warned"),
    [((2, 15, 0), (14, 7), True), ((2, 15, 0), (15, 0), False), ((2, 9), (13, 0), True), ((2, 5), (12, 3), False)],
)
def test_each_torch_has_its_oldest_macos(torch: tuple[int, ...], macos: tuple[int, ...], warned: bool) -> None:
    assert ids(LaunchFacts(device="mps", torch_version=torch, macos_version=macos)) == ["macos_too_old"] * warned


def test_compiling_for_mps_needs_torch_2_7() -> None:
    plan = LaunchFacts(device="mps", arguments={"compile": True}, roles=ROLES, torch_version=(2, 6))
    assert ids(plan) == ["compile_on_mps"]


def test_disk_and_memory() -> None:
    assert ids(LaunchFacts(free_disk_bytes=10**9, checkpoint_bytes=6 * 10**8)) == ["disk_space"]
    assert ids(LaunchFacts(free_disk_bytes=10**9, checkpoint_bytes=5 * 10**8)) == []
    assert ids(LaunchFacts(free_disk_bytes=0, checkpoint_bytes=None)) == []
    assert ids(LaunchFacts(available_memory_bytes=0, expected_memory_bytes=1)) == ["memory"]


@pytest.mark.parametrize(
    ("batch", "available", "told"),
    [
        ("32", 5 << 30, False),
        ("32", 3 << 30, "this training took 4.0 GiB before."),
        ("64", 5 << 30, "this training took 4.0 GiB with batch size 32, so that it may take 8.0 GiB with 64."),
        ("16", 3 << 30, False),
        ("auto", 3 << 30, "this training took 4.0 GiB before."),
    ],
)
def test_memory_is_judged_against_the_batch(batch: str, available: int, told: str | bool) -> None:
    plan = LaunchFacts(
        arguments={"batch-size": batch},
        roles={"batch_size": "batch-size"},
        available_memory_bytes=available,
        expected_memory_bytes=4 << 30,
        expected_batch_size=32,
    )
    assert [warning.sentence.endswith(str(told)) for warning in preflight(plan)] == ([True] if told else [])


def test_what_fails_at_once_comes_first() -> None:
    environment = {"KMP_DUPLICATE_LIB_OK": "TRUE", "PYTORCH_ENABLE_MPS_FALLBACK": "true"}
    assert ids(LaunchFacts(environment=environment)) == ["fallback_not_a_number", "duplicate_omp_allowed"]


@pytest.mark.parametrize(
    ("text", "numbers"), [("2.6.0+cu124", (2, 6, 0)), ("2.15.0.dev2026", (2, 15, 0)), ("x", None), (None, None)]
)
def test_versions(text: str | None, numbers: tuple[int, ...] | None) -> None:
    assert version(text) == numbers
