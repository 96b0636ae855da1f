"""Synergy: CPUs and memory go where they are needed."""

from __future__ import annotations

from ..policy import Grant, View, fill, policy


@policy(tunes_cpu=True, paper="Mohan et al., OSDI 2022: Synergy-TUNE; under first in, first out")
def synergy(view: View) -> list[Grant]:
    """In order of submission, on hosts whose CPUs and memory suffice; jobs that do not mind give theirs away."""
    return fill(view, view.states, strict=True, order="demand")[0]
