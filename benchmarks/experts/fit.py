"""Fit the constants of the kernels on a part of the tables: ``python -m benchmarks.experts.fit --data DIR``.

Fitted on: one and two machines; of NVL72 2, 4 and 8 ranks. Of DeepEP's tables of one machine a few sizes of tokens and
numbers of experts, and 4, 12 and 24 SMs; all others are held back. Each campaign (a system, a number of machines and of
ranks) counts as much as any other, however many rows it has. A GPU without rows between machines has Hopper's constants
for them, since they are those of the NIC. The constants are written to ``commsim/experts/costs.toml``.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.experts.tables import Row, links_of, planned, predicted, question, read_rows
from commsim.experts.kernels import PATH, ExpertKernel, kernel_of_table

Floats = NDArray[np.float64]
# Hidden size, experts of a token, experts: tables of low-latency kernels on one machine that are fitted on.
LOW_LATENCY = {(4096, 2, 8), (6144, 2, 8), (5120, 1, 16), (2048, 8, 128), (4096, 10, 512), (7168, 8, 256)}
NORMAL_SMS = {"4/4", "12/12", "24/24", "20/20"}
NVL72_RANKS = (2, 4, 8)
# First guesses. Of normal kernels dispatch and combine have one time and rate of a copy.
LOW_DISPATCH = {"launch_us": 12.0, "group_us": 2.0, "message_us": 0.05, "read_us": 2.0, "read_rate_GBps": 10.0,
                "nvlink": 0.7, "network": 0.95}  # fmt: skip
LOW_COMBINE = {"launch_us": 12.0, "group_us": 1.0, "message_us": 0.05, "copy_rate_GBps": 30.0, "nvlink": 0.65,
               "network": 0.95}  # fmt: skip
COPY = {"copy_us": 0.15, "copy_rate_GBps": 28.0}
NORMAL = {"launch_us": 30.0, "fill_us": 12.0, "fill_after_us": 25.0, "nvlink": 0.85}
BETWEEN = {"between": 1.3}
NVL72 = {"launch_us": 11.0, "peer_us": 0.5, "local_rate_GBps": 2500.0, "nvlink": 0.9}
PAIR = {"pair_us": 0.03, "pair_rate_GBps": 900.0}
ONLY_LAUNCH = {"launch_us": 11.0, "peer_us": 0.3, "local_us": 0.0009}
# SMs of a kernel where the user gives none: those of the GPU, or DeepEP's usual number.
SMS = {"h100": 132, "h200": 132, "b200": 148, "gb200": 152}
USUAL_SMS = 20
# Shares of a rate, at most 1.
SHARES = ("nvlink", "network")
# What belongs to the NIC, and who lends it.
OF_NIC, LENDER = ("message_us", "network"), "h100"
SOURCE = "ai-dynamo/aiconfigurator 095f58a51 (Apache-2.0)"
HEAD = """# What kernels of expert parallelism cost: a table for each kernel and GPU, of constants that
# `commsim/experts/kernels.py` describes; units stand in the names. Written by
# `python -m benchmarks.experts.fit`, which says what it is fitted on. Source of all: {source}.
# `tables` name what was fitted on: system, machines, ranks, precision, hidden, top_k, experts, SMs.
"""


def is_fitted_on(row: Row) -> bool:
    """Whether a row of the public tables is one that constants are fitted on."""
    n = row.number
    if row["mode"].startswith("NVLink"):
        return n["ranks"] in NVL72_RANKS
    if row["mode"] == "normal":
        return n["nodes"] <= 2 and n["n_experts"] == 256 and row["sms"] in NORMAL_SMS
    return n["nodes"] == 2 or (n["nodes"] == 1 and (n["hidden"], n["top_k"], n["n_experts"]) in LOW_LATENCY)


def key_of(row: Row) -> str:
    """Return how the constants name the table of a row."""
    columns = ("system", "nodes", "ranks", "precision", "hidden", "top_k", "n_experts", "sms")
    return ":".join(row[name] for name in columns)


class Part:
    """Rows of one kernel on one GPU, with the times of their links at full rates."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self._nvlink = [links_of(row, 1.0, 1e3) for row in rows]
        self._network = [links_of(row, 1e3, 1.0) if row.machines > 1 else 0.0 for row in rows]
        campaigns = Counter((row["system"], row["nodes"], row["ranks"]) for row in rows)
        self.weight = np.array([campaigns[row["system"], row["nodes"], row["ranks"]] ** -0.5 for row in rows])
        for row in rows:
            planned(*question(row))

    def times(self, kernel: ExpertKernel) -> Floats:
        """Predict all rows."""
        pairs = zip(self.rows, self._nvlink, self._network, strict=True)
        return np.array([predicted(r, kernel, max(a / kernel.nvlink, b / kernel.network)) for r, a, b in pairs])

    def residuals(self, kernel: ExpertKernel) -> Floats:
        """Weighted differences of logarithms."""
        measured = np.array([row.measured for row in self.rows])
        errors: Floats = self.weight * (np.log(self.times(kernel)) - np.log(measured)) * 10
        return errors


Constants = dict[str, float]


