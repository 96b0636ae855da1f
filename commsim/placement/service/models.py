"""Requests of the service: FastAPI reads and checks them by these classes, and describes them at /docs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from commsim.core.units import MAX_RATE
from commsim.placement.place import N_CANDIDATES
from commsim.training.sharing.periodic import GBPS, MOST_BYTES

from .limits import (
    MAX_CANDIDATES,
    MAX_FAULT,
    MAX_FAULTS,
    MAX_GENERATORS,
    MAX_JOBS,
    MAX_MOVED,
    MAX_NAME,
    MAX_NODES,
    MAX_PERIOD_MS,
    MAX_PHASES,
    MAX_SEARCHED_GPUS,
    MAX_SEED,
)

Name = Annotated[str, Field(max_length=MAX_NAME, description="the name of a node")]
Names = Annotated[list[Name], Field(max_length=MAX_SEARCHED_GPUS)]
JobName = Annotated[str, Field(max_length=MAX_NAME, description="the name of a known job")]
Faults = Annotated[list[Annotated[str, Field(max_length=MAX_FAULT)]], Field(max_length=MAX_FAULTS)]


class _Request(BaseModel):
    """A part of a request; types are not converted, and a field that is not known is refused."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class _AtOffset(_Request):
    """A part of an iteration."""

    offset_ms: float = Field(ge=0, description="less than iter_time_ms")
    overlap_ms: float | None = Field(None, ge=0, description="computation beside the phase from its start")


class Phase(_AtOffset):
    """A time in which a job sends."""

    dur_ms: float = Field(gt=0, description="at most iter_time_ms")
    rate_Gbps: float = Field(gt=0, le=MAX_RATE / GBPS)  # noqa: N815 - as in jobs.json


class DemandPhase(_AtOffset):
    """Bytes that a job sends, which take what its path needs for them; iter_time_ms is without this time."""

    bytes: float = Field(gt=0, le=MOST_BYTES, description="that each rank of a group sends on")
    groups: list[Annotated[list[int], Field(max_length=MAX_SEARCHED_GPUS)]] | None = Field(
        None, max_length=MAX_SEARCHED_GPUS, description="ranks of each group; by default all ranks are one"
    )
    pattern: Literal["ring", "send", "all_to_all"] | None = Field(None, description="by default a ring")


class Job(_Request):
    """A job as in jobs.json."""

    job: str = Field(min_length=1, max_length=MAX_NAME)
    gpus: int = Field(ge=1, le=2**31 - 1)
    iter_time_ms: float = Field(gt=0, le=MAX_PERIOD_MS)
    phases: list[Phase] | list[DemandPhase] = Field(max_length=MAX_PHASES, description="by offset, without overlap")
    placement: Names | None = Field(
        None,
        description="node of each GPU of a job that is placed wholly, with counts and ranges such as h0x4 or h0-3x4; a "
        "machine such as m0 or m0x4 stands for its free GPUs",
    )
    placed: Names = Field(
        [], description="nodes of the first ranks, in these forms, at most as many as gpus, without placement"
    )
    start_ms: float | None = Field(
        None, ge=0, description="when an iteration of a job that runs starts, less than iter_time_ms; it is not shifted"
    )

    gpus_per_host: int | None = Field(
        None, ge=1, le=2**31 - 1, description="GPUs that the job has on each of its hosts; it divides gpus"
    )

    def row(self) -> dict[str, Any]:
        """Return the job as it was sent."""
        return self.model_dump(exclude_unset=True)


JobsFile = Annotated[list[Job], Field(min_length=1, max_length=MAX_JOBS)]


class Jobs(_Request):
    """Jobs to be known."""

    jobs: list[Job] = Field(min_length=1, max_length=MAX_JOBS)
    version: int | None = Field(
        None, ge=0, description="as GET /jobs gives it, and not compared: If-Match asks for a version"
    )


