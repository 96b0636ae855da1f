"""Which NICs are near a GPU is found once of a layout."""

import numpy as np

from commsim.core.machines import local_nics
from commsim.core.network import GPU, NIC
from commsim.core.network_queries import levels_from, with_rates
from commsim.prediction.inputs import load_network


def test_links_to_nics_are_counted_once_for_all_gpus_and_rates(monkeypatch):
    # of its own size: facts of a layout are kept for the whole process
    network, searches = load_network("dgx-h100@star:machines=3"), []
    monkeypatch.setattr(local_nics, "levels_from", lambda *ends: searches.append(ends) or levels_from(*ends))
    for machine in (0, 1):
        gpus, nics = (np.flatnonzero((network.kind == kind) & (network.machine == machine)) for kind in (GPU, NIC))
        assert local_nics.near_nics(network, gpus).tolist() == nics.tolist()
    slower = with_rates(network, bandwidth=network.bandwidth / 2)
    links, _ = local_nics.links_to_nics(slower, gpus)
    assert (links.min(axis=0) == 2).all()  # over a PCIe switch
    assert len(searches) == 2 * 8  # with and without NVLinks, for each of 8 NICs
