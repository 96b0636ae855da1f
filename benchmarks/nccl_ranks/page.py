"""Compare commsim with what NCCL did, and write docs/data/nccl_real.md: ``python -m benchmarks.nccl_ranks.page``."""

from __future__ import annotations

import json
import re
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.nccl_ranks.__main__ import NETWORKS
from benchmarks.nccl_ranks.keep import KEPT
from benchmarks.nccl_ranks.own_search import differing_channels
from benchmarks.nccl_ranks.what_nccl_said import BY_RANK
from collectives.nccl.call import NcclCall
from collectives.nccl.rules import split
from commsim.nccl.choice import fastest
from commsim.nccl.nccl_setting import Channels, NcclSetting
from commsim.nccl.tuning_table import cells
from commsim.prediction.build import prepare

PAGE = Path(__file__).parents[2] / "docs" / "data" / "nccl_real.md"
VERSION = (2, 28)
SIZES = [1 << k for k in range(10, 25)]  # bytes of the calls whose choice was read, all-reduces also of 64 MiB
ROUNDED = 0.051  # NCCL prints a tenth of a us and of a GB/s
SLOW_RINGS = 12.0  # GB/s
# Payload of a frame of 9,014 bytes: the testbed's MTU less the headers of IP and TCP.
PAYLOAD = 8948 / 9014
# Networks that the machine's 16 cores carried without being the bottleneck.
LIMITED_BY_LINKS = [name for name in NETWORKS if "4G" not in name]
SMALLEST = 1 << 20


def setting_of(choice: dict[str, Any]) -> NcclSetting:
    """Return NCCL's setting with the channels that its search found."""
    channels = {
        name: Channels(n, inside * 1e9, between * 1e9, path_inter=path)
        for name, (n, inside, between, path) in choice["patterns"].items()
    }
    ranks = choice["ranks"]
    return NcclSetting(ranks, ranks, "hopper", choice["machine"]["cpu"], channels, one_nic_tree=True, version=VERSION)


def differing_costs(choice: dict[str, Any]) -> tuple[int, list[str]]:
    """Return how many cells of a table were compared, and those that differ by more than their rounding."""
    differing, n = [], 0
    setting = setting_of(choice)
    for operation, row in choice["costs"].items():
        ours = {f"{cell.algorithm}/{cell.protocol}": cell for cell in cells(setting, operation)}
        for name, (latency, bandwidth) in row.items():
            n += 1
            cell = ours[name]
            if abs(cell.latency * 1e6 - latency) > ROUNDED or abs(cell.bandwidth / 1e9 - bandwidth) > ROUNDED:
                differing.append(f"{operation} {name}")
    return n, differing


def calls_of(choice: dict[str, Any]) -> Iterator[tuple[str, int, str, int]]:
    """Repeat operation, bytes, algorithm and protocol, and number of channels of every call."""
    for operation, changes in choice["calls"].items():
        for asked in SIZES + [1 << 26] * (operation == "all_reduce"):
            ranks = choice["ranks"] if operation in BY_RANK else 1
            size = asked // (4 * ranks) * 4 * ranks  # each rank has as many numbers of 4 bytes
            _, how, n_channels = next(change for change in reversed(changes) if change[0] <= size)
            yield operation, size, how, n_channels


def differing_calls(choice: dict[str, Any]) -> tuple[int, list[str]]:
    """Return how many calls were compared, and those of which commsim would launch something else."""
    differing, n, ranks = [], 0, choice["ranks"]
    setting = setting_of(choice)
    tables = {operation: cells(setting, operation) for operation in choice["calls"]}
    rings = choice["patterns"]["ring"]
    for operation, size, how, n_channels in calls_of(choice):
        n += 1
        best = fastest(setting, operation, tables[operation], size)
        assert best is not None
        call = NcclCall(
            operation, size, ranks, ranks, best.algorithm, best.protocol, choice["channels"], VERSION,
            slow=rings[0] * rings[1] <= SLOW_RINGS, heads=1,
        )  # fmt: skip
        if (f"{best.algorithm}/{best.protocol}", len(split(call))) != (how, n_channels):
            differing.append(f"{operation} {size} B: {how} {n_channels}, not {best.name} {len(split(call))}")
    return n, differing


def predicted(name: str, operation: str, how: str, size: int) -> float:
    """Return the time of a call when only links cost time, with the headers of TCP."""

    def less_headers(found: re.Match[str]) -> str:
        return f"bandwidth={float(found[1]) * PAYLOAD}"

    topology = re.sub(r"bandwidth=(\d+)", less_headers, NETWORKS[name])
    algorithm, _, protocol = how.partition("/")
    chosen = f":algorithm={algorithm},protocol={protocol},channels=2,version=2.28" if protocol else ""
    return prepare(f"nccl_{operation}{chosen}", topology).predict(size).time


def compared_times(kept: dict[str, Any], names: list[str]) -> Iterator[tuple[str, str, str, int, float, float]]:
    """Yield network, operation, how, bytes, measured and predicted seconds, once where forced and chosen are alike."""
    seen = set()
    for name, operation, how, _, _, size, seconds in kept["times"]:
        key = name, operation, how, size
        if name in names and operation not in ("broadcast", "ping_pong") and size >= SMALLEST and key not in seen:
            seen.add(key)
            yield *key, seconds, predicted(name, operation, how, size)


