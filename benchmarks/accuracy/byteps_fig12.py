"""BytePS's figure 12: 8 machines of 1 GPU, 0 to 8 CPU machines, NICs of 100 Gb/s; what theory, we and they have.

python -m benchmarks.accuracy.byteps_fig12 [--json FILE]

"goodput" is the size of the gradients over the time of their exchange. Theory is theorem 1; the flow engine plays the
schedules of ``byteps``, ``ring_all_reduce`` and ``parameter_server`` on a star of links of 90 Gb/s, which is what the
authors measured between two of their machines.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from fractions import Fraction

from benchmarks.results_file import write_results
from collectives.servers.byteps import byteps_split
from commsim.core.errors import InputError
from commsim.prediction.build import prepare
from commsim.report.terminal import print_table

N_GPUS, MAX_CPUS = 8, 8
GBPS, SIZE, LATENCY = 90.0, 1e9, "1us"
SOURCE = "Jiang et al., OSDI 2020, figure 12; digitised, to 0.7 Gb/s"
MEASURED = {
    "BytePS": (48.4, 51, 55, 59.5, 63.4, 70, 74.5, 79, 85.6),
    "all-reduce (NCCL)": (36.0,) * 9,
    "native PS": (7.2, 11.8, 20.3, 24.8, 30.7, 34, 36.6, 41.8, 45),
}

# The figure's own line of theory.
THEORY = (51.4, 56.2, 61.1, 65.9, 70.7, 75.5, 80.4, 85.2, 90.0)

Row = tuple[str, str, list[float | None]]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.accuracy.byteps_fig12", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    args = parser.parse_args(argv)
    table = rows()
    print_table(
        ["system", "how", *(f"k={k}" for k in range(MAX_CPUS + 1))],
        [[name, how, *("-" if value is None else f"{value:.1f}" for value in values)] for name, how, values in table],
        f"goodput in Gb/s, {N_GPUS} GPU machines and k CPU machines on {GBPS:.0f} Gb/s; measured: {SOURCE}",
    )
    if args.json:
        config = {"what": "byteps_fig12", "size": SIZE, "latency": LATENCY, "source": SOURCE}
        write_results(args.json, config, [{"system": n, "how": h, "goodput_Gbps": v} for n, h, v in table])
    return 0


def rows() -> list[Row]:
    """Rows of the table: system, how its figures were found, and goodput in Gb/s for each number of CPU machines."""
    n, ks = N_GPUS, range(MAX_CPUS + 1)
    ring = _goodput("ring_all_reduce", n)
    found: list[Row] = [
        ("BytePS", "theory", [GBPS / float(byteps_split(n, k).time) for k in ks]),
        ("BytePS", "flow", [_goodput(f"byteps:n_servers={k}", n + k) for k in ks]),
        ("all-reduce (ring)", "theory", [GBPS / float(ring_time(n))] * len(ks)),
        ("all-reduce (ring)", "flow", [ring] * len(ks)),
        ("PS on k machines", "theory", [GBPS / float(dedicated_time(n, k)) if k else None for k in ks]),
        ("PS on k machines", "flow", [_goodput(f"parameter_server:n_servers={k}", n + k) if k else None for k in ks]),
    ]
    return found + [(name, "measured", list(values)) for name, values in MEASURED.items()]


def ring_time(n: int) -> Fraction:
    """Time of an optimal all-reduce of n machines among themselves: 2(n-1)/n."""
    return Fraction(2 * (n - 1), n)


def dedicated_time(n: int, s: int) -> Fraction:
    """Time of n workers and s servers on hosts of their own: max(1, n/s), decided by a worker's or a server's NIC.

    Raises
    ------
    InputError
        If there is no server.
    """
    if s < 1:
        raise InputError(f"a parameter server needs n_servers of at least 1, got n_servers={s}")
    return max(Fraction(1), Fraction(n, s))


def colocated_time(n: int, s: int) -> Fraction:
    """Time of n workers, on s of which a server lives too: 1 + (n-2)/s, decided by the NIC that they share.

    Raises
    ------
    InputError
        If there is no server, or there are more than workers.
    """
    if not 1 <= s <= n:
        raise InputError(f"a colocated server lives on a worker's host: n_servers must be 1..{n}, got n_servers={s}")
    return 1 + Fraction(n - 2, s) if n > 1 else Fraction(0)


def _goodput(collective: str, n_hosts: int) -> float:
    ready = prepare(collective, f"star:n_hosts={n_hosts},bandwidth={GBPS:.0f}Gbps,latency={LATENCY}")
    return SIZE * 8e-9 / ready.predict(SIZE).time


if __name__ == "__main__":
    sys.exit(main())
