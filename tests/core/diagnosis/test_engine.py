"""How the evidence beside the text is weighed: endings, heartbeats, the course of the log."""

from __future__ import annotations

import time

import pytest

from mpstui.core.diagnosis.engine import diagnose
from mpstui.core.diagnosis.log_text import SearchText, compiled, screen_lines
from mpstui.core.diagnosis.model import Evidence, Finding, HeartbeatEvidence, LogLine
from mpstui.core.diagnosis.rules import all_rules, rule

FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"
OOM = "RuntimeError: MPS backend out of memory (MPS allocated: 5.50 GB, max allowed: 20.40 GB)."
LEAK = "resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 1 leaked semaphore objects"
TRAINING = [f"epoch 2 step {step} loss 0.4{step} 3.1 it/s" for step in range(20)]


def lines(*texts: str) -> tuple[LogLine, ...]:
    return tuple(screen_lines(texts))


def ids(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.id for finding in findings]


@pytest.mark.parametrize(("signal", "code"), [(9, None), (None, 137), (None, -9)])
def test_a_sigkill_explains_itself_without_any_text(signal: int | None, code: int | None) -> None:
    findings = diagnose(Evidence(lines=lines(*TRAINING), signal=signal, exit_code=code))
    assert ids(findings) == ["killed", "killed_os"]
    assert findings[0].evidence[0].line is None
    assert findings[0].evidence[0].text == "ended by signal 9 (SIGKILL)"


@pytest.mark.parametrize(
    ("code", "rule_id"),
    [(139, "segfault"), (-11, "segfault"), (134, "segfault"), (138, "bus_error"), (135, "bus_error")],
)
def test_other_signals_are_read_from_exit_codes(code: int, rule_id: str) -> None:
    assert ids(diagnose(Evidence(exit_code=code)))[0] == rule_id


@pytest.mark.parametrize("code", [0, 1, 3, 255, None])
def test_nothing_is_made_up(code: int | None) -> None:
    assert diagnose(Evidence(lines=lines(*TRAINING), exit_code=code)) == ()


def test_a_requested_end_needs_no_explanation() -> None:
    assert diagnose(Evidence(lines=lines(*TRAINING), signal=9, requested_by="me@mac:1")) == ()
    assert diagnose(Evidence(lines=lines(*TRAINING), signal=15, requested_by="me@mac:1")) == ()


def test_memory_is_not_blamed_for_a_kill_where_linux_killed_nothing_for_it() -> None:
    nothing = "Linux killed nothing for memory during this attempt"
    (finding,) = diagnose(Evidence(signal=9, no_memory_kill=nothing))
    assert finding.id == "killed"
    assert nothing in [line.text for line in finding.evidence]
    assert ids(diagnose(Evidence(signal=9, memory_events=("Linux killed 1 process(es) for memory",))))[0] == "killed_os"


@pytest.mark.parametrize(("used", "rule_id"), [(0.31, "killed"), (0.97, "killed_os"), (0.8, "killed")])
def test_a_kill_is_explained_by_the_memory_that_was_in_use_before_it(used: float, rule_id: str) -> None:
    assert diagnose(Evidence(signal=9, machine_memory_ratio=used))[0].id == rule_id


def test_memory_evidence_makes_a_kill_nearly_certain() -> None:
    plain = diagnose(Evidence(signal=9))[0]
    event = "memorystatus: killing largest compressed process python3.11 [4711] 43350 MB"
    sure = diagnose(
        Evidence(
            signal=9,
            memory_events=(event,),
            heartbeat=HeartbeatEvidence(memory_ratio=0.97, memory_slope_bytes_per_second=5e6),
            environment={"PYTORCH_MPS_HIGH_WATERMARK_RATIO": "0.0"},
        )
    )[0]
    assert plain.confidence < 0.7 < 0.9 < sure.confidence
    texts = [line.text for line in sure.evidence]
    assert event in texts
    assert any("no cap" in text for text in texts)
    assert any("97%" in text for text in texts)


def test_a_symptom_never_outranks_a_cause() -> None:
    assert ids(diagnose(Evidence(lines=lines(LEAK), signal=9))) == ["killed", "killed_os", "leaked_semaphore_only"]
    assert ids(diagnose(Evidence(lines=lines(OOM, LEAK, LEAK, LEAK))))[0] == "mps_oom"


