"""A program is asked for its arguments before it would train, and remembered; one without a parser is not started."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mpstui.core.launching.arguments import Argument, known_arguments

PARSER = """
import argparse, os
open("started", "a").write("x")
early = argparse.ArgumentParser(add_help=False)
early.add_argument("--config", help="a file")
known, rest = early.parse_known_args()
parser = argparse.ArgumentParser()
parser.add_argument("data", nargs="?", help="folder")
parser.add_argument("-b", "--batch-size", type=int, default=64, metavar="N", help="samples (default: %(default)s)")
parser.add_argument("--lr", default=0.1, type=float)
parser.add_argument("--arch", choices=["a", "b"], default="a")
parser.add_argument("--amp", action="store_true")
parser.add_argument("--betas", type=float, nargs=2, default=(0.9, 0.99))
parser.add_argument("--wandb-token", default="hf_abcdefgh")
parser.add_argument("--out", required=True, type=lambda text: text, help=argparse.SUPPRESS)
args = parser.parse_args(WORDS)
open("trained", "w")
"""
PLAIN = PARSER.replace("WORDS", "")
Ask = Callable[..., dict[str, Argument]]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    def asked(
        text: str, *words: str, command: tuple[str, ...] = (sys.executable, "train.py"), **options: Any
    ) -> dict[str, Argument]:
        (tmp_path / "train.py").write_text(text)
        cache = tmp_path / "cache"
        found = known_arguments((*command, *words), cwd=tmp_path, environ=os.environ, cache=cache, **options)
        assert not (tmp_path / "trained").exists()
        return {one.name: one for one in found}

    return asked


def test_a_parser_tells_flags_types_choices_and_defaults(ask: Ask, tmp_path: Path) -> None:
    found = ask(PARSER.replace("WORDS", "rest"), "somewhere", "--lr", "1")
    assert list(found) == ["config", "data", "batch-size", "lr", "arch", "amp", "betas", "wandb-token"]
    batch = Argument(
        name="batch-size", flags=("-b", "--batch-size"), kind="int", default="64", help="samples (default: 64)"
    )
    assert found["batch-size"] == batch
    assert (found["data"].flags, found["data"].required) == ((), False)
    assert (found["arch"].choices, found["amp"].kind, found["amp"].default) == (("a", "b"), "switch", None)
    assert (found["betas"].many, found["betas"].default, found["lr"].kind) == (True, "0.9 0.99", "float")
    assert found["wandb-token"].default is None


def test_the_answer_is_remembered_until_the_file_changes(ask: Ask, tmp_path: Path) -> None:
    first = ask(PLAIN)
    stamp = (tmp_path / "train.py").stat()
    os.utime(tmp_path / "train.py", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    known_arguments((sys.executable, "train.py"), cwd=tmp_path, environ=os.environ, cache=tmp_path / "cache")
    assert (tmp_path / "started").read_text() == "x"
    again = ask(PLAIN.replace("--lr", "--rate"))
    assert ("lr" in first, "rate" in again) == (True, True)


def test_what_was_asked_as_it_was_typed_is_known_of_the_launch(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PLAIN)
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    options: dict[str, Any] = {"cwd": tmp_path, "environ": environ, "cache": tmp_path / "cache"}
    typed = known_arguments((Path(sys.executable).name, "train.py"), **options)
    full = known_arguments((sys.executable, "train.py"), **options, ask=False)
    assert full == typed != ()


@pytest.mark.parametrize(
    "command",
    [
        ("env", "X=1", sys.executable, "train.py"),
        ("torchrun", "--nproc_per_node", "2", "train.py"),
        (sys.executable, "-m", "train"),
    ],
    ids=["env", "launcher", "module"],
)
def test_however_it_is_started(
    ask: Ask, command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "bin" / "torchrun").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "torchrun").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert "batch-size" in ask(PLAIN, command=command)


def test_a_console_script_is_asked_by_its_own_interpreter(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "trainit").write_text(f"#!{sys.executable}\n{PLAIN}")
    (tmp_path / "trainit").chmod(0o755)
    assert "batch-size" in ask("", "fit", command=("./trainit",))


def test_the_parser_of_a_subcommand_is_told_too(ask: Ask) -> None:
    text = (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--seed', type=int)\n"
        "s = p.add_subparsers()\ns.add_parser('fit').add_argument('--lr')\ns.add_parser('test')\np.parse_args()\n"
    )
    assert set(ask(text, "fit", "--lr", "1")) == {"seed", "lr"}


@pytest.mark.parametrize(
    "text",
    [
        "open('trained', 'w')",
        PARSER.replace("WORDS", "[]"),
        "import argparse, time\ntime.sleep(60)\nopen('trained', 'w')",
        "import argparse(",
    ],
    ids=["no parser", "explicit words", "too slow", "broken"],
)
def test_nothing_is_ever_trained(ask: Ask, text: str) -> None:
    began = time.monotonic()
    ask(text, seconds=2.0)
    assert time.monotonic() - began < 20


def test_settings_at_the_top_of_a_script_are_arguments(ask: Ask) -> None:
    text = (
        "import os\nout_dir = 'out'\nmax_iters = 600  # total number\nlr = 6e-4\ncompile = True\nn = len('x')\n"
        "keys = [k for k in globals()]\nexec(open('configurator.py').read())\nlater = 1\nopen('trained', 'w')\n"
    )
    found = ask(text)
    assert list(found) == ["out_dir", "max_iters", "lr", "compile"]
    iters = Argument(
        name="max_iters", flags=("--max_iters",), kind="int", default="600", joined=True, help="total number"
    )
    assert found["max_iters"] == iters


def test_what_is_no_python_knows_no_arguments(ask: Ask) -> None:
    assert ask("", command=("true",)) == {}


CLICK = """
import click
@click.group()
def program(): pass
@program.command()
@click.option("--lr", "-l", default=0.1, help="rate")
@click.option("--batch-size", type=int, default=64)
@click.option("--arch", type=click.Choice(["a", "b"]))
@click.option("--amp/--no-amp", default=False)
@click.argument("data")
def train(**given): open("trained", "w")
program()
"""


def test_a_program_of_click_tells_the_options_of_its_command(ask: Ask) -> None:
    pytest.importorskip("click")
    found = ask(CLICK, "train", "--lr", "1")
    assert found["lr"] == Argument(name="lr", flags=("--lr", "-l"), kind="float", default="0.1", help="rate")
    assert (found["batch-size"].kind, found["arch"].choices) == ("int", ("a", "b"))
    assert (found["amp"].kind, found["amp"].flags, found["amp"].default) == ("switch", ("--amp", "--no-amp"), None)
    assert (found["data"].flags, found["data"].required) == ((), True)


ABSL = """
from absl import flags
flags.FLAGS(["train.py"])
open("trained", "w")
"""
ABSL_FLAGS = """
class Flag:
    def __init__(self, name, kind, default, values=(), boolean=False):
        self.name, self.default, self.parser, self.boolean = name, default, self, boolean
        self.enum_values = values
        self.help, self.flag_type = "words", lambda: kind
