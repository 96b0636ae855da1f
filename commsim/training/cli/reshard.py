"""``commsim workload reshard``: a piece of a tensor moved from one mesh to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commsim.cli.flags import OVERHEAD, TOPOLOGY, DefaultOf, WithJson, flag
from commsim.cli.flags.faults import Hashes
from commsim.core.errors import InputError
from commsim.core.units import format_time, parse_bandwidth, parse_nccl_size
from commsim.report.answer import Answer, Table
from commsim.report.hash_columns import with_ends

if TYPE_CHECKING:
    pass


class ReshardConfig(Hashes, WithJson):
    """All flags of ``commsim workload reshard``."""

    size: str = flag("-b", required=True, metavar="SIZE", help="size of the piece")
    receivers: int = flag(required=True, metavar="A", help="hosts that need it")
    chunks: int = flag(
        default=DefaultOf("commsim.training.parallel.resharding:CHUNKS"), metavar="K", help="chunks of a broadcast"
    )
    bandwidth: str | None = flag(metavar="RATE", help="rate of each host in each direction, for the closed forms")
    local_bandwidth: str | None = flag(metavar="RATE", help="rate between the receivers, if they have another network")
    network: str | None = flag(metavar=TOPOLOGY, help="simulate on this network; the first host of --placement sends")
    placement: str = flag(
        default=DefaultOf("commsim.core.placement:PACKED"),
        metavar="NAME|FILE",
        help="placement of sender and receivers",
    )
    overhead: str | None = flag(
        metavar="TIME",
        help="with --network: time per message at the sender (default: %(usual)s)",
        shown={"usual": OVERHEAD},
    )


def run_reshard(config: ReshardConfig) -> Answer:
    """Return what each strategy takes."""
    from commsim.training.parallel.resharding import STRATEGIES

    if config.bandwidth is None and config.network is None:
        raise InputError("give --bandwidth RATE for the closed forms, --network SPEC to simulate, or both")
    if config.local_bandwidth is not None and config.bandwidth is None:
        raise InputError("--local-bandwidth goes with --bandwidth")
    if config.given("placement") and config.network is None:
        raise InputError("--placement goes with --network")
    if config.hashes is not None and config.network is None:
        raise InputError("--hashes goes with --network: the closed forms have no routes")
    if config.overhead is not None and config.network is None:
        raise InputError("--overhead goes with --network: the closed forms have none")
    rows = [_reshard_row(config, strategy) for strategy in STRATEGIES]
    title = f"{config.size} from one host to {config.receivers}"
    shown = [
        [row["strategy"], *("-" if row[key] is None else format_time(row[key]) for key in ("closed_form_s", "flow_s"))]
        for row in rows
    ]
    table = Table(*with_ends(["strategy", "closed form", "simulated"], shown, 3, rows), title)
    return Answer([table], rows)


def _reshard_row(config: ReshardConfig, strategy: str) -> dict[str, Any]:
    from commsim.training.parallel.resharding import resharding_result, resharding_time

    size = parse_nccl_size(config.size, "--size")
    closed = simulated = None
    drawn: dict[str, float] = {}
    if config.bandwidth is not None:
        local = None
        if config.local_bandwidth is not None:
            local = parse_bandwidth(config.local_bandwidth, "--local-bandwidth")
        rate = parse_bandwidth(config.bandwidth, "--bandwidth")
        closed = resharding_time(strategy, size, rate, config.receivers, n_chunks=config.chunks, local_bandwidth=local)
    if config.network is not None:
        found = resharding_result(
            strategy, size, config.network, config.receivers, n_chunks=config.chunks, placement=config.placement,
            overhead=config.overhead, hashes=config.hashes,
        )  # fmt: skip
        simulated, drawn = found.time, found.spread_row()
    return {"strategy": strategy, "size_B": size, "closed_form_s": closed, "flow_s": simulated, **drawn}