@pytest.mark.parametrize("line", ["Test: [{}/124] Data 3.2", "Validation ({}/40)", "INFO train [{}/9000] lr 0.1"])
def test_a_count_of_batches_is_training_that_goes_on(line: str) -> None:
    assert ids(diagnose(Evidence(lines=lines(OOM, *(line.format(step) for step in range(10, 20)))))) == []


@pytest.mark.parametrize(("signal", "rule_id"), [(15, "terminated"), (1, "hangup"), (2, "interrupted")])
def test_a_signal_that_asks_to_end_is_named(signal: int, rule_id: str) -> None:
    assert ids(diagnose(Evidence(lines=lines(*TRAINING), signal=signal))) == [rule_id]
    assert diagnose(Evidence(lines=lines(*TRAINING), signal=signal, requested_by="me@mac:1")) == ()


def test_the_exception_is_shown_and_not_the_code_that_holds_its_words() -> None:
    code = 'assert loss.isfinite(), "loss is nan at this step"'
    traceback = ("Traceback (most recent call last):", '  File "train.py", line 9, in <module>', f"    {code}")
    (found,) = diagnose(Evidence(lines=lines(*traceback, "AssertionError: loss is nan at this step")))
    assert found.shown_by is not None
    assert (found.shown_by.line, found.shown_by.where) == (4, "train.py:9")


def test_training_that_went_on_acquits_what_came_before() -> None:
    assert ids(diagnose(Evidence(lines=lines(OOM, *TRAINING)))) == []
    assert ids(diagnose(Evidence(lines=lines(*TRAINING, OOM)))) == ["mps_oom"]


LOSS_AFTER_NAN = {
    "loss 2.1": [],  # it passed
    "loss nan": ["nan_loss"],
    "val_loss 0.7": ["nan_loss"],  # another loss says nothing of this one
    "best loss 0.3": ["nan_loss"],
    "loss scale 0.5": ["nan_loss"],
}


@pytest.mark.parametrize("after", LOSS_AFTER_NAN)
def test_a_nan_is_no_cause_where_the_same_loss_is_a_number_later(after: str) -> None:
    seen = lines("step 1 loss 2.3", "step 2 loss nan", f"step 3 {after}", "KeyError: 'label'")
    assert ids(diagnose(Evidence(lines=seen, exit_code=1))) == LOSS_AFTER_NAN[after]
    beat = HeartbeatEvidence(nonfinite=("loss",))
    assert ids(diagnose(Evidence(lines=seen, exit_code=1, heartbeat=beat))) == ["nan_loss"]


@pytest.mark.parametrize("key", ["error", "message", "last_exception", "RuntimeError"])
def test_an_error_that_a_record_quotes_is_no_setting(key: str) -> None:
    record = f'{{"time": 1.5, "{key}": "CUDA out of memory. Tried to allocate 2.00 GiB"}}'
    assert ids(diagnose(Evidence(lines=lines(record)))) == ["cuda_oom"]


NOTES = (
    "UserWarning: 'pin_memory' argument is set as true but not supported on MPS now, device pinned memory won't be "
    "used.",
    "UserWarning: The operator 'aten::sgn.out' is not currently supported on the MPS backend and will fall back to run "
    "on the CPU.",
    "No CUDA GPUs are available, using MPS",
)


@pytest.mark.parametrize("progress", [0, 20])
def test_notes_of_the_start_do_not_hide_the_crash_at_the_end(progress: int) -> None:
    crash = ("Traceback (most recent call last):", '  File "train.py", line 3', OOM, LEAK)
    findings = diagnose(Evidence(lines=lines(*NOTES, *TRAINING[:progress], *crash), exit_code=1))
    assert ids(findings)[0] == "mps_oom"


def test_notes_of_a_run_that_goes_on_are_no_findings() -> None:
    assert diagnose(Evidence(lines=lines(*NOTES, *TRAINING))) == ()


