"""``commsim workload systems``: published training systems, each as a function of its parameters."""

from __future__ import annotations

import argparse
from typing import Any

from commsim.core.errors import InputError
from commsim.report.table import print_facts, print_table, write_results, write_rows

from ..flags import WithJson, flag


class Config(WithJson):
    """All flags of ``commsim workload systems``."""

    name: str | None = flag("name", nargs="?", metavar="NAME", help="system to run (default: list all of them)")
    parameters: tuple[str, ...] = flag(
        "parameters", default=(), nargs=argparse.REMAINDER, metavar="--key value",
        help="parameters of the system; --help lists them",
    )  # fmt: skip


def run(config: Config) -> None:
    """List the systems, or run one."""
    from commsim.workload.systems import SYSTEMS, run_system

    raw = _pairs(config.parameters)
    path, lines = raw.pop("json", config.json), raw.pop("csv", config.csv)
    if config.name is None:
        rows: list[dict[str, Any]] = [
            {"system": name, "parameters": list(SYSTEMS[name].parameters), "summary": SYSTEMS[name].summary,
             "paper": SYSTEMS[name].metadata["paper"]} for name in SYSTEMS
        ]  # fmt: skip
        for row in rows:
            print(f"{row['system']}\n    {row['summary']}\n    {row['paper']}")
    elif "help" in raw:
        entry = SYSTEMS[config.name]
        print(f"{entry.summary}\n{entry.metadata['paper']}\n")
        print_facts({f"--{key.replace('_', '-')}": f"{p.annotation}, {_text(p.default)} by default"
                     for key, p in entry.parameters.items()})  # fmt: skip
        return
    else:
        answer = run_system(config.name, raw)
        rows = [{"system": config.name, **answer}]
        print_facts({key: _text(value) for key, value in answer.items() if not _is_table(value)})
        for key, table in answer.items():
            if _is_table(table):
                print_table(list(table[0]), [[_text(value) for value in row.values()] for row in table], key)
    if path:
        write_results(path, {"what": "systems", "system": config.name, **raw}, rows)
    if lines:
        write_rows(lines, rows)


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
