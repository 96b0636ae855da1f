"""The table and the JSON rows of ``commsim switch simulate``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.core.units import format_size, format_time
from commsim.report.answer import Table

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.core.result import Result
    from commsim.packets.aggregated.packet_job import AggregationJob
    from switch_model.system import System

COLUMNS = (
    "system",
    "workers",
    "pool",
    "loss",
    "size(B)",
    "time",
    "M elem/s",
    "Gb/s",
    "of line rate",
    "limited by",
    "resent",
    "drops",
    "exact",
)
GIVEN = ("size(B)", "pool", "workers", "loss")
LEAST = (*GIVEN, "M elem/s", "Gb/s", "system", "drops", "resent")
# What explains a time, without losses, takes at least this part of it beside one round trip.
EXPLAINED = 0.9
# A column more, where a system has a server, and where there are several jobs.
SERVER, JOB = "at server", "job"
# And one where the rate of the star's links varies.
RATE = "bandwidth"


def table_of(
    cells_of_rows: Sequence[Sequence[str]], rows: Sequence[dict[str, Any]], size: str, *, has_rates: bool
) -> Table:
    """Return the table; a narrow terminal shows what was varied.

    Parameters
    ----------
    cells_of_rows : sequence of sequence of str
        What :func:`cells` returns of each result.
    rows : sequence of dict
        JSON rows.
    size : str
        Size of a worker's tensor, as it was given.
    has_rates : bool
        Whether cells have the rate of links.
    """
    columns: tuple[str, ...] = COLUMNS
    if any("server_bytes" in row for row in rows):
        columns = (*COLUMNS[:-1], SERVER, COLUMNS[-1])
    if has_rates:
        at = columns.index("loss") + 1
        columns = (*columns[:at], RATE, *columns[at:])
    columns = columns if len(cells_of_rows[0]) == len(columns) else (COLUMNS[0], JOB, *columns[1:])
    varying = {name for name, *values in zip(columns, *cells_of_rows, strict=True) if len(set(values)) > 1}
    networks = list(dict.fromkeys(row["network"] for row in rows))
    where = networks[0] if len(networks) == 1 else f"{networks[0]} to {networks[-1]}"
    given = {*GIVEN, RATE, *({"Gb/s"} - varying)}  # of several rows the share of the line rate says what the rate does
    names = (*LEAST, RATE) if has_rates else LEAST
    least = tuple(sorted(names, key=lambda name: (name in {*varying, "system"}, name in given)))
    return Table(columns, cells_of_rows, f"packets of {size} on {where}", least)


def row(result: Result, point: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON row of the contract of `commsim switch simulate`."""
    counters = dict(result.counters)
    exact = bool(counters["exact"]) if "exact" in counters else None
    contract = {name: int(counters[name]) for name in ("elements", "retransmissions", "duplicates", "drops", "events")}
    rates = {name: counters[name] for name in ("elements_per_s", "line_rate_elements_per_s", "cpu_s")}
    more = {"exact": exact, "packet_hops": int(counters["packet_hops"])}
    more |= {name: int(counters[name]) for name in ("server_bytes",) if name in counters}
    values = {name: value for name, value in point.items() if name != RATE}  # the network says it, in bytes/s
    return result.row() | values | contract | rates | more


