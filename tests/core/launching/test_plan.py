"""A plan is the exact command and environment; what cannot work is refused before anything is started."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpstui.core.launching import planning, preflight
from mpstui.core.launching.arguments import known_arguments
from mpstui.core.launching.choice import LaunchChoice, choice_json, parse_sets
from mpstui.core.launching.planning import LaunchPlan, plan
from mpstui.core.machine import Machine, physical_cores_of_this_machine
from mpstui.core.model.errors import OperationError, UsageError
from mpstui.core.model.home import resolve_home
from mpstui.core.profiles.model import Profile, profile_of_command
from mpstui.wire import storage
from mpstui.wire.records import QueueRule

from .conftest import FakeInterpreter, linux, mac

Build = Callable[[str], Profile]
PY = sys.executable
SCRIPT = 'command = ["{python}", "train.py"]\n'


def planned(
    profile: Profile, machine: Machine | None = None, environ: dict[str, str] | None = None, **choice: Any
) -> LaunchPlan:
    environment = {"PATH": os.environ["PATH"], **(environ or {})}
    return plan(LaunchChoice(profile, **choice), environ=environment, machine=machine or linux())


def test_arguments_become_options(profile_of: Build) -> None:
    profile = profile_of(
        SCRIPT
        + '[args]\nepochs = 3\namp = true\nverbose = false\nlayers = [1, 2]\nmodel.lr = 0.1\nnote = "-x"\nlow = -1\n'
    )
    assert planned(profile).argv == (
        *(
            PY,
            "train.py",
            "--epochs",
            "3",
            "--amp",
            "--layers",
            "1",
            "2",
            "--model.lr",
            "0.1",
            "--note=-x",
            "--low",
            "-1",
        ),
    )


def test_hydra_arguments(profile_of: Build) -> None:
    profile = profile_of(
        'arg_style = "hydra"\n'
        + SCRIPT
        + '[args]\nepochs = 3\namp = false\n"+seed" = 1\nl = [1, 2]\nn = "a,b"\nt.u = "x y"\n'
    )
    assert planned(profile).argv[2:] == ("epochs=3", "amp=false", "+seed=1", "l=[1,2]", "n='a,b'", "t.u='x y'")


def test_a_set_changes_what_the_command_has_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    words = (PY, "train.py", "--lr", "1", "data", "-b", "8", "--max_iters=1200", "--compile=True")
    profile = profile_of_command(words, cwd=tmp_path)
    assert profile.args == {}
    made = planned(profile, sets=parse_sets(["max-iters=100", "b=4", "compile=False", "seed=1"]))
    assert " ".join(made.argv[1:]) == "train.py --lr 1 data -b 4 --max_iters=100 --compile=False --seed 1"
    assert [warning for warning in made.warnings if "no argument" in warning] == [
        "the command has no argument `seed`: it is passed on to the program as it is"
    ]
    with pytest.raises(UsageError, match="this command has no argument 'max_iter'; did you mean 'max_iters'"):
        planned(profile, sets=parse_sets(["max_iter=100"]))


def test_an_argument_that_the_program_is_known_to_take_needs_no_word(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--batch_size', type=int)\n"
        "parser.parse_args()\n"
    )
    environ = {"PATH": os.environ["PATH"], "MPSTUI_HOME": str(tmp_path / "home")}
    profile = profile_of_command((sys.executable, "train.py"), cwd=tmp_path)

    def told() -> list[str]:
        made = planned(profile, environ=environ, sets=parse_sets(["batch_size=32", "speed=1"]))
        return [warning.partition(":")[0] for warning in made.warnings if "no argument" in warning]

    assert told() == ["the command has no argument `batch_size`", "the command has no argument `speed`"]
    cache = resolve_home(environ).arguments
    assert known_arguments((sys.executable, "train.py"), cwd=tmp_path, environ=environ, cache=cache)
    assert told() == ["the command has no argument `speed`"]


def test_totals_travel_with_the_launch(profile_of: Build) -> None:
    profile = profile_of(SCRIPT + '[args]\nniter = 5\n[roles]\nepochs = "niter"\n')
    assert planned(profile, sets={"niter": "7"}).template.totals == (7, None)


def test_sets_override_and_add(profile_of: Build) -> None:
    profile = profile_of(SCRIPT + "[args]\nbatch_size = 3\namp = false\nlr = 1\n")
    made = planned(profile, sets=parse_sets(["batch-size=8", "amp=yes", "lr=1e-3", "seed=7", "name=a=b"]))
    assert made.argv[2:] == ("--batch_size", "8", "--amp", "--lr", "1e-3", "--seed", "7", "--name", "a=b")
    assert any("seed" in warning for warning in made.warnings)


@pytest.mark.parametrize(
    ("item", "part"),
    [
        ("epochs", "KEY=VALUE"),
        ("=3", "KEY=VALUE"),
        ("epoch=3", "did you mean 'epochs'"),
        ("epochs=many", "is a number"),
        ("amp=perhaps", "true or false"),
    ],
)
def test_bad_sets_are_refused(profile_of: Build, item: str, part: str) -> None:
    profile = profile_of(SCRIPT + "[args]\nepochs = 3\namp = false\n")
    with pytest.raises(UsageError, match=part):
        planned(profile, sets=parse_sets([item]))


def test_an_argument_that_a_comment_of_the_profile_names_is_known(profile_of: Build) -> None:
    named = '# batch-size = 8\n# data-dir = "/where/it/is"\n#   prose = is none\n'
    text = f"{SCRIPT}[args]\nepochs = 3\nbatch_size = 4\n{named}[env]\n# other = 1\n"
    made = planned(profile_of(text), sets=parse_sets(["data_dir=/d"]))
    assert made.argv[-2:] == ("--data-dir", "/d")
    assert any("prose" in warning for warning in planned(profile_of(text), sets={"prose": "1"}).warnings)
    argv = planned(profile_of(text), sets=parse_sets(["batch-size=16"])).argv
    assert [word for word in argv if "batch" in word] == ["--batch_size"]
    assert not any("data" in warning for warning in made.warnings)
    assert any("other" in warning for warning in planned(profile_of(text), sets={"other": "1"}).warnings)
    with pytest.raises(UsageError, match="did you mean 'data-dir'"):
        planned(profile_of(text), sets={"datadir": "1"})


def test_a_plus_says_that_a_key_is_meant(profile_of: Build) -> None:
    assert planned(profile_of(SCRIPT + "[args]\nepochs = 3\n"), sets={"+epoch": "3"}).argv[-2:] == ("--epoch", "3")


def test_a_new_argument_set_to_true_is_a_bare_flag(profile_of: Build) -> None:
    made = planned(profile_of(SCRIPT), sets=parse_sets(["shuffle-labels=true", "amp=false"]))
    assert made.argv[-1] == "--shuffle-labels"
    assert "--amp" not in made.argv


def test_torchrun_wraps_the_program(profile_of: Build) -> None:
    profile = profile_of('launcher = "torchrun"\nprocesses = 2\ncommand = ["{python}", "-P", "-m", "trainer"]\n')
    made = planned(profile, linux(interpreter=FakeInterpreter(importable={"torch": True, "trainer": True})))
    assert made.argv == (
        *(PY, "-P", "-m", "torch.distributed.run", "--standalone", "--max-restarts", "0", "--nproc-per-node", "2"),
        *("--log-dir", "{run_dir}/attempts/{attempt}/torchrun", "-m", "trainer"),
    )
    assert made.template.variants["auto"].env["PYTHONSAFEPATH"] == "1"


def test_trainer_stands_for_the_module_that_can_be_imported(profile_of: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = profile_of('command = ["{python}", "-P", "-m", "{trainer}", "cifar"]\n')
    machine = linux(interpreter=FakeInterpreter(importable={"torch": True, "trainer": True, "mpstui_trainer": True}))
    assert planned(profile, machine).argv[3] == "trainer"
    monkeypatch.setattr(planning, "trainer_module", lambda: "mpstui_trainer")
    made = planned(profile, machine)
    assert made.argv[3] == "mpstui_trainer"
    assert "-m mpstui_trainer cifar" in made.shell()


def test_an_installed_mpstui_says_how_a_profile_names_its_trainers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = profile_of_command(("{python}", "-P", "-m", "trainer", "cifar"), cwd=tmp_path)
    machine = linux(interpreter=FakeInterpreter(importable={"torch": True, "trainer": False}))
    monkeypatch.setattr(preflight, "trainer_module", lambda: "mpstui_trainer")
    with pytest.raises(OperationError, match="no module trainer") as caught:
        planned(profile, machine)
    assert "{trainer}" in caught.value.hint


def test_torchrun_around_a_program_that_is_not_python(profile_of: Build, tmp_path: Path) -> None:
    script = tmp_path / "go.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    argv = planned(profile_of('launcher = "torchrun"\nprocesses = 2\ncommand = ["./go.sh"]\n')).argv
    assert argv[-2:] == ("--no-python", str(script))


@pytest.mark.parametrize(
    ("words", "on_cpu"),
    [
        (["--device", "mps"], ["--device", "cpu"]),
        (["--device=mps"], ["--device=cpu"]),
        (["device=mps"], ["device=cpu"]),
        (["trainer.accelerator=mps"], ["trainer.accelerator=cpu"]),
        (["+trainer.accelerator=mps"], ["+trainer.accelerator=cpu"]),
        (["--accelerator", "mps"], ["--accelerator", "cpu"]),
        (["--accelerator", "gpu"], ["--accelerator", "cpu"]),
        (["--train-device", "cuda:1"], ["--train-device", "cpu"]),
        (["--use_mps_device"], ["--use_cpu"]),
        (["--use_mps_device", "True"], ["--use_cpu", "True"]),
    ],
)
def test_an_argument_that_names_a_device_is_rewritten(tmp_path: Path, words: list[str], on_cpu: list[str]) -> None:
    (tmp_path / "t.py").touch()
    profile = profile_of_command(("{python}", "t.py", *words, "--lr", "1"), cwd=tmp_path)
    made = planned(profile, mac(), device="cpu")
    assert list(made.argv[2:]) == [*on_cpu, "--lr", "1"]


@pytest.mark.parametrize(
    "words", [["--devices", "4"], ["--device", "0"], ["--my", "mps"], ["--use_mps_device", "false"]]
)
def test_an_argument_that_names_no_device_is_left_alone(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "t.py").touch()
    profile = profile_of_command(("{python}", "t.py", *words), cwd=tmp_path, agent=False)
    assert list(planned(profile).argv[2:]) == words
    with pytest.raises(UsageError, match="cannot be told to use cpu"):
        planned(profile, device="cpu")


@pytest.mark.parametrize(
    ("words", "device", "told"),
    [
        (("no-such-program",), None, "there is no program 'no-such-program' on the PATH"),
        (("./gone.sh",), None, "the program .*/gone.sh does not exist"),
        (("{python}", "t.py"), None, "there is no file t.py in .*; it is in .*"),
        (("sh", "-c", "true"), "mps", "this command cannot be told to use mps: none of its arguments names a device"),
    ],
)
def test_a_command_is_spoken_of_as_it_was_typed_and_never_as_a_profile(
    tmp_path: Path, words: tuple[str, ...], device: str | None, told: str
) -> None:
    (tmp_path / "t.py").touch()
    (tmp_path / "below").mkdir()
    with pytest.raises(UsageError, match=f"^{told}") as refused:
        planned(profile_of_command(words, cwd=tmp_path / "below"), device=device)
    spoken = refused.value.sentence + refused.value.hint
    assert not [word for word in ("profile", "`command`", "[device_args]", "agent = true") if word in spoken]


def test_device_arguments_of_the_profile(profile_of: Build) -> None:
    profile = profile_of(SCRIPT + '[device_args]\nauto = ["--device", "auto"]\ncpu = ["--device", "cpu"]\n')
    assert planned(profile).argv[-2:] == ("--device", "auto")
    made = planned(profile, sets={"device": "cpu"})
    assert (made.device, made.argv[2:]) == ("cpu", ("--device", "cpu"))
    assert set(made.template.variants) == {"auto", "cpu"}
    with pytest.raises(UsageError, match="cannot be told to use mps"):
        planned(profile, mac(), device="mps")


@pytest.mark.parametrize(("machine", "passed"), [(linux(), "cpu"), (linux(nvidia=True), "cuda"), (mac(), None)])
def test_auto_passes_what_the_machine_has(profile_of: Build, machine: Machine, passed: str | None) -> None:
    profile = profile_of(SCRIPT + '[device_args]\ncpu = ["--device=cpu"]\ncuda = ["--device=cuda"]\n')
    assert planned(profile, machine).argv[2:] == ((f"--device={passed}",) if passed else ())


def test_the_agent_can_put_any_program_on_the_cpu(profile_of: Build) -> None:
    made = planned(profile_of("agent = true\n" + SCRIPT), environ={"PYTHONPATH": "/mine"})
    cpu = made.template.variants["cpu"]
    assert cpu.argv == [PY, "train.py"]
    assert (cpu.env["MPSTUI_AGENT"], cpu.env["MPSTUI_AGENT_DEVICE"]) == ("1", "cpu")
    assert cpu.env["PYTHONPATH"].endswith("/agent/boot:/mine")
    assert "MPSTUI_AGENT_DEVICE" not in made.template.variants["auto"].env


def test_auto_takes_what_is_there_where_the_command_names_a_device(tmp_path: Path) -> None:
    (tmp_path / "t.py").touch()
    profile = profile_of_command(("{python}", "t.py", "--device", "mps"), cwd=tmp_path)
    assert planned(profile, linux(), device="auto").argv[-1] == "cpu"
    assert planned(profile, linux(nvidia=True), device="auto").argv[-1] == "cuda"
    assert planned(profile, mac()).device == "mps"


def test_a_device_this_machine_lacks_is_refused_after_asking_the_runs_interpreter(profile_of: Build) -> None:
    profile = profile_of(SCRIPT + '[env]\nPYTHONPATH = "/stand/in"\n[device_args]\nmps = ["--device", "mps"]\n')
    interpreter = FakeInterpreter({"mps": False, "cuda": False})
    with pytest.raises(UsageError, match="no mps device") as caught:
        planned(profile, linux(interpreter=interpreter), device="mps")
    assert "--device cpu" in caught.value.hint
    assert interpreter.asked[0][0] == PY
    assert interpreter.asked[0][1]["PYTHONPATH"].endswith(":/stand/in")
    assert planned(profile, linux(interpreter=FakeInterpreter({"mps": True})), device="mps").device == "mps"


def test_an_interpreter_that_gave_no_answer_is_not_taken_for_one_that_said_no(profile_of: Build) -> None:
    profile = profile_of(SCRIPT + '[device_args]\nmps = ["--device", "mps"]\n')
    with pytest.raises(UsageError, match="has no torch to find a mps device with, or did not answer") as caught:
        planned(profile, linux(interpreter=FakeInterpreter()), device="mps")
    assert "--device cpu" in caught.value.hint


def test_a_shipped_trainer_without_torch_names_the_remedy(tmp_path: Path) -> None:
    profile = profile_of_command(("{python}", "-P", "-m", "trainer", "quickstart"), cwd=tmp_path)
    machine = linux(interpreter=FakeInterpreter(importable={"torch": False, "trainer": True}))
    with pytest.raises(OperationError, match="no torch") as caught:
        planned(profile, machine)
    assert "pip install 'mpstui[train]'" in caught.value.hint


def test_what_is_missing_is_named_with_its_line(profile_of: Build) -> None:
    with pytest.raises(UsageError, match=r"p\.toml:1: .*trian\.py.*did you mean train\.py"):
        planned(profile_of('command = ["{python}", "trian.py"]\n'))
    with pytest.raises(UsageError, match=r"p\.toml:2: .*no interpreter /no/python"):
        planned(profile_of(SCRIPT + 'python = "/no/python"\n'))
    with pytest.raises(UsageError, match=r"p\.toml:2: .*no folder"):
        planned(profile_of(SCRIPT + 'cwd = "nowhere"\n'))
    with pytest.raises(UsageError, match=r"p\.toml:1: .*no-such-program"):
        planned(profile_of('command = ["no-such-program"]\n'))


def test_a_program_beside_the_profiles_folder_is_found_for_the_user(profile_of: Build, tmp_path: Path) -> None:
    (tmp_path / "profiles").mkdir()
    with pytest.raises(UsageError, match=r'no file train\.py .*add cwd = "\.\."'):
        planned(profile_of(SCRIPT + 'cwd = "profiles"\n'))


def test_the_last_word_on_a_variable(profile_of: Build) -> None:
    profile = profile_of(SCRIPT + '[env]\nOMP_NUM_THREADS = "2"\nPYTORCH_ENABLE_MPS_FALLBACK = "0"\n')
    made = planned(
        profile, recipe="classic", env={"OMP_NUM_THREADS": "3"}, environ={"MKL_NUM_THREADS": "9", "CUDA_X": "1"}
    )
    lines = {line.name: line for line in made.env}
    assert lines["OMP_NUM_THREADS"].value == "3"
    assert lines["PYTORCH_ENABLE_MPS_FALLBACK"].value == "0"
    assert lines["MKL_NUM_THREADS"].value == "1"
    assert "replaces 9" in lines["MKL_NUM_THREADS"].reason
    assert lines["KMP_DUPLICATE_LIB_OK"].doubtful
    assert any("KMP_DUPLICATE_LIB_OK=TRUE" in warning for warning in made.warnings)
    env = made.template.variants["auto"].env
    assert (env["CUDA_X"], env["MKL_NUM_THREADS"], env["PATH"]) == ("1", "1", os.environ["PATH"])
    assert "CUDA_X" not in lines


def test_fast_sets_arguments_by_their_role(profile_of: Build) -> None:
    profile = profile_of(SCRIPT + '[roles]\nprecision = "dtype"\n[args]\ndtype = "fp32"\n')
    gpu = linux(nvidia=True)
    assert planned(profile, gpu, recipe="fast").argv[-2:] == ("--dtype", "bf16")
    assert planned(profile, gpu, recipe="fast", sets={"dtype": "fp16"}).argv[-2:] == ("--dtype", "fp16")


def test_fast_sets_on_the_cpu_only_what_is_faster_there(profile_of: Build) -> None:
    """Also where a run of a GPU goes on there: its command for the CPU is another one from the start."""
    roles = '[roles]\nprecision = "dtype"\ncompile = "compile"\n[args]\ndtype = "auto"\n[device_args]\n'
    profile = profile_of(SCRIPT + roles + 'cpu = ["--device", "cpu"]\ncuda = ["--device", "cuda"]\n')
    made = planned(profile, linux(nvidia=True), recipe="fast", device="cuda")
    assert made.argv[2:] == ("--dtype", "bf16", "--compile", "--device", "cuda")
    assert made.template.variants["cpu"].argv[2:] == ["--dtype", "auto", "--device", "cpu"]
    for asked in ("cpu", None):
        alone = planned(profile, linux(), recipe="fast", device=asked)
        assert alone.argv[2:4] == ("--dtype", "auto")
        assert "--compile" not in alone.argv
        assert any("neither bf16 nor compile on the CPU" in warning for warning in alone.warnings)


def test_fast_takes_one_thread_for_each_physical_core(profile_of: Build, tmp_path: Path) -> None:
    machine = replace(linux(), physical_cores=lambda: 4)
    threads = {line.name: line.value for line in planned(profile_of(SCRIPT), machine, recipe="fast").env}
    assert threads["OMP_NUM_THREADS"] == "4"
    unknown = {line.name: line.value for line in planned(profile_of(SCRIPT), recipe="fast").env}
    assert unknown["OMP_NUM_THREADS"] == "8"
    allowed = sorted(os.sched_getaffinity(0))
    for place, number in enumerate(allowed):  # the second half of them are second threads of the first
        path = tmp_path / f"cpu{number}" / "topology" / "thread_siblings_list"
        path.parent.mkdir(parents=True)
        path.write_text(f"{place % (len(allowed) // 2 or 1)}\n")
    assert physical_cores_of_this_machine(tmp_path) == (len(allowed) // 2 or 1)
    assert physical_cores_of_this_machine(tmp_path / "none") is None


def test_a_checkpoint_of_no_run_is_warned_of(profile_of: Build) -> None:
    profile = profile_of(SCRIPT + '[args]\ninit = "{after.checkpoint}"\n')
    assert any("stays empty" in text for text in planned(profile).warnings)
    after = QueueRule(after=[{"run": "20261121-1", "when": "ok"}])
    assert not any("stays empty" in text for text in planned(profile, queue=after).warnings)


def test_secrets_are_in_no_part_that_is_shown_or_written(profile_of: Build) -> None:
    profile = profile_of(SCRIPT + '[env]\nHF_TOKEN = "hf_verysecret"\nPROXY = "http://me:pass99word@host"\n')
    made = planned(profile, environ={"WANDB_API_KEY": "wandbsecret", "SSH_AUTH_SOCK": "/s"})
    everything = repr(made) + made.shell() + str(storage.to_json(made.template))
    chosen = planned(profile, env={"DATABASE": "postgres://me:chosen99word@host"}).choice
    everything += repr(chosen) + str(choice_json(chosen))
    for value in ("hf_verysecret", "pass99word", "wandbsecret", "chosen99word"):
        assert value not in everything
    assert made.secrets == {"HF_TOKEN": "hf_verysecret", "PROXY": "http://me:pass99word@host"}
    assert set(made.secret_names) == {"HF_TOKEN", "PROXY", "WANDB_API_KEY"}


def test_the_shell_script_fills_in_the_run_directory_wherever_it_stands(profile_of: Build, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os, sys; print(os.environ['LOGS'], *sys.argv[1:])\n")
    made = planned(
        profile_of(SCRIPT + '[env]\nLOGS = "{run_dir}/logs/{attempt}"\n'), sets={"at": "{run_dir}:{run_dir}/b"}
    )
    environ = {**os.environ, "MPSTUI_RUN_DIR": str(tmp_path / "a run")}
    done = subprocess.run(["sh"], input=made.shell(), capture_output=True, text=True, check=True, env=environ)
    assert done.stdout == "R/logs/1 --at R:R/b\n".replace("R", str(tmp_path / "a run"))


def test_the_shell_script_runs_the_very_same_command(profile_of: Build, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['ODD']]))\n")
    odd = "a 'b' $HOME `id` \"c\" \\ ; rm\n*"
    profile = profile_of(SCRIPT)
    made = planned(profile, sets={"text": odd}, env={"ODD": odd}, name="evil\nname; id")
    done = subprocess.run(["sh"], input=made.shell(), capture_output=True, text=True, check=True)
    import json

    assert json.loads(done.stdout) == [["--text", odd], odd]
    assert "# read when" in made.shell() or "# an operation without a Metal kernel" in made.shell()


def test_shell_script_knows_a_run_directory(profile_of: Build) -> None:
    made = planned(profile_of('command = ["{python}", "train.py", "--out", "{run_dir}/it\'s"]\n'))
    assert "--out \"$run_dir\"'/it'\"'\"'s'" in made.shell()
    assert subprocess.run(["sh", "-n"], input=made.shell(), text=True, check=False).returncode == 0


def test_bytes_that_are_no_text_are_refused_or_left_out(profile_of: Build) -> None:
    made = planned(profile_of(SCRIPT), environ={"HF_HOME": "/data/\udcff", "OMP_NUM_THREADS": "2"})
    assert "HF_HOME" not in made.template.variants["auto"].env
    with pytest.raises(UsageError, match="no UTF-8"):
        planned(profile_of(SCRIPT), sets={"data": "/data/\udcff"})


@pytest.mark.parametrize(
    ("changes", "field", "near"),
    [
        ({"sets": {"epohcs": "3"}}, "args.epohcs", "epochs"),
        ({"sets": {"epochs": "many"}}, "args.epochs", None),
        ({"device": "cdua"}, "device", "cuda"),
        ({"device": "mps"}, "device", None),
        ({"recipe": "fats"}, "recipe", "fast"),
    ],
)
def test_a_refusal_names_the_key_that_is_wrong_and_the_name_meant(
    profile_of: Build, changes: dict[str, Any], field: str, near: str | None
) -> None:
    with pytest.raises(UsageError) as refused:
        planned(profile_of(SCRIPT + "[args]\nepochs = 3\n"), **changes)
    assert (refused.value.field, refused.value.near) == (field, near)
