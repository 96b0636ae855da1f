"""The machines of measured NCCL tables as networks, on a fabric in nobody's way: what `commsim run` would predict.

What a table's line says of its machine (:mod:`benchmarks.nccl_tables.machines`) becomes GPUs on one switch, NICs near
them, and a star. NCCL's setting is that of the table, which knows some facts that no network shows: GPUs that do not
reach each other, a least number of channels.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from commsim.core.machines.attach import attach_machines
from commsim.core.machines.hardware import write_hardware
from commsim.core.machines.parts import Parts
from commsim.core.network import GPU, NIC, SWITCH, Network
from commsim.nccl.plans.plan_nccl import NcclPlan
from commsim.nccl.site import Site
from commsim.prediction.read import scenario_of
from commsim.prediction.scenario import Scenario
from commsim.prediction.solve import plan_of
from topologies.star import star

# Rate of links that are in nobody's way, bytes/s.
WIDE = 1e13
NETS = {"efa2": "efa", "efa3": "efa", "efa_staged": "efa", "": "infiniband"}


def network_of(site: Site) -> Network:
    """Return the machines of a site on a star.

    Parameters
    ----------
    site : Site
        Where a table was measured.
    """
    where = site.setting
    per_node = where.n_ranks // where.n_nodes
    n_nics = nics_of(site)
    nic = site.nics / n_nics if where.n_nodes > 1 else WIDE
    link = site.link if np.isfinite(site.link) and site.link else WIDE
    parts = Parts()
    gpus = [parts.add(f"gpu{i}", GPU) for i in range(per_node)]
    nics = [parts.add(f"nic{i}", NIC) for i in range(n_nics)] if where.n_nodes > 1 else []
    parts.pcie_switch("pcie0", [(g, link if site.pcie else WIDE) for g in gpus] + [(n, WIDE) for n in nics], 0.0)
    if not site.pcie:
        switch = parts.add("nvswitch0", SWITCH, aggregates="nvls" in where.channels)
        for gpu in gpus:
            parts.nvlink(gpu, switch, link, 0.0)
    machine = parts.build("machine")
    facts = {"gpu": where.gpu, "net": NETS.get(site.network, site.network)} | ({"sharp": "on"} if where.collnet else {})
    machine = dataclasses.replace(machine, hardware=write_hardware(facts))
    fabric = star(where.n_nodes * n_nics, nic, 0.0) if nics else None
    return machine if fabric is None else attach_machines(fabric, machine)


def nics_of(site: Site) -> int:
    """Return how many NICs a machine of the network has: several NICs of a GPU work as one."""
    return min(site.n_nics, site.setting.n_ranks // site.setting.n_nodes) if site.setting.n_nodes > 1 else 1


def question_of(site: Site, operation: str, algorithm: str = "", protocol: str = "") -> tuple[Scenario, NcclPlan]:
    """Return the scenario of a table's collective, and its plan with what is known of the machines.

    Parameters
    ----------
    site : Site
        Where a table was measured.
    operation : str
        By name.
    algorithm, protocol : str
        Forced, or empty.
    """
    forced = ",".join(f"{k}={v}" for k, v in (("algorithm", algorithm), ("protocol", protocol)) if v)
    scenario = scenario_of(f"nccl_{operation}{':' * bool(forced)}{forced}", network_of(site))
    plan = plan_of(scenario)
    assert isinstance(plan, NcclPlan)
    return scenario, plan.taken_for(site.setting, dataclasses.replace(site, n_nics=nics_of(site)))
