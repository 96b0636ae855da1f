"""Routes of the service (FastAPI), documented at /docs, which needs no internet, and /openapi.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Header, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from fastapi_offline import FastAPIOffline
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from commsim.core.errors import InputError, NoRoomError, printable, shorten
from commsim.version import __version__

from .answers import (
    BindingResult,
    Candidates,
    FilterResult,
    Health,
    HostPriority,
    JobMoves,
    KnownCluster,
    KnownJobs,
    Problem,
    schemas,
)  # fmt: skip
from .body_errors import SOURCE, said_by_readers, said_of
from .guard import FAULT, Refusal
from .limits import Limits
from .models import BindingArgs, ClusterTables, ExtenderArgs, Jobs, MoveSearch, Search
from .posted_cluster import SOURCE as CLUSTER
from .versions import tag_of

# Addresses that FastAPI adds by itself.
BESIDE = {
    "/docs": "GET: this list with requests and answers, for a browser",
    "/openapi.json": "GET: the same for programs, as OpenAPI",
}

if TYPE_CHECKING:
    from .metrics import Metrics
    from .placement_service import PlacementService

# Bodies that the errors of an address show; a single job, or a list of them, is the usual mistake.
_JOB = '{"job": "a", "gpus": 8, "iter_time_ms": 100, "phases": [{"offset_ms": 0, "dur_ms": 40, "rate_Gbps": 50}]}'
BODIES = {
    "/jobs": f'{{"jobs": [{_JOB}]}}',
    "/place": f'{{"jobs": [{_JOB}], "candidates": 10}}',
    "/cluster": '{"topology": {"spec": "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=4"}, "hosts": {"gpus": 8}}',
}
IfMatch = Annotated[str | None, Header(description='version that is expected, such as "13", of ETag')]
# Bodies by address.
_BODIES: dict[str, type[BaseModel]] = {
    "/jobs": Jobs, "/place": Search, "/moves": MoveSearch, "/cluster": ClusterTables, "/filter": ExtenderArgs,
    "/prioritize": ExtenderArgs, "/bind": BindingArgs,
}  # fmt: skip
# Refusals beside those of a wrong request.
NO_CLUSTER: dict[int | str, dict[str, Any]] = {409: {"model": Problem, "description": "there is no cluster yet"}}
SEARCHES: dict[int | str, dict[str, Any]] = {
    409: {"model": Problem, "description": "there is no cluster, or no job that can be moved"},
    503: {"model": Problem, "description": "too many searches wait; Retry-After says when to ask again"},
}
CHANGES: dict[int | str, dict[str, Any]] = {
    409: {"model": Problem, "description": "there is no cluster, GPUs are taken, or there is no room"},
    412: {"model": Problem, "description": "the version is not that of If-Match"},
    503: {"model": Problem, "description": "the store does not take it, or too many searches wait (Retry-After)"},
}


def application(service: PlacementService, metrics: Metrics, limits: Limits) -> FastAPI:
    """Return the ASGI application."""
    app: FastAPI = FastAPIOffline(
        title="commsim placement service", version=__version__, redoc_url=None, max_body_size=limits.body_bytes,
        responses={"4XX": {"model": Problem, "description": "what is wrong"}},
    )  # fmt: skip
    _add_refusals(app, service)

    @app.post("/filter", summary="Kubernetes: where the pod may go", response_model=FilterResult)
    async def filter_nodes(args: ExtenderArgs) -> Response:
        answer = await service.filter(args)
        try:
            return JSONResponse(answer)  # whole nodes go back as they came, unread
        except (ValueError, RecursionError):  # NaN and half a surrogate pair can be read
            raise InputError("request: Nodes has what cannot be written as JSON") from None

    @app.post("/prioritize", summary="Kubernetes: 0..10 for each node", response_model=list[HostPriority])
    async def prioritize_nodes(args: ExtenderArgs) -> Any:
        return await service.prioritize(args)

    @app.post("/bind", summary="Kubernetes: bind a pod, whose GPUs its job then has", response_model=BindingResult)
    async def bind_pod(args: BindingArgs) -> Any:
        return await service.bind(args)

    @app.post("/place", summary="Candidate placements, best first; reserve takes the first",
              response_model=Candidates, responses=CHANGES)  # fmt: skip
    async def place_jobs(search: Search, if_match: IfMatch = None) -> Response:
        answer = await service.place(search, if_match)  # not checked again: that would take as long as the search
        return JSONResponse(answer, headers=tag_of(service.version))

    @app.post("/moves", summary="Running jobs that would be better elsewhere, largest gain first",
              response_model=JobMoves, responses=SEARCHES)  # fmt: skip
    async def move_jobs(search: MoveSearch) -> Response:
        return JSONResponse(await service.moves(search), headers=tag_of(service.version))

    @app.get("/jobs", summary="The jobs that are known", response_model=KnownJobs)
    async def list_jobs() -> Response:
        return tagged(service.jobs())

    @app.post("/jobs", summary="Add jobs, or replace those of the same names", response_model=KnownJobs,
              responses=CHANGES)  # fmt: skip
    async def put_jobs(jobs: Jobs, if_match: IfMatch = None) -> Response:
        return tagged(await service.put_jobs([job.row() for job in jobs.jobs], if_match))

    @app.delete("/jobs/{name:path}", summary="Forget a job", response_model=KnownJobs, responses=CHANGES)
    async def remove_job(name: str, if_match: IfMatch = None) -> Response:
        return tagged(await service.remove_job(name, if_match))

    @app.get("/cluster", summary="The cluster", response_model=KnownCluster, responses=NO_CLUSTER)
    async def show_cluster() -> Response:
        return tagged(service.cluster())

    @app.post("/cluster", summary="Give the cluster, or another one", response_model=KnownCluster, responses=CHANGES)
    async def put_cluster(tables: ClusterTables, if_match: IfMatch = None) -> Response:
        return tagged(await service.put_cluster(tables.model_dump(exclude_unset=True), if_match))

    @app.get("/schema", summary="JSON Schemas of requests and answers, by name")
    async def by_name() -> dict[str, Any]:
        return schemas()

    @app.get("/", summary="The addresses of the service")
    async def addresses() -> dict[str, dict[str, str]]:
        return {"addresses": listed | BESIDE}

    @app.get("/healthz", summary="Whether the service answers; needs no token")
    async def is_healthy() -> Health:
        return Health()

    @app.get("/metrics", summary="Requests, their durations, jobs and free GPUs, for Prometheus")
    async def prometheus() -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    listed: dict[str, str] = {}
    for route in app.routes:  # openapi() would take most of the start
        if isinstance(route, APIRoute) and route.include_in_schema:
            said = "; ".join(f"{method}: {route.summary}" for method in sorted(route.methods or ()))
            listed[route.path_format] = "; ".join(filter(None, (listed.get(route.path_format), said)))
    metrics.paths = frozenset(listed)
    return app


def tagged(answer: dict[str, Any]) -> Response:
    """Return an answer that has a version, with it in the header, too."""
    return JSONResponse(answer, headers=tag_of(answer["version"]))


def _add_refusals(app: FastAPI, service: PlacementService) -> None:
    """Answer whatever is refused with a status and one line of JSON."""

    def refused(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
        return JSONResponse({"error": message}, status, headers)

    @app.exception_handler(HTTPException)
    async def by_framework(request: Request, error: HTTPException) -> Response:
        allowed = f"; it takes {of}" if (of := (error.headers or {}).get("Allow")) else ""
        text = f"{request.method} {shorten(printable(request.url.path))}: {error.detail}{allowed}"
        return refused(error.status_code, text, error.headers)

    @app.exception_handler(RequestValidationError)
    async def by_model(request: Request, error: RequestValidationError) -> Response:
        path, body = request.url.path, error.body
        text = said_of(error.errors(), body, [*_BODIES[path].model_fields] if path in _BODIES else ())
        if path in ("/jobs", "/place") and isinstance(body, dict):
            text = said_by_readers(body, is_search=path == "/place", known=service.known) or text
        return refused(400, text + ("" if isinstance(body, bytes) else _right(path)))

    @app.exception_handler(InputError)
    async def by_reader(request: Request, error: InputError) -> Response:
        text = str(error)
        is_body = text.startswith((f"{SOURCE}: ", f"{CLUSTER}: "))
        return refused(400, text + (_right(request.url.path) if is_body else ""))

    @app.exception_handler(NoRoomError)
    async def by_room(_: Request, error: NoRoomError) -> Response:
        return refused(409, str(error))

    @app.exception_handler(Refusal)
    async def by_service(_: Request, error: Refusal) -> Response:
        return refused(error.status, str(error), error.headers)

    @app.exception_handler(Exception)
    async def fault(_: Request, __: Exception) -> Response:
        return refused(500, FAULT)


def _right(path: str) -> str:
    return f"; the body must be like {BODIES[path]}" if path in BODIES else ""
