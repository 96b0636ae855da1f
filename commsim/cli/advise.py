"""``commsim advise``: ways to all-reduce a tensor, ranked; with ``--sweep``, the cheapest topology of a sweep."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.network import ROUTINGS
from commsim.core.placement import RANK_ORDERS
from commsim.core.units import counted, format_bandwidth, format_size, format_time, parse_size
from commsim.report.answer import Answer, Part, Table, remarks
from commsim.sparse.generate import PATTERNS

from .flags import Verb, WithJson, flag, switched
from .flags.costs import TOPOLOGY
from .flags.faults import Faults

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.scenario.advice import Advice, Question
    from commsim.scenario.advice.payoff import SparsePays
    from commsim.scenario.advice.server_gains import Servers
    from commsim.sweep.cheapest import Goal, Offer
    from commsim.sweep.price import Prices

ONLY_TOPOLOGY = ("topology", "workers", "size", "density", "block", "gradients", "servers", "routing", "fail", "scale",
                 "overhead", "reduce_rate", "software")  # fmt: skip
COSTS = ("overhead", "reduce_rate", "software")
MAX_ROWS = 40
_COUNTED = (("nic", "port"), ("cable",), ("switch",))


def density_of_crossover(question: Question, advice: Advice) -> tuple[dict[str, Any] | None, list[str]]:
    """Find from which density on dense ways are faster; return it for the JSON, and remarks."""
    from commsim.scenario.advice.payoff import can_search, density_crossover

    sparse = [row.candidate for row in advice.ranked if row.candidate.way == "sparse"]
    dense = next((row for row in advice.ranked if row.candidate.way not in ("sparse", "lossy")), None)
    if not question.densities or question.gradients is not None or not sparse or dense is None or not dense.result.time:
        return None, []
    first = {candidate.group[0]: candidate.group for candidate in reversed(sparse)}  # of several densities one will do
    specs = [spec for group in reversed(first.values()) for spec in advice.partitioned[group]]
    tried = [spec for spec in specs if can_search(advice.ready[spec], question)]
    untried = sorted({spec.partition(":")[0] for spec in specs if spec not in tried})
    said = []
    if untried:
        said.append(f"crossover without {', '.join(untried)}: data at many densities would take minutes to draw")
    if not tried:
        return None, said
    crossover = density_crossover(question, advice.ready, tried, dense.candidate.spec, dense.result.time)
    labels = {spec: group[0] for group in first.values() for spec in advice.partitioned[group]}
    said.append(_density_sentence(crossover, labels.get(crossover.sparse, ""), dense.candidate.label))
    return {
        "low": crossover.low,
        "high": crossover.high if crossover.high < float("inf") else None,
        "before": crossover.sparse or None,
        "after": crossover.dense,
        "without": untried,
    }, said


def _density_sentence(crossover: SparsePays, sparse: str, dense: str) -> str:
    if not sparse:
        return f"sparse is never faster: {dense} is faster at every density from {crossover.low:.3g} on"
    if crossover.high == float("inf"):
        return f"sparse pays at every density up to {crossover.low:.3g}: there {sparse} is still faster than {dense}"
    return f"sparse pays up to a density of about {crossover.low:.3g}: until then {sparse}, then {dense} is faster"


def gains_of_servers(question: Question, network: Network) -> tuple[dict[str, Any] | None, list[str]]:
    """Find after how many CPU servers BytePS stops gaining; return it for the JSON, and a remark."""
    from commsim.scenario.advice.server_gains import server_gains

    if not question.n_servers or question.n_workers < 2:
        return None, []
    servers = server_gains(question, network)
    return {
        "simulated_s": {str(k): time for k, time in servers.simulated.items()},
        "theory_S_over_B": {str(k): time for k, time in servers.theory.items()},
        "enough": servers.enough,
        "enough_in_theory": servers.enough_in_theory,
    }, [servers_sentence(servers)]


def servers_sentence(servers: Servers) -> str:
    """Describe the number of CPU servers that is enough."""
    most = max(servers.simulated)
    theory = f"on equal links by theorem 1 up to {servers.enough_in_theory}"
    if not most:
        return f"BytePS with CPU servers is too large to be simulated here in seconds; {theory}"
    if not servers.enough:
        return f"BytePS is not faster with up to {most} CPU servers here; {theory}"
    gain = servers.simulated[0] / servers.simulated[servers.enough]
    more = ", and more would help" if servers.enough == most < servers.enough_in_theory else ""
    return f"BytePS gains by CPU servers up to {servers.enough} of {most} tried ({gain:.2f}x of none{more}); {theory}"


class Config(Faults, WithJson):
    """All flags of ``commsim advise``."""

    topology: str | None = flag(metavar=TOPOLOGY, help="network, such as star:n_hosts=16")
    workers: int | None = flag(metavar="N", help="number of ranks (default: all hosts, or the number of gradients)")
    size: str | None = flag(metavar="SIZE", help="size of each worker's tensor, such as 100MiB")
    density: str | None = flag(metavar="D[,D...]", help="share of elements that are not zero, such as 0.01")
    block: int | None = flag(metavar="N", help="length of runs of non-zero elements (default: 256); 1: scattered")
    pattern: str = flag(default="random", choices=PATTERNS, help="where the non-zero elements of each worker are")
    gradients: str | None = flag(metavar="FILE", help="real gradients instead: .npy or .npz file, or a folder")
    servers: int | None = flag(metavar="N", help="hosts that may be servers (default: as many as workers)")
    lossy: bool = switched(help="also rank methods that do not sum all values")
    programmable: bool = switched(help="assume that switches can aggregate, if the network declares no such switch")
    placement: str = flag(default="packed", choices=tuple(RANK_ORDERS), help="placement of the ranks")
    routing: str | None = flag(choices=ROUTINGS, help="routing, in place of the network's own")
    seed: int | None = flag(metavar="N", help="seed of data, faults, random placement and hashes in routing")
    overhead: str | None = flag(metavar="TIME", help="o: time per message at the sender's port")
    software: str | None = flag(
        metavar="NAME",
        help="communication library whose measured rate per port is used, such as nccl-tcp (default: no software cost)",
    )
    reduce_rate: str | None = flag(metavar="RATE", help="1/gamma: rate at which a rank reduces, such as 10GB/s")
    sweep: str | None = flag(
        metavar="FILE.toml",
        help="find the cheapest topology of a sweep, by its tables [cost] and [goal]",
    )
    output: str | None = flag("-o", metavar="DIR", help="with --sweep: keep its results, or continue with them")
    jobs: int | None = flag(metavar="N", help="with --sweep: number of worker processes (default: all processors)")


def run(config: Config) -> Answer:
    """Rank, say why, and find the crossovers."""
    if config.sweep is not None:
        return advise_sweep(config, config.sweep)
    if config.topology is None or config.output is not None or config.jobs is not None:
        wanted = "--output and --jobs go with --sweep" if config.topology else "advise needs --topology, or --sweep"
        raise InputError(wanted)
    from commsim.report.tables_of_questions import table_of_advice
    from commsim.scenario.advice import advise
    from commsim.scenario.contenders import about_assumed, skipped, with_assumed_overhead, without_overhead
    from commsim.scenario.inputs import load_network
    from commsim.scenario.read import changed_network

    loaded, costs = load_network(config.topology), {name: getattr(config, name) for name in COSTS}
    whole, _ = changed_network(loaded, **costs)
    network, drawn = changed_network(loaded, fail=config.fail, scale=config.scale, seed=config.seed or 0, **costs)
    question = _question(config, network)
    assume = config.overhead is None and config.software is None
    costly = with_assumed_overhead(network) if assume else network
    advice = advise(question, network, assume_overhead=assume)
    has_faults = bool(config.fail or config.scale)
    before = _times_of(advise(question, whole, assume_overhead=assume)) if has_faults else None
    title = f"{format_size(question.size)} on {network.name}, {counted(question.n_workers, 'worker')}, engine flow"
    ranked_ways = {row.candidate.label: advice.ready[row.candidate.spec] for row in advice.ranked}
    said = about_assumed(ranked_ways) if costly is not network else without_overhead(network, [question.size])
    crossover, about_density = density_of_crossover(question, advice)
    servers, about_servers = gains_of_servers(question, costly)
    parts = [
        *remarks((*drawn, *_about(question, advice), *advice.notes, *skipped(advice.left_out))),
        table_of_advice(advice, title, before),
        *remarks((*said, *about_density, *about_servers)),
    ]
    more = {"left_out": advice.left_out, "crossovers": {"density": crossover, "servers": servers}}
    rows = [ranked.row() for ranked in advice.ranked]
    if before is not None:
        for row, ranked in zip(rows, advice.ranked, strict=True):
            row["whole_s"] = before.get(ranked.candidate.label)
    return Answer(parts, rows, config.flags("sweep", "output", "jobs"), more)


def _question(config: Config, network: Network) -> Question:
    from commsim.scenario.advice import Question
    from commsim.scenario.advice.question import size_of_gradients

    size = None if config.size is None else float(parse_size(config.size, "--size"))
    n_workers = config.workers
    if config.gradients is not None:
        of_file, n_workers = size_of_gradients(config.gradients, n_workers)
        if size not in (None, of_file):
            raise InputError(f"{config.gradients} holds {of_file:.0f} bytes for each worker, got --size {config.size}")
        size = of_file
    if size is None:
        raise InputError("advise needs --size or --gradients")
    return Question(
        len(network.endpoints) if n_workers is None else n_workers,
        size,
        _densities(config.density),
        block=config.block,
        pattern=config.pattern,
        gradients=config.gradients,
        n_servers=config.servers,
        lossy=config.lossy,
        programmable=config.programmable,
        placement=config.placement,
        routing=config.routing,
        seed=config.seed or 0,
    ).on(network)


def _densities(text: str | None) -> tuple[float, ...]:
    try:
        return () if text is None else tuple(dict.fromkeys(float(part) for part in text.split(",")))
    except ValueError:
        raise InputError(f"--density takes shares such as 0.01 or 0.01,0.1, got {text!r}") from None


def _about(question: Question, advice: Advice) -> list[str]:
    """Describe the data, and how much denser the sum is."""
    if not question.is_sparse:
        return ["all data is assumed dense; --density or --gradients changes that"]
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


def _times_of(advice: Advice) -> dict[str, float]:
    """Time of each way."""
    return {row.candidate.label: row.result.time for row in advice.ranked}


def advise_sweep(config: Config, path: str) -> Answer:
    """Run the sweep, and rank its topologies."""
    from commsim.sweep.cheapest import rank_offers, read_bills, read_goal
    from commsim.sweep.config import read_config
    from commsim.sweep.price import read_prices
    from commsim.sweep.progress import shown
    from commsim.sweep.run import run_sweep
    from commsim.sweep.table import read_table

    if given := config.given(*ONLY_TOPOLOGY):
        raise InputError(f"{given[0]} cannot be used with --sweep: it is set in the file")
    sweep = read_config(path)
    prices, goal = read_prices(sweep.tree, path), read_goal(sweep.tree, path)
    bills = read_bills(sweep, prices)
    with tempfile.TemporaryDirectory() as scratch, shown() as say:
        directory = config.output or scratch
        run_sweep(sweep, directory, jobs=config.jobs, say=say)
        offers = rank_offers(read_table(directory), sweep, bills, goal)
    flags = {"sweep": config.sweep, "config_hash": sweep.hash}
    more = {"goal": {"keep": goal.keep, "bound": goal.bound}, "currency": prices.currency}
    return Answer(_parts_of_offers(offers, prices, goal), [_offer_row(offer) for offer in offers], flags, more)


def _parts_of_offers(offers: Sequence[Offer], prices: Prices, goal: Goal) -> list[Part]:
    columns = ["rank", "topology", f"cost({prices.currency})" if prices.currency else "cost", goal.keep, "keeps",
               "front", "ports", "cables", "switches", "with"]  # fmt: skip
    rows = [
        [
            f"{i}", offer.topology, f"{offer.cost:.10g}", _shown(offer, goal), "yes" if offer.keeps else "no",
            "*" if offer.is_on_front else "", *(str(_count(offer, *items)) for items in _COUNTED),
            offer.chosen or offer.problem,
        ]
        for i, offer in enumerate(offers[:MAX_ROWS], 1)
    ]  # fmt: skip
    side = "at least" if goal.more_is_better else "within"
    title = (
        f"{goal.keep} {side} {_written(goal.bound, goal)}: the worst of all that is asked, each "
        "with what is best for it; * no other is cheaper and as good"
    )
    more = [f"{len(offers) - MAX_ROWS} more are in the JSON"] if len(offers) > MAX_ROWS else []
    return [Table(columns, rows, title), *remarks((*more, *_about_best(offers, prices, f"{goal.keep} {side}", goal)))]


def _about_best(offers: Sequence[Offer], prices: Prices, kept: str, goal: Goal) -> list[str]:
    """Return what the cheapest offer is made of, or that none keeps the goal."""
    best = offers[0]
    if not best.keeps:
        return [f"none of the {len(offers)} topologies keeps {kept} {_written(goal.bound, goal)}"]
    bill = [f"  {line.count} x {line.item} {line.what}: {line.count * line.each:.10g}" for line in best.bill]
    return [f"cheapest: {best.topology} at {best.cost:.10g} {prices.currency}".rstrip(), *bill]


def _count(offer: Offer, *items: str) -> int:
    return sum(line.count for line in offer.bill if line.item in items)


def _shown(offer: Offer, goal: Goal) -> str:
    return "-" if offer.value is None else _written(offer.value, goal)


def _written(value: float, goal: Goal) -> str:
    if goal.column.endswith("_Bps"):
        return format_bandwidth(value)
    return format_time(value) if goal.column.endswith("_s") else f"{value:.4g}"


def _offer_row(offer: Offer) -> dict[str, Any]:
    row = {
        key: getattr(offer, key) for key in ("topology", "cost", "value", "keeps", "is_on_front", "chosen", "problem")
    }
    return row | {"bill": [dataclasses.asdict(line) for line in offer.bill]}


COMMANDS = {"advise": Verb(Config, run)}
