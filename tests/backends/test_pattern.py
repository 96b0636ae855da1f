import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.backends import pattern
from commsim.core.checking import reference
from commsim.core.errors import BackendError
from commsim.core.operations import OPERATIONS


@settings(deadline=None)
@given(
    operation=st.sampled_from(sorted(OPERATIONS)),
    n_ranks=st.integers(1, 9),
    blocks=st.integers(1, 12),
    extra=st.integers(0, 8),
    data=st.data(),
)
def test_what_is_expected_is_what_the_operation_gives_on_the_filled_inputs(
    operation: str, n_ranks: int, blocks: int, extra: int, data: st.DataObject
) -> None:
    promise = OPERATIONS[operation]
    wanted = {"none": 0, "grid": 1, "ranks": n_ranks, "pairs": n_ranks**2}[promise.layout]
    layout = tuple(
        data.draw(st.lists(st.integers(0, 3), min_size=wanted, max_size=wanted).filter(any)) if wanted else []
    )
    layout = (n_ranks,) if promise.layout == "grid" else layout
    chunks = promise.least_chunks(n_ranks, layout)
    n = blocks * chunks + (0 if chunks > 1 else extra)
    root = data.draw(st.integers(0, n_ranks - 1))
    inputs = np.stack([pattern.fill(r, 0, n, "int64") for r in range(n_ranks)])
    for rank, (part, values) in enumerate(reference.expected(operation, inputs, root, layout)):
        got_part, got = pattern.expected(operation, n_ranks, rank, root, n, "int64", layout)
        np.testing.assert_array_equal(got, values)
        assert np.arange(n)[got_part].tolist() == np.arange(n)[part].tolist()


def test_the_inputs_of_two_ranks_and_of_shifted_places_differ() -> None:
    first = pattern.fill(0, 0, 100, "float32")
    assert (first != pattern.fill(1, 0, 100, "float32")).all()
    for shift in (1, 2, 4, 8, 16, 32, 64):
        assert (first[shift:] != first[:-shift]).all()


def test_a_custom_schedule_promises_nothing() -> None:
    with pytest.raises(BackendError, match="nothing is known about the result of custom"):
        pattern.expected("custom", 2, 0, 0, 4, "float32")
