"""The table and the JSON rows of ``commsim switch simulate``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commsim.core.units import format_size, format_time
from commsim.report.answer import Table

if TYPE_CHECKING:
    from commsim.core.result import Result

COLUMNS = (
    "system",
    "workers",
    "pool",
    "loss",
    "size(B)",
    "time",
    "M elem/s",
    "of line rate",
    "resent",
    "drops",
    "exact",
)
GIVEN = ("size(B)", "pool", "workers", "loss")
LEAST = (*GIVEN, "M elem/s", "drops")
SERVER = "at server"  # a column more, where a system has a server


def table_of(cells_of_rows: Sequence[Sequence[str]], rows: Sequence[dict[str, Any]], size: str) -> Table:
    """Return the table; a narrow terminal shows what was varied.

    Parameters
    ----------
    cells_of_rows : sequence of sequence of str
        What :func:`cells` returns of each result.
    rows : sequence of dict
        JSON rows.
    size : str
        Size of a worker's tensor, as it was given.
    """
    columns = COLUMNS if len(cells_of_rows[0]) == len(COLUMNS) else (*COLUMNS[:-1], SERVER, COLUMNS[-1])
    varying = {name for name, *values in zip(columns, *cells_of_rows, strict=True) if len(set(values)) > 1}
    networks = list(dict.fromkeys(row["network"] for row in rows))
    where = networks[0] if len(networks) == 1 else f"{networks[0]} to {networks[-1]}"
    least = sorted(LEAST, key=lambda name: (name in varying, name in GIVEN))
    return Table(columns, cells_of_rows, f"packets of {size} on {where}", least)


def row(result: Result, point: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON row of the contract of `commsim switch simulate`."""
    counters = dict(result.counters)
    exact = bool(counters["exact"]) if "exact" in counters else None
    contract = {name: int(counters[name]) for name in ("elements", "retransmissions", "duplicates", "drops", "events")}
    rates = {name: counters[name] for name in ("elements_per_s", "line_rate_elements_per_s", "cpu_s")}
    more = {"exact": exact, "packet_hops": int(counters["packet_hops"])}
    more |= {name: int(counters[name]) for name in ("server_bytes",) if name in counters}
    return result.row() | point | contract | rates | more


def cells(result: Result, point: dict[str, Any], pool_size: int) -> tuple[str, ...]:
    """Return the cells of a result; one more where there is a server. The pool is that of the system that ran."""
    c = result.counters
    exact = {None: "-", 0.0: "NO", 1.0: "yes"}[c.get("exact")]
    return (
        result.collective,
        str(result.n_ranks),
        str(pool_size),
        f"{point['loss']:g}",
        f"{result.size:.0f}",
        f"{result.time * 1e3:.4f} ms",
        f"{c['elements_per_s'] / 1e6:.1f}",
        f"{c['elements_per_s'] / c['line_rate_elements_per_s']:.2%}",
        f"{c['retransmissions']:.0f}",
        f"{c['drops']:.0f}",
        *((format_size(c["server_bytes"]),) if "server_bytes" in c else ()),
        exact,
    )


def why_above(rows: list[dict[str, Any]]) -> list[str]:
    """Say why elements come faster than a link carries all of them, where they do: zeros are not sent."""
    if all(row["elements_per_s"] <= row["line_rate_elements_per_s"] for row in rows):
        return []
    return ["of line rate: elements of the result over those that a link carries when all are sent; above 100 % since "
            "blocks of zeros are counted, and not sent"]  # fmt: skip


def why_slow(rto: str | None, rows: list[dict[str, Any]]) -> list[str]:
    """Say after which time packets are sent again, where some were.

    Parameters
    ----------
    rto : str, optional
        Flag that sets the time.
    rows : list of dict
        JSON rows.
    """
    times = sorted({row["rto_s"] for row in rows if row["retransmissions"] and row["rto_s"] is not None})
    if not times:
        return []
    what = "--rto" if rto else "the system's own; --rto changes it, and what a loss costs"
    return [f"a packet without an answer is sent again after {' or '.join(map(format_time, times))}: {what}"]
