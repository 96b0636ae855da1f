"""Aggregation jobs beside rings and background traffic in both engines, and what explains the gap between them.

python -m benchmarks.accuracy.one_run [--seeds N] [--json FILE]

Plays the files of examples/jobs. Each is played again with the likely cause of the gap taken away: a window of few
packets in place of all slots of the switch, or a timeout that no queue reaches. The seed draws the background
traffic; rows have the median of all seeds, and the table the least and the most too.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.results_file import write_results
from commsim.core.errors import CommsimError
from commsim.core.result import Result
from commsim.jobs.composition import read_composition
from commsim.jobs.job_entries import Composition
from commsim.jobs.several_jobs import prepare_jobs
from commsim.packets.transports.spraying import usual_path
from commsim.prediction.inputs import load_network
from commsim.report.terminal import print_table, progress

EXAMPLES = Path(__file__).parents[2] / "examples" / "jobs"
NETWORK = "leaf_spine:n_leaves=2,n_spines={spines},hosts_per_leaf=8,bandwidth=10Gbps"
# File, spines, and the aggregation jobs' collective: as the file says, and without what is thought to cause the gap.
CASES = (
    ("switchml_beside_ring", 4, "switchml"),
    ("switchml_beside_ring", 4, "switchml:window=32"),
    ("two_switchml_priorities", 1, "switchml"),
    ("two_switchml_priorities", 1, "switchml:rto=0.01"),
    ("atp_beside_dctcp", 4, "atp"),
    ("atp_beside_dctcp", 4, "atp:rto=0.01"),
)
COLUMNS = ["file", "as", "job", "packet(us)", "from-to(us)", "flow(us)", "from-to(us)", "gap(%)", "sent_again", "exact"]


@dataclasses.dataclass(frozen=True, slots=True)
class Both:
    """One job in both engines.

    Parameters
    ----------
    file, played_as, job : str
        The composition, what its aggregation jobs run, and which job.
    packet_s, flow_s : tuple of float, s
        Times, one for each seed.
    sent_again : int
        Packets of the job, all seeds together.
    exact : bool or None
        Whether all sums of all seeds were; None for a job without aggregation.
    """

    file: str
    played_as: str
    job: str
    packet_s: tuple[float, ...]
    flow_s: tuple[float, ...]
    sent_again: int
    exact: bool | None

    @property
    def gap(self) -> float:
        """How much longer packets take than flows, a part of the latter; of the medians."""
        return median(self.packet_s) / median(self.flow_s) - 1

    def row(self) -> list[str]:
        """Cells of the table."""
        times = [
            cell
            for column in (self.packet_s, self.flow_s)
            for cell in (f"{median(column) * 1e6:.0f}", f"{min(column) * 1e6:.0f}-{max(column) * 1e6:.0f}")
        ]
        exact = "-" if self.exact is None else "yes" if self.exact else "NO"
        return [self.file, self.played_as, self.job, *times, f"{self.gap * 100:+.0f}", str(self.sent_again), exact]


def measure(file: str, spines: int, played_as: str, seeds: int) -> list[Both]:
    """Play one file in both engines, with DCTCP for all that is no aggregation."""
    network = load_network(NETWORK.format(spines=spines))
    composition = _with(read_composition(EXAMPLES / f"{file}.toml"), played_as)
    played: list[tuple[tuple[Result, ...], tuple[Result, ...]]] = []
    for seed in range(seeds):
        together = prepare_jobs(composition, network, seed=seed)
        packets, flows = (
            together.predict(engine="packet", transport=usual_path("dctcp", network))[0],
            together.predict(engine="flow")[0],
        )
        played.append((packets, flows))
    found = []
    for k, entry in enumerate(composition.jobs):
        counters = [packets[k].counters for packets, _ in played]
        exact = all(counter["exact"] for counter in counters) if "exact" in counters[0] else None
        sent_again = int(sum(counter["retransmissions"] for counter in counters))
        packet_s = tuple(packets[k].time for packets, _ in played)
        flow_s = tuple(flows[k].time for _, flows in played)
        found.append(Both(file, played_as, entry.name, packet_s, flow_s, sent_again, exact))
    return found


def _with(composition: Composition, played_as: str) -> Composition:
    base = played_as.partition(":")[0]
    jobs = (dataclasses.replace(j, collective=played_as) if j.collective == base else j for j in composition.jobs)
    return dataclasses.replace(composition, jobs=tuple(jobs))


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.one_run", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="0 to N-1 (default: 5)")
    parser.add_argument("--json", metavar="FILE", help="also write the rows as JSON")
    args = parser.parse_args(argv)
    if args.seeds < 1:
        parser.error(f"--seeds must be at least 1, got {args.seeds}")
    found: list[Both] = []
    try:
        for case in progress(CASES, "one_run"):
            found += measure(*case, args.seeds)
    except CommsimError as error:
        parser.error(str(error))
    print_table(COLUMNS, [both.row() for both in found], f"jobs that share a network, medians of {args.seeds} seeds")
    if args.json:
        rows = [{**dataclasses.asdict(both), "gap": both.gap} for both in found]
        write_results(args.json, {"what": "one_run", "seeds": args.seeds}, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
