"""The kinds of nodes that a network has, and what each may do unless the network says otherwise."""

from __future__ import annotations

HOST, SWITCH, GPU, CPU, NIC, MEMORY = range(6)
KINDS = ("host", "switch", "gpu", "cpu", "nic", "memory")

FORWARDING = (SWITCH, CPU, NIC)
"""Traffic of others may pass through these. Through a GPU it passes only where the network says so."""

AGGREGATING = (HOST, GPU, CPU, MEMORY)
"""A helper, such as a parameter server, may sit on these."""

SEATS = (GPU, HOST, MEMORY)
"""A rank may sit on these; by default on the first of them that the network has."""

PLURALS = ("hosts", "switches", "GPUs", "CPUs", "NICs", "memories")
