"""What can be done about a failed run: the remedy from its diagnosis, applied to its last attempt as it really was."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...wire import heartbeat, storage
from ...wire.records import LaunchRecord
from ...wire.rundir import RunDir
from ..diagnosis.evidence import failed_attempt
from ..diagnosis.model import EAGER_GRAPH, Finding, whole_number
from ..diagnosis.remedy import Change, KnownLaunch, apply_remedy
from ..profiles.model import DIAGNOSIS_ROLES, RECIPES, Profile
from ..profiles.written import NAMES_FOR_REMEDIES, folded
from .arguments import Argument, known_arguments
from .choice import LaunchChoice, given_arguments
from .command import without_ours
from .devices import named_device
from .editing import recorded_choice
from .preflight import script_of
from .record import read_run

_ASKS = "The program has not been asked for its arguments yet: ^l in the form does that, or `mpstui restart RUN --fix`."
AS_SURE = 0.8
"""Another cause is only treated if it has at least this share of the first one's probability."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cure:
    """A finding's remedy for one run; without ``changes`` and ``asks`` there is nothing to apply."""

    finding: Finding
    choice: LaunchChoice
    """The launch with the changes made."""
    changes: tuple[Change, ...] = ()
    asks: tuple[str, ...] = ()
    """Arguments whose value is unknown: a person has to give it."""
    notes: tuple[str, ...] = ()
    unnamed: tuple[str, ...] = ()
    """Roles for which the profile names no argument."""
    risk: str | None = None
    """What a person must accept before it is started."""
    could_ask: bool = False
    """Whether the program, which was not asked for its arguments, may know more."""

    @property
    def works(self) -> bool:
        """Whether a new attempt with this cure would differ from the failed one."""
        return bool(self.changes or self.asks)

    @property
    def sentence(self) -> str:
        """What changes and what does not, in plain sentences on one line."""
        sentences = [f"Changed by the remedy: {', '.join(map(str, self.changes))}."] if self.changes else []
        if self.asks:
            sentences.append(f"Not known: what {' and '.join(self.asks)} was; give the new value.")
        if not self.works and not self.notes and not self.unnamed:
            sentences.append("The remedy changes nothing here.")
        if self.notes:
            sentences.append(f"{'; '.join(self.notes)}.")
        if self.unnamed:
            *most, last = [role.replace("_", " ") for role in self.unnamed]
            roles = f"{', '.join(most)} or {last}" if most else last
            sentences.append(f"Which argument sets {roles} is not known; a profile can name it in [roles].")
        if self.could_ask and (not self.works or self.risk != self.finding.remedy.risk):
            sentences.append(_ASKS)
        return " ".join(sentences)

    def with_sets(self, sets: Mapping[str, str]) -> Cure:
        """Return the cure with a person's values: they override the remedy's, and supply those that it asks for."""
        keys = {key.replace("-", "_") for key in sets}
        return replace(
            self,
            choice=replace(self.choice, sets={**self.choice.sets, **sets}),
            asks=tuple(name for name in self.asks if name.replace("-", "_") not in keys),
        )


def cure_of(
    run: RunDir,
    findings: Sequence[Finding],
    environ: Mapping[str, str],
    cache: Path,
    *,
    ask: bool = False,
) -> Cure | None:
    """Return what `f` and ``restart --fix`` would do: the first cure that works, among causes about as probable as the
    first; if none does, the first with what keeps it from working. None if no cause has a remedy that can be applied.

    Args:
        findings: its diagnosis, the most probable cause first.
        environ: the caller's.
        cache: where programs' answers about their arguments are kept, :attr:`Home.arguments`.
        ask: start the program if only it knows an argument; never just to look at a run.

    Raises:
        OperationError: the run's record cannot be read.
    """
    curable = [item for item in findings if item.can_be_cured and item.confidence >= AS_SURE * findings[0].confidence]
    if not curable:
        return None
    choice, recorded = recorded_choice(run), read_run(run)
    no_cpu = recorded.device_refusal("cpu") if recorded else ""

    def best(told: Mapping[str, Argument]) -> Cure:
        found = [_cure(item, choice, _known(run, choice, environ, told), no_cpu) for item in curable]
        return next((cure for cure in found if cure.works), found[0])

    cure = best({})
    if cure.asks or cure.unnamed or cure.risk != cure.finding.remedy.risk:
        told = _told_by_program(run, environ, cache, ask=ask)
        cure = replace(best(told), could_ask=not told and not ask)
    return cure