class FlagValues:
    def flags_by_module_dict(self):
        own = [Flag("lr", "float", 0.1), Flag("arch", "enum", "a", ["a", "b"])]
        own += [Flag("amp", "bool", False, boolean=True), Flag("shuffle", "bool", True, boolean=True)]
        return {"__main__": own, "absl.logging": [Flag("verbosity", "int", -1)]}
    def __call__(self, argv): pass
FLAGS = FlagValues()
"""


def test_a_program_of_absl_tells_its_own_flags(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "absl").mkdir()
    (tmp_path / "absl" / "__init__.py").write_text("")
    (tmp_path / "absl" / "flags.py").write_text(ABSL_FLAGS)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    (tmp_path / "train.py").write_text(ABSL)
    told = known_arguments((sys.executable, "train.py"), cwd=tmp_path, environ=environ)
    found = {one.name: (one.kind, one.default, one.choices, one.joined) for one in told}
    assert not (tmp_path / "trained").exists()
    assert found == {
        "lr": ("float", "0.1", (), False),
        "arch": ("text", "a", ("a", "b"), False),
        "amp": ("switch", None, (), False),
        "shuffle": ("text", "true", (), True),
    }


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (
            "import no_such_module",
            "its --help ended with exit code 1: ModuleNotFoundError: No module named 'no_such_module'",
        ),
        ("import sys; sys.exit('set DATA first')", "its --help ended with exit code 1: set DATA first"),
        ("import os; os.kill(os.getpid(), 9)", "its --help ended with signal 9: no word"),
        ("import time; time.sleep(60)", "its --help gave no answer in 0.5 s"),
        ("raise SystemExit", None),
    ],
)
def test_a_program_that_cannot_be_asked_tells_how_it_ended_and_its_source_its_arguments(
    ask: Ask, before: str, said: str | None
) -> None:
    told: list[str] = []
    found = ask(f"{before}\n{PLAIN}", complain=told.append, seconds=0.5 if "sleep" in before else 30.0)
    assert told == ([f"{said}, so they were read in its source"] if said else [])
    if said is None:
        assert not found
        return
    assert list(found) == ["config", "batch-size", "lr", "arch", "amp", "betas", "wandb-token", "out"]
    assert (found["batch-size"].kind, found["batch-size"].default) == ("int", "64")
    assert (found["arch"].choices, found["amp"].kind, found["amp"].default) == (("a", "b"), "switch", None)
    assert (found["betas"].many, found["betas"].default, found["out"].required) == (True, "0.9 0.99", True)
    assert found["wandb-token"].default is None


TYRO = """
import tyro
class Args: pass
args = tyro.cli(Args)
open("trained", "w")
"""
TYRO_PACKAGE = """
import argparse
def cli(made_of): raise AssertionError("the parser is asked, not the program")
class extras:
    def get_parser(made_of):
        parser = argparse.ArgumentParser()
        parser.add_argument("--lr", nargs=1, metavar="FLOAT", help="rate (default: 0.1)")
        parser.add_argument("--arch", nargs=1, metavar="{a,b}", choices=["a", "b"], help="(required)")
        parser.add_argument("--cuda", action=argparse.BooleanOptionalAction, help="use it (default: True)")
        parser.add_argument("--name", nargs=1, metavar="{None}|STR", help="(default: None)")
        return parser