class Search(_Request):
    """Jobs to be placed beside those that are known and placed; see ``commsim place``."""

    jobs: list[Job | JobName] = Field(min_length=1, max_length=MAX_JOBS)
    candidates: int = Field(N_CANDIDATES, ge=1, le=MAX_CANDIDATES)
    placements: dict[JobName, dict[JobName, Names]] | None = Field(
        None,
        min_length=1,
        max_length=MAX_CANDIDATES,
        description="candidates of your own by name, each with the nodes of every job without a placement, in place of "
        'those of generators: {"near": {"a": ["h0x4", "h1x4"]}, "far": {"a": ["h0x4", "h8x4"]}}',
    )
    seed: int = Field(0, ge=0, le=MAX_SEED)
    generators: list[Name] | None = Field(None, max_length=MAX_GENERATORS)
    rank_by: Literal["stretch", "mean", "min", "weighted"] = "stretch"
    loops: Literal["merged", "literal"] = "merged"
    check: bool = False
    reserve: bool = Field(
        False,
        description="whether the jobs get the places and starts of the first candidate, and are known from then on",
    )
    fail: Faults = Field([], description="what fails, as in commsim place --fail, such as link:leaf0:spine0")
    scale: Faults = Field([], description="what is slower, as in --scale, such as link:leaf0:*=0.5")
    drain: Names = Field(
        [], description="hosts that work and take no job, such as h2 or, for all below it, leaf0; jobs there are moved"
    )


class MoveSearch(_Request):
    """Running jobs of which each is placed again beside the others; see ``commsim place moves``."""

    jobs: list[JobName] | None = Field(
        None, min_length=1, max_length=MAX_MOVED, description="by default those that lose the most"
    )
    most: int = Field(10, ge=1, le=MAX_MOVED, description="how many of these")
    candidates: int = Field(N_CANDIDATES, ge=1, le=MAX_CANDIDATES, description="places that are tried for each")
    generators: list[Name] | None = Field(None, max_length=MAX_GENERATORS)
    fail: Faults = Field([], description="as in POST /place; jobs on hosts that fail are moved first")
    scale: Faults = []
    drain: Names = Field(
        [], description="hosts that work and are to be free, or switches above them; jobs on them are moved first"
    )
    restart_s: float = Field(
        0.0, ge=0, le=MAX_PERIOD_MS / 1e3, description="time for which a job that moves stands still, as --restart"
    )


class ClusterTables(_Request):
    """The tables of a cluster.toml; its topology names no file. /schema has the schema in full as Cluster."""

    topology: dict[str, Any]
    hosts: dict[str, Any] = Field({}, description="gpus of every host, per_host and busy; none where GPUs are nodes")


class Metadata(BaseModel):
    """What is read of a pod's metadata."""

    name: str = ""
    uid: str = ""
    annotations: dict[str, Any] | None = None
    labels: dict[str, Any] | None = None


class Resources(BaseModel):
    """Amounts by resource."""

    limits: dict[str, Any] | None = None
    requests: dict[str, Any] | None = None


class Container(BaseModel):
    """What is read of a container."""

    resources: Resources | None = None


class Spec(BaseModel):
    """What is read of a pod's specification."""

    containers: list[Container] | None = None


class Pod(BaseModel):
    """A pod of Kubernetes.

    Its job: the annotation commsim/job, which holds a job as JSON, or the name of a job sent with POST /jobs; without
    it such a name in one of the labels commsim/job, batch.kubernetes.io/job-name, job-name,
    training.kubeflow.org/job-name, volcano.sh/job-name.
    """

    metadata: Metadata = Metadata()
    spec: Spec | None = None


class _GoArgs(_Request):
    """Arguments whose names may have any case, as in Go."""

    @model_validator(mode="before")
    @classmethod
    def _any_case(cls, tree: Any) -> Any:
        known = {name.lower(): name for name in cls.model_fields}
        if not isinstance(tree, dict):
            return tree
        named = [known.get(key.lower(), key) for key in tree]
        if len(set(named)) < len(named):
            raise ValueError("a field appears twice")
        return dict(zip(named, tree.values(), strict=True))


class ExtenderArgs(_GoArgs):
    """Arguments of Kubernetes' scheduler extender; the case of their names does not matter, as in Go."""

    Pod: Pod
    NodeNames: Annotated[list[Name], Field(max_length=MAX_NODES)] | None = None
    Nodes: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _one_of(self) -> ExtenderArgs:
        if (self.NodeNames is None) == (self.Nodes is None):
            got = "neither" if self.Nodes is None else "both"
            raise ValueError(f"needs one of NodeNames (nodeCacheCapable: true) and Nodes, got {got}")
        return self


class BindingArgs(_GoArgs):
    """Arguments of the extender's binding."""

    PodName: str = Field(min_length=1, max_length=MAX_NAME)
    PodNamespace: str = Field(min_length=1, max_length=MAX_NAME)
    PodUID: str = Field("", max_length=MAX_NAME)
    Node: str = Field(min_length=1, max_length=MAX_NAME)
