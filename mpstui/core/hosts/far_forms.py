"""The launch form of another machine: filled in here, planned and started there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from ..launching.form_fields import Preview
from ..model.errors import ReportedError
from ..model.snapshot import RunSnapshot
from ..profiles.library import ProfileEntry
from .desk import Desk
from .far import FarHost
from .offering import Launches
from .view import FormRecipe

if TYPE_CHECKING:
    from ...wire.records import Request
    from ..launching.cure import Cure


class FarLauncher:
    """Another machine's profiles, as forms; see :class:`.Launcher`."""

    def __init__(self, host: FarHost, restart: Callable[..., Request]) -> None:
        self._host, self._restart = host, restart
        self._entries: Sequence[ProfileEntry] | None = None
        self.asks = host.name

    def entries(self, *, waits: bool = True) -> Sequence[ProfileEntry]:
        """Return known profiles at once, and request them again in the background.

        Args:
            waits: wait for an answer if none are known; otherwise return none.

        Raises:
            OperationError: none are known, and there is no connection.
        """
        if self._entries is None:
            if self._host.profiles is None and waits:
                self._host.profiles = self._host.link.ask(Desk.profiles)
            else:
                Thread(target=self._ask_again, daemon=True).start()
            self._entries = self._host.profiles
        return self._entries or ()

    def _ask_again(self) -> None:
        with suppress(ReportedError):
            self._host.profiles = self._host.link.ask(Desk.profiles)

    def draft(self, name: str) -> FarDraft:
        return FarDraft(self._host, FormRecipe(profile=name), self._restart)

    def draft_of(self, snapshot: RunSnapshot, cure: Cure | None = None) -> FarDraft:
        recipe = FormRecipe(run=self._host.ref(snapshot), cured=cure is not None)
        return FarDraft(self._host, recipe, self._restart)

    def branch_of(self, snapshot: RunSnapshot, step: float) -> FarDraft:
        return FarDraft(self._host, FormRecipe(run=self._host.ref(snapshot), branch_step=step), self._restart)


class FarDraft:
    """One launch that is being filled in; see :class:`.Draft`."""

    def __init__(self, host: FarHost, recipe: FormRecipe, restart: Callable[..., Request]) -> None:
        self._host, self._recipe, self._restart = host, recipe, restart
        face = host.link.ask(Desk.form, patience=30.0 if recipe.values is not None else None, recipe=recipe)
        self.title, self.description, self.fields = f"{face.title} · on {host.name}", face.description, face.fields
        self.face_title = face.title

    def asking_the_program(self, values: Mapping[str, str]) -> FarDraft:
        return FarDraft(self._host, self._recipe._replace(values=dict(values)), self._restart)

    def preview(self, values: Mapping[str, str]) -> Preview:
        """Nothing is known here: :meth:`examine` asks."""
        return Preview("", host=self._host.name)

    def examine(self, values: Mapping[str, str]) -> Preview:
        found = self._host.link.ask(Desk.preview, recipe=self._recipe, values=values)
        return replace(found, host=self._host.name)

    def close(self) -> None:
        """The line stays open: it belongs to the screen."""

    def launches(self, values: Mapping[str, str]) -> Launches:
        """What the form would start, to be sent to another machine."""
        return self._host.link.ask(Desk.launches, recipe=self._recipe, values=values)

    def launch(self, values: Mapping[str, str]) -> str:
        about = f"launch of {values.get('name') or self.title}"
        return self._host.key(self._host.link.ask(Desk.launch, about=about, recipe=self._recipe, values=values))

    def restart(self, snapshot: RunSnapshot, values: Mapping[str, str], *, rehearse: bool = False) -> Request:
        return self._restart(self._host, snapshot, Desk.restart, recipe=self._recipe, values=values, rehearse=rehearse)

    def save(self, values: Mapping[str, str], name: str) -> Path:
        found = self._host.link.ask(
            Desk.save_profile, about=f"profile {name}", recipe=self._recipe, values=values, name=name
        )
        return Path(f"{self._host.name}:{found}")

    def completed(self, key: str, text: str) -> str | None:
        return self._host.link.ask(Desk.completed, recipe=self._recipe, key=key, text=text)
