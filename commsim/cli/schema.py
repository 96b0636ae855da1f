"""``commsim schema``: the JSON Schema of what verbs write as JSON, of the service's requests, and of a cluster."""

from __future__ import annotations

import json
from importlib import resources

from commsim.core.errors import InputError
from commsim.extensions import house
from commsim.report.answer import Answer, Lines

from .flags import Flags, Verb, flag

EXAMPLES = {
    "schema": """
        commsim schema
        commsim schema run
        commsim schema topo show
        commsim schema switch simulate
        commsim schema workload step""",
}


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
    if verb in house().schemas:
        return Answer([Lines(json.dumps(house().schemas[verb](), indent=1).splitlines(), is_file=True)])
    if verb and verb not in known:
        if words := [name for name in known if name.startswith(f"{verb} ")]:
            raise InputError(f"{verb!r} has a schema for each of its verbs: {', '.join(words)}")
        raise InputError(
            f"there is no schema of {verb!r}; there are those of {', '.join(sorted([*known, *house().schemas]))}"
        )
    if verb:
        return Answer([Lines(known[verb].splitlines(), is_file=True)])
    return Answer([Lines(sorted([*known, *house().schemas]))])


def schemas() -> dict[str, str]:
    """Return the JSON Schemas that are shipped, as text, by verb."""
    folder = resources.files("commsim.cli") / "schemas"
    files = sorted((path for path in folder.iterdir() if path.name.endswith(".json")), key=lambda one: one.name)
    return {file.name.removesuffix(".json").replace("_", " "): file.read_text(encoding="utf-8") for file in files}


COMMANDS = {"schema": Verb(SchemaConfig, run)}