def what_limits(network: Network, jobs: Sequence[AggregationJob], results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return what limits each of several jobs, and the packets that one of its workers sends a second.

    The bounds are those of :func:`switch_model.bounds.limits`; that of links is of the bytes of all jobs.

    Parameters
    ----------
    network : Network
        Network.
    jobs, results : sequence of AggregationJob and of Result
        Jobs that ran at once, and what they took.
    """
    from commsim.packets.aggregated.switch_system import round_trip
    from switch_model.bounds import limits

    busy, found = np.sum([result.link_bytes for result in results], axis=0) / network.bandwidth, []
    for job, result in zip(jobs, results, strict=True):
        system, trip = job.system, round_trip(job.system, network, job.trees)
        elements = result.counters["elements"] if job.rounds is None else len(job.rounds.block) * system.elements
        fan_in = max(max(tree.fan_in) for tree in job.trees)
        rates = limits(system, float(network.bandwidth.min()), trip, fan_in)
        took = {name: elements / rate for name, rate in rates.items()}
        took["adders"] = took.get("adders", 0.0) / len(job.trees)
        took |= {"link": float(busy[result.link_bytes > 0].max(initial=0.0)), "latency": trip + system.host_latency}
        name = max(took, key=lambda name: took[name])
        if result.counters["retransmissions"] and took[name] + took["latency"] < EXPLAINED * result.time:
            name = "losses"
        rate = elements / system.elements / result.time if result.time else 0.0
        found.append({"limited_by": name, "packets_per_s": rate})
    return found


def about_limits(rows: Sequence[dict[str, Any]], system: System) -> list[str]:
    """Say what part of a link that limits is headers, and which rate of packets hosts are taken to reach."""
    headers = 1 - system.payload * system.packets_per_message / system.message_bytes
    rates = sorted({row["packets_per_s"] / 1e6 for row in rows})
    lines = [f"link: {headers:.0%} of the bytes of a packet are headers"] * any(r["limited_by"] == "link" for r in rows)
    span = f"{rates[-1]:.3g} M" if len(rates) == 1 else f"up to {rates[-1]:.3g} M"
    return [*lines, f"hosts take no time per packet here: a worker sends and receives {span} packets/s"]


def cells(
    result: Result,
    point: dict[str, Any],
    pool_size: int,
    limited_by: str,
    job: int | None = None,
    rate: str | None = None,
) -> tuple[str, ...]:
    """Return the cells of a result, whose pool is the system's.

    There is one more for a server, for the number of a job, and for the rate of links where that is given.
    """
    c = result.counters
    exact = {None: "-", 0.0: "NO", 1.0: "yes"}[c.get("exact")]
    return (
        result.collective,
        *(() if job is None else (f"{job}",)),
        str(result.n_ranks),
        str(pool_size),
        f"{point['loss']:g}",
        *(() if rate is None else (rate,)),
        f"{result.size:.0f}",
        f"{result.time * 1e3:.4f} ms",
        f"{c['elements_per_s'] / 1e6:.1f}",
        f"{8 * result.size / result.time / 1e9:.2f}" if result.time else "-",
        f"{c['elements_per_s'] / c['line_rate_elements_per_s']:.2%}",
        limited_by,
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


def about_slots(system: System, n_jobs: int) -> list[str]:
    """Say whose the slots are, what memory they take, and what becomes of packets that find theirs taken."""
    lines = []
    if system.versions > 1:
        lines.append(
            f"{system.name}: a pool of {system.pool_size} slots has {system.versions} versions of each, and takes the "
            f"memory of {system.versions * system.pool_size}"
        )
    if n_jobs > 1:
        whose = "are shared by all jobs" if system.shared else "are each job's own"
        lines.append(f"{system.name}: its {system.pool_size} slots {whose}")
    if system.server:
        lines.append(
            "at server: bytes that came to the parameter server, of sums and of packets that found their slot taken, "
            "which it adds itself"
        )
    return lines


def about_pools(unfilled: Collection[int], system: System, n_jobs: int) -> list[str]:
    """Say that pools of more slots than a worker's window are not the limit; several jobs may fill them together."""
    if not unfilled or n_jobs > 1:
        return []
    least, most = min(unfilled), max(unfilled)
    pools = f"{least}" if least == most else f"{least} to {most}"
    return [
        f"{system.name}: not limited by a pool of {pools} slots: a worker has at most {system.window} packets under "
        "way (--window)"
    ]


def why_slow(rto: str | None, rows: list[dict[str, Any]], system: System) -> list[str]:
    """Say after which time packets are sent again, where some were, and how many of them a loss costs.

    Parameters
    ----------
    rto : str, optional
        Flag that sets the time.
    rows : list of dict
        JSON rows.
    system : System
        System of the last row.
    """
    lost = [row for row in rows if row["retransmissions"] and row["rto_s"] is not None]
    times = sorted({row["rto_s"] for row in lost})
    if not times:
        return []
    what = ": --rto" if rto else "; --rto changes it and what a loss costs"
    lines = [f"a packet without an answer is sent again after {' or '.join(map(format_time, times))}{what}"]
    drops = sum(row["drops"] for row in lost)
    if drops and system.packets_per_message > 1:
        n, workers = system.packets_per_message, max(row["workers"] for row in lost)
        lines.append(
            f"a loss repeats the message, {n} packets, at each worker that waits for it (up to {n * workers}), and "
            "again where the next message of the slot waits behind it until its timers run out: here "
            f"{sum(row['retransmissions'] for row in lost) / drops:.3g} packets a loss"
        )
    return lines