"""


def test_a_program_of_tyro_tells_what_its_help_says(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "tyro.py").write_text(TYRO_PACKAGE)
    (tmp_path / "train.py").write_text(TYRO)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    told = {one.name: one for one in known_arguments((sys.executable, "train.py"), cwd=tmp_path, environ=environ)}
    assert not (tmp_path / "trained").exists()
    assert {name: (one.kind, one.default, one.choices) for name, one in told.items()} == {
        "lr": ("float", "0.1", ()),
        "arch": ("text", None, ("a", "b")),
        "cuda": ("switch", "True", ()),
        "name": ("text", None, ()),
    }
    assert (told["cuda"].flags, told["lr"].help, told["arch"].required) == (("--cuda", "--no-cuda"), "rate", True)


def test_an_interpreter_that_is_not_there_is_told(ask: Ask) -> None:
    told: list[str] = []
    assert "lr" in ask(PLAIN, command=("/no/such/python3", "train.py"), complain=told.append)
    why = "/no/such/python3 could not be started: No such file or directory"
    assert told == [f"{why}, so they were read in its source"]


HYDRA = """
import hydra
@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg): open("trained", "w")
main()
"""
HYDRA_PACKAGE = """
import contextlib
def main(**options): raise AssertionError("the configuration is asked, not the program")
@contextlib.contextmanager
def initialize_config_dir(config_dir, version_base):
    assert config_dir.endswith("/conf")
    yield
def compose(name, words, return_hydra_config):
    chosen = {"model": "wide" if "model=wide" in words else "mlp", "hydra/launcher": "basic"}
    return {
        "epochs": 3, "optim": {"lr": 0.1, "betas": [1, 2]}, "data": "???", "note": None,
        "hydra": {"runtime": {"choices": chosen}},
    }
"""


def test_a_program_of_hydra_tells_the_groups_and_keys_of_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "hydra.py").write_text(HYDRA_PACKAGE)
    fake = "class OmegaConf:\n    to_container = staticmethod(lambda made, resolve: made)\n"
    (tmp_path / "omegaconf.py").write_text(fake)
    (tmp_path / "train.py").write_text(HYDRA)
    (tmp_path / "conf" / "model").mkdir(parents=True)
    for name in ("mlp.yaml", "wide.yaml", "notes.txt"):
        (tmp_path / "conf" / "model" / name).touch()
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    told = known_arguments((sys.executable, "train.py", "model=wide"), cwd=tmp_path, environ=environ)
    assert not (tmp_path / "trained").exists()
    assert [(one.name, one.kind, one.default, one.choices, one.required) for one in told] == [
        ("model", "text", "wide", ("mlp", "wide"), False),
        ("epochs", "int", "3", (), False),
        ("optim.lr", "float", "0.1", (), False),
        ("data", "text", None, (), True),
        ("note", "text", None, (), False),
    ]
