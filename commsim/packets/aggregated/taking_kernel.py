"""What takes a packet of a job that switches aggregate at the end of its stream."""

from __future__ import annotations

from commsim.core.jit import njit_norefcount
from commsim.packets.aggregated.aggregator_kernel import on_contribution, on_result, on_server, on_unit
from commsim.packets.aggregated.traffic_state import AggregationState
from commsim.packets.aggregated.worker_kernel import on_worker_result
from commsim.packets.codes import CONTRIBUTION, TO_AGGREGATOR, TO_SERVER, TO_UNIT, TO_WORKER
from commsim.packets.packet_rows import RunState


@njit_norefcount
def take(fabric: RunState, jobs: AggregationState, p: int) -> None:
    """Handle a packet of an aggregation job at the end of its stream."""
    target = fabric.stream[fabric.packet[p]["stream"]]["target"]
    if target == TO_WORKER:
        on_worker_result(fabric, jobs, p)
    elif target == TO_AGGREGATOR:
        if fabric.packet[p]["kind"] == CONTRIBUTION:
            on_contribution(fabric, jobs, p)
        else:
            on_result(fabric, jobs, p)
    elif target == TO_SERVER:
        on_server(fabric, jobs, p)
    elif target == TO_UNIT:
        on_unit(fabric, jobs, p)
