"""From the table of keys to Textual's bindings."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from ..bindings import Scope, keys_for


def bindings(*scopes: Scope) -> list[BindingType]:
    """The bindings of some scopes."""
    return [
        Binding(key.keys, key.action, key.label or key.action, show=False) for key in keys_for(*scopes) if key.action
    ]
