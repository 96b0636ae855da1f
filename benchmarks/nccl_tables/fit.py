"""Fits the costs of NCCL's primitives and networks on the tables named here, for ``gpu_costs.toml``.

python -m benchmarks.nccl_tables.fit --data DIR [--left-out]

Rule of the choice: for a generation of GPUs, of the source with the most operations, one all-reduce on the whole
machine, one on two of its GPUs where there is one, one all-gather (or reduce-scatter), one exchange; for Blackwell
also NVLink SHARP with four heads, since eight do not tell what a head costs from what a loop costs; for a network,
the first healthy system of the index that has it, and of it one table (InfiniBand: a ring on 4 machines, and a tree
on 4 and on 16; Slingshot: 8 and 32 machines). Sizes count alike, residuals are logarithms, large ones count linearly
(soft L1 from 8 %). Parameters that no row depends on stay where they were.

``--left-out`` fits a generation on the tables of all other sources instead, and says what the left-out ones then get.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from benchmarks.nccl_tables.command import Group, group, rows_of, usable
from benchmarks.nccl_tables.machines import Table, read_tables
from commsim.software.nccl.gpu_costs import LARGE, Costs, Plugin, Primitives, costs
from commsim.software.nccl.prediction import predict

TABLES = {
    "primitives.ampere": ("aic_a100_1x8_ag_2273", "aic_a100_1x2_ar_2273", "aic_a100_1x8_a2a_2273"),
    "primitives.hopper": (
        "aic_h100_1x8_ar_2292", "aic_h100_1x2_ar_2292", "aic_h100_1x8_ag_2292", "aic_h100_1x8_a2a_2292",
    ),
    "primitives.blackwell": (
        "aic_b200_1x8_ar_2275", "aic_b200_1x8_ag_2275", "aic_gb200_1x4_rs_2292", "aic_gb200_1x4_a2a_2292",
        "gb300_1x4_ar_nvls",
    ),
    "pcie.blackwell": ("aic_rtx_pro_6000_1x8_ar_2292",),
    "plugin.infiniband": ("mn5_h100_4x4_ar_ring", "mn5_h100_4x4_ar_tree", "mn5_h100_16x4_ar_tree"),
    "plugin.roce": ("rtx6000d_2x8_a2a_c1",),
    "plugin.slingshot": ("alps_gh200_8x4_ar", "alps_gh200_32x4_ar"),
    "plugin.efa": ("aws_p4de_2x8_ar",),
    "plugin.efa2": ("aws_p5_2x8_ar",),
    "plugin.efa_staged": ("aws_t4_2x1_efa_ar",),
    "plugin.sockets": ("aws_t4_2x1_tcp_ar",),
    "plugin.tcpx": ("gcp_a3_2x8_ar_tcpx",),
    "plugin.tcpxo": ("gcp_a3mega_2x8_ar",),
}  # fmt: skip
# What is fitted of a network besides latencies and efficiencies.
MORE = {"slingshot": ("announce",), "roce": ("post",), "efa_staged": ("copy",)}
# What is not: of Simple over InfiniBand only rows of 512 MiB depend, so that NCCL's own 14 us stay (tuning.cc).
LESS = {"infiniband": ("hop_simple",)}
PLAIN = ("hop_ll", "hop_ll128", "hop_simple", "efficiency", "ll_efficiency")
STRENGTH, SOFT = 0.03, 0.08
# Largest change of a parameter, as a logarithm.
WIDEST = 5.0


def with_values(known: Costs, section: str, values: Mapping[str, float]) -> Costs:
    """Return the constants with some of a section replaced."""
    kind, name = section.split(".")
    if kind == "primitives":
        return replace(known, primitives={**known.primitives, name: replace(known.primitives[name], **values)})
    if kind == "plugin":
        plain: dict[str, Any] = dict(values)
        return replace(known, plugins={**known.plugins, name: replace(known.plugins[name], **plain)})
    return replace(known, pcie={**known.pcie, name: (values["efficiency"], values["ll_efficiency"])})


def values_of(known: Costs, section: str) -> dict[str, float]:
    """Return what is fitted of a section."""
    kind, name = section.split(".")
    if kind == "primitives":
        return asdict(known.primitives[name])
    if kind == "plugin":
        plugin = asdict(known.plugins[name])
        return {key: plugin[key] for key in (*PLAIN, *MORE.get(name, ())) if key not in LESS.get(name, ())}
    return dict(zip(("efficiency", "ll_efficiency"), known.pcie[name], strict=True))


def fit(known: Costs, section: str, tables: Sequence[Table]) -> Costs:
    """Fit a section on tables, from where it stands."""
    start = values_of(known, section)

    def at(logs: NDArray[np.float64]) -> Costs:
        return with_values(known, section, {k: v * math.exp(x) for (k, v), x in zip(start.items(), logs, strict=True)})

    def residuals(logs: NDArray[np.float64]) -> NDArray[np.float64]:
        there = at(logs)
        found = [
            math.log(predict(t.site, t.operation, size, t.algorithm, t.protocol, there).seconds / time)
            for t in tables if t.site is not None for size, time in t.rows
        ]  # fmt: skip
        return np.array([*found, *(STRENGTH * logs)])

    # No efficiency above 1: what is beyond a link's rate is not a cost.
    most = [max(1e-3, -math.log(v)) if "efficiency" in k else WIDEST for k, v in start.items()]
    bounds = ([-WIDEST] * len(start), most)
    return at(least_squares(residuals, np.zeros(len(start)), bounds=bounds, loss="soft_l1", f_scale=SOFT).x)


def spread(known: Costs, tables: Sequence[Table]) -> dict[tuple[str, bool], tuple[float, float]]:
    """Return the 10th and 90th percentile of measured over predicted time, by generation and size class.

    Only healthy tables with known version and NICs that nothing was fitted on count.
    """
    found: dict[tuple[str, bool], list[float]] = {}
    for t in tables:
        if t.site is not None and t.healthy and t.is_known and t.id not in known.fitted_on and not usable(t, known):
            for size, time in t.rows:
                ours = predict(t.site, t.operation, size, t.algorithm, t.protocol, known).seconds
                found.setdefault((t.site.setting.gpu, size >= LARGE), []).append(time / ours)
    return {key: (float(np.percentile(some, 10)), float(np.percentile(some, 90))) for key, some in found.items()}


def written(known: Costs, section: str) -> list[str]:
    """Return the lines of a section as they stand in ``gpu_costs.toml``."""
    kind, _ = section.split(".")
    of_class = {"primitives": Primitives, "plugin": Plugin}.get(kind)
    order = [field.name for field in fields(of_class)] if of_class else ["efficiency", "ll_efficiency"]
    lines = [f"[{section}]"]
    values = values_of(known, section)
    for key in order:
        if key in values:
            is_plain = key.endswith("efficiency")
            is_rate = "rate" in key or key == "copy"
            unit, suffix = (1.0, "") if is_plain else (1e-9, "_GBps") if is_rate else (1e6, "_us")
            lines.append(f"{key}{suffix} = {values[key] * unit:.4g}")
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Print the fitted sections, or what left-out sources get."""
    parser = argparse.ArgumentParser(prog="benchmarks.nccl_tables.fit", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", required=True, metavar="DIR", help="folder with index.csv and the tables")
    parser.add_argument("--only", default="", metavar="TEXT", help="fit only sections that have it in their name")
    parser.add_argument("--left-out", action="store_true", help="fit on other sources, and say what the rest gets")
    flags = parser.parse_args(argv)
    tables = read_tables(Path(flags.data))
    if flags.left_out:
        _left_out(tables, flags.only)
        return 0
    by_id = {table.id: table for table in tables}
    known = costs()
    for section, ids in TABLES.items():
        if flags.only not in section:
            continue
        known = fit(known, section, [by_id[i] for i in ids])
        print("\n".join([*written(known, section), f"fitted_on = {list(ids)}".replace("'", '"'), ""]))
    known = replace(known, fitted_on=tuple(i for ids in TABLES.values() for i in ids))
    for gpu in known.primitives:
        pairs = {large: pair for (name, large), pair in spread(known, tables).items() if name == gpu}
        if pairs:
            print(f"[spread.{gpu}]")
            print("\n".join(f"{'large' if k else 'small'} = [{v[0]:.3f}, {v[1]:.3f}]" for k, v in pairs.items()) + "\n")
    return 0


def _left_out(tables: Sequence[Table], only: str) -> None:
    """For each generation and source with tables on one machine: fit without the source, then predict it."""
    known = costs()
    for gpu in (name for name in ("ampere", "hopper", "blackwell") if only in f"primitives.{name}"):
        alone = [t for t in tables if t.site is not None and t.healthy and t.site.setting.gpu == gpu
                 and t.site.setting.n_nodes == 1 and t.site.p2p and not t.site.pcie]  # fmt: skip
        for system in dict.fromkeys(t.system for t in alone):
            others = [replace(t, rows=tuple(r for r in t.rows if r[0] >= LARGE or "vidur" not in t.id))
                      for t in alone if t.system != system]  # fmt: skip
            if not others:
                continue
            there = fit(known, f"primitives.{gpu}", others)
            rows = [row for t in alone if t.system == system for row in rows_of(t, there)]
            ours, now = group(rows), group([row for t in alone if t.system == system for row in rows_of(t, known)])
            print(f"{gpu} without {system}: {len(others)} tables fitted; of its {ours.n} rows {_errors(ours)}; "
                  f"as shipped {_errors(now)}", flush=True)  # fmt: skip


def _errors(found: Group) -> str:
    return f"{found.large:.1%} from 1 MiB, {found.small:.1%} below, 90th {found.ninetieth:.1%}"


if __name__ == "__main__":
    raise SystemExit(main())
