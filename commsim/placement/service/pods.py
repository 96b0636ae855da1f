"""Which job a pod belongs to, and how it communicates: from its annotations, labels and resources.

The annotation ``commsim/job`` holds the job as in ``jobs.json``: ``{"job", "gpus", "iter_time_ms", "phases"}``, and
``placed``, the nodes of the GPUs that its pods have so far, in rank order. Or it holds only the name of a job that the
service was told of. Without it a label may name such a job; see ``LABELS``.
"""

from __future__ import annotations

import json
from typing import Any, cast

from commsim.core.errors import InputError
from commsim.files.fields import Fields
from commsim.files.positions import Keys
from commsim.workload.sharing.periodic import parse_jobs

from .state import ClusterState, KnownJob

ANNOTATION = "commsim/job"
LABELS = (
    "commsim/job", "batch.kubernetes.io/job-name", "job-name", "training.kubeflow.org/job-name", "volcano.sh/job-name",
)  # fmt: skip
MAX_PHASES = 64
MAX_PERIOD = 86_400.0  # seconds


def job_of_pod(pod: Fields, state: ClusterState) -> KnownJob | None:
    """Return the job that a pod belongs to, None if it names none that is known.

    Raises
    ------
    InputError
        If the annotation describes a job wrongly.
    """
    metadata = pod.table("metadata")
    text = metadata.table("annotations").raw(ANNOTATION) if metadata.raw("annotations") is not None else None
    if isinstance(text, str) and text.lstrip().startswith("{"):
        try:
            tree = strict_json(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"the annotation {ANNOTATION} is not JSON: {_first_line(error)}") from None
        return read_known_jobs([tree], f"annotation {ANNOTATION}")[0]
    labels = metadata.table("labels") if metadata.raw("labels") is not None else Fields({}, "")
    for name in (text, *(labels.raw(label) for label in LABELS)):
        if isinstance(name, str) and name in state.jobs:
            return state.jobs[name]
    return None


def gpus_of_pod(pod: Fields, resource: str) -> int:
    """GPUs that a pod's containers ask for together.

    Raises
    ------
    InputError
        If an amount is not a whole number.
    """
    total = 0
    spec = pod.table("spec") if pod.raw("spec") is not None else Fields({}, "")
    for container in spec.tables("containers") if spec.raw("containers") is not None else []:
        resources = container.raw("resources")
        for kind in ("limits", "requests"):
            amounts = resources.get(kind) if isinstance(resources, dict) else None
            if isinstance(amounts, dict) and resource in amounts:
                amount = str(amounts[resource])
                if not (amount.isascii() and amount.isdigit() and len(amount) < 6):
                    container.fail("resources", f".{kind}.{resource} must be a whole number, got {amount[:40]!r}")
                total += int(amount)
                break
    return total


def read_known_jobs(rows: object, source: str, keys: Keys = (), allow_placed: bool = True) -> list[KnownJob]:
    """Read jobs as in ``jobs.json``, with ``placement`` if all of a job is placed, or ``placed`` for a part.

    Raises
    ------
    InputError
        Naming the field that is wrong.
    """
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        parse_jobs(rows, source, keys)
    for i, row in enumerate(table := cast("list[dict[str, Any]]", rows)):
        fields = Fields(row, source, (*keys, i))
        if "placed" in row:
            if not allow_placed:
                fields.fail("placed", "is not known here; placement names all of a job's GPUs")
            fields.items("placed", str, "the name of a node")
            if "placement" in row:
                fields.fail("placed", "and placement say the same thing twice; give one of them")
        if isinstance(row.get("phases"), list) and len(row["phases"]) > MAX_PHASES:
            fields.fail("phases", f"are at most {MAX_PHASES}, got {len(row['phases'])}")
    jobs = parse_jobs([{key: row[key] for key in row if key != "placed"} for row in table], source, keys)
    for i, (job, row) in enumerate(zip(jobs, table, strict=True)):
        fields = Fields(row, source, (*keys, i))
        if job.period > MAX_PERIOD:
            fields.refuse("iter_time_ms", f"at most {MAX_PERIOD * 1e3:g}")
        if len(row.get("placed", ())) > job.n_gpus:
            fields.fail("placed", f"names {len(row['placed'])} GPUs, but the job has {job.n_gpus}")
    return [KnownJob(job, tuple(job.placement or row.get("placed", ()))) for job, row in zip(jobs, table, strict=True)]


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
