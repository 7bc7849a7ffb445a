"""What is quoted where no rule explains the end: the script's own exception, and where it was raised."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpstui.core.diagnosis.engine import diagnose
from mpstui.core.diagnosis.evidence import evidence_from_run_dir
from mpstui.core.diagnosis.log_text import last_exception, screen_lines, unexplained
from mpstui.core.diagnosis.model import Evidence
from mpstui.wire import storage
from mpstui.wire.records import ExitRecord, LaunchRecord
from mpstui.wire.rundir import RunDir

OWN = """Traceback (most recent call last):
  File "/home/me/train.py", line 30, in <module>
    main()
  File "/home/me/data.py", line 12, in load
    assert len(rows) == count
  File "/home/me/env/lib/python3.11/site-packages/datasets/table.py", line 9, in __getitem__
    return self.rows[key]
AttributeError: TPU
"""
BY_ACCELERATE = """Traceback (most recent call last):
  File "/home/me/env/bin/accelerate", line 8, in <module>
    sys.exit(main())
  File "/home/me/env/lib/python3.11/site-packages/accelerate/commands/launch.py", line 9, in simple_launcher
    raise subprocess.CalledProcessError(returncode=process.returncode, cmd=cmd)
subprocess.CalledProcessError: Command '['python3', 'train.py']' returned non-zero exit status 1.
"""
BY_TORCHRUN = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n====\ntrain.py FAILED\n"
BARE = """Traceback (most recent call last):
  File "train.py", line 7, in <module>
    check(3)
  File "train.py", line 4, in check
    assert n % 2 == 0
           ^^^^^^^^^^
