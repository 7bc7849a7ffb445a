"""The folders of one user: where mpstui keeps its state, and where the user keeps settings and profiles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ...wire import trust
from .errors import OperationError, UsageError

THEMES = ("auto", "dark", "light")
"""The screen's themes; auto follows the background that the terminal reports."""
GRAPHICS = ("auto", "off")
"""Charts drawn in pixels; auto uses them if the terminal reports support."""


class Home(NamedTuple):
    """The two folders of one user: state (runs, queue) and configuration (profiles)."""

    state: Path
    config: Path

    @property
    def runs(self) -> Path:
        """Holds one folder per run."""
        return self.state / "runs"

    @property
    def queue(self) -> Path:
        """The queue's files, through which the supervisors of waiting runs coordinate."""
        return self.state / "queue"

    @property
    def arguments(self) -> Path:
        """A cache of what programs reported about their arguments; can be deleted at any time."""
        return self.state / "arguments"

    @property
    def known_profiles(self) -> Path:
        """Hashes of the profiles that this user has launched or written, and of their paths."""
        return self.state / "known_profiles"

    @property
    def settings(self) -> Path:
        """The user's settings for all runs."""
        return self.config / "settings.toml"

    @property
    def screen_lock(self) -> Path:
        """Held by every open screen."""
        return self.state / "screen.lock"

    @property
    def user_profiles(self) -> Path:
        """The profiles that this user has saved."""
        return self.config / "profiles"


HINT_OWN = (
    "what others can write is not obeyed: `chmod go-w` it if it is yours, or set MPSTUI_HOME to a folder of yours"
)


def require_own(home: Home) -> None:
    """Refuse to start or change anything in a folder through which another user could take control.

    Raises:
        OperationError: the home belongs to another user, or others can write it.
    """
    if why := trust.distrust_of_any(home.state, home.runs, home.queue, strict=True):
        raise OperationError(why, HINT_OWN)


def resolve_home(environ: Mapping[str, str]) -> Home:
    """Return ``$MPSTUI_HOME`` for both folders, else the platform's user folders.

    Note that platformdirs reads the environment of this process, not ``environ``.
    """
    named = environ.get("MPSTUI_HOME", "").strip()
    if named:
        try:
            folder = Path(named).expanduser().absolute()
        except RuntimeError as error:
            raise UsageError(f"MPSTUI_HOME={named}: there is no such user", "set it to a folder of yours") from error
        return Home(state=folder, config=folder)
    import platformdirs

    return Home(
        state=Path(platformdirs.user_state_dir("mpstui", appauthor=False)),
        config=Path(platformdirs.user_config_dir("mpstui", appauthor=False)),
    )
