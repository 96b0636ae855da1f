"""Routes of the service (FastAPI), documented at /docs, which needs no internet, and /openapi.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi_offline import FastAPIOffline
from starlette.exceptions import HTTPException

from commsim import __version__
from commsim.core.errors import InputError, cut, printable

from .guard import FAULT, Limits, Refusal
from .models import (
    Candidates,
    ExtenderArgs,
    FilterResult,
    Health,
    HostPriority,
    Jobs,
    KnownJobs,
    Problem,
    Search,
    schemas,
)

if TYPE_CHECKING:
    from .metrics import Metrics
    from .placement_service import PlacementService

# Bodies that the errors of an address show; a single job, or a list of them, is the usual mistake.
_JOB = '{"job": "a", "gpus": 8, "iter_time_ms": 100, "phases": [{"offset_ms": 0, "dur_ms": 40, "rate_Gbps": 50}]}'
BODIES = {"/jobs": f'{{"jobs": [{_JOB}]}}', "/place": f'{{"jobs": [{_JOB}], "candidates": 10}}'}
MAX_SHOWN = 80  # letters of what came


def application(service: PlacementService, metrics: Metrics, limits: Limits) -> FastAPI:
    """Return the ASGI application."""
    app: FastAPI = FastAPIOffline(
        title="commsim placement service", version=__version__, redoc_url=None, max_body_size=limits.body_bytes,
        responses={"4XX": {"model": Problem, "description": "what is wrong"}},
    )  # fmt: skip
    _add_refusals(app)

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

    @app.post("/place", summary="Candidate placements, best first", response_model=Candidates)
    async def place_jobs(search: Search) -> Any:
        return await service.place(search)

    @app.get("/jobs", summary="The jobs that are known", response_model=KnownJobs, response_model_exclude_unset=True)
    async def list_jobs() -> Any:
        return service.jobs()

    @app.post("/jobs", summary="Add jobs, or replace those of the same names", response_model=KnownJobs,
              response_model_exclude_unset=True)  # fmt: skip
    async def put_jobs(jobs: Jobs) -> Any:
        return await service.put_jobs([job.row() for job in jobs.jobs])

    @app.delete(
        "/jobs/{name:path}", summary="Forget a job", response_model=KnownJobs, response_model_exclude_unset=True
    )
    async def remove_job(name: str) -> Any:
        return await service.remove_job(name)

    @app.get("/schema", summary="JSON Schemas of requests and answers, by name")
    async def by_name() -> dict[str, Any]:
        return schemas()

    @app.get("/", summary="The addresses of the service")
    async def addresses() -> dict[str, dict[str, str]]:
        return {"addresses": listed | {"/docs": "GET: this list with requests and answers, for a browser"}}

    @app.get("/healthz", summary="Whether the service answers; needs no token")
    async def is_healthy() -> Health:
        return Health()

    @app.get("/metrics", summary="Requests, their durations, jobs and free GPUs, for Prometheus")
    async def prometheus() -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    paths = app.openapi()["paths"]
    listed = {path: "; ".join(f"{m.upper()}: {one['summary']}" for m, one in of.items()) for path, of in paths.items()}
    return app


def _add_refusals(app: FastAPI) -> None:
    """Answer whatever is refused with a status and one line of JSON."""

    def refused(status: int, message: str) -> Response:
        return JSONResponse({"error": message}, status)

    @app.exception_handler(HTTPException)
    async def by_framework(request: Request, error: HTTPException) -> Response:
        return refused(error.status_code, f"{request.method} {cut(printable(request.url.path))}: {error.detail}")

    @app.exception_handler(RequestValidationError)
    async def by_model(request: Request, error: RequestValidationError) -> Response:
        is_short = error.errors()[0]["type"] == "missing"
        is_json = isinstance(error.body, (dict, list)) and (is_short or not _has_jobs(error.body))
        right = BODIES.get(request.url.path) if is_json else None
        return refused(400, said_of(error.errors()) + ("" if right is None else f"; the body must be like {right}"))

    @app.exception_handler(InputError)
    async def by_reader(_: Request, error: InputError) -> Response:
        return refused(400, str(error))

    @app.exception_handler(Refusal)
    async def by_service(_: Request, error: Refusal) -> Response:
        return refused(error.status, str(error))

    @app.exception_handler(Exception)
    async def fault(_: Request, __: Exception) -> Response:
        return refused(500, FAULT)


def _has_jobs(body: Any) -> bool:
    return isinstance(body, dict) and "jobs" in body


def said_of(errors: Sequence[Mapping[str, Any]]) -> str:
    """Write the first of pydantic's errors on one line: ``request: jobs[0].gpus: Input should be ..., got 'four'``."""
    first = errors[0]
    if first["type"] == "json_invalid":
        return f"request: {first['msg']}: {first['ctx']['error']}"
    where = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in first["loc"][1:]).lstrip(".")
    given = first["input"]
    got = f", got {repr(given)[:MAX_SHOWN]}" if isinstance(given, str | int | float | None) else ""
    if isinstance(given, bytes):  # what FastAPI does not read as JSON
        got = "; is its Content-Type application/json?"
    said = first["msg"].removeprefix("Value error, ") + got
    return printable(": ".join(filter(None, ("request", where[:MAX_SHOWN], said))))