AssertionError
"""
BOXED = """╭──────────── Traceback (most recent call last) ────────────╮
│ /home/me/net.py:41 in forward                              │
│ ❱ 41     assert x.dim() == 3                                │
╰────────────────────────────────────────────────────────────╯
KeyError: 'weight'
"""


def lines(text: str) -> Evidence:
    return Evidence(lines=tuple(screen_lines(text.split("\n"))), exit_code=1)


@pytest.mark.parametrize(
    ("chain", "told"),
    [
        (
            "The above exception was the direct cause of the following exception:",
            "; its cause, on log line 1: TypeError: a",
        ),
        ("During handling of the above exception, another exception occurred:", ""),
        ("", ""),
    ],
)
def test_what_the_last_exception_was_raised_from_is_quoted_too(chain: str, told: str) -> None:
    text = f"TypeError: a\n\n{chain}\n\nmaker.MakingError: making failed"
    where = "No known cause was found. The last exception, on log line 5: maker.MakingError: making failed"
    assert unexplained((), lines(text)) == where + told


def test_a_traceback_of_windows_names_the_users_own_file() -> None:
    text = OWN.replace("/home/me/env/lib/python3.11/", "C:/Env/Lib/").replace("/home/me/", "D:/work/")
    text = "\n".join(line.replace("/", "\\") if "File" in line else line for line in text.split("\n"))
    found = last_exception(lines(text).lines)
    assert found is not None
    assert (found.text, found.where) == ("AttributeError: TPU", "data.py:12 in load")


@pytest.mark.parametrize("launcher", [BY_ACCELERATE, BY_TORCHRUN])
def test_the_scripts_own_exception_is_quoted_before_its_launchers(launcher: str) -> None:
    found = last_exception(lines(OWN + launcher).lines)
    assert found is not None
    assert (found.line, found.text, found.where) == (8, "AttributeError: TPU", "data.py:12 in load")


def test_what_the_agent_wraps_is_no_place_of_the_script() -> None:
    """On the CPU ``torch.load`` and ``.to`` are led through the agent, which may lie in a checkout of its own."""
    through = OWN.replace("/home/me/env/lib/python3.11/site-packages/datasets/table.py", "/home/me/mpstui/agent/x.py")
    found = last_exception(lines(through).lines)
    assert found is not None
    assert found.where == "data.py:12 in load"


def test_a_launchers_exception_is_quoted_where_the_script_said_nothing() -> None:
    found = last_exception(lines(BY_ACCELERATE).lines)
    assert found is not None
    assert found.text.startswith("subprocess.CalledProcessError")


def test_an_exception_without_error_in_its_name_is_one_below_a_stack_frame() -> None:
    traceback = OWN.replace("AttributeError: TPU", "pyarrow.lib.ArrowInvalid: Could not convert")
    found = last_exception(lines(traceback + "wandb.sdk.Run: finished\n").lines)
    assert found is not None
    assert (found.text, found.where) == ("pyarrow.lib.ArrowInvalid: Could not convert", "data.py:12 in load")


def test_what_python_ignores_while_it_leaves_is_no_last_exception() -> None:
    ignored = "Exception ignored in: <function Loader.__del__ at 0x7f>\n" + BARE
    found = last_exception(lines(OWN + ignored).lines)
    assert found is not None
    assert found.text == "AttributeError: TPU"
    after = last_exception(lines(ignored + OWN).lines)
    assert after is not None
    assert after.text == "AttributeError: TPU"


def test_ranks_are_no_part_of_a_place() -> None:
    found = last_exception(lines("".join(f"[rank1]: {line}\n" for line in OWN.splitlines()) + BY_TORCHRUN).lines)
    assert found is not None
    assert found.where == "data.py:12 in load"


def test_a_bare_assertion_is_quoted_with_the_line_that_asserts() -> None:
    found = last_exception(lines(BARE).lines)
    assert found is not None
    assert (found.text, found.where) == ("AssertionError: assert n % 2 == 0", "train.py:4 in check")
    assert unexplained((), lines(BARE)) == (
        "No known cause was found. The last exception, on log line 7: "
        "AssertionError: assert n % 2 == 0 (train.py:4 in check)"
    )


def test_what_python_cannot_read_has_the_place_where_it_stopped() -> None:
    tail = '  File "/home/me/nets/vgg.py", line 71\n    print "depth", depth\n    ^^^^^\nSyntaxError: invalid syntax\n'
    within = (
        'Traceback (most recent call last):\n  File "/home/me/train.py", line 3, in <module>\n    import nets.vgg\n'
    )
    for text in (tail, within + tail):
        found = last_exception(lines(text).lines)
        assert found is not None
        assert found.where == "vgg.py:71"


def test_a_traceback_in_a_box_has_a_place_too() -> None:
    found = last_exception(lines(BOXED).lines)
    assert found is not None
    assert found.where == "net.py:41 in forward"


def test_an_end_that_was_asked_for_is_said_to_be_that(tmp_path: Path) -> None:
    folder = RunDir(tmp_path).attempt(1)
    folder.path.mkdir(parents=True)
    storage.write_json(folder.launch, LaunchRecord(1, 1.0, ["x"], "/", "cpu"))
    folder.output.write_text("step 1 loss 0.5\nTraceback (most recent call last):\nKeyboardInterrupt\n")
    record = ExitRecord(1, 2.0, signal=9, requested_by="me@here", action="kill")
    storage.write_json(folder.exit, record)
    evidence = evidence_from_run_dir(tmp_path)
    assert diagnose(evidence) == ()
    assert unexplained((), evidence) == "me@here asked for a kill: there is no crash to explain."


@pytest.mark.parametrize(("signal", "code"), [(2, None), (None, 130), (None, 1)])
def test_control_c_is_no_failure(signal: int | None, code: int | None) -> None:
    text = 'step 3 loss 0.5\nTraceback (most recent call last):\n  File "a.py", line 1, in f\nKeyboardInterrupt\n'
    evidence = replace(lines(text), signal=signal, exit_code=code)
    assert [finding.id for finding in diagnose(evidence)] == ["interrupted"]


def test_the_numbers_of_the_last_failure_are_told() -> None:
    text = (
        "RuntimeError: MPS backend out of memory (MPS allocated: 17.50 GB, other allocations: 2.30 GB, "
        "max allowed: 20.10 GB). Tried to allocate 512.00 MB on private pool."
    )
    (found, *_) = diagnose(lines(text))
    assert found.numbers == "wanted 512.00 MB more: 17.50 GB + 2.30 GB of 20.10 GB were in use"


def test_a_native_crash_is_told_with_the_line_of_python_that_it_happened_in() -> None:
    text = (
        "step 3 loss 0.5\nFatal Python error: Segmentation fault\n\n"
        'Thread 0x00007f01 (most recent call first):\n  File "/usr/lib/python3.11/threading.py", line 324 in wait\n\n'
        "Current thread 0x00007f40 (most recent call first):\n"
        '  File "/home/me/env/lib/python3.11/site-packages/torch/nn/functional.py", line 9 in linear\n'
        '  File "/home/me/model.py", line 32 in forward\n  File "/home/me/train.py", line 7 in <module>\n\n'
        "Extension modules: numpy (total: 1)\n"
    )
    (found, *_) = diagnose(replace(lines(text), signal=11))
    shown = found.shown_by
    assert shown is not None
    assert (found.id, shown.where) == ("segfault", "model.py:32 in forward")
    assert (shown.file, shown.file_line) == ("/home/me/model.py", 32)


@pytest.mark.parametrize(
    ("line", "rule", "path"),
    [
        (
            "FileNotFoundError: [Errno 2] No such file or directory: 'data/my train.csv'",
            "path_missing",
            "data/my train.csv",
        ),
        ("FileNotFoundError: [Errno 2] No such file or directory: /data/x", "path_missing", "/data/x"),
        ("IsADirectoryError: [Errno 21] Is a directory: 'out'", "path_is_folder", "out"),
        ("NotADirectoryError: [Errno 20] Not a directory: 'a.zip/train'", "path_is_file", "a.zip/train"),
        ("FileExistsError: [Errno 17] File exists: 'runs/1'", "path_taken", "runs/1"),
        ("PermissionError: [Errno 13] Permission denied: '/data/last.pt'", "no_permission", "/data/last.pt"),
        ("FileNotFoundError: no split in /data/coco", "path_missing", ""),
    ],
)
def test_the_path_that_is_at_fault_is_told(line: str, rule: str, path: str) -> None:
    before = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    open(path)\n'
    found = diagnose(lines(before + line))[0]
    assert (found.id, found.numbers) == (rule, path)
