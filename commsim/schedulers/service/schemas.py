"""JSON schemas of the service's requests and answers, for its page of documentation."""

from __future__ import annotations

from typing import Any

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

_PHASE = _object("offset_ms dur_ms rate_Gbps", offset_ms=_NUMBER, dur_ms=_NUMBER, rate_Gbps=_NUMBER)
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
    "Names of fields are read whatever their case. The pod's job: the annotation commsim/job, which holds a job as "
    "JSON, or the name of one that POST /jobs told of; without it, such a name in one of the labels commsim/job, "
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
