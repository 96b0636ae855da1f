"""``commsim switch``: switches that aggregate, simulated, budgeted, served and captured."""

from __future__ import annotations

from commsim.cli.flags import Verb

from . import budget, pcap, simulate

COMMANDS = {
    "switch simulate": Verb(
        simulate.SwitchSimulateConfig,
        simulate.run,
        "simulate in-network aggregation packet by packet, with losses, in the arithmetic of the hardware",
    ),
    "switch budget": Verb(
        budget.SwitchBudgetConfig,
        budget.run,
        "print whether a pool fits into a programmable switch, and what would fit",
    ),
    "switch pcap": Verb(
        pcap.SwitchPcapConfig, pcap.run, "reconstruct jobs, retransmissions and duplicates from a capture"
    ),
}
