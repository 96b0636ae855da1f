"""What of a sweep's workload contradicts itself, or changes nothing, is refused by name."""

import pytest

from commsim.core.errors import InputError
from commsim.sweep.compute import check_workload

TRACE = {"workload.trace": "gradients.csv", "workload.workers": 4, "workload.bandwidth": 1e9}
ON_NETWORK = {"workload.trace": "gradients.csv", "workload.workers": 4, "topology.name": "star"}


@pytest.mark.parametrize("good", [TRACE, TRACE | {"workload.latency": 1e-6}, ON_NETWORK | {"topology.k": 4}])
def test_a_trace_has_a_bandwidth_or_a_network(good):
    check_workload(good)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (TRACE | {"placement.order": "packed"}, "placement.order needs topology.name"),
        (TRACE | {"topology.k": 4}, "topology.k needs topology.name"),
        (TRACE | {"workload.all_reduce": "ring_all_reduce"}, "workload.all_reduce needs topology.name"),
        (TRACE | {"collective.name": "ring_all_reduce"}, "collective.name has no effect with"),
        (TRACE | {"topology.name": "star"}, "exactly one of workload.bandwidth and topology.name"),
        ({"workload.trace": "gradients.csv", "workload.bandwidth": 1e9}, "workload.trace needs workload.workers"),
        (ON_NETWORK | {"workload.latency": 1e-6}, "workload.latency needs workload.bandwidth"),
        (ON_NETWORK | {"topology.routing": "ecmp"}, "topology.routing cannot be set"),
    ],
)
def test_what_has_no_effect_is_refused(parameters, message):
    with pytest.raises(InputError, match=message):
        check_workload(parameters)
