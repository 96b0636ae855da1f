"""The three-tier Clos of pods: rack, pod and core switches, with a choice of oversubscription at each tier."""

from __future__ import annotations

import numpy as np

from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.core.units import Bandwidth, Ratio, Seconds

from . import LINK_BANDWIDTH, LINK_LATENCY, require_at_least, require_buildable, topology
from .switch_ports import fewest_above, require_count_of_ports, require_ports
from .uplinks import CableOptions, Tier, by_tier, lay


@topology(sized_by=("hosts_per_rack", "racks_per_pod", "n_pods"))
def three_tier(
    n_pods: int,
    racks_per_pod: int,
    hosts_per_rack: int,
    switches_per_pod: int | None = None,
    n_cores: int | None = None,
    bandwidth: Bandwidth = LINK_BANDWIDTH,
    oversubscription: Ratio | None = None,
    pod_oversubscription: Ratio | None = None,
    uplink_bandwidth: Bandwidth | None = None,
    uplinks_per_spine: int | None = None,
    pod_uplink_bandwidth: Bandwidth | None = None,
    uplinks_per_core: int | None = None,
    latency: Seconds = LINK_LATENCY,
    switch_ports: int | None = None,
    uplink_latency: Seconds | None = None,
    pod_uplink_latency: Seconds | None = None,
) -> Network:
    """Three tiers: every rack is cabled to every switch of its pod, every pod switch to every core switch.

    Parameters
    ----------
    n_pods, racks_per_pod, hosts_per_rack : int
        Number of pods, of racks of a pod, and of hosts of a rack, at least 1 each. Hosts of one rack are numbered
        consecutively, and racks of one pod.
    switches_per_pod, n_cores : int, optional
        Number of switches of a pod, and of core switches; by default as many as a switch below has cables up, with
        `switch_ports` as few as have ports for all cables.
    bandwidth : float, bytes/s
        Bandwidth of each link between host and rack switch, one way.
    oversubscription, pod_oversubscription : float, optional
        Capacity of a rack (pod) switch's links down over that of its cables up, such as 7:1, or 1:2 for more up. It
        says how many cables there are; switches above that would get none are left out. By default as few as are
        non-blocking.
    uplink_bandwidth, pod_uplink_bandwidth : float, bytes/s, optional
        Bandwidth of each cable up from a rack (pod) switch, one way; by default that of a link below.
    uplinks_per_spine, uplinks_per_core : int, optional
        Parallel cables between each rack switch and each switch of its pod, which is its spine, and between each of
        these and each core switch; by default as many as the ratio asks for.
    latency : float, s
        Latency of each link; two links lie between hosts of one rack, four inside a pod, six between pods.
    switch_ports : int, optional
        Ports of each switch, such as 64; a network that needs switches with more is refused. By default any number.
    uplink_latency : float, s, optional
        Latency of each cable between a rack and its pod switches; by default that of the hosts' links.
    pod_uplink_latency : float, s, optional
        Latency of each cable between pod and core switches; by default that of the cables below it.

    Returns
    -------
    Network
        Hosts ``h0 …``, ``rack0 …``, ``pod0 …`` (the switches of each pod in turn), ``core0 …``.

    Raises
    ------
    InputError
        If a count or an oversubscription is not positive, no number of cables has this ratio, or the network would be
        too large.

    References
    ----------
    Gangidi et al., "RDMA over Ethernet for distributed AI training at Meta scale", SIGCOMM 2024, section 3.
    """
    name = "three_tier"
    counts = {"switches_per_pod": switches_per_pod, "n_cores": n_cores, "uplinks_per_spine": uplinks_per_spine,
              "uplinks_per_core": uplinks_per_core}  # fmt: skip
    given = {key: count for key, count in counts.items() if count is not None}
    require_at_least(name, 1, n_pods=n_pods, racks_per_pod=racks_per_pod, hosts_per_rack=hosts_per_rack, **given)
    racks = Tier(name, "rack", "pod switch", "switches_per_pod")
    options = CableOptions(switches_per_pod, uplinks_per_spine, oversubscription, uplink_bandwidth)
    up = lay(racks, hosts_per_rack * bandwidth, bandwidth, options, is_full=True)
    if switch_ports is not None and switches_per_pod is None and uplinks_per_spine is None:
        up = fewest_above(up, racks_per_pod, switch_ports / (1 + 1 / (pod_oversubscription or 1.0)))
    pods = Tier(name, "pod switch", "core switch", "n_cores", "uplinks_per_core", "pod_")
    options = CableOptions(n_cores, uplinks_per_core, pod_oversubscription, pod_uplink_bandwidth)
    top = lay(pods, racks_per_pod * up.per_pair * up.rate, up.rate, options, is_full=True)
    if switch_ports is not None:
        require_count_of_ports(name, switch_ports)
        if n_cores is None and uplinks_per_core is None:
            top = fewest_above(top, n_pods * up.n_above, switch_ports)
        ports = {"rack": hosts_per_rack + up.n_above * up.per_pair,
                 "pod switch": racks_per_pod * up.per_pair + top.n_above * top.per_pair,
                 "core switch": n_pods * up.n_above * top.per_pair}  # fmt: skip
        require_ports(name, ports, switch_ports)
    n_racks, n_switches = n_pods * racks_per_pod, n_pods * up.n_above
    per_rack, per_switch = up.n_above * up.per_pair, top.n_above * top.per_pair
    n_links = np.array([n_racks * hosts_per_rack, n_racks * per_rack, n_switches * per_switch], dtype=object)
    require_buildable(name, n_links[0] + n_racks + n_switches + top.n_above, 2 * n_links.sum())
    host, rack_up, pod_up = (np.arange(int(n)) for n in n_links)
    rack = len(host)
    pod = rack + n_racks
    core = pod + n_switches
    in_pod = rack_up // up.per_pair % up.n_above
    src, dst = both_ways(
        np.concatenate((host, rack + rack_up // per_rack, pod + pod_up // per_switch)),
        np.concatenate((
            rack + host // hosts_per_rack,
            pod + rack_up // (racks_per_pod * per_rack) * up.n_above + in_pod,
            core + pod_up // top.per_pair % top.n_above,
        )),
    )  # fmt: skip
    names = node_names(h=len(host), rack=n_racks, pod=n_switches, core=top.n_above)
    rate = np.tile(np.repeat([bandwidth, up.rate, top.rate], n_links.astype(int)), 2)
    missing = ", ".join(filter(None, (up.left_out, top.left_out)))
    delay = by_tier(n_links.tolist(), latency, uplink_latency, pod_uplink_latency)
    return Network(name, names, kinds(len(host), len(names) - len(host)), src, dst, rate, delay, left_out=missing)
