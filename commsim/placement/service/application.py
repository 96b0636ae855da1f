"""Routes of the service (FastAPI), documented at /docs and /openapi.json.

JSON schemas of the service's requests and answers, for its page of documentation.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from commsim import __version__
from commsim.core.errors import InputError

from .extender import read_args
from .guard import FAULT, Refusal
from .state import strict_json

if TYPE_CHECKING:
    from .metrics import Metrics
    from .placement_service import PlacementService

Schema = dict[str, Any]


def _object(required: str = "", **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, **({"required": required.split()} if required else {})}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}
_WHOLE: Schema = {"type": "integer", "minimum": 0}
_BY_NAME: Schema = {"type": "object", "additionalProperties": _TEXT}
_NULL_OR_NAMES: Schema = {"type": ["array", "null"], "items": _TEXT}

_PHASE = _object("offset_ms dur_ms rate_Gbps", offset_ms=_NUMBER, dur_ms=_NUMBER, rate_Gbps=_NUMBER, overlap_ms=_NUMBER)
_JOB = _object(
    "job gpus iter_time_ms phases", job=_TEXT, gpus=_WHOLE, iter_time_ms=_NUMBER, phases=_list(_PHASE),
    placement=_list(_TEXT), placed=_list(_TEXT),
)  # fmt: skip
_JOB["description"] = (
    "As in jobs.json. placement names the node of each GPU of a job that is placed wholly; placed those of the ranks "
    "that are placed so far."
)
JOBS = _object("jobs", jobs=_list(_JOB))
KNOWN_JOBS = _object(version=_WHOLE, jobs=_list(_object(job=_TEXT, gpus=_WHOLE, placed=_list(_TEXT))))
PLACE = _object("jobs", jobs=_list(_JOB), candidates=_WHOLE, seed=_WHOLE)
PLACED = _object(candidates=_list(_object(
    placement={"type": "object", "additionalProperties": _list(_TEXT)}, score_mean=_NUMBER, score_min=_NUMBER,
    links=_list(_object(link=_TEXT, jobs=_list(_TEXT), score=_NUMBER)),
    shifts_ms={"type": "object", "additionalProperties": _NUMBER},
    predicted_iteration_ms={"type": "object", "additionalProperties": _NUMBER},
)))  # fmt: skip
EXTENDER_ARGS = _object(
    "Pod", Pod={"type": "object"}, NodeNames=_NULL_OR_NAMES, Nodes={"type": ["object", "null"]},
)  # fmt: skip
EXTENDER_ARGS["description"] = (
    "Field names are not case-sensitive. The pod's job: the annotation commsim/job, which holds a job as "
    "JSON, or the name of a job sent with POST /jobs; without it, such a name in one of the labels commsim/job, "
    "batch.kubernetes.io/job-name, job-name, training.kubeflow.org/job-name, volcano.sh/job-name."
)
FILTER_RESULT = _object(
    Nodes={"type": ["object", "null"]}, NodeNames=_NULL_OR_NAMES, FailedNodes=_BY_NAME,
    FailedAndUnresolvableNodes=_BY_NAME, Error=_TEXT,
)  # fmt: skip
HOST_PRIORITIES = _list(_object(Host=_TEXT, Score={"type": "integer", "minimum": 0, "maximum": 10}))
_ERROR = _object("error", error=_TEXT)


def documented(request: Schema | None, response: Schema) -> dict[str, Any]:
    """Arguments of a route that describe it, since FastAPI does not see the models of bodies that we decode."""
    extra: dict[str, Any] = {"responses": {
        "200": {"description": "what was asked for", "content": {"application/json": {"schema": response}}},
        "4XX": {"description": "what is wrong", "content": {"application/json": {"schema": _ERROR}}},
    }}  # fmt: skip
    if request is not None:
        extra["requestBody"] = {"required": True, "content": {"application/json": {"schema": request}}}
    return {"openapi_extra": extra}


def application(service: PlacementService, metrics: Metrics) -> FastAPI:
    """Return the ASGI application; it expects bodies that were read whole and are not too large.

    Bodies are decoded here and not by FastAPI's models: 500 whole nodes are some megabytes of which one name each is
    read.
    """
    app = FastAPI(title="commsim placement service", version=__version__, redoc_url=None)

    def answer(tree: Any, status: int = 200) -> Response:
        body = json.dumps(tree, allow_nan=False, separators=(",", ":"))
        return Response(body, status, media_type="application/json")

    async def body_of(request: Request) -> Any:
        return decoded(await request.body())

    @app.exception_handler(HTTPException)
    async def no_such_address(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return answer({"error": f"{request.method} {request.url.path}: {error.detail}"}, error.status_code)

    @app.exception_handler(InputError)
    async def wrong_input(_: Request, error: Exception) -> Response:
        return answer({"error": str(error)}, 400)

    @app.exception_handler(Refusal)
    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, Refusal)
        return answer({"error": str(error)}, error.status)

    @app.exception_handler(Exception)
    async def fault(_: Request, __: Exception) -> Response:
        return answer({"error": FAULT}, 500)

    @app.post("/filter", summary="Kubernetes: where the pod may go", **documented(EXTENDER_ARGS, FILTER_RESULT))
    async def filter_nodes(request: Request) -> Response:
        return answer(await service.filter(read_args(await body_of(request))))

    @app.post("/prioritize", summary="Kubernetes: 0..10 for each node", **documented(EXTENDER_ARGS, HOST_PRIORITIES))
    async def prioritize_nodes(request: Request) -> Response:
        return answer(await service.prioritize(read_args(await body_of(request))))

    @app.post("/place", summary="Candidate placements, best first", **documented(PLACE, PLACED))
    async def place_jobs(request: Request) -> Response:
        return answer(await service.place(await body_of(request)))

    @app.get("/jobs", summary="The jobs that are known", **documented(None, KNOWN_JOBS))
    async def list_jobs() -> Response:
        return answer(service.jobs())

    @app.post("/jobs", summary="Add jobs, or replace those of the same names", **documented(JOBS, KNOWN_JOBS))
    async def put_jobs(request: Request) -> Response:
        return answer(await service.put_jobs(await body_of(request)))

    @app.delete("/jobs/{name:path}", summary="Forget a job", **documented(None, KNOWN_JOBS))
    async def remove_job(name: str) -> Response:
        return answer(await service.remove_job(name))

    @app.get("/healthz", summary="Whether the service answers; needs no token")
    async def is_healthy() -> Response:
        return answer({"ok": True})

    @app.get("/metrics", summary="Requests, their durations, jobs and free GPUs, for Prometheus")
    async def prometheus() -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return app


def decoded(body: bytes) -> Any:
    """Decode the JSON of a request.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        return strict_json(body)
    except RecursionError:
        raise InputError("request: the JSON is nested too deeply") from None
    except UnicodeDecodeError:
        raise InputError("request: the body is not UTF-8 text") from None
    except ValueError as error:
        raise InputError(f"request: the body is not JSON: {str(error).splitlines()[0][:200]}") from None
