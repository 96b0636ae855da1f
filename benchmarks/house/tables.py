"""Write the tables of the pages in docs from the registries, after proving what they claim.

python -m benchmarks.house.tables           proves, then writes
python -m benchmarks.house.tables --check   proves nothing, and fails when a row of a page is not what would be written

A new collective, topology, policy or strategy needs no change of a page: it stands in the built site, and in the page
after the next run.
"""

from __future__ import annotations

import argparse
import inspect
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import commsim.packets.aggregated.systems  # noqa: F401 - registers a collective for every switch system
from collectives import BLOCKING, COLLECTIVES
from commsim.core.network import Network
from commsim.core.operations import OPERATIONS
from commsim.core.placement import STRATEGIES
from commsim.core.registry import Entry, Registry
from commsim.core.spec import write_spec
from commsim.papers.systems import SYSTEMS
from commsim.placement.clusters.policy import POLICIES
from commsim.training.policies import TRAINING_POLICIES
from topologies import TOPOLOGIES
from topologies.hosts import HOST_TYPES

DOCS = Path(__file__).resolve().parents[2] / "docs"
BEGIN, END = (
    "<!-- python -m benchmarks.house.tables: begin {} -->",
    "<!-- python -m benchmarks.house.tables: end {} -->",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pages; 1 when they are not up to date and --check was given, or something is not as claimed."""
    parser = argparse.ArgumentParser(prog="benchmarks.house.tables", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, and say which page is out of date")
    args = parser.parse_args(argv)
    if not args.check:
        from .table_proofs import prove

        prove(print)
    if args.check:
        stale = [(path, row) for path in pages() for row in stale_rows(path)]
        for path, row in stale:
            print(f"{path.relative_to(DOCS.parent)}: out of date: {row}")
        return int(bool(stale))
    for path in pages():
        path.write_text(page(path), encoding="utf-8")
    return 0


def pages() -> tuple[Path, ...]:
    """Pages that hold generated tables."""
    return tuple(DOCS / f"{name}.md" for name in ("collectives", "topologies", "cluster", "placement", "workloads"))


def stale_rows(path: Path) -> list[str]:
    """Lines of a page that would not be written today; what the page lacks is no fault of it."""
    text = path.read_text(encoding="utf-8")
    fresh = set(filled(path.stem, text).splitlines())
    return [line for line in text.splitlines() if line not in fresh]


def page(path: Path) -> str:
    """Text of a page with its tables as they should be."""
    return filled(path.stem, path.read_text(encoding="utf-8"))


def filled(name: str, text: str) -> str:
    """Return the text of the page `name` with its tables as they should be; other pages are left as they are.

    Raises
    ------
    ValueError
        If the marks of a table are missing.
    """
    tables = {"collectives": [("collectives", collective_rows())]}
    tables["topologies"] = [("topologies", builder_rows(TOPOLOGIES)), ("host types", builder_rows(HOST_TYPES))]
    tables["cluster"] = [("policies", summary_rows(POLICIES))]
    tables["placement"] = [("strategies", summary_rows(STRATEGIES))]
    tables["workloads"] = [
        ("training policies", summary_rows(TRAINING_POLICIES)), ("training systems", summary_rows(SYSTEMS)),
    ]  # fmt: skip
    for table, rows in tables.get(name, []):
        begin, end = BEGIN.format(table), END.format(table)
        before, found, rest = text.partition(begin)
        _, ended, after = rest.partition(end)
        if not (found and ended):
            raise ValueError(f"{name}: the marks of the table {table!r} are missing")
        text = f"{before}{begin}\n{_markdown(rows)}\n{end}{after}"
    return text


def collective_rows() -> list[list[str]]:
    """Operation, algorithm, what it is, cost, and what it was checked against; the first row is the heading."""
    rows = [["operation", "algorithm", "what", "seconds", "order", "time on the flow engine", "run for real"]]
    by_operation = sorted(COLLECTIVES, key=lambda name: (list(OPERATIONS).index(_operation(name)), name))
    for name in by_operation:
        entry = COLLECTIVES[name]
        what, cost = split_summary(entry.summary)
        parameters = [key for key in entry.parameters if key not in ("n_ranks", BLOCKING)]
        given = f"<br>{', '.join(parameters)}" if parameters else ""
        time = "equal to 1e-9" if entry.metadata["cost"] else "between bounds" if entry.metadata["bounds"] else "-"
        rows.append([_operation(name), f"`{name}`{given}", what, f"`{cost}`" if cost else "-", "exact", time, "MPI"])
    return rows


def builder_rows(registry: Registry[Network]) -> list[list[str]]:
    """Name, parameters with their defaults, and what is returned, of every entry of a registry."""
    rows = [["name", "what", "parameters", "what is built"]]
    for name in registry:
        entry = registry[name]
        rows.append([f"`{name}`", entry.summary, ", ".join(_parameters(entry)), returns(entry)])
    return rows


def summary_rows(registry: Registry[Any]) -> list[list[str]]:
    """Name and summary of every entry of a registry, and its paper where it says one."""
    rows = [["name", "what", "paper"]]
    rows += [[f"`{name}`", registry[name].summary, registry[name].metadata.get("paper") or "-"] for name in registry]
    return rows if any(paper != "-" for *_, paper in rows[1:]) else [row[:2] for row in rows]


def split_summary(summary: str) -> tuple[str, str]:
    """Split the first line of a collective's docstring into what it is and its cost."""
    what, _, cost = summary.rstrip(".").partition(": ")
    for word in (", seconds", " seconds"):
        cost = cost.replace(word, "")
    return what, cost


def returns(entry: Entry[Any]) -> str:
    """Return what the docstring's section Returns says, on one line, without the type."""
    lines = (inspect.getdoc(entry.build) or "").splitlines()
    at = next((i for i, line in enumerate(lines) if line == "Returns"), None)
    if at is None:
        return "-"
    body = lines[at + 3 :]
    stop = next((i for i, line in enumerate(body[1:]) if set(line) == {"-"}), len(body))
    return " ".join(textwrap.dedent("\n".join(body[:stop])).split()).replace("``", "`")


def _operation(name: str) -> str:
    return str(COLLECTIVES[name].metadata["operation"])


def _parameters(entry: Entry[Any]) -> list[str]:
    """Parameters as they are written on a command line; those that must be given are bold."""
    out = []
    for key, parameter in entry.parameters.items():
        if parameter.default is parameter.empty:
            out.append(f"**{key}**")
        elif parameter.default is None:
            out.append(key)
        else:
            out.append(write_spec(entry.build, {key: parameter.default}).partition(":")[2])
    return out


def _markdown(rows: list[list[str]]) -> str:
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    rule = ["---"] * len(rows[0])
    return "\n".join(f"| {' | '.join(row)} |" for row in (cells[0], rule, *cells[1:]))


if __name__ == "__main__":
    sys.exit(main())