def test_the_metrics_a_logger_prints_after_a_crash_do_not_acquit_it() -> None:
    summary = [f"wandb: train/loss step {n} 0.4" for n in range(20)]
    assert ids(diagnose(Evidence(lines=lines(*TRAINING, OOM, *summary)))) == ["mps_oom"]


def test_a_failed_gpu_command_is_reported_although_training_went_on() -> None:
    text = "Error: command buffer exited with error status."
    assert ids(diagnose(Evidence(lines=lines(text, *TRAINING)))) == ["metal_cmdbuf"]


def test_exit_code_zero_acquits_too() -> None:
    assert diagnose(Evidence(lines=lines(OOM), exit_code=0)) == ()
    assert ids(diagnose(Evidence(lines=lines(LEAK), exit_code=0))) == ["leaked_semaphore_only"]


def test_the_last_exception_weighs_more_than_a_handled_one() -> None:
    handled = (
        "Traceback (most recent call last):",
        "OSError: [Errno 28] No space left on device",
        "skipping this save",
    )
    last = ("Traceback (most recent call last):", "IndexError: Target 10 is out of bounds.")
    assert ids(diagnose(Evidence(lines=lines(*handled, *last))))[:2] == ["label_bug", "disk_full"]


def test_the_first_of_a_chain_counts_as_the_last_failure() -> None:
    chain = (
        "OSError: [Errno 28] No space left on device",
        "During handling of the above exception, another exception occurred:",
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x2 and 3x4)",
    )
    assert ids(diagnose(Evidence(lines=lines(*chain))))[0] == "disk_full"


def test_an_ending_that_does_not_fit_speaks_against_a_cause() -> None:
    assert ids(diagnose(Evidence(lines=lines("No CUDA GPUs are available"), signal=9)))[0] == "killed"
    fitting, unfitting = (
        diagnose(Evidence(lines=lines("LLVM ERROR: Failed to infer result type(s)."), signal=signal))[0].confidence
        for signal in (6, 9)
    )
    assert fitting > unfitting


def test_heartbeats_raise_and_lower() -> None:
    save = HeartbeatEvidence(phase="save")
    text = lines("OSError: write failed")
    assert diagnose(Evidence(lines=text, heartbeat=save))[0].confidence > diagnose(Evidence(lines=text))[0].confidence
    nan = HeartbeatEvidence(nonfinite=("loss",))
    metric = lines("loss nan")
    assert (
        diagnose(Evidence(lines=metric, heartbeat=nan))[0].confidence > diagnose(Evidence(lines=metric))[0].confidence
    )


def test_evidence_names_line_and_cleaned_text() -> None:
    raw = f"ok\n\x1b[31mbar 12%|#\rbar 13%|#\x1b[0m{OOM}\x07\n"
    finding = diagnose(Evidence(lines=tuple(screen_lines(raw.split("\n")))))[0]
    assert finding.evidence[0].line == 2
    assert finding.evidence[0].text == f"bar 13%|#{OOM}"


def test_an_exception_is_shown_with_the_place_that_raised_it() -> None:
    (found, *_) = diagnose(
        Evidence(
            lines=lines(
                "Traceback (most recent call last):",
                '  File "/home/me/train.py", line 112, in step',
                "    loss.backward()",
                "RuntimeError: MPS backend out of memory (MPS allocated: 17.54 GB, other allocations: 2.31 GB, "
                "max allowed: 20.13 GB). Tried to allocate 512.00 MB on private pool.",
            ),
            exit_code=1,
        )
    )
    assert found.shown_by is not None
    assert found.shown_by.where == "train.py:112 in step"
    assert found.numbers == "wanted 512.00 MB more: 17.54 GB + 2.31 GB of 20.13 GB were in use"


def test_a_lack_that_torch_counts_in_bytes_is_told_as_a_size() -> None:
    text = "RuntimeError: [enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory: "
    text += "you tried to allocate 48000000000 bytes. Error code 12 (Cannot allocate memory)"
    assert diagnose(Evidence(lines=lines(text), exit_code=1))[0].numbers == "wanted 44.7 GiB more"


