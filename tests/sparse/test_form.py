import numpy as np

from commsim.core.program import Program
from commsim.core.schedule import Schedule
from commsim.sparse.block_sets import UNLIMITED
from commsim.sparse.encodings import bitmap, coo, dense
from commsim.sparse.form import SparseForm
from commsim.sparse.occupancy import Occupancy


def to_root_and_back() -> Schedule:
    p = Program(3, 1)
    p.reduce(0, src=[1, 2], dst=0)
    p.copy(0, src=0, dst=[1, 2])
    return p.build()


OCCUPANCY = Occupancy.from_bitmap([[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0]], 4)


def test_messages_that_are_added_and_those_that_are_copied_may_be_encoded_differently():
    assert SparseForm(coo).transfer_bytes(to_root_and_back(), OCCUPANCY, {}).tolist() == [16, 8, 24, 24]
    assert SparseForm(coo, bitmap).transfer_bytes(to_root_and_back(), OCCUPANCY, {}).tolist() == [16, 8, 13, 13]


def test_some_messages_may_always_be_dense():
    form = SparseForm(coo, always_dense=lambda _, transfers: transfers["dst"] == 2)
    assert form.transfer_bytes(to_root_and_back(), OCCUPANCY, {}, 8).tolist() == [24, 12, 36, 32]
    schedule = to_root_and_back()
    assert form.encodings(schedule, schedule.expand()) == [coo, coo, coo, dense]


def test_what_is_sent_may_be_more_than_what_is_there():
    def everything(schedule: Schedule, occupancy: Occupancy, parameters: object) -> Occupancy:
        assert parameters == {"slots": 3}
        return Occupancy.from_bitmap(np.ones((schedule.n_ranks, 4)), occupancy.n_elements)

    assert (
        SparseForm(coo, sends=everything).transfer_bytes(to_root_and_back(), OCCUPANCY, {"slots": 3}).tolist()
        == [32] * 4
    )


def test_a_form_is_lossy_when_it_truncates_to_the_k_of_the_fullest_rank():
    def keep(schedule: Schedule, k: int) -> np.ndarray:
        assert k == 2
        return np.array([k, k, UNLIMITED, UNLIMITED])

    form = SparseForm(coo, truncate=keep)
    assert form.lossy
    assert not SparseForm(coo).lossy
    assert form.transfer_bytes(to_root_and_back(), OCCUPANCY, {}).tolist() == [16, 8, 16, 16]
