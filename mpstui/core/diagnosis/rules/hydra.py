"""Wrong use of the command line: Hydra's overrides, argparse."""

from __future__ import annotations

from ..model import Rule
from ..model import Remedy

RULES = (
    Rule(
        id="hydra_override",
        title="Hydra knows no such key",
        cause="The override names a key that the configuration does not have.",
        remedy=Remedy(text="Write +key=value to add it, ++key=value to add or change it, or correct the name."),
        restart_on_cpu_helps=False,
        sources=("hydra-ecosystem/hydra#1457", "hydra-ecosystem/hydra#854"),
        patterns=(
            r"Could not override \W",
            r"is not in struct",
            r"Error merging override",
            r"To append to your config use \+",
            r"Error parsing override",
            r"LexerNoViableAltException",
            r"no viable alternative at input",
            r"mismatched input .{1,40} expecting",
            r"Could not find \W[\w/.-]+\W\W{0,3}(?:Available options|Config search path)",
            r"You must specify \W\w+\W, e\.g",
            r"Key \W[\w.]+\W not in \W\w+\W",
            r"omegaconf\.errors\.Config(?:Attribute|Key)Error",
            r"hydra\.errors\.(?:MissingConfig|ConfigComposition|OverrideParse)Exception",
        ),
        confidence=0.92,
    ),
    Rule(
        id="hydra_append",
        title="Hydra has that key already",
        cause="'+key' adds a key, and this one exists.",
        remedy=Remedy(text="Drop the '+', or write ++key=value to add or change it."),
        restart_on_cpu_helps=False,
        sources=("hydra-ecosystem/hydra#947",),
        patterns=(
            r"Could not append to config",
            r"An item is already at \W",
        ),
        confidence=0.95,
        outranks=("hydra_override",),
    ),
    Rule(
        id="argparse",
        title="The command line was not understood",
        cause="An argument is unknown, missing or has a value the program does not take.",
        remedy=Remedy(text="Correct the argument named in the message; the program's --help lists the choices."),
        restart_on_cpu_helps=False,
        sources=("argparse",),
        patterns=(
            r": error: argument \S",
            r": error: unrecognized arguments?",
            r": error: the following arguments are required",
            r": error: (?:ambiguous option|too few arguments|expected \w+ argument)",
            r": error: .{0,80}(?:invalid choice|invalid \w+ value|not allowed with|is required)",
            r"\bargument \S{1,60}: (?:invalid \S{1,40} value|invalid choice|expected (?:one|at least|\d+))",
            r"invalid choice: \W?.{1,80}\(choose from",
            r"are not used by the HfArgumentParser",
            r"No such option: -",
            r"Error: (?:Missing (?:option|argument|parameter)|Invalid value for|Got unexpected extra argument)",
            r"(?:error: unrecognized|the following) arguments?(?: are required|: -)",
            r"Could not consume arg",
            r"Unknown command line flag",
            r"Flags parsing error",
            r"is not a valid \w+ argument",
            r"error: Key \W[\w.]+\W is not expected",
            r"omegaconf\.errors\.(?:Validation|MissingMandatory|UnsupportedValue)\w+",
        ),
        confidence=0.93,
        codes=(2, 1),
        clues={"code:2": 0.04},
    ),
)
