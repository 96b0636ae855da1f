"""Measures of clusters: what a policy, or a way to place jobs, gains over another on the same traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .measures import simulated

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.placement.clusters.models import Assumptions

# Rows of replays by all that they depend on: figures ask for several numbers of the same runs.
_KNOWN: dict[str, Mapping[str, Any]] = {}


@simulated
def cluster_gain(
    trace: str,
    policy: str,
    over: str,
    metric: str = "jct_mean_s",
    hosts: int = 16,
    gpus: int = 4,
    seeds: Sequence[int] = (1, 2, 3),
    placing: str = "packed",
    over_placing: str = "packed",
    models: Mapping[str, Mapping[str, Any]] | None = None,
    kinds: Sequence[str] = ("",),
    cpu: float = 0.0,
    contended: float = 1.0,
    per_rack: int = 4,
) -> float:
    """How many times less a number of `policy` is than that of another one, geometric mean over the seeds of a trace.

    Parameters
    ----------
    trace : str
        Trace in the form of ``commsim cluster run --trace``, without its seed.
    policy, over, placing, over_placing : str
        What is measured, and what it is compared with.
    metric : str
        A key of :meth:`commsim.placement.clusters.outcome.ClusterReplay.row`.
    hosts, gpus, per_rack : int
        Shape of a leaf-spine with ports of 50 Gb/s, 2:1 oversubscribed: hosts, GPUs of each, hosts of a rack.
    models : mapping of str to fields, optional
        The only models that are drawn; :class:`commsim.placement.clusters.models.TrainedModel` has the fields.
    kinds : sequence of str
        Types of GPUs; hosts have them in turn.
    cpu, contended : float
        CPUs of a host, unless 0; share of an overloaded link's rate that jobs reach.
    """
    from commsim.placement.clusters.models import MODELS, Assumptions, HostKind, TrainedModel
    from commsim.prediction.inputs import load_network

    shape = f"n_leaves={hosts // per_rack},n_spines=2,hosts_per_leaf={per_rack}"
    network = load_network(f"leaf_spine:{shape},bandwidth=50Gbps,oversubscription=2")
    names = [network.nodes[i] for i in network.hosts]
    each = {name: HostKind(kinds[i % len(kinds)], cpu) for i, name in enumerate(names)}
    table = MODELS if models is None else {name: TrainedModel(name, **fields) for name, fields in models.items()}
    assumed = Assumptions(table, hosts=each, contended=contended)
    gains = []
    for seed in seeds:
        runs = [(f"{trace},seed={seed}", name, how, seed) for name, how in ((policy, placing), (over, over_placing))]
        ours, theirs = (_replayed(network, gpus, assumed, *run)[metric] for run in runs)
        gains.append(theirs / ours)
    return float(np.exp(np.mean(np.log(gains))))


def _replayed(
    network: Network, gpus: int, assumed: Assumptions, trace: str, policy: str, placing: str, seed: int
) -> Mapping[str, Any]:
    """Replay a trace, once."""
    from commsim.placement.cluster import Cluster
    from commsim.placement.clusters.machines import machines_of
    from commsim.placement.clusters.placement_choices import known_placing
    from commsim.placement.clusters.simulate import simulate_cluster
    from commsim.placement.clusters.traces import load_trace

    key = repr((network.name, gpus, assumed, trace, policy, placing, seed))
    if key not in _KNOWN:
        seats = np.zeros(network.n_nodes, np.int64)
        seats[network.hosts] = gpus
        machines = machines_of(Cluster(network, seats), assumed)
        jobs = load_trace(trace, machines.n_gpus, assumed.models)
        run = simulate_cluster(machines, jobs, policy, placing=known_placing(placing), assumed=assumed, seed=seed)
        _KNOWN[key] = run.row()
    return _KNOWN[key]
