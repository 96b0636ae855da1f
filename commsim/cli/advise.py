"""``commsim advise``: every way to add up a tensor on a network, ranked, what bounds each, and where others pay.

What ``commsim advise`` says beside its table: up to which density sparse pays, and how many CPU servers do.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.network import ROUTINGS
from commsim.core.placement import RANK_ORDERS
from commsim.core.units import format_size, parse_bandwidth, parse_size, parse_time
from commsim.report.table import print_table, write_results
from commsim.sparse.generate import PATTERNS

from .advise_sweep import add_sweep_arguments, advise_sweep

if TYPE_CHECKING:
    from commsim.advice import Advice, Question
    from commsim.advice.payoff import Servers, SparsePays
    from commsim.core.network import Network


def print_density_crossover(question: Question, advice: Advice) -> dict[str, Any] | None:
    """Find from which density on dense ways are faster, print it, and return it for the JSON."""
    from commsim.advice.payoff import can_search, density_crossover

    sparse = [row.candidate for row in advice.ranked if row.candidate.way == "sparse"]
    dense = next((row for row in advice.ranked if row.candidate.way not in ("sparse", "lossy")), None)
    if not question.densities or question.gradients is not None or not sparse or dense is None or not dense.result.time:
        return None
    first = {candidate.group[0]: candidate.spec for candidate in reversed(sparse)}  # of several densities one will do
    tried = [spec for spec in reversed(first.values()) if can_search(advice.ready[spec], question)]
    untried = sorted({spec.partition(":")[0] for spec in first.values() if spec not in tried})
    if untried:
        print(f"# crossover without {', '.join(untried)}: drawing so much data at many densities would take minutes")
    if not tried:
        return None
    found = density_crossover(question, advice.ready, tried, dense.candidate.spec, dense.result.time)
    labels = {candidate.spec: candidate.group[0] for candidate in sparse}
    print(f"# {_density_sentence(found, labels.get(found.sparse, ''), dense.candidate.label)}")
    return {
        "low": found.low,
        "high": found.high if found.high < float("inf") else None,
        "before": found.sparse or None,
        "after": found.dense,
        "without": untried,
    }


def _density_sentence(found: SparsePays, sparse: str, dense: str) -> str:
    if not sparse:
        return f"sparse never pays here: {dense} is faster at every density from {found.low:.3g} on"
    if found.high == float("inf"):
        return f"sparse pays at every density up to {found.low:.3g}: there {sparse} is still faster than {dense}"
    return f"sparse pays up to a density of about {found.low:.3g}: until then {sparse}, then {dense} is faster"


def print_server_gains(question: Question, network: Network) -> dict[str, Any] | None:
    """Find after how many CPU servers BytePS stops gaining, print it, and return it for the JSON."""
    from commsim.advice.payoff import server_gains

    if not question.n_servers or question.n_workers < 2:
        return None
    found = server_gains(question, network)
    print(f"# {servers_sentence(found)}")
    return {
        "simulated_s": {str(k): time for k, time in found.simulated.items()},
        "theory_S_over_B": {str(k): time for k, time in found.theory.items()},
        "enough": found.enough,
        "enough_in_theory": found.enough_in_theory,
    }


def servers_sentence(found: Servers) -> str:
    """Say how many CPU servers do."""
    most = max(found.simulated)
    theory = f"on equal links by theorem 1 up to {found.enough_in_theory}"
    if not most:
        return f"BytePS with CPU servers is too large to be simulated here in seconds; {theory}"
    if not found.enough:
        return f"BytePS gains nothing by up to {most} CPU servers here; {theory}"
    gain = found.simulated[0] / found.simulated[found.enough]
    more = ", and more would help" if found.enough == most < found.enough_in_theory else ""
    return f"BytePS gains by CPU servers up to {found.enough} of {most} tried ({gain:.2f}x of none{more}); {theory}"


COLUMNS = ["rank", "collective", "way", "exact", "time(us)", "times_best", "wire(B)", "max_link(B)", "bound_by"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add("--topology", metavar="NAME:key=value,...|FILE", help="network, such as star:n_hosts=16")
    add("--workers", type=int, metavar="N", help="ranks (all hosts; of gradients as many as there are)")
    add("--size", metavar="SIZE", help="of each worker's tensor, such as 100MiB; that of the gradients")
    add("--density", metavar="D[,D...]", help="share of its elements that are not zero, such as 0.01")
    add("--block", type=int, metavar="N", help="elements that are not zero together (256); 1 for scattered ones")
    add("--pattern", default="random", choices=PATTERNS, help="how these lie at the workers (random)")
    add("--gradients", metavar="FILE", help=".npy or .npz file or folder of real gradients instead")
    add("--servers", type=int, metavar="N", help="hosts beside the workers that may serve (as many as workers)")
    add("--lossy", action="store_true", help="rank also what does not sum all values")
    add("--programmable", action="store_true", help="switches can aggregate though the network says so of none")
    add("--placement", default="packed", choices=tuple(RANK_ORDERS), help="of the workers (packed)")
    add("--routing", choices=ROUTINGS, help="instead of the network's own")
    add("--seed", type=int, default=0, help="of the data, random placement and hashes in routing (0)")
    add("--overhead", metavar="TIME", help="o: per message, at the sender's port")
    add("--reduce-rate", metavar="RATE", help="1/gamma: how fast a rank reduces, such as 10GB/s")
    add("--json", metavar="FILE", help="also write the results as JSON")
    add_sweep_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Rank, say why, and find the crossovers."""
    if args.sweep is not None:
        return advise_sweep(args)
    if args.topology is None or args.output is not None or args.jobs is not None:
        wanted = "--output and --jobs go with --sweep" if args.topology else "advise needs --topology, or --sweep"
        raise InputError(wanted)
    from commsim.advice import advise
    from commsim.run import with_costs
    from commsim.run.inputs import load_network

    overhead = None if args.overhead is None else parse_time(args.overhead, "--overhead")
    gamma = None if args.reduce_rate is None else 1 / parse_bandwidth(args.reduce_rate, "--reduce-rate")
    network = with_costs(load_network(args.topology), overhead=overhead, gamma=gamma)
    question = _question(args, network)
    advice = advise(question, network)
    for line in (*_about(question, advice), *advice.notes):
        print(f"# {line}")
    for spec, reason in advice.left_out.items():
        print(f"# left out: {spec}: {reason}")
    title = f"{format_size(question.size)} on {network.name}, {question.n_workers} workers, engine flow"
    print_table(COLUMNS, _rows(advice), title)
    crossover, servers = print_density_crossover(question, advice), print_server_gains(question, network)
    if args.json:
        config = {k: v for k, v in vars(args).items() if k not in ("json", "sweep", "output", "jobs")}
        more = {"left_out": advice.left_out, "crossovers": {"density": crossover, "servers": servers}}
        write_results(args.json, config, [ranked.row() for ranked in advice.ranked], **more)
    return 0


