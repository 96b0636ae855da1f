"""The service's addresses, with FastAPI, which makes the page that documents them at /docs and /openapi.json."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from commsim import __version__
from commsim.core.errors import InputError

from .extender import read_args
from .guard import FAULT, Refusal
from .pods import strict_json
from .schemas import EXTENDER_ARGS, FILTER_RESULT, HOST_PRIORITIES, JOBS, KNOWN_JOBS, PLACE, PLACED, documented

if TYPE_CHECKING:
    from .desk import Desk


def application(desk: Desk) -> FastAPI:
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
        return answer(await desk.filter(read_args(await body_of(request))))

    @app.post("/prioritize", summary="Kubernetes: 0..10 for each node", **documented(EXTENDER_ARGS, HOST_PRIORITIES))
    async def prioritize_nodes(request: Request) -> Response:
        return answer(await desk.prioritize(read_args(await body_of(request))))

    @app.post("/place", summary="Candidate placements, best first", **documented(PLACE, PLACED))
    async def place_jobs(request: Request) -> Response:
        return answer(await desk.place(await body_of(request)))

    @app.get("/jobs", summary="The jobs that are known", **documented(None, KNOWN_JOBS))
    async def list_jobs() -> Response:
        return answer(desk.jobs())

    @app.post("/jobs", summary="Add jobs, or replace those of the same names", **documented(JOBS, KNOWN_JOBS))
    async def put_jobs(request: Request) -> Response:
        return answer(await desk.put_jobs(await body_of(request)))

    @app.delete("/jobs/{name:path}", summary="Forget a job", **documented(None, KNOWN_JOBS))
    async def remove_job(name: str) -> Response:
        return answer(await desk.remove_job(name))

    @app.get("/healthz", summary="Whether the service answers; needs no token")
    async def is_healthy() -> Response:
        return answer({"ok": True})

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