def test_a_variable_that_was_set_already_is_not_advised_again() -> None:
    text = "NotImplementedError: The operator 'aten::_linalg_svd.U' is not currently implemented for the MPS device."
    for environment, advised in (({}, True), ({FALLBACK: "1"}, False)):
        evidence = Evidence(lines=lines(text), exit_code=1, environment=environment)
        (found,) = [one for one in diagnose(evidence) if one.id == "mps_op_missing"]
        assert ("Start again with PYTORCH_ENABLE_MPS_FALLBACK=1" in found.remedy.text) == advised
        assert found.remedy.text.startswith("Run it on the CPU") != advised
        assert found.remedy.text.endswith(f" {FALLBACK}=1 was set already and did not help.") != advised
        assert (found.remedy.env, found.remedy.device) == (({FALLBACK: "1"}, None) if advised else ({}, "cpu"))


@pytest.mark.parametrize(
    "text",
    [
        "NotImplementedError: Could not run 'aten::empty.memory_format' with arguments from the 'SparseMPS' backend.",
        "NotImplementedError: convolution_overrideable not implemented. You are likely triggering this with",
    ],
)
def test_a_variable_that_does_not_reach_the_failure_is_not_advised(text: str) -> None:
    found = diagnose(Evidence(lines=lines(text), exit_code=1))[0]
    assert (found.id, found.remedy.env, found.remedy.device) == ("mps_op_missing", {}, "cpu")
    assert found.remedy.text.startswith("Run it on the CPU")
    assert f" {FALLBACK}=1 does not reach" in found.remedy.text


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("zsh: bus error  python train.py", "cpu"),
        ("traceback : Signal 7 (SIGBUS) received by PID 4711", None),
        ("torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGBUS", None),
    ],
)
def test_the_cpu_is_no_help_for_a_bus_error_without_mps(text: str, device: str | None) -> None:
    found = diagnose(Evidence(lines=lines(text)))[0]
    assert (found.id, found.remedy.device, found.restart_on_cpu_helps) == ("bus_error", device, device is not None)


APPLE = "/AppleInternal/Library/BuildRoots/" + "/".join(["0f1e2d3c-4b5a"] * 16)
"""A path as long as those that Apple's libraries print before they say what is wrong."""


@pytest.mark.parametrize(
    ("rule_id", "text", "device"),
    [
        ("cuda_hardcoded", "RuntimeError: No GPU found. A GPU is needed for quantization.", None),
        (
            "cuda_hardcoded",
            "OSError: CUDA_HOME environment variable is not set. Please set it.",
            None,
        ),
        ("cuda_hardcoded", "RuntimeError: 0 active drivers ([]). There should only be one.", None),
        ("dtype_mismatch", "RuntimeError: expected scalar type Long but found Float", None),
        ("cpu_oom", "MemoryError: Unable to allocate 29.8 GiB for an array with shape (50000, 512)", None),
        (
            "mps_assert_ndarray",
            "failed assertion `[MPSNDArray x:] error: start (3) is not less'",
            "cpu",
        ),
        (
            "mpsgraph_llvm",
            "LLVM ERROR: Failed to infer result type(s): 'tensor<3x10xf32>' and 'tensor<1xi64>' do not fit",
            "cpu",
        ),
        (
            "mpsgraph_llvm",
            f'loc("mps_matmul"("(mpsFileLoc): {APPLE}/MPSGraphUtilities.mm":43:0)): error: incompatible dimensions',
            "cpu",
        ),
        ("metal_shader_compile", "RuntimeError: Failed to created pipeline state object, error: Code=3", "cpu"),
    ],
)
def test_what_changes_nothing_for_this_failure_is_not_offered(rule_id: str, text: str, device: str | None) -> None:
    found = diagnose(Evidence(lines=lines(text), offers_cpu=True))[0]
    remedy = found.remedy
    assert (found.id, remedy.args, remedy.env, remedy.device) == (rule_id, (), {}, device)
    assert remedy.text != rule(rule_id).remedy.text
    assert found.restart_on_cpu_helps == (device == "cpu")


