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
    "switch serve": Verb(serve.Config, serve.run, "be a switch that real workers talk to over UDP"),
    "switch all-reduce": Verb(all_reduce.Config, all_reduce.run, "be a worker of a switch that serves"),
    "switch status": Verb(
        all_reduce.StatusConfig, all_reduce.status, "print jobs, slots and counters of a switch that serves"
    ),
    "switch pcap": Verb(pcap.Config, pcap.run, "reconstruct jobs, losses and repetitions from a capture"),
}
