"""How each job of a run sends its packets, where it says so itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from commsim.core.network import Network
from commsim.core.remark import Remark
from commsim.core.units import format_size
from commsim.packets.packet_options import packets_of, told_briefly
from commsim.prediction.plans.dense import Plan
from commsim.prediction.scenario import Wish

from .job_entries import JobEntry

if TYPE_CHECKING:
    from commsim.packets.transports.spraying import Spraying

__all__ = ["own_transport", "transports_of", "without_pauses"]


def own_transport(constants: Mapping[str, Any] | None, network: Network, wish: Wish) -> Spraying | None:
    """Return how the packets of an entry are sent which says so itself; None as the run's.

    Losses, shared buffers and pauses are the run's; queues are as deep as it says where the entry does not. Packets
    that are trimmed wait for no pause.

    Parameters
    ----------
    constants : mapping of str to value or None
        What the entry says.
    network, wish : Network, Wish
        Network of the run, and what the run says.
    """
    if not constants:
        return None
    own, run = packets_of(constants, network), wish.model.transport
    if run is None:
        return own
    names = {"loss", "loss_burst", "shared_buffer", "alpha"} | (set() if own.trims else {"pause_at", "resume_at"})
    queue = own.queue if "buffer" in constants or run.queue is None else run.queue
    return dataclasses.replace(own, queue=queue, **{name: getattr(run, name) for name in names})


def transports_of(entries: Sequence[JobEntry], plans: Sequence[Plan], network: Network, wish: Wish) -> tuple[str, ...]:
    """Return how the packets of each job are sent where jobs say it themselves; empty where none does.

    Parameters
    ----------
    entries, plans : sequence of JobEntry and of Plan
        Jobs; packets of a switch system go by its name.
    network, wish
        Same as in :func:`own_transport`.
    """
    if wish.engine != "packet" or not any(entry.packets for entry in entries):
        return ()
    each = zip(entries, plans, strict=True)
    return tuple(
        plan.schedule.name if plan.in_slots
        else told_briefly(own_transport(entry.packets, network, wish) or wish.model.transport)
        for entry, plan in each
    )  # fmt: skip


def without_pauses(entries: Sequence[JobEntry], network: Network, wish: Wish) -> list[Remark]:
    """Describe jobs whose transport usually meets links that pause, in a run whose links do not."""
    if wish.engine != "packet" or (wish.model.transport is not None and wish.model.transport.pause_at):
        return []
    own = {entry.name: packets_of(entry.packets, network) for entry in entries if entry.packets}
    return [
        Remark(
            "no-pauses",
            f"{name}: no link pauses (PFC) here; --pause {format_size(how.pause_at)} is usual for {told_briefly(how)}",
            needed=True,
        )
        for name, how in own.items()
        if how.pause_at
    ]
