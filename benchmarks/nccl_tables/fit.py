"""Fits the costs of NCCL's primitives and networks on the tables named here, for ``gpu_costs.toml``.

python -m benchmarks.nccl_tables.fit --data DIR [--asked DIR] [--only TEXT]

Rule of the choice: for a generation of GPUs, of the source with the most operations, one all-reduce on the whole
machine, one on two of its GPUs where there is one, one all-gather (or reduce-scatter), one exchange; for Blackwell
also NVLink SHARP with four heads, since eight do not tell what a head costs from what a loop costs; for a network,
the first healthy system of the index that has it, and of it one table (Slingshot: 8 and 32 machines; EFA that the CPU
copies for: one with Simple, and one of a release that no plugin kept from LL). InfiniBand and RoCE differ from operator
to operator: their hops are fitted on all healthy systems of machines with several GPUs whose tables depend on them,
tables with questions (`--asked`) among them, and operators count alike. Sizes count alike, residuals are logarithms,
large ones count linearly (soft L1 from 8 %). Parameters that no row depends on stay where they were.

What predictions of a system get without its tables: :mod:`benchmarks.nccl_tables.left_out`.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.nccl_tables.asked import operator_of, read_asked
from benchmarks.nccl_tables.machines import Table, read_tables
from commsim.nccl.gpu_costs import GpuCosts, Plugin, Primitives, costs
from commsim.nccl.plans.plan_nccl import NcclPlan
from commsim.nccl.prediction import predict
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import plan_of

TABLES = {
    "primitives.ampere": ("aic_a100_1x8_ag_2273", "aic_a100_1x2_ar_2273", "aic_a100_1x8_a2a_2273"),
    "primitives.hopper": (
        "aic_h100_1x8_ar_2292", "aic_h100_1x2_ar_2292", "aic_h100_1x8_ag_2292", "aic_h100_1x8_a2a_2292",
        "aws_p5_2x8_ar",
    ),
    "primitives.blackwell": (
        "aic_b200_1x8_ar_2275", "aic_b200_1x8_ag_2275", "aic_gb200_1x4_rs_2292", "aic_gb200_1x4_a2a_2292",
        "aic_b300_1x8_a2a_2292", "gb300_1x4_ar_nvls",
    ),
    "racks.blackwell": ("cw_gb200_18x4_ar",),
    "pcie.blackwell": ("aic_rtx_pro_6000_1x8_ar_2292", "aic_rtx_pro_6000_1x8_a2a_2292"),
    "plugin.infiniband": (
        "mn5_h100_4x4_ar_ring", "mn5_h100_4x4_ar_tree", "mn5_h100_16x4_ar_tree", "cw_a100_16x8_ar", "dell_h100_2x8_ar",
        "dell_h100_4x8_ar", "nebius_h100_2x8_ar", "lambda_b200_2x8_ar",
    ),
    "plugin.roce": ("oci_a100_2x8_ar_jp", "oci_a100_2x8_ar_oke", "gcp_h200_2x8_ag_sky", "gcp_h200_2x8_ag_pod"),
    "plugin.slingshot-2025": ("alps_gh200_8x4_ar", "alps_gh200_32x4_ar"),
    "plugin.efa": ("aws_p4de_2x8_ar",),
    "plugin.efa2": ("aws_p5_2x8_ar",),
    "plugin.efa_staged": ("aws_t4_2x1_efa_ar", "aws_p3dn_2x8_ar_ring"),
    "plugin.ena": ("aws_t4_2x1_tcp_ar",),
    "plugin.tcpx": ("gcp_h100_2x8_ag_tcpx",),
    "plugin.tcpxo": ("gcp_a3mega_2x8_ar", "gcp_h100_2x8_ag_tcpxo"),
}  # fmt: skip
# What is fitted of a network besides latencies and efficiencies.
MORE = {"slingshot-2025": ("announce",), "efa_staged": ("copy",), "ena": ("copy",)}
# What is not: of Simple over InfiniBand only rows of 512 MiB depend, so that NCCL's own 14 us stay (tuning.cc). RoCE's
# hop of Simple, posts and exchange are those that its one table of exchanges gave (rtx6000d_2x8_a2a_c1). Over
# sockets the CPU's copies bound a rank, long before the NIC; what TCP leaves of slow ports is measured (nccl_real.md).
# P5's large calls wait for NVLink SHARP and not for EFA, so that its NICs are taken whole. What the headers of
# InfiniBand, RoCE and Slingshot leave of a NIC is no fit. A loop of NVLink SHARP takes as many launches on Hopper as on
# Blackwell: no table of Hopper has fewer than eight heads.
LESS = {
    "infiniband": ("hop_simple", "efficiency", "ll_efficiency"),
    "roce": ("hop_simple", "efficiency", "ll_efficiency"), "efa2": ("efficiency",),
    "slingshot-2025": ("efficiency",), "ena": ("efficiency",), "hopper": ("nvls_loop",),
}  # fmt: skip
# What is fitted of racks.
RACKS_KEY = "nvls_crowded"
# Smallest size that a section is fitted on of a table: with NVLink SHARP every call of two P5 from there on. Calls of
# one machine have chunks of 64 KiB up to 512 MiB, which do not tell what a head costs from what a byte costs.
FROM = {("primitives.hopper", "aws_p5_2x8_ar"): 64 * 2**20}
# Largest size of a table of several machines that its hops are fitted on: beyond it links decide.
HOPS_TO, HOPS_OF = 2**20, ("plugin.infiniband", "plugin.roce")
PLAIN = ("hop_ll", "hop_ll128", "hop_simple", "efficiency", "ll_efficiency")
# Shares that are at most 1, besides efficiencies.
SHARES = ("exchange", RACKS_KEY)
STRENGTH, SOFT = 0.03, 0.08
# Largest change of a parameter, as a logarithm.
WIDEST = 5.0


def with_values(known: GpuCosts, section: str, values: Mapping[str, float]) -> GpuCosts:
    """Return the constants with some of a section replaced."""
    kind, name = section.split(".")
    if kind in ("primitives", "racks"):
        return replace(known, primitives={**known.primitives, name: replace(known.primitives[name], **values)})
    if kind == "plugin":
        plain: dict[str, Any] = dict(values)
        return replace(known, plugins={**known.plugins, name: replace(known.plugins[name], **plain)})
    return replace(known, pcie={**known.pcie, name: (values["efficiency"], values["ll_efficiency"])})


def values_of(known: GpuCosts, section: str) -> dict[str, float]:
    """Return what is fitted of a section."""
    kind, name = section.split(".")
    if kind == "racks":
        return {RACKS_KEY: getattr(known.primitives[name], RACKS_KEY)}
    if kind == "primitives":
        less = (*LESS.get(name, ()), RACKS_KEY)
        return {key: value for key, value in asdict(known.primitives[name]).items() if key not in less}
    if kind == "plugin":
        plugin = asdict(known.plugins[name])
        return {key: plugin[key] for key in (*PLAIN, *MORE.get(name, ())) if key not in LESS.get(name, ())}
    return dict(zip(("efficiency", "ll_efficiency"), known.pcie[name], strict=True))


def fit(known: GpuCosts, section: str, tables: Sequence[Table]) -> GpuCosts:
    """Fit a section on tables, from where it stands."""
    from scipy.optimize import least_squares  # takes a second to load

    start = values_of(known, section)

    def at(logs: NDArray[np.float64]) -> GpuCosts:
        return with_values(known, section, {k: v * math.exp(x) for (k, v), x in zip(start.items(), logs, strict=True)})

    rows = _rows_of(section, tables)

    def residuals(logs: NDArray[np.float64]) -> NDArray[np.float64]:
        there = at(logs)
        found = [
            weight * math.log(t.shown(predict(site, t.operation, size, t.algorithm, t.protocol, there).seconds) / time)
            for t, size, time, weight in rows if (site := t.site) is not None
        ]  # fmt: skip
        return np.array([*found, *(STRENGTH * logs)])

    # No efficiency above 1: what is beyond a link's rate is not a cost.
    most = [max(1e-3, -math.log(v)) if "efficiency" in k or k in SHARES else WIDEST for k, v in start.items()]
    bounds = ([-WIDEST] * len(start), most)
    return at(least_squares(residuals, np.zeros(len(start)), bounds=bounds, loss="soft_l1", f_scale=SOFT).x)


def _rows_of(section: str, tables: Sequence[Table]) -> list[tuple[Table, int, float, float]]:
    """Return table, bytes, seconds and weight of each row: where several operators are, these count alike."""
    upto = HOPS_TO if section in HOPS_OF else math.inf
    rows = [
        (table, size, time) for table in tables if table.site is not None for size, time in table.rows
        if FROM.get((section, table.id), 0) <= size <= upto
    ]  # fmt: skip
    of = Counter(operator_of(table.id) for table, _, _ in rows)
    return [
        (table, size, time, math.sqrt(len(rows) / len(of) / of[operator_of(table.id)])) for table, size, time in rows
    ]


def asked_tables(folder: Path) -> list[Table]:
    """Return tables of a folder with questions as tables of machines, where NCCL's machine is known."""
    found = []
    for asked in read_asked(folder):
        if asked.collective.startswith("nccl"):
            plan = plan_of(scenario_of(asked.collective, asked.topology, n_ranks=asked.n_ranks))
            assert isinstance(plan, NcclPlan)
            launch = plan.launch
            how, protocol = (str(launch.arguments.get(key, "")) for key in ("algorithm", "protocol"))
            site, healthy = launch.known_site, asked.healthy == "yes"
            found.append(
                Table(asked.id, asked.operation, how, protocol, site, healthy, True, asked.rows, asked.machine)
            )
    return found


