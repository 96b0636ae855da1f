"""Answers of the service, as they are described at /docs, and the JSON Schemas of all requests and answers."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from .models import (
    BindingArgs,
    DemandPhase,
    ExtenderArgs,
    Jobs,
    JobsFile,
    MoveSearch,
    Phase,
    Search,
)  # fmt: skip


class BindingResult(BaseModel):
    """Answer to a binding."""

    Error: str = ""


class FilterResult(BaseModel):
    """Answer to a filter request."""

    Nodes: dict[str, Any] | None
    NodeNames: list[str] | None
    FailedNodes: dict[str, str] = {}
    FailedAndUnresolvableNodes: dict[str, str] = {}
    Error: str = ""


class HostPriority(BaseModel):
    """Points of one node."""

    Host: str
    Score: int = Field(ge=0, le=10)


class KnownJob(BaseModel):
    """A job that is known, as POST /jobs takes it."""

    job: str
    gpus: int
    iter_time_ms: float
    phases: list[Phase] | list[DemandPhase]
    placed: list[str] = Field(description="nodes of its first ranks: of all, if it was sent with placement")
    start_ms: float | None = Field(None, description="when an iteration starts, of a job that is not shifted")


class KnownJobs(BaseModel):
    """The jobs that scores take into account; the version grows with every change."""

    version: int
    jobs: list[KnownJob]


class KnownCluster(BaseModel):
    """The cluster; the version grows with every change of it and of the jobs."""

    version: int
    network: str
    hosts: int
    gpus: int = Field(description="of all hosts")
    busy: int = Field(description="those that are taken, by known jobs or by something else")
    of_jobs: int = Field(description="those of them that known jobs have")
    free: int = Field(description="those that are not taken")


class SharedLink(BaseModel):
    """A link that several jobs use, or that one overloads alone."""

    link: str
    jobs: list[str]
    score: float


class Cost(BaseModel):
    """What the jobs of the request cost."""

    total: float = Field(
        description="own less one of each, and added, together; candidates beside known jobs rank by it"
    )
    own: dict[str, float] = Field(description="iteration time of each new job over its iter_time_ms")
    added: dict[str, float] = Field(
        description="what each running job loses, as a part of its iter_time_ms; of those that lose anything"
    )
    total_best: float | None = Field(None, description="with the best hash of paths")
    total_worst: float | None = Field(None, description="with the worst")


class DiscardedCandidate(BaseModel):
    """A placement that the literal rule of loops discards."""

    model_config = ConfigDict(extra="allow")

    placement: dict[str, list[str]]
    score_mean: float
    score_min: float
    links: list[SharedLink]
    shifts_ms: dict[str, float]
    predicted_iteration_ms: dict[str, float]


class Candidate(DiscardedCandidate):
    """A placement, with the fields of ``commsim place --json``; beside known jobs only what concerns the new ones."""

    cost: Cost


class Reserved(BaseModel):
    """That the first candidate was taken."""

    version: int = Field(description="of the jobs, with those of the request")
    jobs: list[str]


class Candidates(BaseModel):
    """Candidates, best first."""

    model_config = ConfigDict(populate_by_name=True)

    number: int = Field(alias="schema", description="number of this form, as in commsim place --json")
    candidates: list[Candidate]
    discarded: list[DiscardedCandidate]
    notes: list[str]
    rank_correlation: float | None = Field(None, description="of estimated and simulated slowdowns, with check")
    refused: dict[str, str] | None = Field(
        None, description="placements of the request that cannot be had, and why: some of their GPUs are taken"
    )
    reserved: Reserved | None = None
    differing_candidates: list[int] = Field([], description="those with over 1 % between estimate and simulation")


class JobMove(BaseModel):
    """A running job, placed again beside the others; with faults the fields of ``commsim place moves --json``."""

    model_config = ConfigDict(extra="allow")

    job: str
    gain: float = Field(description="what all jobs lose less, in iterations of each; 0 where it should stay")
    placement_now: list[str]
    placement_after: list[str]
    pays_after_s: float | None = Field(None, description="with restart_s: when all jobs have gained what it loses")


class JobMoves(BaseModel):
    """Moves, largest gain first; nothing is changed."""

    moves: list[JobMove]
    notes: list[str]
    forced: list[dict[str, Any]] | None = None
    stopped_gpu_s: float | None = Field(None, description="with restart_s: for which the forced moves stop jobs")


class Problem(BaseModel):
    """What is wrong with a request, on one line."""

    error: str


class Health(BaseModel):
    """That the service answers."""

    ok: bool = True


def schemas() -> dict[str, Any]:
    """Return the JSON Schemas of requests and answers by name, and that of a jobs.json; each is complete by itself."""
    from .posted_cluster import posted_cluster_schema

    named = (
        Search, Candidates, MoveSearch, JobMoves, Jobs, KnownJobs, KnownCluster, ExtenderArgs, FilterResult,
        HostPriority, BindingArgs, BindingResult, Problem, Health,
    )  # fmt: skip
    return {one.__name__: one.model_json_schema() for one in named} | {
        "Cluster": posted_cluster_schema(),
        "jobs.json": TypeAdapter(JobsFile).json_schema(),
    }