@pytest.mark.parametrize(
    ("rule_id", "text"),
    [
        ("cuda_hardcoded", "AssertionError: Torch not compiled with CUDA enabled"),
        ("dtype_mismatch", "RuntimeError: expected scalar type Half but found Float"),
        ("mps_assert_ndarray", "failed assertion `[MPSTemporaryNDArray x:] Error: product of dimension sizes > 2**31'"),
        (
            "mps_assert_ndarray",
            f"{APPLE}/MPSNDArray.mm:891: failed assertion `[MPSNDArray initWithDevice:] Error: total bytes > 2**32'",
        ),
        ("mpsgraph_llvm", "LLVM ERROR: Failed to infer result type(s)."),
        ("mpsgraph_llvm", "error: input types 'tensor<1x9xf16>' and 'tensor<1xf32>' are not broadcast compatible"),
    ],
)
def test_what_mends_this_failure_is_offered(rule_id: str, text: str) -> None:
    found = diagnose(Evidence(lines=lines(text)))[0]
    assert (found.id, found.remedy) == (rule_id, rule(rule_id).remedy)


@pytest.mark.parametrize(
    ("rule_id", "text"),
    [
        (
            "cuda_oom",
            "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nOutOfMemoryError: CUDA out of memory."
            ' Tried to allocate 20.00 MiB\nSet TORCH_LOGS="+dynamo" and TORCHDYNAMO_VERBOSE=1 for more information',
        ),
        (
            "shape_bug",
            "torch._dynamo.exc.TorchRuntimeError: Dynamo failed to run FX node with fake tensors: call_function linear:"
            " got RuntimeError('a and b must have same reduction dim, but got [8, 10] X [12, 4].')",
        ),
        (
            "device_mismatch",
            "torch._dynamo.exc.TorchRuntimeError: Failed running call_function embedding:\nUnhandled FakeTensor Device "
            "Propagation for aten.embedding.default, found two different devices mps:0, cpu",
        ),
    ],
)
def test_what_fails_within_the_compiler_and_without_it_is_no_fault_of_the_compiler(rule_id: str, text: str) -> None:
    first, *others = diagnose(Evidence(lines=lines(text)))
    assert first.id == rule_id
    assert not any(one.confidence > 0.8 * first.confidence for one in others)


def test_a_very_long_line_is_cut_around_what_matters() -> None:
    finding = diagnose(Evidence(lines=lines("x" * 5000 + " " + OOM + " " + "y" * 5000)))[0]
    text = finding.evidence[0].text
    assert OOM in text
    assert len(text) < 320


def test_confidence_lies_between_zero_and_one() -> None:
    everything = tuple(screen_lines(["MPS backend out of memory", OOM, "Tried to allocate 1 GB on private pool"]))
    for finding in diagnose(Evidence(lines=everything, exit_code=1, heartbeat=HeartbeatEvidence(memory_ratio=1.5))):
        assert 0 < finding.confidence < 1


def hostile(size: int) -> tuple[str, ...]:
    """Texts of twice ``size`` characters or so that a careless pattern takes apart in very many ways."""
    return (
        "a" * (2 * size),
        " loss" * (size * 2 // 5),
        "(" * size + ")" * size,
        "nan " * (size // 2),
        "Error: " * (size * 3 // 10),
        "exit code " * (size // 5),
        "\x1b[" * size,
        "MPS " * (size // 2),
        "DataLoader worker (pid(s) " + "1, " * (size * 2 // 3),
        "not supported on " * (size * 2 // 15),
        "/mps/" * (size * 2 // 5) + "INTERNAL ASSERT FAILED at " + "x/" * (size * 2 // 3),
        "- " * size,
        "failed assertion `" + "MPSNDArray[" * (size // 6),
    )


HOSTILE = hostile(30_000)


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: str(text[:12]))
def test_hostile_lines_cost_little(text: str) -> None:
    started = time.process_time()
    diagnose(Evidence(lines=lines(text, OOM)))
    assert time.process_time() - started < 3.0


@pytest.mark.parametrize("text", hostile(10_000), ids=lambda text: str(text[:12]))
def test_no_single_pattern_backtracks_without_end(text: str) -> None:
    """What takes a tenth of a second here takes nine tenths where a line is three times as long."""
    search = SearchText(lines(text))
    for one in all_rules():
        for pattern in (*one.patterns, *one.weak_patterns):
            started = time.process_time()
            compiled(pattern).search(search.text)
            assert time.process_time() - started < 0.1, (one.id, pattern)
