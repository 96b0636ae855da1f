"""First in, first out."""

from __future__ import annotations

from ..policy import Grant, View, fill, policy


@policy()
def fifo(view: View) -> list[Grant]:
    """In order of submission; nobody overtakes, nobody is stopped."""
    return fill(view, view.states, strict=True)[0]
