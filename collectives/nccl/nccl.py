"""The collectives of NCCL that have algorithms and protocols, as schedules of what its channels send."""

from __future__ import annotations

from commsim.core.schedule import Schedule

from .. import collective
from .launch import SIZE, VERSION, Algorithm, Asked, Choice, Machines, launch


@collective("all_reduce", needs=("nccl",))
def nccl_all_reduce(
    n_ranks: int,
    algorithm: Algorithm = "auto",
    protocol: Choice = "auto",
    channels: int | None = None,
    version: str = VERSION,
    n_bytes: int = SIZE,
    machines: Machines | None = None,
) -> Schedule:
    """All-reduce of NCCL over C rings, one loop: 2(p-1)(C o + L + S/(pB)) + (p-1) gamma S/p seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    algorithm : {"auto", "ring", "tree", "nvls", "nvls_tree", "collnet_direct", "collnet_chain"}
        ``commsim run`` takes what NCCL would choose at each size; without a network it is a ring.
        ``collnet`` is the chain.
    protocol : {"auto", "ll", "ll128", "simple"}
        Decides chunks, and in ``commsim run`` bytes on the wire; likewise chosen, else Simple.
    channels : int, optional
        C of the communicator, of which small calls use fewer. What NCCL's search finds, else 2.
    version : str
        Of NCCL, 2.8 to 2.30.
    n_bytes : int
        Of the array that is cut into chunks; ``commsim run`` takes each size that it runs.
    machines : tuple of tuple of int, optional
        Ranks of each machine; ``commsim run`` takes them from the network. All in one unless given.

    Returns
    -------
    Schedule
        Every channel is a ring, or a tree, over an equal part of the array, on connections of its own. Rings leave and
        enter machines by the rail of the channel. A ring's chunks are 2 MiB in two slices with Simple; loops follow
        each other, the last with smaller chunks. With NVLink SHARP each machine has a helper, its switch.

    Raises
    ------
    InputError
        If algorithm, protocol and version exclude each other, or the algorithm does not fit the machines.

    References
    ----------
    NCCL 2.30.7, ``src/enqueue.cc`` and ``src/device/all_reduce.h``; the rules are in :mod:`collectives.nccl.rules`.
    """
    asked = Asked("nccl_all_reduce", "all_reduce", n_ranks, algorithm, protocol, channels, version, n_bytes, machines)
    return launch(asked)


@collective("all_gather", needs=("nccl",))
def nccl_all_gather(
    n_ranks: int,
    algorithm: Algorithm = "auto",
    protocol: Choice = "auto",
    channels: int | None = None,
    version: str = VERSION,
    n_bytes: int = SIZE,
    machines: Machines | None = None,
) -> Schedule:
    """All-gather of NCCL over C rings, one loop: (p-1)(C o + L + S/(pB)) seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    algorithm : {"auto", "ring", "nvls", "pat"}
        ``commsim run`` takes what NCCL would choose at each size; without a network it is a ring.
    protocol : {"auto", "ll", "ll128", "simple"}
        Decides chunks, and in ``commsim run`` bytes on the wire; likewise chosen, else Simple.
    channels : int, optional
        C of the communicator, of which small calls use fewer. What NCCL's search finds, else 2.
    version : str
        Of NCCL, 2.8 to 2.30.
    n_bytes : int
        Of the array that is cut into chunks; ``commsim run`` takes each size that it runs.
    machines : tuple of tuple of int, optional
        Ranks of each machine; ``commsim run`` takes them from the network. All in one unless given.

    Returns
    -------
    Schedule
        A ring for each channel; or each rank's part, multicast by the switch; or, with PAT, a binomial tree for each
        rank's part, the farthest step first.

    Raises
    ------
    InputError
        If algorithm, protocol and version exclude each other, or the algorithm does not fit the machines.

    References
    ----------
    NCCL 2.30.7, ``src/enqueue.cc`` and ``src/device/all_gather.h``; the rules are in :mod:`collectives.nccl.rules`.
    """
    asked = Asked("nccl_all_gather", "all_gather", n_ranks, algorithm, protocol, channels, version, n_bytes, machines)
    return launch(asked)


