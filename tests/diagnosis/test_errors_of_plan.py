"""Whose errors a plan has: those of its kind of machines, or of all kinds."""

import pytest

from commsim.diagnosis.errors_of_plan import errors_of_plan
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import plan_of


@pytest.mark.parametrize(
    ("collective", "network", "kind", "is_of_kind"),
    [
        ("nccl_all_reduce", "dgx-h100", "machine", True),
        ("nccl_all_reduce", "dgx-h100@star:machines=2", "infiniband", True),
        ("nccl_all_reduce", "alps@star:machines=2", "slingshot", False),
        ("rccl_all_reduce", "mi300x", "rccl", True),
        ("ring_all_reduce", "star:n_hosts=4", "every_kind", True),
    ],
)
def test_a_plan_has_the_errors_of_its_machines(collective, network, kind, is_of_kind):
    found = errors_of_plan(plan_of(scenario_of(collective, network)))
    assert (found.kind, found.is_of_kind) == (kind, is_of_kind)
