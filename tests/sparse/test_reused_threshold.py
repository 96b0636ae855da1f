import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.program import Program
from commsim.sparse.limits import floors_of
from commsim.sparse.occupancy import Occupancy
from commsim.sparse.propagate import transfer_contents
from commsim.sparse.reference import run_sparse
from commsim.sparse.reused_threshold import ReusedThreshold
from commsim.sparse.sparse_vector import SparseVector

pytestmark = pytest.mark.nojit


def test_a_threshold_is_found_when_it_is_due_and_taken_until_then():
    rng, threshold = np.random.default_rng(0), ReusedThreshold(10, every=3)
    steps = [rng.standard_normal(1000).astype(np.float32) * np.float32(scale) for scale in (1, 2, 0.5, 1)]
    found = [threshold.select(step) for step in steps]
    first = np.sort(np.abs(steps[0]))[-10]
    assert len(found[0]) == len(found[3]) == 10
    assert found[1].index.tolist() == np.flatnonzero(np.abs(steps[1]) >= first).tolist()
    assert len(found[1]) > 10 > len(found[2])


@pytest.mark.parametrize(("k", "every"), [(0, 1), (1, 0)])
def test_nothing_to_select_and_no_iterations_are_refused(k, every):
    with pytest.raises(InputError, match="k and every of at least 1"):
        ReusedThreshold(k, every)


def test_what_has_no_kth_largest_element_is_refused():
    with pytest.raises(InputError, match=r"top-k of 3 elements needs k of 1\.\.3, got k=4"):
        ReusedThreshold(4).of(np.ones(3))
    due, stale = ReusedThreshold(1), ReusedThreshold(1)
    with pytest.raises(InputError, match="finite values, got nan"):
        due.of(np.array([1, np.nan]))
    stale.of(np.ones(2))
    with pytest.raises(InputError, match="inf"):
        stale.select(np.array([1, np.inf]))


def test_elements_below_a_threshold_are_cut_after_the_whole_hop():
    p = Program(3, 1)
    p.reduce(0, src=[1, 2], dst=0)
    vectors = [SparseVector.from_dense(np.array(x, np.float32)) for x in ([1, 1, 0, 4], [1, -1, 1, 0], [1, 0, 1, 0])]
    run = run_sparse(p.build(), vectors, above=[3, 3])
    assert run.outputs[0].to_dense().tolist() == [3, 0, 0, 4]
    assert run.residuals[0].to_dense().tolist() == [0, 0, 2, 0]
    assert run.residuals[0].index.tolist() == [1, 2]  # a sum that is zero was a message's element all the same


@pytest.mark.parametrize("above", [-1, [0, np.nan], np.inf, [1, 2, 3], "1"])
def test_thresholds_that_make_no_sense_are_refused(above):
    with pytest.raises(InputError, match="a threshold must be"):
        floors_of(above, 2)


def test_what_a_whole_message_holds_need_not_be_known():
    p = Program(2, 1, n_scratch=1)
    p.copy(src=[0, 1], dst=[0, 1], src_chunk=0, dst_chunk=0, dst_buffer=2)  # cut to 3 blocks
    p.reduce(src=0, dst=1, src_chunk=0, dst_chunk=0, src_buffer=2, dst_buffer=2)
    p.copy(src=1, dst=0, src_chunk=0, dst_chunk=0, src_buffer=2)  # between 3 and 6 of 10
    schedule, occupancy = p.build(), Occupancy.from_bitmap(np.ones((2, 10), np.bool_), 19, 2)
    keep = [3, 3, 10, 10]
    with pytest.raises(InputError, match="in hop 1 participant 1 merges truncated chunks and keeps more"):
        transfer_contents(schedule, occupancy, keep=keep)
    contents = transfer_contents(schedule, occupancy, keep=keep, whole=np.array([False, False, False, True]))
    assert contents.blocks.tolist() == [10, 10, 3, 10]
    assert contents.elements.tolist() == [19, 19, 6, 19]
