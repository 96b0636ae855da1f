"""Tiresias: two-dimensional least attained service, in discrete queues."""

from __future__ import annotations

from dataclasses import replace

from ..policy import Grant, View, fill, policy
from ..state import JobState

THRESHOLDS = (3600.0, 36000.0)
"""GPU seconds at which a job sinks into the next queue (assumed: a GPU hour, ten GPU hours)."""


@policy(interval=300.0, paper="Gu et al., NSDI 2019; thresholds and interval are assumed")
def tiresias(view: View) -> list[Grant]:
    """Least GPU time so far first, first come first served within a queue; only skewed models insist on few hosts."""
    grants = fill(view, sorted(view.states, key=queue))[0]
    skewed = [view.work.models[grant.state.index].skewed or grant.gpus == 1 for grant in grants]
    return [g if packed else replace(g, order="fragments") for g, packed in zip(grants, skewed, strict=True)]


def queue(state: JobState) -> int:
    """Say in which queue a job is; 0 is served first."""
    return sum(state.attained >= threshold for threshold in THRESHOLDS)
