"""Names that papers have for registered collectives, and other spellings of registered names."""

from __future__ import annotations

from pathlib import Path

from collectives import COLLECTIVES
from commsim.core.registry import usual_spelling

# By the name in papers; switch systems that are versions of one collective are its parameter.
KNOWN_AS = {
    "rabenseifner": "halving_doubling_all_reduce", "recursive_halving_doubling": "halving_doubling_all_reduce",
    "double_binary_tree": "double_tree_all_reduce", "bucket": "torus_all_reduce", "2d_ring": "torus_all_reduce",
    "ps": "parameter_server", "switchml_udp": "switchml:system=switchml_udp",
    "switchml_rdma": "switchml:system=switchml_rdma",
}  # fmt: skip


def known_as(name: str) -> str:
    """Return the registered collective that a name spells with other case or hyphens, or has in papers; else itself."""
    if name in COLLECTIVES or Path(name).suffix:
        return name
    of_papers = usual_spelling(name, KNOWN_AS), usual_spelling(name.removesuffix("_all_reduce"), KNOWN_AS)
    return next((KNOWN_AS[one] for one in of_papers if one in KNOWN_AS), usual_spelling(name, COLLECTIVES))
