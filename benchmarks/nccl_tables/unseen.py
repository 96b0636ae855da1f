"""Errors of operators left out: rows whose GPU's and network's constants were fitted on tables of other operators only.

Of both forms of tables. An operator is out of a table's constants if none of the tables that they were fitted on is
its own (:data:`benchmarks.nccl_tables.fit.TABLES`). Hops of networks that were fitted on several operators are fitted
again without the table's own. Tables of the pace of hosts and RCCL's are not counted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.nccl_tables.asked import operator_of, predicted_rows
from benchmarks.nccl_tables.fit import HOPS_OF, TABLES, Without, asked_tables, has_hops_only
from benchmarks.nccl_tables.machines import Table, read_tables
from benchmarks.nccl_tables.peaks import read_peaks
from benchmarks.nccl_tables.rows import LARGE, usable
from commsim.nccl.gpu_costs import costs
from commsim.nccl.intervals import CLOUD, DOMAIN, NODE, RACKS, RANKS_OF_A_MACHINE, kind_of
from commsim.nccl.prediction import predict
from commsim.nccl.site import Site

# Kinds of machines in words, and the one that most users have.
WORDS = {
    NODE: "one machine", DOMAIN: "one NVLink domain", "infiniband": "several machines, InfiniBand",
    "roce": "several machines, RoCE", CLOUD: "several machines, transports of clouds",
    "slingshot": "several machines, Slingshot", RACKS: "several NVLink domains, joined by a network",
}  # fmt: skip
EIGHT = "several machines of 8 H100 or H200, InfiniBand or RoCE"
PEAKS = "largest rates of 60 shapes of H100 on RoCE"
Row = tuple[str, int, float]  # class, bytes, relative error


def unseen(measured: Path, asked: Path) -> Iterator[Row]:
    """Yield the rows of operators left out, each once for each class that it is in.

    Parameters
    ----------
    measured, asked : Path
        Folders of the two forms of tables.
    """
    tables, questions = read_tables(measured), asked_tables(asked)
    without = Without([*tables, *questions], costs())
    yield from _of_tables([*tables, *questions], without)
    for row in predicted_rows(read_peaks(asked))[0]:
        yield PEAKS, row["bytes"], row["predicted"] / row["measured"] - 1


def _of_tables(tables: Iterable[Table], without: Without) -> Iterator[Row]:
    known = without.known
    for t in tables:
        if t.site is None or not t.healthy or usable(t, known) or not is_out(t.id, t.site):
            continue
        if t.is_fitted(known) and not has_hops_only(t.id):
            continue
        there = without.of(operator_of(t.id))
        for size, time in t.rows:
            if size >= t.trusted_from:
                ours = t.shown(predict(t.site, t.operation, size, t.algorithm, t.protocol, there).seconds)
                yield from ((name, size, ours / time - 1) for name in classes_of(t.site))


def is_out(table: str, site: Site) -> bool:
    """Whether none of the constants of a table's GPU and network was fitted on its operator.

    Parameters
    ----------
    table : str
        Name of the table.
    site : Site
        Where it was measured.
    """
    sections = {f"{'pcie' if site.pcie else 'primitives'}.{site.setting.gpu}", f"primitives.{site.setting.gpu}"}
    if site.network:  # software of another year has constants of the same tables
        sections |= {section for section in TABLES if _without_year(section) == f"plugin.{_without_year(site.network)}"}
    if site.setting.n_ranks > RANKS_OF_A_MACHINE * site.setting.n_nodes:
        sections.add(f"racks.{site.setting.gpu}")
    sections -= set(HOPS_OF)  # these are fitted again
    return operator_of(table) not in {operator_of(name) for section in sections for name in TABLES.get(section, ())}


def _without_year(name: str) -> str:
    return name.partition("-")[0]


def classes_of(site: Site) -> list[str]:
    """Return the classes of a table by where it was measured."""
    where = site.setting
    name = kind_of(where.n_ranks, where.n_nodes, site.network, "ring")
    is_usual = where.n_nodes > 1 and where.n_ranks == 8 * where.n_nodes and where.gpu == "hopper"
    return [WORDS.get(name, name)] + [EIGHT] * (is_usual and site.network in ("infiniband", "roce"))


def by_size(rows: Iterable[Row]) -> dict[str, list[float]]:
    """Return the errors of each class, from 1 MiB and below."""
    found: dict[str, list[float]] = {}
    for name, size, error in rows:
        found.setdefault(f"{name}, {'from 1 MiB' if size >= LARGE else 'below'}", []).append(error)
    order = [f"{name}, {part}" for name in (EIGHT, *WORDS.values(), PEAKS) for part in ("from 1 MiB", "below")]
    return {name: found[name] for name in order if name in found}
