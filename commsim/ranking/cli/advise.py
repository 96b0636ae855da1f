"""``commsim advise``: ways to all-reduce a tensor, or to send tokens to experts."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

from commsim.cli.flags import TOPOLOGY, DefaultOf, Verb, WithJson, flag, switched
from commsim.cli.flags.faults import Faults, Hashes
from commsim.core.errors import InputError
from commsim.core.network import ROUTINGS
from commsim.core.placement import RANK_ORDERS
from commsim.core.remark import Remark
from commsim.core.units import format_time, parse_nccl_size, share
from commsim.report.answer import Answer, Table, remarks
from commsim.sparse.generate import PATTERNS

if TYPE_CHECKING:
    from commsim.ranking.advice.advise import Advice

EXAMPLES = {
    "advise": """
        commsim advise --topology star:n_hosts=8 --size 1MiB
        commsim advise --topology star:n_hosts=8 --ranks 4 --size 1MiB --density 0.01 --crossovers
        commsim advise --topology star:n_hosts=8 --ranks 4 --size 1MiB --density 0.01 --lossy
        commsim advise --topology star:n_hosts=8 --size 1MiB --programmable --json advice.json
        commsim advise --topology star:n_hosts=4 --operation expert_exchange""",
}

COSTS = ("overhead", "reduce_rate", "software")
OPERATIONS = ("all_reduce", "expert_exchange")
# Exit code after Ctrl-C.
INTERRUPTED = 130
# Flags that an exchange of experts has no use for.
OF_TENSORS = ("size", "density", "against", "block", "gradients", "servers", "lossy", "programmable")


class AdviseConfig(Hashes, Faults, WithJson):
    """All flags of ``commsim advise``."""

    topology: str = flag(required=True, metavar=TOPOLOGY, help="network, such as star:n_hosts=16; latency= is per link")
    operation: str = flag(default="all_reduce", choices=OPERATIONS, help="operation to give advice on")
    exchange: str | None = flag(
        metavar="KEY=VALUE,...", help="with expert_exchange: parameters of ep_dispatch, such as hidden=7168,top_k=8"
    )
    workers: int | None = flag(metavar="N", help="number of ranks (default: all hosts, or the number of gradients)")
    size: str | None = flag("-b", metavar="SIZE", help="size of each worker's tensor, such as 100MiB")
    density: str | None = flag(metavar="D[,D...]", help="share of elements that are not zero, such as 0.01 or 1%%")
    against: str | None = flag(
        metavar="NAME",
        help="dense algorithm that --crossovers compares with (default: the fastest); implies --crossovers",
    )
    crossovers: bool = switched(
        help="also find the density above which dense collectives are faster, and the gain from servers; takes longer"
    )
    block: int | None = flag(
        metavar="N",
        help="length of runs of non-zero elements (default: %(usual)s); 1: scattered",
        shown={"usual": DefaultOf("commsim.ranking.advice.question:BLOCK")},
    )
    pattern: str = flag(
        default=DefaultOf("commsim.ranking.advice.question:Question.pattern"),
        choices=PATTERNS,
        help="where the non-zero elements of each worker are",
    )
    gradients: str | None = flag(metavar="FILE", help="real gradients, not random ones: .npy or .npz file, or a folder")
    servers: int | None = flag(metavar="N", help="hosts that may be servers (default: as many as workers)")
    lossy: bool = switched(help="also rank methods that do not sum all values")
    programmable: bool = switched(help="assume that switches can aggregate, if the network declares no such switch")
    placement: str = flag(
        default=DefaultOf("commsim.ranking.advice.question:Question.placement"),
        choices=tuple(RANK_ORDERS),
        help="placement of the ranks",
    )
    routing: str | None = flag(choices=ROUTINGS, help="routing, in place of the network's own")
    seed: int | None = flag(
        metavar="N", help="seed of data, faults, random placement and hashes in routing (default: 0)"
    )
    overhead: str | None = flag(metavar="TIME", help="time per message at the sender's port (o of LogP)")
    software: str | None = flag(
        metavar="NAME",
        help="communication library whose measured rate per port is used, such as nccl-tcp (default: no software cost)",
    )
    reduce_rate: str | None = flag(metavar="RATE", help="rate at which a rank reduces, such as 10GB/s (1/gamma)")


def run(config: AdviseConfig) -> Answer:
    """Rank, say why, and find the crossovers if they are asked for."""
    if config.operation == "expert_exchange":
        return advise_exchange(config)
    if config.exchange is not None:
        raise InputError("--exchange goes with --operation expert_exchange")
    from commsim.prediction.inputs import load_network
    from commsim.ranking.advice.advise import advise_for
    from commsim.ranking.tables_of_questions import parts_of_advice

    if config.size is not None and "," in config.size:
        several = f"commsim bound --operation all_reduce --best --size {config.size}"
        raise InputError(f"--size is one size, got {config.size}: run once for each; dense algorithms only: {several}")
    costs = {name: getattr(config, name) for name in COSTS}
    advice = advise_for(
        load_network(config.topology), None if config.size is None else float(parse_nccl_size(config.size, "--size")),
        n_workers=config.workers, densities=_densities(config.density), block=config.block, pattern=config.pattern,
        gradients=config.gradients, n_servers=config.servers, lossy=config.lossy, programmable=config.programmable,
        placement=config.placement, routing=config.routing, seed=config.seed or 0,
        hashes=config.hashes or 0, fail=config.fail, scale=config.scale, **costs,
    )  # fmt: skip
    advice.require_way(config.against or "")
    left: dict[str, Any] = {"left_out": advice.left_out, "crossovers": {"density": None, "servers": None}}
    ranking = Answer(parts_of_advice(advice), advice.rows(), config.flags(), left)
    if not config.crossovers and config.against is None:
        return ranking
    return dataclasses.replace(ranking, complete=functools.partial(_with_crossovers, ranking, advice, config.against))


def _with_crossovers(ranking: Answer, advice: Advice, against: str | None) -> Answer:
    """Return the ranking with the crossovers; without them where Ctrl-C ends the search."""
    from commsim.ranking.advice.advise import CrossoverAnswer

    crossover, servers, notes, code = CrossoverAnswer(), CrossoverAnswer(), tuple[Remark, ...](), 0
    try:
        crossover, servers = advice.crossover(against or ""), advice.servers()
    except KeyboardInterrupt:
        text = "interrupted: the ranking is complete, the search for crossovers is not"
        notes, code = (Remark("cut-off", text, needed=True),), INTERRUPTED
    parts = [*ranking.parts, *remarks((*crossover.remarks, *servers.remarks, *notes))]
    more = {"left_out": advice.left_out, "crossovers": {"density": crossover.row, "servers": servers.row}}
    return dataclasses.replace(ranking, parts=parts, more=more, code=code, complete=None)


def advise_exchange(config: AdviseConfig) -> Answer:
    """Compare the modes of an exchange of experts by tokens."""
    from commsim.prediction.inputs import load_network
    from commsim.ranking.advice.expert_exchange import MODES, advise_expert_exchange

    if flags := config.given(*OF_TENSORS):
        raise InputError(f"{flags[0]} is of a tensor, and cannot be used with --operation expert_exchange")
    costs = {name: getattr(config, name) for name in COSTS}
    advice = advise_expert_exchange(
        load_network(config.topology), config.exchange or "", n_ranks=config.workers, placement=config.placement,
        routing=config.routing, seed=config.seed, hashes=config.hashes, fail=config.fail, scale=config.scale, **costs,
    )  # fmt: skip
    shown = [
        [str(row["tokens"]), *(format_time(row[f"{mode}_s"]) for mode in MODES), row["best"].replace("_", " ")]
        for row in advice.rows
    ]
    title = "dispatch and combine together, by tokens of a rank"
    table = Table(["tokens", "low latency", "normal", "faster"], shown, title)
    more = {"left_out": [], "crossovers": {"tokens": advice.normal_from}}
    return Answer([table, *remarks(advice.remarks)], list(advice.rows), config.flags(), more)


def _densities(text: str | None) -> tuple[float, ...]:
    return () if text is None else tuple(dict.fromkeys(share(part, "--density") for part in text.split(",")))


COMMANDS = {"advise": Verb(AdviseConfig, run)}