def _question(args: argparse.Namespace, network: Network) -> Question:
    from commsim.advice import Question
    from commsim.advice.question import size_of_gradients

    size = None if args.size is None else float(parse_size(args.size, "--size"))
    n_workers = args.workers
    if args.gradients is not None:
        found, n_workers = size_of_gradients(args.gradients, n_workers)
        if size not in (None, found):
            raise InputError(f"{args.gradients} holds gradients of {found:.0f} bytes a worker, got --size {args.size}")
        size = found
    if size is None:
        raise InputError("advise needs --size or --gradients")
    return Question(
        len(network.endpoints) if n_workers is None else n_workers,
        size,
        _densities(args.density),
        block=args.block,
        pattern=args.pattern,
        gradients=args.gradients,
        n_servers=args.servers,
        lossy=args.lossy,
        programmable=args.programmable,
        placement=args.placement,
        routing=args.routing,
        seed=args.seed,
    ).on(network)


def _densities(text: str | None) -> tuple[float, ...]:
    try:
        return () if text is None else tuple(dict.fromkeys(float(part) for part in text.split(",")))
    except ValueError:
        raise InputError(f"--density takes shares such as 0.01 or 0.01,0.1, got {text!r}") from None


def _about(question: Question, advice: Advice) -> list[str]:
    """Say what the data is, and how much denser the sum."""
    if not question.is_sparse:
        return ["all data is taken to be dense; --density or --gradients says otherwise"]
    drawn = f"runs of {question.run} non-zero elements, pattern {question.pattern}, seed {question.seed}"
    lines = [f"data: {drawn}" if question.gradients is None else f"data: {question.gradients}"]
    seen: dict[str, str] = {}
    for row in sorted(advice.ranked, key=lambda row: row.block):
        if row.candidate.way == "sparse":
            density, union, ratio = (row.result.counters[k] for k in ("density", "union_density", "densification"))
            of = "elements" if row.block == 1 else f"blocks of {row.block} elements"
            shares = f"a worker has {density:.4g}, all together {union:.4g}: densification {ratio:.4g}"
            seen.setdefault(shares, f"of the {of} {shares}")
    return lines + list(seen.values())


def _rows(advice: Advice) -> list[list[str]]:
    best = advice.ranked[0].result.time
    return [
        [
            f"{i + 1}",
            row.candidate.label,
            row.candidate.way,
            "yes" if row.candidate.exact else "no",
            f"{row.result.time * 1e6:.2f}",
            f"{row.result.time / best if best else 1:.2f}x",
            f"{row.result.bytes_on_wire:.0f}",
            f"{row.result.link_bytes.max(initial=0):.0f}",
            row.bound.phrase,
        ]
        for i, row in enumerate(advice.ranked)
    ]
