"""Rates that shapes of H100 on RoCE reach at large sizes, as questions: ``autoparallel_h100_roce_peaks.csv``.

The table gives the size of an operation over its time, by machines and GPUs of each. Each GPU has its NIC of 400 Gb/s,
and NVLink SHARP is off: 8 GPUs of one machine have the rate of a ring (370 GB/s of bus bandwidth), not of the switch.

The source's benchmark times calls of 4 KiB to 1 GiB, and its fit takes the largest rate from 128 MiB on, after the
least time up to 64 KiB is taken off (``benchmarks/nccl_cost_model`` of meta-pytorch/autoparallel, ``fit_profile.py``
and ``runner/benchmark_phase.py``). A ring of 256 ranks is far from its rate there, so that the same is asked of
predictions.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from benchmarks.nccl_tables.asked import Asked, LargestRate

NAME = "autoparallel_h100_roce_peaks"
# Sizes of the benchmark whose rates count, and those whose least time is its latency; the row is of the largest.
LARGEST = LargestRate((2**27, 2**28, 2**29, 2**30), (2**12, 2**14, 2**16))
SIZE = LARGEST.sizes[-1]
GPUS, NIC = 8, 50e9


def topology_of(n_nodes: int, per_node: int) -> str:
    """Return the machines of a shape: a job uses some of their GPUs, each with its NIC.

    Parameters
    ----------
    n_nodes, per_node : int
        Machines, and GPUs of each.
    """
    of_it = f"n_gpus={per_node},n_nics={per_node},n_pcie_switches={per_node},n_cpus={min(per_node, 2)},"
    machine = f"hgx-h100:{'' if per_node == GPUS else of_it}net=roce,nvls=false"
    return machine if n_nodes == 1 else f"{machine}@star:machines={n_nodes}"


def read_peaks(folder: Path) -> tuple[Asked, ...]:
    """Read the shapes of a folder as tables of one row; none where it has no such file."""
    path = folder / f"{NAME}.csv"
    if not path.is_file():
        return ()
    with path.open(newline="", encoding="utf-8") as file:
        return tuple(_shape(line) for line in csv.DictReader(file))


def _shape(line: Mapping[str, str]) -> Asked:
    operation, rate = line["operation"], float(line["peak_algbw_GBps"]) * 1e9
    n_nodes, per_node, n_ranks = (int(line[key]) for key in ("nodes", "gpus_per_node", "ranks"))
    machine = f"{n_nodes}x{per_node} H100 SXM, 400G RoCE without NVLink SHARP"
    return Asked(
        f"peak_{n_nodes}x{per_node}_{operation}", "peaks", "autoparallel", operation, machine, "yes",
        topology_of(n_nodes, per_node), f"nccl_{operation}", n_nodes, per_node, n_ranks, "H100 SXM", "400G RoCE",
        per_node * NIC if n_nodes > 1 else 0.0, ((SIZE, SIZE / rate),), LARGEST,
    )  # fmt: skip
