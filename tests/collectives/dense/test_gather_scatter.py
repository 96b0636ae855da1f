import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from volumes import volumes

from collectives.dense.gather_scatter import direct_gather, direct_scatter
from commsim.core.data_order.dependencies import dependencies


@given(n_ranks=st.integers(1, 40), data=st.data())
def test_one_message_goes_between_the_root_and_every_other_rank(n_ranks, data):
    root = data.draw(st.integers(0, n_ranks - 1))
    for build, here, there in ((direct_gather, "dst", "src"), (direct_scatter, "src", "dst")):
        schedule = build(n_ranks, root)
        transfers = schedule.expand()
        assert (transfers[here] == root).all()
        assert sorted(transfers[there].tolist()) == [r for r in range(n_ranks) if r != root]
        assert (transfers["src_chunk"] == transfers[there]).all()
        np.testing.assert_allclose(volumes(schedule)[0].sum(), (n_ranks - 1) / n_ranks)


@pytest.mark.parametrize("build", [direct_gather, direct_scatter])
def test_no_message_waits_for_another(build):
    schedule = build(9)
    assert len(dependencies(schedule, schedule.expand()).pred) == 0
