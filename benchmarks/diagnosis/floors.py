"""False alarms of floors on operators left out, asked and got; and floors that vendors publish beside ours.

python -m benchmarks.diagnosis.floors --data DIR [--data DIR] [--published FILE]

Each operator's healthy tables (that no cost was fitted on) are held against floors that all other operators give:
their distributions are found again without it. A size is a false alarm where its time is above the floor
of the rate that was asked for; a log where the middle of its sizes of one class is, as
``commsim expect --from`` judges it.
The shares are those of all sizes or logs, and those of each operator with the same weight, as of one that nothing is
known of.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import commsim as cs
from benchmarks.nccl_tables.error_shape import Score, each_left_out, errors_at, middles_of
from benchmarks.nccl_tables.intervals import all_scores
from commsim.core.errors import InputError
from commsim.diagnosis.check_log import ALARMS
from commsim.nccl.error_model import SEVERAL, Classes, error_class
from commsim.report.terminal import print_table

RATES = (0.01, 0.05, 0.1)
# Machines of the published floors by their names, the first that matches.
MACHINES = (
    (r"V100", ""), (r"nic loopback|nic only|plain tcp|efa only|per \d+g nic|ring|nvl,|a100 pcie", ""),
    (r"p4d", "p4d"), (r"p5[^e]|p5\.|^p5$|\(p5", "p5"), (r"p5en?|a3.ultra|p6-|GB200", ""),
    (r"a3.high", "a3-high"), (r"a3.mega", "a3-mega"), (r"a4-high", "a4-high"),
    (r"BM.GPU4.8|BM.GPU.B4.8", "oci-a100"), (r"ND.*H100|AKS \(ND v5", "ndv5"), (r"ND96.*A100|NDv4", "ndv4"),
    (r"MI300X", "mi300x"), (r"MI355X", "mi355x"), (r"A800", ""), (r"8 x A100|A100-v2", "hgx-a100"),
    (r"B300", "hgx-b300"), (r"B200", "hgx-b200"), (r"H200", "hgx-h200"), (r"8 x H100|GPU.H100|H100 SXM", "hgx-h100"),
)  # fmt: skip
RACK = r"GB200.*(one rack|NVLink domain|NVL72 domain)"
RACK_OF_72, LARGE = "gb200-nvl72", "16G"


class LeftOutRow(NamedTuple):
    """A size or a log of an operator left out, and which share of healthy ones would be slower."""

    operator: str
    table: str
    share: float


class Published(NamedTuple):
    """A published bus bandwidth in GB/s, and the machines and sizes that it is for."""

    machine: str
    what: str
    network: str
    operation: str
    size: str
    value: float
    source: str
    n_ranks: int | None = None


def left_out(scores: Sequence[Score]) -> tuple[list[LeftOutRow], list[LeftOutRow]]:
    """Return each size, and each log, with its share by the errors of the other operators."""
    rows, logs = list[LeftOutRow](), list[LeftOutRow]()
    for own, classes in each_left_out(scores):
        rows += [
            LeftOutRow(s.operator, s.table, errors_at(classes, s).share_slower(s.log)) for s in own
        ]  # fmt: skip
        logs += _logs(own, classes)
    return rows, logs


def _logs(rows: Sequence[Score], classes: Classes) -> list[LeftOutRow]:
    """Return each log with the rate of false alarms from which on it is one, as ``check_log`` judges it."""
    n_sizes = Counter((row.table, error_class(row.n_bytes)) for row in rows)
    rates = defaultdict[tuple[str, str], list[float]](list)
    for one in middles_of(rows):
        sizes = error_class(one.n_bytes)
        what = "middles" if n_sizes[one.table, sizes] >= SEVERAL else "rows"
        rates[one.operator, one.table].append(errors_at(classes, one, what).share_slower(one.log) / ALARMS[sizes])
    return [LeftOutRow(*names, min(own)) for names, own in rates.items()]


def false_alarms(rows: Sequence[LeftOutRow], rate: float) -> tuple[float, float]:
    """Return the share of rows below a floor: of all, and with the same weight for each operator."""
    n_rows = Counter(row.operator for row in rows)
    weights = np.array([1 / n_rows[row.operator] for row in rows])
    alarms = np.array([row.share < rate for row in rows])
    return float(alarms.mean()), float((weights * alarms).sum() / weights.sum())


def read_published(path: Path) -> list[Published]:
    """Read published floors; machines, operations and sizes that are not known here are left out."""
    found = []
    with path.open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            network, operation = network_of(line["machine"], line["nodes"]), line["op"]
            if network and operation in ("all_reduce", "all_gather", "reduce_scatter"):
                found.append(Published(
                    line["machine"], line["floor_or_expected"].partition(" ")[0], network, operation,
                    size_of(line["size"]), float(line["value_GBps"]), line["source"],
                    int(line["gpus"]) if network == RACK_OF_72 else None,
                ))  # fmt: skip
    return found


def network_of(machine: str, nodes: str) -> str:
    """Return the network of published words, or "" where we do not have the machine."""
    n_nodes = int(re.match(r"\d*", nodes)[0] or 0)  # type: ignore[index]
    if re.search(RACK, machine):
        return RACK_OF_72
    name = next((name for words, name in MACHINES if re.search(words, machine, re.IGNORECASE)), "")
    if not name or not n_nodes:
        return ""
    return name if n_nodes == 1 else f"{name}@star:machines={n_nodes}"


def size_of(text: str) -> str:
    """Return one size of published words: the largest that they name."""
    named = re.findall(r"\d+[GM]", text)
    return f"{named[-1]}iB" if named else f"{LARGE}iB"


def beside_ours(published: Iterable[Published], rate: float) -> list[list[str]]:
    """Return rows of a table: published, our expectation, interval and floor, and which is above."""
    rows = []
    for one in published:
        try:
            (ours,) = cs.expect(
                one.network, [one.operation], [one.size], n_ranks=one.n_ranks, false_alarms=rate
            ).sizes  # fmt: skip
        except InputError as error:
            rows.append([one.machine, one.what, one.operation, one.size, f"{one.value:g}", "-", "-", "-", str(error)])
            continue
        verdict = "above what is expected" if one.value * 1e9 > ours.high else ""
        if one.what == "floor" and one.value * 1e9 < ours.floor / 1.5:
            verdict = "far below ours"
        rates = [f"{rate / 1e9:.0f}" for rate in (ours.busbw, ours.low, ours.floor)]
        rows.append([one.machine, one.what, one.operation, one.size, f"{one.value:g}", *rates, verdict])
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="benchmarks.diagnosis.floors", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", action="append", default=[], metavar="DIR", help="folder of tables; repeatable")
    parser.add_argument("--published", metavar="FILE", help="CSV of published floors")
    flags = parser.parse_args(argv)
    if flags.data:
        rows, logs = left_out(all_scores(map(Path, flags.data)))
        shares = [
            [f"{rate:.0%}", *(f"{share:.1%}" for what in (rows, logs) for share in false_alarms(what, rate))]
            for rate in RATES
        ]
        n_operators = len({row.operator for row in rows})
        title = f"false alarms on {n_operators} operators left out: {len(rows)} sizes, {len(logs)} logs"
        print_table(["asked", "sizes", "each operator alike", "logs", "each operator alike "], shares, title)
    if flags.published:
        columns = ["machine", "published", "operation", "size", "GB/s", "expected", "low", "floor 1%", ""]
        print_table(columns, beside_ours(read_published(Path(flags.published)), 0.01), "published beside ours")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
