"""Predicted bus bandwidth on presets beside figures that others published; nothing here is fitted.

python -m benchmarks.accuracy.published_rates [--json FILE]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.results_file import write_results
from commsim.core.errors import CommsimError
from commsim.core.result import Result
from commsim.core.units import format_size, parse_size
from commsim.prediction.build import prepare
from commsim.report.terminal import print_table


@dataclass(frozen=True, slots=True)
class Case:
    """One prediction, and the figure that it stands beside.

    Parameters
    ----------
    collective, network, size : str
        As on the command line.
    published : float or None
        Bus bandwidth, GB/s; None where nobody published one that we know of.
    source : str
        Whose it is, and what differs.
    """

    collective: str
    network: str
    size: str
    published: float | None
    source: str


A100, H100_4, H100_32 = "dgx-a100", *(f"rail_optimized:n_hosts={n},preset=dgx-h100" for n in (4, 32))
RINGS = "multi_ring_all_reduce:n_channels=8"
SIMAI = "SimAI with ns-3, 32 x H100, taken for bus bandwidth"
CASES = (
    Case("ring_all_reduce", A100, "1GiB", 244.0, "MSCCL++ perf_ndmv4, 8 x A100, measured"),
    *(
        Case(collective, A100, size, published, "MSCCL++ perf_ndmv4, 8 x A100, measured; its own algorithm")
        for collective, size, published in (
            ("ring_all_gather", "1GiB", 255.08),
            ("direct_all_to_all", "1GiB", 241.65),
            ("halving_doubling_all_reduce", "16MiB", 187.22),
            ("halving_doubling_all_reduce", "32MiB", 203.42),
            ("halving_doubling_all_reduce", "48MiB", 221.42),
        )
    ),
    Case("ring_all_reduce", A100, "1GiB", 230.0, "Azure NDv4 health check, 8 x A100: at least"),
    *(
        Case(collective, H100_4, size, published, f"{SIMAI}, {kind}")
        for collective, rates, kind in (
            ("ring_all_reduce", (141.8, 166.7), "ring; ours has one channel, so one NIC"),
            (RINGS, (141.8, 166.7), "ring"),
            ("hierarchical_all_reduce", (141.8, 166.7), "ring; another algorithm"),
            ("hierarchical_all_reduce", (148.9, 218.1), "NVLS; another algorithm"),
        )
        for size, published in zip(("16MiB", "512MiB"), rates, strict=True)
    ),
    *(
        Case(collective, H100_32, size, None, "none known to us for 256 GPUs")
        for collective in ("ring_all_reduce", RINGS, "hierarchical_all_reduce")
        for size in ("512MiB", "8GiB")
    ),
)


_KEYS = ("network", "collective", "size", "algbw", "ours", "published", "error", "source")


def main(argv: Sequence[str] | None = None) -> int:
    """Predict all cases and print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.accuracy.published_rates", description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    args = parser.parse_args(argv)
    try:
        rows = [_predict(case) for case in CASES]
    except CommsimError as error:
        print(f"benchmarks.accuracy.published_rates: error: {error}", file=sys.stderr)
        return 2
    print_table(
        ["network", "collective", "size", "algbw(GB/s)", "busbw(GB/s)", "published(GB/s)", "error", "source"],
        [[row[key] for key in _KEYS] for row in rows],
        "bus bandwidth as nccl-tests counts it; message overheads, protocols and reduction cost are not modelled here",
    )
    if args.json:
        write_results(args.json, {"what": "published_rates"}, rows)
    return 0


def predicted(case: Case) -> Result:
    """Predict one case; its bus bandwidth stands beside the published one."""
    return prepare(case.collective, case.network).predict(parse_size(case.size))


def _predict(case: Case) -> dict[str, str]:
    result = predicted(case)
    ours = result.busbw / 1e9
    error = "" if case.published is None else f"{100 * (ours / case.published - 1):+.1f}%"
    return {
        "network": case.network,
        "collective": case.collective,
        "size": format_size(parse_size(case.size)),
        "algbw": f"{result.algbw / 1e9:.1f}",
        "ours": f"{ours:.1f}",
        "published": "" if case.published is None else f"{case.published:.1f}",
        "error": error,
        "source": case.source,
    }


if __name__ == "__main__":
    sys.exit(main())
