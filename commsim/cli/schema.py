"""``commsim schema``: the JSON Schema of what verbs write as JSON, of the service's requests, and of a cluster."""

from __future__ import annotations

import json
from importlib import resources

from commsim.core.errors import InputError
from commsim.report.answer import Answer, Lines

from .flags import Flags, Verb, flag

# Requests and answers of the service by name, with `jobs.json`, the file of jobs.
SERVICE = "place serve"
# File of a cluster, which `place` and the service read.
CLUSTER = "cluster.toml"


class SchemaConfig(Flags):
    """All flags of ``commsim schema``."""

    verb: tuple[str, ...] = flag(
        "verb",
        default=(),
        nargs="*",
        metavar="VERB",
        help="verb, such as run or switch simulate, or cluster.toml (default: list all)",
    )


def run(config: SchemaConfig) -> Answer:
    """Return the schema of a verb, or the verbs that have one."""
    known = schemas()
    verb = " ".join(config.verb)
    if verb == SERVICE:
        from commsim.placement.cli.serve import require_extra

        require_extra()
        from commsim.placement.service.models import schemas as of_service

        return Answer([Lines(json.dumps(of_service(), indent=1).splitlines(), is_file=True)])
    if verb == CLUSTER:
        from commsim.placement.cluster_schema import cluster_schema

        return Answer([Lines(json.dumps(cluster_schema(), indent=1).splitlines(), is_file=True)])
    if verb and verb not in known:
        if words := [name for name in known if name.startswith(f"{verb} ")]:
            raise InputError(f"{verb!r} has a schema for each of its verbs: {', '.join(words)}")
        raise InputError(
            f"there is no schema of {verb!r}; there are those of {', '.join(sorted([*known, SERVICE, CLUSTER]))}"
        )
    if verb:
        return Answer([Lines(known[verb].splitlines(), is_file=True)])
    return Answer([Lines(sorted([*known, SERVICE, CLUSTER]))])


def schemas() -> dict[str, str]:
    """Return the JSON Schemas that are shipped, as text, by verb."""
    folder = resources.files("commsim.cli") / "schemas"
    files = sorted((path for path in folder.iterdir() if path.name.endswith(".json")), key=lambda one: one.name)
    return {file.name.removesuffix(".json").replace("_", " "): file.read_text(encoding="utf-8") for file in files}


COMMANDS = {"schema": Verb(SchemaConfig, run)}