@collective("reduce_scatter", needs=("nccl",))
def nccl_reduce_scatter(
    n_ranks: int,
    algorithm: Algorithm = "auto",
    protocol: Choice = "auto",
    channels: int | None = None,
    version: str = VERSION,
    n_bytes: int = SIZE,
    machines: Machines | None = None,
) -> Schedule:
    """Reduce-scatter of NCCL over C rings, one loop: (p-1)(C o + L + S/(pB) + gamma S/p) seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    algorithm : {"auto", "ring", "nvls", "pat"}
        ``commsim run`` takes what NCCL would choose at each size; without a network it is a ring.
    protocol : {"auto", "ll", "ll128", "simple"}
        Decides chunks, and in ``commsim run`` bytes on the wire; likewise chosen, else Simple.
    channels : int, optional
        C of the communicator, of which small calls use fewer. What NCCL's search finds, else 2.
    version : str
        Of NCCL, 2.8 to 2.30.
    n_bytes : int
        Of the array that is cut into chunks; ``commsim run`` takes each size that it runs.
    machines : tuple of tuple of int, optional
        Ranks of each machine; ``commsim run`` takes them from the network. All in one unless given.

    Returns
    -------
    Schedule
        A ring for each channel; or each rank's part, added by the switch; or, with PAT, a binomial tree for each
        rank's part, the nearest step first.

    Raises
    ------
    InputError
        If algorithm, protocol and version exclude each other, or the algorithm does not fit the machines.

    References
    ----------
    NCCL 2.30.7, ``src/enqueue.cc`` and ``src/device/reduce_scatter.h``; the rules are in :mod:`collectives.nccl.rules`.
    """
    asked = Asked(
        "nccl_reduce_scatter", "reduce_scatter", n_ranks, algorithm, protocol, channels, version, n_bytes, machines
    )
    return launch(asked)


@collective("broadcast", needs=("nccl",))
def nccl_broadcast(
    n_ranks: int,
    algorithm: Algorithm = "auto",
    protocol: Choice = "auto",
    channels: int | None = None,
    version: str = VERSION,
    n_bytes: int = SIZE,
    machines: Machines | None = None,
    root: int = 0,
) -> Schedule:
    """Broadcast of NCCL over C chains, k chunks in all: (p-2+k/C)(C o + C S/(kB)) + (p-1)L seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    algorithm : {"auto", "ring"}
        ``commsim run`` takes what NCCL would choose at each size; without a network it is a ring.
    protocol : {"auto", "ll", "ll128", "simple"}
        Decides chunks, and in ``commsim run`` bytes on the wire; likewise chosen, else Simple.
    channels : int, optional
        C of the communicator, of which small calls use fewer. What NCCL's search finds, else 2.
    version : str
        Of NCCL, 2.8 to 2.30.
    n_bytes : int
        Of the array that is cut into chunks; ``commsim run`` takes each size that it runs.
    machines : tuple of tuple of int, optional
        Ranks of each machine; ``commsim run`` takes them from the network. All in one unless given.
    root : int
        Rank that has the data.

    Returns
    -------
    Schedule
        A chain for each channel, from the root through its ring; chunks are one step of the protocol.

    Raises
    ------
    InputError
        If algorithm, protocol and version exclude each other, or the algorithm does not fit the machines.

    References
    ----------
    NCCL 2.30.7, ``src/enqueue.cc`` and ``src/device/broadcast.h``; the rules are in :mod:`collectives.nccl.rules`.
    """
    asked = Asked("nccl_broadcast", "broadcast", n_ranks, algorithm, protocol, channels, version, n_bytes, machines)
    return launch(asked, root)


@collective("reduce", needs=("nccl",))
def nccl_reduce(
    n_ranks: int,
    algorithm: Algorithm = "auto",
    protocol: Choice = "auto",
    channels: int | None = None,
    version: str = VERSION,
    n_bytes: int = SIZE,
    machines: Machines | None = None,
    root: int = 0,
) -> Schedule:
    """Reduce of NCCL over C chains, k chunks in all: (p-2+k/C)(C o + C S/(kB)) + (p-1)(L + C gamma S/k) seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    algorithm : {"auto", "ring"}
        ``commsim run`` takes what NCCL would choose at each size; without a network it is a ring.
    protocol : {"auto", "ll", "ll128", "simple"}
        Decides chunks, and in ``commsim run`` bytes on the wire; likewise chosen, else Simple.
    channels : int, optional
        C of the communicator, of which small calls use fewer. What NCCL's search finds, else 2.
    version : str
        Of NCCL, 2.8 to 2.30.
    n_bytes : int
        Of the array that is cut into chunks; ``commsim run`` takes each size that it runs.
    machines : tuple of tuple of int, optional
        Ranks of each machine; ``commsim run`` takes them from the network. All in one unless given.
    root : int
        Rank that gets the sum.

    Returns
    -------
    Schedule
        A chain for each channel, through its ring to the root; chunks are one step of the protocol.

    Raises
    ------
    InputError
        If algorithm, protocol and version exclude each other, or the algorithm does not fit the machines.

    References
    ----------
    NCCL 2.30.7, ``src/enqueue.cc`` and ``src/device/reduce.h``; the rules are in :mod:`collectives.nccl.rules`.
    """
    asked = Asked("nccl_reduce", "reduce", n_ranks, algorithm, protocol, channels, version, n_bytes, machines)
    return launch(asked, root)
