"""Everything known about a run besides its numbers, in sections: code, arguments, environment, machine, data, attempts.

The details page of the screen (``i``), `mpstui show` and the report show these. Reads small files: call it from a
worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from ...wire import storage
from ...wire.records import ExitRecord, LaunchRecord, Provenance, Spec
from ...wire.rundir import RunDir
from ...wire.secrets import masked_words
from .. import present as shown
from ..formats.told import MOST_SETTINGS
from ..model.snapshot import RunSnapshot
from .comparison import differences
from .configured import settings_before
from .run_settings import arguments_in, named_settings, shaping
from .state import exit_summary

MOST_DIFF_LINES = 2000
MOST_ATTEMPTS = 50


class Section(NamedTuple):
    """A heading and what is shown below it."""

    title: str
    pairs: tuple[tuple[str, str], ...] = ()
    lines: tuple[str, ...] = ()
    """Lines to show unchanged: a diff or a command."""


def details(snapshot: RunSnapshot) -> tuple[Section, ...]:
    """Return the sections that are not empty; secrets are masked in all of them."""
    run = RunDir(snapshot.dir)
    ours = snapshot.is_ours
    launch = storage.read_or_none(LaunchRecord, run.attempt(snapshot.attempt).launch) if ours else None
    origin = provenance(snapshot)
    env, words = shaping(snapshot.env), arguments_in(snapshot.argv)
    # Arguments without a name are shown only in the command below.
    named = {name: value for name, value in named_settings(snapshot).items() if name not in env}
    said = {name: value for name, value in named.items() if name in snapshot.settings and name not in words}
    arguments = tuple(item for item in named.items() if item[0] not in said)
    found = (
        Section("run", tuple(_run(snapshot))),
        Section("arguments", arguments, (" ".join(snapshot.argv),) if snapshot.argv else ()),
        Section("machine", tuple(_machine(snapshot, origin, launch))),
        Section("attempts", tuple(_attempts(snapshot, run)) if ours else ()),
        Section("settings", tuple(said.items()), _beyond(snapshot, run) if ours else ()),
        Section("code", tuple(_code(origin, launch)), _diff(run, origin)),
        Section("environment", tuple(env.items())),
    )
    return tuple(section for section in found if section.pairs or section.lines)


def provenance(snapshot: RunSnapshot) -> Provenance | None:
    """Return what the run was launched from; None if an older mpstui or another program started it."""
    if not snapshot.is_ours:
        return None
    return storage.read_or_none(Provenance, RunDir(snapshot.dir).provenance)


def begun_in(snapshot: RunSnapshot) -> str | None:
    """Return the folder in which its newest attempt was started; None if mpstui has not (yet) started it."""
    folder = RunDir(snapshot.dir).attempt(snapshot.attempt)
    launch = storage.read_or_none(LaunchRecord, folder.launch) if snapshot.is_ours else None
    return launch.cwd if launch is not None else None


def code_sentence(origin: Provenance) -> str:
    """Return ``1f3a9c2b5d10 on main, 2 files changed``; empty if the program was not in a repository."""
    if origin.commit is None and origin.branch is None:
        return ""
    at = origin.commit[:12] if origin.commit else "no commit yet"
    where = f" on {origin.branch}" if origin.branch else ""
    files = f"{origin.changed_files} file{'s' if origin.changed_files != 1 else ''}"
    return f"{at}{where}, {files} changed" if origin.changed_files else f"{at}{where}, unchanged"


def _run(snapshot: RunSnapshot) -> Iterator[tuple[str, str]]:
    spec = storage.read_or_none(Spec, RunDir(snapshot.dir).spec) if snapshot.is_ours else None
    yield "id", snapshot.run
    if spec is not None:
        yield "started by", spec.by or shown.UNKNOWN
    if snapshot.profile:
        path = spec.profile_path if spec is not None else None
        yield "profile", snapshot.profile + (f" ({path})" if path else "")
    if snapshot.branch is not None:
        yield "branch", f"from step {shown.whole(snapshot.branch.step)} of {snapshot.branch.left}"
    if snapshot.job is not None:
        yield "job", snapshot.job.sentence() + snapshot.job.silence()
    if spec is not None and spec.engine is not None:
        asked = " ".join(f"{key}={value}" if value else key for key, value in spec.engine.options.items())
        yield f"asked of {spec.engine.title}", asked or "its defaults"
    if snapshot.tags:
        yield "tags", " ".join(snapshot.tags)
    if snapshot.note:
        yield "note", snapshot.note
    yield "records", str(snapshot.dir)
    if snapshot.numbers.data:
        yield "data", snapshot.numbers.data


def _beyond(snapshot: RunSnapshot, run: RunDir) -> tuple[str, ...]:
    if len(snapshot.settings) < MOST_SETTINGS:
        return ()
    return (f"only the first {MOST_SETTINGS} are read; all of them are in {run.attempt(snapshot.attempt).config}",)


def _code(origin: Provenance | None, launch: LaunchRecord | None) -> Iterator[tuple[str, str]]:
    if launch is not None:
        yield "folder", launch.cwd
    if origin is None:
        return
    if sentence := code_sentence(origin):
        yield "commit", sentence
    if origin.python is not None:
        yield "python", origin.python
    yield from origin.packages.items()


def _diff(run: RunDir, origin: Provenance | None) -> tuple[str, ...]:
    if origin is None or not origin.changed_files:
        return ()
    try:
        lines = storage.read_text(run.source_diff, 2 << 20).splitlines()
    except OSError:
        return ("the changes were not kept",)
    cut = len(lines) > MOST_DIFF_LINES or not origin.diff_is_whole
    return (*lines[:MOST_DIFF_LINES], *(("the diff is longer than what was kept",) if cut else ()))


def _machine(
    snapshot: RunSnapshot, origin: Provenance | None, launch: LaunchRecord | None
) -> Iterator[tuple[str, str]]:
    device, asked = snapshot.numbers.device, snapshot.device_asked
    if origin is not None:
        yield "host", origin.host or shown.UNKNOWN
        yield "system", origin.system or shown.UNKNOWN
    used = " · ".join(part for part in (device.type, device.name, device.precision) if part)
    if used:
        yield "device", used + (f" (asked for: {asked})" if asked and asked != device.type else "")
    if launch is not None and launch.gpus:
        yield "GPUs", ", ".join(launch.gpus)


def _attempts(snapshot: RunSnapshot, run: RunDir) -> Iterator[tuple[str, str]]:
    """Yield when each attempt began and why, how it ended, where its output is, and the settings in which it differed
    from the newest."""
    told = dict(settings_before(run, snapshot.attempt))
    for number in reversed(run.attempt_numbers()[-MOST_ATTEMPTS:]):
        folder = run.attempt(number)
        launch, end = storage.read_or_none(LaunchRecord, folder.launch), storage.read_or_none(ExitRecord, folder.exit)
        parts = []
        if launch is not None:
            parts += [shown.moment_of_day(launch.time, snapshot.seen), launch.device, launch.reason or ""]
            if end is not None:
                parts.append(f"ran {shown.duration(max(0.0, end.ended - launch.time))}")
        parts.append(exit_summary(end).sentence() if end is not None else "")
        parts.append(str(folder.output))
        yield str(number), " · ".join(part for part in parts if part)
        if launch is not None and number != snapshot.attempt and tuple(masked_words(launch.argv)) != snapshot.argv:
            yield "", " ".join(masked_words(launch.argv))
        if number in told:
            other = replace(snapshot, settings=told[number], argv=(), env={})
            apart = differences([other, replace(other, settings=snapshot.settings)])
            if words := " ".join(f"{one.name}={one.values[0]}" for one in apart if one.values[0] is not None):
                yield "", f"with {words}"
