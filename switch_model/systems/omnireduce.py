"""OmniReduce: hosts that add blocks, and workers that send only blocks which are not all zero."""

from __future__ import annotations

from commsim.core.errors import InputError
from switch_model.system import COLOCATED, DEDICATED, System
from switch_model.systems import system

OFFSET, SLOT, KIND = 4, 2, 1  # bytes: of a block's offset and the next one's; of slot and version; of the numbers' type
# Ethernet 14, IPv4 20, UDP 8, the fields; then frame check sequence 4, preamble and gap 20
HEADER = 14 + 20 + 8 + OFFSET + SLOT + OFFSET + KIND + 24
SMALLEST = 64 + 20  # an Ethernet frame is filled up to 64 bytes; with preamble and gap


@system
def omnireduce(
    block: int = 256,
    n_aggregators: int = 8,
    colocated: bool = False,
    cores: int = 4,
    slots: int = 64,
    rto: float = 1e-3,
    header: int = HEADER,
) -> System:
    """Stream blocks over UDP with loss recovery, as the DPDK version does; one packet is one block.

    The rule of a slot is SwitchML's: every worker answers every round, with a block or with an empty packet, and two
    versions of each slot with a bit per worker tell repeated packets. A slot goes from one block that some worker has
    to the next in its column, which are the blocks of a core's share of the tensor that are `slots` apart.

    Here a worker waits `rto` in its first burst too, where the authors wait longer.

    Parameters
    ----------
    block : int
        Elements of a block; all that a packet holds.
    n_aggregators : int
        Hosts that add; slot j is served by number j mod n_aggregators.
    colocated : bool
        Aggregators sit on the first workers' hosts; else on hosts of their own.
    cores : int
        Shares of the tensor that are streamed side by side.
    slots : int
        Blocks that each of them has outstanding.
    rto : float, s
        Timeout after which a worker repeats.
    header : int, bytes
        Size of each packet beside its values, with frame check sequence, preamble and gap.

    Returns
    -------
    System

    References
    ----------
    Fei et al., "Efficient sparse collective communication and its application to accelerate distributed deep learning",
    SIGCOMM 2021; header, slots and time-out of its public code (sands-lab/omnireduce, the DPDK version).
    """
    for name, value in (("cores", cores), ("slots", slots)):
        if value < 1:
            raise InputError(f"omnireduce: {name} must be at least 1, got {value}")
    return System(
        "omnireduce",
        block,
        header=header,
        smallest=SMALLEST,
        pool_size=cores * slots,
        window=cores * slots,
        cores=cores,
        rto=rto,
        quantizer="none",
        n_trees=n_aggregators,
        hosts=COLOCATED if colocated else DEDICATED,
        max_fan_in=64,
    )