def _cure(finding: Finding, choice: LaunchChoice, known: KnownLaunch, no_cpu: str) -> Cure:
    remedy, notes = finding.remedy, list[str]()
    if "TORCH_COMPILE_DISABLE" in remedy.env and _wants_one_graph(choice.profile, finding):
        remedy = replace(remedy, env=EAGER_GRAPH)
    if (folder := remedy.env.get("PYTHONPATH")) and (path := known.env.get("PYTHONPATH")):
        remedy = replace(remedy, env={**remedy.env, "PYTHONPATH": os.pathsep.join((folder, path))})
    if why := remedy.defeat(finding.evidence):
        remedy, notes = replace(remedy, env={}), [why]
    if remedy.device == "cpu" and no_cpu:
        remedy, notes = replace(remedy, device=None), [*notes, no_cpu]
    changed = apply_remedy(remedy, known)
    sets = {key: _text(value) for key, value in changed.arguments.items() if known.arguments.get(key) != value}
    gone = set(known.arguments) - set(changed.arguments)
    set_here = {name: value for name, value in changed.env.items() if known.env.get(name) != value}
    unset = set(known.env) - set(changed.env)
    edited = replace(
        choice,
        device=changed.device or choice.device,
        sets={key: value for key, value in {**choice.sets, **sets}.items() if key not in gone},
        env={name: value for name, value in {**choice.env, **set_here}.items() if name not in unset},
        drop_args=tuple(sorted({*choice.drop_args, *gone} - set(sets))),
        drop_env=tuple(sorted({*choice.drop_env, *unset} - set(set_here))),
    )
    return Cure(
        finding=finding,
        choice=edited,
        changes=tuple(changed.changes),
        asks=tuple(changed.asks),
        notes=(*notes, *changed.notes),
        unnamed=tuple(changed.unnamed),
        risk=" ".join(changed.risks) or None,
    )


def _told_by_program(run: RunDir, environ: Mapping[str, str], cache: Path, *, ask: bool) -> Mapping[str, Argument]:
    """Return the arguments that the program of a run takes, by name."""
    number = failed_attempt(run)
    launched = storage.read_or_none(LaunchRecord, run.attempt(number).launch) if number else None
    if launched is None:
        return {}
    env = {**environ, **launched.env}
    found = known_arguments(launched.argv, cwd=Path(launched.cwd), environ=env, cache=cache, ask=ask)
    return {one.name: one for one in found}


def _known(run: RunDir, choice: LaunchChoice, environ: Mapping[str, str], told: Mapping[str, Argument]) -> KnownLaunch:
    """Return the attempt that failed, according to its own record and heartbeat; otherwise as it was planned."""
    profile = choice.profile
    number = failed_attempt(run)
    launched = storage.read_or_none(LaunchRecord, run.attempt(number).launch) if number else None
    beat = heartbeat.read(run.attempt(number).heartbeat()) if number else None
    device = (beat.device.type if beat else None) or _named(launched.device if launched else choice.device)
    if device is None and launched is not None:
        device = named_device(launched.argv)
    arguments: dict[str, object] = {**given_arguments(choice)}
    roles, usual = dict(profile.roles), dict[str, object]()
    for role, names in NAMES_FOR_REMEDIES.items():
        nested = [key for key in arguments if "." in key and folded(key.rpartition(".")[2]) in names]
        key = next((key for key in (*arguments, *told) if folded(key) in names), None)
        key = nested[0] if key is None and len(nested) == 1 else key  # Hydra's `data.num_workers=8`
        roles |= {} if key is None or role in roles else {role: key, DIAGNOSIS_ROLES.get(role, role): key}
    part = roles.get("part_of_batch", "")
    size = arguments.get(part, told[part].default if part in told else None)
    # 0 and -1 stand for a batch that is not divided.
    divided = part not in ("", roles.get("batch_size")) and (size is None or bool(whole_number(size)))
    if divided:
        whole = {"whole_batch": roles["batch_size"]} if "batch_size" in roles else {}
        roles |= {**whole, "batch_size": part}
    for role, name in roles.items():
        own = told[name].default if name in told else None
        default = profile.defaults.get(f"{name}.{device}", profile.defaults.get(name, own))
        usual |= {role: default} if default is not None else {}
    if beat is not None:  # what it reported itself is more reliable
        said: dict[str, object] = {
            "precision": beat.device.precision,
            "batch_size": None if divided else beat.batch_size,  # the loader's, which is divided
            "gradient_accumulation": beat.accumulate,
        }
        usual |= {role: value for role, value in said.items() if value is not None}
    recipe = {one.name: one.value for one in RECIPES[choice.recipe or profile.recipe].variables}
    layers = {**environ, **recipe, **profile.env, **choice.env}
    seen = {name: value for name, value in layers.items() if name not in choice.drop_env}
    env = dict(launched.env) if launched else seen
    path = without_ours(env.pop("PYTHONPATH", ""))
    return KnownLaunch(
        arguments=arguments,
        roles=roles,
        usual=usual,
        choices={name: one.choices for name, one in told.items() if one.choices},
        env={**env, "PYTHONPATH": path} if path else env,
        device=device,
        may_be_mps=device == "mps" or (device is None and sys.platform == "darwin"),
    )


def _named(device: str | None) -> str | None:
    return device if device in ("mps", "cuda", "cpu") else None


def _wants_one_graph(profile: Profile, finding: Finding) -> bool:
    """Return whether the script says ``fullgraph=True``, which torch refuses if nothing is compiled."""
    if any("fullgraph=True" in line.text for line in finding.evidence):
        return True
    script = script_of(profile)
    with contextlib.suppress(OSError):
        path = profile.cwd / script if script else None
        return path is not None and "fullgraph=True" in storage.read_text(path, 1 << 20)
    return False


def _text(value: object) -> str:
    """Return a value as ``--set`` takes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(_text, value)) if isinstance(value, tuple) else str(value)
