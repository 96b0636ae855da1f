"""The collectives of NCCL that have algorithms and protocols, as schedules of what its channels send."""

from __future__ import annotations

from .builders import Text, nccl_collective
from .call import ALLOWED


def _source(kernel: str) -> str:
    return (
        f"NCCL 2.30.7, ``src/enqueue.cc`` and ``src/device/{kernel}.h``; the rules are in "
        ":mod:`collectives.nccl.rules`."
    )


nccl_all_reduce = nccl_collective("nccl_all_reduce", "all_reduce", Text(
    "All-reduce of NCCL over C rings, one loop: 2(p-1)(C o + L + S/(pB)) + (p-1) gamma S/p seconds.",
    (*ALLOWED["all_reduce"], "collnet"),
    """Every channel is a ring, or a tree, over an equal part of the array, on connections of its own. Rings leave and
    enter machines by the rail of the channel. A ring's chunks are 2 MiB in two slices with Simple; loops follow
    each other, the last with smaller chunks. With NVLink SHARP each machine has a helper, its switch; CollNet has
    one in the network, and is a chain unless it is called ``collnet_direct``.""",
    _source("all_reduce"),
))  # fmt: skip

nccl_all_gather = nccl_collective("nccl_all_gather", "all_gather", Text(
    "All-gather of NCCL over C rings, one loop: (p-1)(C o + L + S/(pB)) seconds.",
    ALLOWED["all_gather"],
    """A ring for each channel; or each rank's part, multicast by the switch; or, with PAT, a binomial tree for each
    rank's part, the farthest step first. With CollNet, and with NVLink SHARP on several machines, switches of the
    network pass a rank's part to its rail, and the members of the rail pass it to their machines.""",
    _source("all_gather"),
))  # fmt: skip

nccl_reduce_scatter = nccl_collective("nccl_reduce_scatter", "reduce_scatter", Text(
    "Reduce-scatter of NCCL over C rings, one loop: (p-1)(C o + L + S/(pB) + gamma S/p) seconds.",
    ALLOWED["reduce_scatter"],
    """A ring for each channel; or each rank's part, added by the switch; or, with PAT, a binomial tree for each
    rank's part, the nearest step first. With CollNet, and with NVLink SHARP on several machines, a machine's part
    is added by the member of the rank's rail, and then by the switches of the network.""",
    _source("reduce_scatter"),
))  # fmt: skip

nccl_broadcast = nccl_collective("nccl_broadcast", "broadcast", Text(
    "Broadcast of NCCL over C chains, k chunks in all: (p-2+k/C)(C o + C S/(kB)) + (p-1)L seconds.",
    ALLOWED["broadcast"],
    "A chain for each channel, from the root through its ring; chunks are one step of the protocol.",
    _source("broadcast"),
    "Rank that has the data.",
))  # fmt: skip

nccl_reduce = nccl_collective("nccl_reduce", "reduce", Text(
    "Reduce of NCCL over C chains, k chunks in all: (p-2+k/C)(C o + C S/(kB)) + (p-1)(L + C gamma S/k) seconds.",
    ALLOWED["reduce"],
    "A chain for each channel, through its ring to the root; chunks are one step of the protocol.",
    _source("reduce"),
    "Rank that gets the sum.",
))  # fmt: skip
