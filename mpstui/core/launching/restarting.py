"""What a restart asks for: everything that must hold before it is asked, then the options of its request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..machine import Machine
from ..model.errors import OperationError, UsageError
from .availability import device_refusal, resume_refusal
from .choice import LaunchChoice
from .launches import choice_json
from .planning import plan
from .recorded import RecordedRun
from .requirements import require_device, require_disk_space


@dataclass(frozen=True, slots=True)
class Restart:
    """A request that can be sent."""

    options: dict[str, Any]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What the supervisor needs in its environment; written nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPlanner:
    """Checks a restart of one run against its record and against this machine."""

    recorded: RecordedRun
    runs: Path
    """The folder of all runs, whose disk must have room."""
    environ: Mapping[str, str] = field(repr=False)
    machine: Callable[[], Machine]

    def same(self, device: str | None, source: str) -> Restart:
        """The launch as it is, perhaps on another device.

        Raises:
            UsageError: the device or the checkpoint does not exist.
            OperationError: the program cannot be told, or the disk is nearly full.
        """
        options = self._begun(device, source)
        _refuse(device_refusal(self.recorded, device) if device else "")
        _refuse(resume_refusal(self.recorded, source))
        self._require_device(device)
        return Restart(options)

    def edited(self, choice: LaunchChoice, device: str | None, source: str) -> Restart:
        """Another launch, for this and later attempts.

        Raises:
            UsageError: it cannot work, or the checkpoint does not exist.
            OperationError: the disk is nearly full.
        """
        options = self._begun(device, source)
        chosen = replace(choice, device=device) if device else choice
        planned = plan(chosen, environ=self.environ, machine=self.machine())
        options |= {"launch": planned.template.to_json(), "choice": choice_json(choice)}
        return Restart(options, planned.secrets)

    def _begun(self, device: str | None, source: str) -> dict[str, Any]:
        require_disk_space(self.runs, self.recorded.spec.min_free_bytes)
        return {"device": device, "from": _existing(source, Path(self.recorded.template.cwd))}

    def _require_device(self, device: str | None) -> None:
        if device:
            variant = self.recorded.template.variants[device]
            require_device(device, variant.argv[0], {**self.environ, **variant.env}, self.machine())


def _refuse(why: str) -> None:
    if why:
        raise OperationError(why)


def _existing(source: str, cwd: Path) -> str:
    """``latest``, ``best``, ``scratch``, or the full path of a file that is there."""
    if source in ("latest", "best", "scratch"):
        return source
    path = (Path.cwd() / Path(source).expanduser()).absolute()
    if not path.is_file():
        inside = cwd / source
        if not inside.is_file():
            raise UsageError(
                f"there is no checkpoint {path}", "name a file, or one of latest, best, scratch", field="from"
            )
        path = inside
    return str(path)
