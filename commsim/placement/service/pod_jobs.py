"""How pods name their job, and how many GPUs they ask for.

The annotation ``commsim/job`` holds the job as in ``jobs.json``: ``{"job", "gpus", "iter_time_ms", "phases"}``, and
``placed``, the nodes of the GPUs that its pods have so far, in rank order. Or it holds only the name of a job that the
service knows. Without it a label may name such a job; see ``LABELS``.
"""

from __future__ import annotations

import json
from typing import Any

from commsim.core.errors import InputError
from commsim.core.spec import is_whole

from .limits import MAX_GPUS_OF_POD
from .models import Pod
from .state import ClusterState, JobRecord, read_known_jobs

ANNOTATION = "commsim/job"
LABELS = (
    "commsim/job", "batch.kubernetes.io/job-name", "job-name", "training.kubeflow.org/job-name", "volcano.sh/job-name",
)  # fmt: skip


def job_of_pod(pod: Pod, state: ClusterState) -> JobRecord | None:
    """Return the job that a pod belongs to, None if it names none that is known.

    Raises
    ------
    InputError
        If the annotation describes a job wrongly.
    """
    text = (pod.metadata.annotations or {}).get(ANNOTATION)
    if isinstance(text, str) and text.lstrip().startswith("{"):
        try:
            tree = strict_json(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"the annotation {ANNOTATION} is not JSON: {_first_line(error)}") from None
        told = read_known_jobs([tree], f"annotation {ANNOTATION}")[0]
        known = state.jobs.get(told.job.name)  # with the pods that were bound before
        return told if told.placed or known is None else known
    labels = pod.metadata.labels or {}
    for name in (text, *(labels.get(label) for label in LABELS)):
        if isinstance(name, str) and name in state.jobs:
            return state.jobs[name]
    return None


def gpus_of_pod(pod: Pod, resource: str) -> int:
    """GPUs that a pod's containers ask for together.

    Raises
    ------
    InputError
        If an amount is not a whole number.
    """
    total = 0
    for container in (pod.spec and pod.spec.containers) or ():
        resources = container.resources
        amounts = {**((resources and resources.requests) or {}), **((resources and resources.limits) or {})}
        if resource in amounts:
            amount = str(amounts[resource])
            if not is_whole(amount, len(amount)):
                raise InputError(f"request: {resource} must be a whole number, got {amount[:40]!r}")
            if len(amount) > len(f"{MAX_GPUS_OF_POD}") or int(amount) > MAX_GPUS_OF_POD:
                raise InputError(f"request: {resource} must be at most {MAX_GPUS_OF_POD}, got {amount[:40]}")
            total += int(amount)
    return total


def strict_json(text: str | bytes) -> Any:
    """Decode JSON without NaN and Infinity.

    Raises
    ------
    ValueError, RecursionError
        If it is not well formed, or too deep.
    """
    return json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _first_line(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error).splitlines()[0]
