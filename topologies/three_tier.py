"""The three-tier Clos of pods: rack, pod and core switches, with a choice of oversubscription at each tier."""

from __future__ import annotations

import math

import numpy as np

from commsim.core.errors import InputError
from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.core.units import Bandwidth, Seconds

from . import LINK_BANDWIDTH, LINK_LATENCY, require_at_least, require_buildable, topology


@topology(sized_by=("hosts_per_rack", "racks_per_pod", "n_pods"))
def three_tier(
    n_pods: int,
    racks_per_pod: int,
    hosts_per_rack: int,
    switches_per_pod: int,
    n_cores: int,
    bandwidth: Bandwidth = LINK_BANDWIDTH,
    rack_oversubscription: float = 1.0,
    pod_oversubscription: float = 1.0,
    latency: Seconds = LINK_LATENCY,
) -> Network:
    """Three tiers: every rack is cabled to every switch of its pod, every pod switch to every core switch.

    Parameters
    ----------
    n_pods, racks_per_pod, hosts_per_rack, switches_per_pod, n_cores : int
        Number of pods, of racks and switches of a pod, of hosts of a rack, and of core switches, at least 1 each. Hosts
        of one rack are numbered consecutively, and racks of one pod.
    bandwidth : float, bytes/s
        Bandwidth of each link between host and rack switch, one way.
    rack_oversubscription, pod_oversubscription : float
        Capacity of a rack (pod) switch's links down over that of its links up: 7 for 7:1, below 1 for more up.
    latency : float, s
        Latency of each link; two links lie between hosts of one rack, four inside a pod, six between pods.

    Returns
    -------
    Network
        Hosts ``h0 …``, ``rack0 …``, ``pod0 …`` (the switches of each pod in turn), ``core0 …``.

    Raises
    ------
    InputError
        If a count or an oversubscription is not positive, or the network would be too large.

    References
    ----------
    Gangidi et al., "RDMA over Ethernet for distributed AI training at Meta scale", SIGCOMM 2024, section 3.
    """
    name = "three_tier"
    require_at_least(
        name, 1, n_pods=n_pods, racks_per_pod=racks_per_pod, hosts_per_rack=hosts_per_rack,
        switches_per_pod=switches_per_pod, n_cores=n_cores,
    )  # fmt: skip
    for key, ratio in (("rack", rack_oversubscription), ("pod", pod_oversubscription)):
        if not 0 < ratio < math.inf:
            raise InputError(f"{name} needs a positive {key}_oversubscription, got {ratio}")
    n_racks, n_switches = n_pods * racks_per_pod, n_pods * switches_per_pod
    counts = np.array([n_racks * hosts_per_rack, n_racks * switches_per_pod, n_switches * n_cores], dtype=object)
    require_buildable(name, counts[0] + n_racks + n_switches + n_cores, 2 * counts.sum())
    up = hosts_per_rack * bandwidth / (switches_per_pod * rack_oversubscription)
    top = racks_per_pod * up / (n_cores * pod_oversubscription)
    host, rack_up, pod_up = (np.arange(int(n)) for n in counts)
    rack = len(host)
    pod = rack + n_racks
    core = pod + n_switches
    src, dst = both_ways(
        np.concatenate((host, rack + rack_up // switches_per_pod, pod + pod_up // n_cores)),
        np.concatenate((
            rack + host // hosts_per_rack,
            pod + rack_up // (racks_per_pod * switches_per_pod) * switches_per_pod + rack_up % switches_per_pod,
            core + pod_up % n_cores,
        )),
    )  # fmt: skip
    names = node_names(h=len(host), rack=n_racks, pod=n_switches, core=n_cores)
    rate = np.tile(np.repeat([bandwidth, up, top], counts.astype(int)), 2)
    return Network(name, names, kinds(len(host), len(names) - len(host)), src, dst, rate, latency)
