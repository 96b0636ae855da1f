"""``commsim switch``: switches that aggregate, simulated, budgeted, served and captured."""

from __future__ import annotations

from commsim.cli.flags import Verb

from . import all_reduce, budget, pcap, serve, simulate

COMMANDS = {
    "switch simulate": Verb(
        simulate.Config,
        simulate.run,
        "simulate in-network aggregation packet by packet, with losses, in the arithmetic of the hardware",
    ),
    "switch budget": Verb(
        budget.Config, budget.run, "print whether a pool fits into a programmable switch, and what would fit"
    ),
    "switch serve": Verb(serve.Config, serve.run, "serve real workers over UDP, as a switch"),
    "switch all-reduce": Verb(all_reduce.Config, all_reduce.run, "sum tensors as a worker of a running switch"),
    "switch status": Verb(
        all_reduce.StatusConfig, all_reduce.status, "print jobs, slots and counters of a running switch"
    ),
    "switch pcap": Verb(pcap.Config, pcap.run, "reconstruct jobs, retransmissions and duplicates from a capture"),
}
