"""What the rules of diagnosis have to say about a launch before it happens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..profiles.model import ArgumentValue, Profile
from .requirements import script_of

_LARGEST_SCRIPT_BYTES = 1 << 20


def preflight_warnings(
    profile: Profile, arguments: Mapping[str, ArgumentValue], device: str, environ: Mapping[str, str]
) -> list[str]:
    """Sentences about what would fail at once or may fail later; what is unknown is not warned about."""
    from ..diagnosis.preflight import LaunchPlan, preflight

    found = preflight(
        LaunchPlan(
            environment=environ,
            arguments=arguments,
            roles=profile.roles,
            device=None if device == "auto" else device,
            script=_script_text(profile),
        )
    )
    return [f"{warning.sentence} {warning.remedy.text}".rstrip() for warning in found]


def _script_text(profile: Profile) -> str | None:
    script = script_of(profile)
    path = profile.cwd / Path(script) if script else None
    try:
        if path is None or path.stat().st_size > _LARGEST_SCRIPT_BYTES:
            return None
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