HEAD = """# Checked against NCCL itself

NCCL refuses two ranks of one machine on one GPU. A rank that is declared to be another machine (`NCCL_HOSTID`) is
accepted,
and with NVIDIA's multi-process service the kernels of all ranks run at once. One borrowed H100 therefore ran NCCL
2.28.9 over TCP sockets with 2 to 24 ranks, each as a machine of its own. Run `python -m benchmarks.nccl_ranks FOLDER`
on the machine with the GPU, `python -m benchmarks.nccl_ranks.keep FOLDER`, then `python -m
benchmarks.nccl_ranks.page`, which writes this page from `benchmarks/nccl_ranks/nccl_2_28_9.json`. Nothing here was
fitted.
"""
CHOICES = """## What it chooses

{communicators} communicators: 2 to 24 ranks, NICs of 1 to 400 Gbit/s (topology files, `NCCL_TOPO_FILE`), CPUs of Intel
and AMD.

- Costs that NCCL prints (`NCCL_DEBUG_SUBSYS=TUNING`), latency and bandwidth by operation, algorithm and protocol:
  {costs}. Equal to within a tenth of a microsecond and of a GB/s: {equal_costs}.
- Calls of 1 KiB to 16 MiB (all-reduces also of 64 MiB), compared by algorithm, protocol and number of channels:
  {calls}. Equal: {equal_calls}.

- Sets of channels, of rings and of trees, that commsim's own search finds on these machines: {patterns}. Equal:
  {equal_patterns}.
  Over sockets all bytes go through the host's memory: if GPU and NIC are below one PCIe switch, its link to the CPU
  carries them twice in each direction. With one GPU per machine, trees have twice the rate of a ring inside the
  machine.

Costs and calls are computed with NCCL's own channels, as `commsim nccl --graph` takes them. Three rules were wrong
before. PAT had the bandwidth of the ring's channels (it has the tree's, which is twice as much on two machines), and
dropped channels to keep its number of threads. Slow rings had fewer threads only over PCIe. Version 2.28 had the
traffic per channel of 2.29. The communicators of 3, 6, 12 and 24 ranks were measured after that, and nothing was
changed for them.
"""
TIMES = """## How long it takes

Ranks in network namespaces (`commsim.real.testbed`), shaped at every port. Predicted: `commsim run nccl_OPERATION` on
the same network with the algorithm and protocol that NCCL took; only links and TCP's headers cost time. The table
gives the relative error of the prediction in %, by size, from 1 MiB up. Broadcasts are left out: consecutive calls
overlap, since the root does not wait for the last rank, but a prediction is for one call.

| network | operation | algorithm | bytes: error |
|---|---|---|---|
"""
FOOT = "At 4 Gbit/s offloads are off and 16 cores pass the frames: the processors are the bottleneck there."


def page(kept: dict[str, Any]) -> str:
    """Make the page."""
    costs = [differing_costs(choice) for choice in kept["choices"]]
    calls = [differing_calls(choice) for choice in kept["choices"]]
    n_costs, n_calls = (sum(n for n, _ in found) for found in (costs, calls))
    wrong_costs, wrong_calls = ([text for _, texts in found for text in texts] for found in (costs, calls))
    with tempfile.TemporaryDirectory() as folder:
        wrong_channels = [text for c in kept["choices"] for text in differing_channels(c, Path(folder), VERSION)]
    n_patterns = sum(len(choice["patterns"]) for choice in kept["choices"])
    first = CHOICES.format(
        patterns=n_patterns, equal_patterns=n_patterns - len(wrong_channels),
        communicators=len(kept["choices"]), costs=n_costs, equal_costs=n_costs - len(wrong_costs),
        calls=n_calls, equal_calls=n_calls - len(wrong_calls),
    )  # fmt: skip
    by_case: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    for name, operation, how, size, measured, ours in compared_times(kept, list(NETWORKS)):
        by_case.setdefault((name, operation, how), []).append((size, ours / measured - 1))
    lines = [
        HEAD,
        first,
        *(f"Different: {text}." for text in wrong_costs + wrong_calls + wrong_channels),
        TIMES.rstrip(),
    ]
    for case, found in by_case.items():
        lines.append(f"| {' | '.join(case)} | {', '.join(f'{size >> 20} MiB: {100 * e:+.1f}' for size, e in found)} |")
    for what, names in (("1 Gbit/s and less", LIMITED_BY_LINKS), ("4 Gbit/s", ["star 4 x 4G"])):
        errors = sorted(abs(e) for case, found in by_case.items() if case[0] in names for _, e in found)
        middle, nine = 100 * statistics.median(errors), 100 * errors[int(0.9 * len(errors))]
        lines += ["", f"{what}: {len(errors)} rows, median {middle:.1f} %, 90th percentile {nine:.1f} %."]
    return "\n".join([*lines, "", FOOT]) + "\n"


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(json.loads(KEPT.read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
