"""``commsim workload systems``: published training systems, each as a function of its parameters."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from commsim.cli.flags import Verb, WithJson, flag
from commsim.core.errors import InputError
from commsim.report.answer import Answer, Facts, Lines, Part, Table


class WorkloadSystemsConfig(WithJson):
    """All flags of ``commsim workload systems``."""

    name: str | None = flag("name", nargs="?", metavar="NAME", help="system to run (default: list all of them)")
    parameters: tuple[str, ...] = flag(
        "parameters", default=(), nargs=argparse.REMAINDER, metavar="--key value",
        help="parameters of the system; --help lists them",
    )  # fmt: skip

    @classmethod
    def from_args(cls, args: argparse.Namespace, code: Sequence[str] | None = None) -> WorkloadSystemsConfig:
        """Return the flags that were parsed; where answers go may stand among a system's own parameters, too."""
        raw = _pairs(tuple(args.parameters))
        args.json, args.csv = raw.pop("json", args.json), raw.pop("csv", args.csv)
        args.parameters = ["--help" if key == "help" else f"--{key}={value}" for key, value in raw.items()]
        config: WorkloadSystemsConfig = super().from_args(args, code)
        return config


def run(config: WorkloadSystemsConfig) -> Answer:
    """List the systems, or run one."""
    from commsim.papers.systems import SYSTEMS, run_system

    raw = _pairs(config.parameters)
    parts: list[Part] = []
    if config.name is None:
        rows: list[dict[str, Any]] = [
            {"system": name, "parameters": list(SYSTEMS[name].parameters), "summary": SYSTEMS[name].summary,
             "paper": SYSTEMS[name].metadata["paper"]} for name in SYSTEMS
        ]  # fmt: skip
        lines = [[row["system"], f"    {row['summary']}", f"    {row['paper']}"] for row in rows]
        parts = [Lines([line for one in lines for line in one])]
    elif "help" in raw:
        entry = SYSTEMS[config.name]
        facts = {f"--{key.replace('_', '-')}": f"{p.annotation}, {_text(p.default)} by default"
                 for key, p in entry.parameters.items()}  # fmt: skip
        return Answer([Lines([entry.summary, entry.metadata["paper"], ""]), Facts(facts)])
    else:
        row = run_system(config.name, raw)
        rows = [{"system": config.name, **row}]
        parts = [Facts({key: _text(value) for key, value in row.items() if not _is_table(value)})]
        for key, table in row.items():
            if _is_table(table):
                parts.append(Table(list(table[0]), [[_text(value) for value in row.values()] for row in table], key))
    return Answer(parts, rows, {"what": "systems", "system": config.name, **raw})


def _pairs(words: tuple[str, ...]) -> dict[str, str]:
    """Read ``--key value`` and ``--key=value``."""
    raw: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        key = flag.removeprefix("--").replace("-", "_")
        if not flag.startswith("--") or not key or key in raw:
            raise InputError(f"expected --key value, each once, got {word!r}")
        if key == "help":
            raw[key] = ""
            continue
        if not equals and (value := next(rest, "")) == "":
            raise InputError(f"{flag} needs a value")
        raw[key] = value
    return raw


def _is_table(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return "x".join(map(_text, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


COMMANDS = {
    "workload systems": Verb(
        WorkloadSystemsConfig, run, "model published training systems (KungFu, PipeDream, Gemini, ...) with parameters"
    ),
}
