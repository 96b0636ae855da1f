"""NetReduce: sums under RoCE, whose connections stay those of the hosts, in messages that hold each other back."""

from __future__ import annotations

from commsim.core.errors import InputError
from switch_model.system import System
from switch_model.systems import system
from switch_model.systems.switchml import IMMEDIATE, RETH, ROCE_HEADER

# Values of a packet with RoCE's usual maximum of 1024 bytes on Ethernet: the paper's packets are full, since a device
# beside the switch adds them and no pipeline of a switch limits how many.
ELEMENTS = 256
# The authors' own header was not at hand: the first packet of a message, which is the only one that differs from
# RoCE's, has a place in a ring, a message and a length in 12 bytes.
FIRST = 12


@system
def netreduce(
    elements_per_packet: int = ELEMENTS,
    packets_per_message: int = 16,
    messages: int = 32,
    rto: float = 1e-3,
    header: int = ROCE_HEADER,
) -> System:
    """Add the payloads of RoCE messages on their way; the sum goes on in place of what a host sent.

    A worker has credit for a number of messages. The result of one is the credit for the next, so that messages go in
    order, and marks shrink nothing. A lost packet repeats its message. Floats become integers by a fixed factor; how
    the authors convert them was not at hand.

    Parameters
    ----------
    elements_per_packet : int
        k; 256 fill RoCE's 1024 bytes.
    packets_per_message : int
        A power of two.
    messages : int
        Credit of a worker, and what the device can hold of a job.
    rto : float, s
        Timeout after which a worker repeats a message.
    header : int, bytes
        Size of each packet beside its values, with frame check sequence, preamble and gap.

    Returns
    -------
    System

    References
    ----------
    Liu et al., "In-network aggregation with transport transparency for distributed training", ASPLOS 2023; as
    "NetReduce", arXiv 2009.09736. Length of messages and credit are assumed.
    """
    if messages < 1:
        raise InputError(f"netreduce: messages must be at least 1, got {messages}")
    slots = messages * packets_per_message
    return System(
        "netreduce",
        elements_per_packet,
        packets_per_message=packets_per_message,
        header=header,
        first_header=RETH + FIRST,
        last_header=IMMEDIATE,
        pool_size=slots,
        window=slots,
        sliding=True,
        rto=rto,
        arithmetic="saturate",
        quantizer="fixed",
        max_fan_in=64,
    )
