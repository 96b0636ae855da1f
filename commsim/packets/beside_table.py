"""What the packet engine adds to the table of a prediction: how packets were sent, and what they met with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commsim.core.remark import Remark, as_remarks
from commsim.core.result import Result
from commsim.packets.packet_options import USUAL, name_of, queues_of, told_queues, told_transport
from commsim.report.answer import Lines, Part
from commsim.report.table_of_run import EngineReport

if TYPE_CHECKING:
    from commsim.packets.transports.spraying import Spraying
    from commsim.prediction.scenario import Wish
    from commsim.prediction.solve import Solution

# Counters of the packet engine, and what people read.
PACKETS = {
    "packets": "packets", "retransmissions": "sent again", "duplicates": "came twice", "timeouts": "timeouts",
    "marks": "marked", "trimmed": "trimmed", "drops_full": "dropped at full queues", "drops_loss": "lost on links",
    "pauses": "pauses (PFC)",
}  # fmt: skip


def _told(wish: Wish) -> str:
    """Return how packets are sent, for the heading of a table."""
    return told_transport(wish.model.transport)


def _json(wish: Wish) -> dict[str, Any]:
    """Return further keys of the JSON: where queues of switches mark and pause, where that is given."""
    queues = queues_of(wish.model.transport)
    return {"queues": queues} if queues else {}


def _parts(results: Sequence[Result]) -> list[Part]:
    """Return a line of what packets met with at each size."""
    return [Lines(met_by_packets(result)) for result in results if result.engine == "packet"]


def _remarks(solution: Solution) -> list[Remark]:
    """Describe the queues, and a transport that was never slowed down."""
    results, transport = solution.results, solution.scenario.wish.model.transport
    if results[0].engine != "packet":
        return []
    marked = any(result.counters.get("marks", 0) for result in results)
    queues = told_queues(transport, solution.plan.network, marked=marked)
    return [
        *as_remarks(queues, "queues"),
        *(Remark("transport-unmet", line, needed=True) for line in unmet(results, transport)),
    ]


def met_by_packets(result: Result, whose: str = "") -> tuple[str, ...]:
    """Return a line of what packets met with, where some did; `whose` they are, where the size does not say it."""
    met = {name: words for name, words in PACKETS.items() if result.counters.get(name, 0) or name == "packets"}
    known = [f"{result.counters[name]:.0f} {words}" for name, words in met.items() if name in result.counters]
    queue = result.counters.get("peak_queue_bytes")
    known += [] if queue is None else [f"longest queue {queue:.0f} B"]
    return (f"# packets of {whose or f'{result.size:.0f} B'} : {', '.join(known)}",) if known else ()


def unmet(results: Sequence[Result], transport: Spraying | None) -> list[str]:
    """Say that a transport that marks slow down had none, so that it takes as long as one that ignores them.

    Parameters
    ----------
    results : sequence of Result
        Predictions of the packet engine.
    transport : Spraying, optional
        How packets were sent.
    """
    if transport is None or not transport.on_path or transport.window is not None:
        return []
    name, rules = name_of(transport), transport.settled[0]
    if name == USUAL or not rules.usual_path or (rules.ack_packets and transport.ack_every != 1):
        return []  # one that answers several packets at once answers fewer than the window does
    slowing = ("marks", "drops_full", "drops_loss", "trimmed", "pauses", "timeouts")
    if any(result.counters.get(key, 0) for result in results for key in slowing):
        return []
    return [f"no packet was marked, lost or paused: {name} takes as long here as the transport window"]


PACKET = EngineReport(_told, _json, _parts, _remarks)
