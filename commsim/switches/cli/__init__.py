"""``commsim switch``: switches that aggregate, simulated, proved, budgeted, served and captured."""

from __future__ import annotations

from commsim.cli.flags import Verb

from . import budget, pcap, prove, simulate
from .simulate_flags import SwitchSimulateConfig

EXAMPLES = {
    "switch": """
        commsim switch simulate --system switchml-rdma --workers 4 --size 64KiB --loss 0,0.01
        commsim switch simulate --system switchml-udp --workers 4 --size 64KiB --pcap packets.pcap
        commsim switch pcap packets.pcap
        commsim switch prove --system switchml --workers 3 --slots 2 --chunks 4
        commsim switch budget --system switchml-rdma --hardware tofino-1 --pool-size 512
        commsim switch serve & sleep 2; commsim switch all-reduce --rank 0 --workers 2 & \
            commsim switch all-reduce --rank 1 --workers 2; commsim switch status; kill %1""",
}

COMMANDS = {
    "switch simulate": Verb(
        SwitchSimulateConfig,
        simulate.run,
        "simulate in-network aggregation packet by packet, with losses, in the arithmetic of the hardware",
    ),
    "switch budget": Verb(
        budget.SwitchBudgetConfig,
        budget.run,
        "print whether a pool fits into a programmable switch, and what would fit",
    ),
    "switch prove": Verb(
        prove.SwitchProveConfig,
        prove.run,
        "explore every state of an aggregation protocol; exit with 1 and the shortest trace if an invariant is broken",
    ),
    "switch pcap": Verb(
        pcap.SwitchPcapConfig, pcap.run, "reconstruct jobs, retransmissions and duplicates from a capture"
    ),
}