def fitted(parts: Mapping[str, Part], own: Mapping[str, Mapping[str, float]], shared: Mapping[str, float],
           fixed: Mapping[str, Mapping[str, float]]) -> dict[str, Constants]:  # fmt: skip
    """Fit the constants of some kernels, some of which they share.

    Parameters
    ----------
    parts : mapping of str to Part
        Rows of each kernel.
    own, fixed : mapping of str to mapping
        First guesses of each kernel's constants, and those that stay.
    shared : mapping
        First guesses of what all have.
    """
    from scipy.optimize import least_squares

    names = [(name, key) for name in parts for key in own[name]] + [("", key) for key in shared]
    guess = [own[name][key] for name, key in names if name] + list(shared.values())

    def constants(x: Floats) -> dict[str, Constants]:
        found: dict[str, Constants] = {name: dict(fixed[name]) for name in parts}
        for (name, key), value in zip(names, np.exp(x), strict=True):
            for one in [name] if name else parts:
                found[one][key] = float(value)
        return found

    def residuals(x: Floats) -> Floats:
        found = constants(x)
        kernels = {name: kernel_of_table(found[name], name) for name in parts}
        pull = 1e-3 * (x - np.log(guess))  # what no row says stays as it was guessed
        return np.concatenate([*(part.residuals(kernels[name]) for name, part in parts.items()), pull])

    highest = [0.0 if key in SHARES else np.inf for _, key in names]
    best = least_squares(residuals, np.log(guess), bounds=(-np.inf, highest), loss="soft_l1", f_scale=3.0)
    return constants(best.x)


Found = dict[tuple[str, str], Constants]


def fit_all(rows: Sequence[Row]) -> Found:
    """Fit every kernel on every GPU that has rows."""
    of: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        of.setdefault((row.kernel, row.gpu), []).append(row)
    parts = {key: Part(some) for key, some in of.items()}
    done: Found = {}
    for gpu in (LENDER, *(g for g in SMS if g != LENDER)):
        done |= _low_latency(parts, gpu, done)
        done |= _normal(parts, gpu, done)
        for library in ("trtllm_two_sided", "trtllm_one_sided"):
            done |= _nvl72(parts, gpu, library)
    return done


def _low_latency(parts: Mapping[tuple[str, str], Part], gpu: str, done: Found) -> Found:
    """Fit DeepEP's low-latency kernels, each by itself; what belongs to the NIC is lent."""
    found: Found = {}
    for op, guess in (("dispatch", LOW_DISPATCH), ("combine", LOW_COMBINE)):
        name, still, own = f"deepep_low_latency_{op}", {"sms": float(SMS[gpu])}, dict(guess)
        if gpu != LENDER:
            still |= {key: done[name, LENDER][key] for key in OF_NIC}
            own = {key: value for key, value in guess.items() if key not in OF_NIC}
        if (name, gpu) in parts:
            found[name, gpu] = fitted({name: parts[name, gpu]}, {name: own}, {}, {name: still})[name]
    return found


def _normal(parts: Mapping[tuple[str, str], Part], gpu: str, done: Found) -> Found:
    """Fit DeepEP's normal kernels together: an SM copies alike in both; what belongs to the NIC is lent."""
    names = dispatch, combine = "deepep_normal_dispatch", "deepep_normal_combine"
    if not all((name, gpu) in parts for name in names):
        return {}
    nic = done["deepep_low_latency_dispatch", LENDER]
    own: dict[str, dict[str, float]] = {dispatch: dict(NORMAL), combine: dict(NORMAL)}
    still: dict[str, Constants] = {name: {"sms": float(USUAL_SMS), "network": nic["network"]} for name in names}
    still[dispatch]["message_us"] = nic["message_us"]  # a dispatch tells how many tokens come, as well
    if gpu == LENDER:
        own[combine] |= BETWEEN
    else:
        still[combine]["between"] = done[combine, LENDER]["between"]
    found = fitted({name: parts[name, gpu] for name in names}, own, COPY, still)
    return {(name, gpu): one for name, one in found.items()}


def _nvl72(parts: Mapping[tuple[str, str], Part], gpu: str, library: str) -> Found:
    """Fit the kernels of one of TensorRT-LLM's libraries together: the channel of a pair is one."""
    mine = {name: part for (name, g), part in parts.items() if g == gpu and name.startswith(library)}
    moving = {name: part for name, part in mine.items() if not name.endswith("prepare")}
    found = fitted(moving, dict.fromkeys(moving, NVL72), PAIR, {name: {} for name in moving}) if moving else {}
    for name in mine.keys() - moving.keys():
        found |= fitted({name: mine[name]}, {name: ONLY_LAUNCH}, {}, {name: {}})
    return {(name, gpu): one for name, one in found.items()}


def written(found: Mapping[tuple[str, str], Constants], rows: Sequence[Row]) -> str:
    """Return the text of the constants, with what they are fitted on."""
    lines = [HEAD.format(source=SOURCE)]
    for (name, gpu), constants in found.items():
        mine = [row for row in rows if (row.kernel, row.gpu) == (name, gpu)]
        tables = sorted({key_of(row) for row in mine})
        lines += [f"[{name}.{gpu}]"]
        lines += [f"{key} = {int(value) if key == 'sms' else f'{value:.4g}'}" for key, value in constants.items()]
        lines += [f'fitted = "{len(mine)} rows of {len(tables)} tables of {SOURCE}"', "tables = ["]
        lines += [f'    "{table}",' for table in tables] + ["]", ""]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Fit, and write the constants."""
    parser = argparse.ArgumentParser(prog="benchmarks.experts.fit", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", required=True, metavar="DIR", help="folder with all_to_all.csv")
    parser.add_argument("--output", default=str(PATH), metavar="FILE.toml", help="file to write")
    flags = parser.parse_args(argv)
    rows = [row for row in read_rows(Path(flags.data))[0] if is_fitted_on(row)]
    Path(flags.output).write_text(written(fit_all(rows), rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
