"""What to give Slurm's sbatch so that a job lands where a placement says."""

from __future__ import annotations

from collections.abc import Sequence

from commsim.core.errors import InputError

from .fabric_tree import Tree
from .hostlist import compress_hosts


def sbatch_options(tree: Tree, placement: Sequence[str]) -> str:
    """Options that pin a job to the hosts of a placement.

    Parameters
    ----------
    tree : Tree
        What the scheduler knows.
    placement : sequence of str
        The host of each rank.

    Returns
    -------
    str
        ``--nodes``, ``--nodelist`` and ``--switches``. Hosts come in the order of Slurm's own choice, not of the
        ranks: if ranks do not rise with the hosts' names, ``--distribution=arbitrary`` and SLURM_HOSTFILE keep theirs.
        ``--switches`` counts leaf switches, and Slurm waits for them at most its max_switch_wait (300 s).

    Raises
    ------
    InputError
        If a host is not in the tree.
    """
    hosts, layers = tuple(dict.fromkeys(placement)), tree.layers()
    for host in hosts:
        if host not in layers:
            raise InputError(f"the placement names {host!r}, which is not a node of the tree")
    n_leaves = len({layers[host][0] for host in hosts})
    return f"--nodes={len(hosts)} --nodelist={compress_hosts(hosts)} --switches={n_leaves}"