class Without:
    """Constants in which an operator has no part, where several operators have one."""

    def __init__(self, tables: Sequence[Table], known: GpuCosts) -> None:
        self.known, self._by_id = known, {table.id: table for table in tables}
        self._of: dict[str, GpuCosts] = {}

    def of(self, operator: str) -> GpuCosts:
        """Return the constants, with the hops of its networks fitted on all other operators."""
        if operator not in self._of:
            there = self.known
            for section in HOPS_OF:
                others = [self._by_id[i] for i in TABLES[section] if operator_of(i) != operator]
                if len(others) < len(TABLES[section]):
                    there = fit(there, section, others)
            self._of[operator] = there
        return self._of[operator]


def has_hops_only(table: str) -> bool:
    """Whether nothing but the hops of a network that several operators have was fitted on a table."""
    return any(table in TABLES[section] for section in HOPS_OF)


def written(known: GpuCosts, section: str) -> list[str]:
    """Return the lines of a section as they stand in ``gpu_costs.toml``."""
    kind, _ = section.split(".")
    of_class = {"primitives": Primitives, "racks": Primitives, "plugin": Plugin}.get(kind)
    order = [field.name for field in fields(of_class)] if of_class else ["efficiency", "ll_efficiency"]
    lines = [f"[{section}]"]
    values = values_of(known, section)
    for key in order:
        if key in values:
            is_plain = key.endswith("efficiency") or key in SHARES
            is_rate = "rate" in key or key == "copy"
            unit, suffix = (1.0, "") if is_plain else (1e-9, "_GBps") if is_rate else (1e6, "_us")
            lines.append(f"{key}{suffix} = {values[key] * unit:.4g}")
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Print the fitted sections."""
    parser = argparse.ArgumentParser(prog="benchmarks.nccl_tables.fit", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", required=True, metavar="DIR", help="folder with index.csv and the tables")
    parser.add_argument("--asked", metavar="DIR", help="folder of tables with questions, for networks of operators")
    parser.add_argument("--only", default="", metavar="TEXT", help="fit only sections that have it in their name")
    flags = parser.parse_args(argv)
    tables = [*read_tables(Path(flags.data)), *(asked_tables(Path(flags.asked)) if flags.asked else ())]
    by_id = {table.id: table for table in tables}
    known = costs()
    for section, ids in TABLES.items():
        if flags.only not in section:
            continue
        known = fit(known, section, [by_id[i] for i in ids if i in by_id])
        print("\n".join([*written(known, section), f"fitted_on = {list(ids)}".replace("'", '"'), ""]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
