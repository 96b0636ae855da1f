"""What holds for every registered collective that carries sparse data without loss; a new one needs no line here."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sparse_run import run_sparse

from collectives import COLLECTIVES
from commsim.sparse.encodings import dense
from commsim.sparse.generate import PATTERNS, drawn_gradients, drawn_occupancy
from commsim.sparse.occupancy import Occupancy
from commsim.sparse.propagate import transfer_contents
from commsim.sparse.sparse_vector import SparseVector

FORMS = {name: COLLECTIVES[name].metadata["sparse"] for name in COLLECTIVES}
LOSSLESS = [name for name, form in FORMS.items() if form is not None and not form.lossy]


def build(name: str, n_ranks: int) -> tuple[Any, dict[str, int]]:
    few = {"n_partitions": 3} if "n_partitions" in COLLECTIVES[name].parameters else {}
    return COLLECTIVES[name].build(n_ranks, **few), few


@st.composite
def occupancies(draw: st.DrawFn, n_ranks: int, most: int = 500) -> Occupancy:
    n_elements, block = draw(st.integers(1, most)), draw(st.sampled_from([1, 2, 7, 32, 256]))
    n_blocks = -(-n_elements // block)
    pattern = draw(st.sampled_from(PATTERNS))
    largest = n_blocks // n_ranks if pattern == "disjoint" else n_blocks
    if largest < 1:
        pattern, largest = "random", n_blocks
    density = draw(st.integers(1, largest)) / n_blocks
    return drawn_occupancy(
        n_ranks, n_elements, density=density, block=block, pattern=pattern, seed=draw(st.integers(0, 9))
    )


def test_the_ones_that_the_issue_names_are_among_them():
    assert {"omnireduce", "agsparse", "sparcml_ssar", "sparcml_split", "sparcml_dsar", "zen", "parallax"} <= set(
        LOSSLESS
    )


@pytest.mark.parametrize("name", LOSSLESS)
@given(n_ranks=st.integers(1, 17), data=st.data())
@settings(max_examples=settings().max_examples // 4)
def test_the_result_is_the_dense_sum_bit_for_bit_on_whole_numbers(name, n_ranks, data):
    occupancy = data.draw(occupancies(n_ranks))
    gradients = drawn_gradients(occupancy, whole=True)
    schedule, _ = build(name, n_ranks)
    vectors = [SparseVector.from_dense(row, occupancy.block) for row in gradients]
    ran = run_sparse(schedule, vectors, hashed=FORMS[name].hashed, block=occupancy.block)
    for output in ran.outputs:
        assert np.array_equal(output.to_dense(), gradients.sum(axis=0))


@pytest.mark.parametrize("name", LOSSLESS)
@given(n_ranks=st.integers(1, 17), data=st.data())
@settings(max_examples=settings().max_examples // 4)
def test_on_any_floats_the_error_is_within_that_of_any_order_of_adding(name, n_ranks, data):
    gradients = drawn_gradients(data.draw(occupancies(n_ranks)))
    schedule, _ = build(name, n_ranks)
    ran = run_sparse(schedule, [SparseVector.from_dense(row) for row in gradients], hashed=FORMS[name].hashed)
    exact = gradients.astype(np.float64).sum(axis=0)
    bound = (n_ranks - 1) * np.finfo(np.float32).eps * np.abs(gradients.astype(np.float64)).sum(axis=0)
    for output in ran.outputs:
        assert (np.abs(output.to_dense() - exact) <= bound).all()


@pytest.mark.parametrize("name", LOSSLESS)
@given(n_ranks=st.integers(2, 17), data=st.data())
@settings(max_examples=settings().max_examples // 4)
def test_the_elements_that_are_counted_are_those_that_a_run_on_numbers_sends(name, n_ranks, data):
    occupancy = data.draw(occupancies(n_ranks))
    schedule, _ = build(name, n_ranks)
    vectors = [SparseVector.from_dense(row, occupancy.block) for row in drawn_gradients(occupancy)]
    ran = run_sparse(schedule, vectors, hashed=FORMS[name].hashed, block=occupancy.block)
    assert np.array_equal(transfer_contents(schedule, occupancy, hashed=FORMS[name].hashed).elements, ran.sent)


@pytest.mark.parametrize("name", LOSSLESS)
@pytest.mark.parametrize("n_ranks", [2, 5, 8])
def test_more_data_never_takes_fewer_bytes_and_dense_data_is_never_far_above_dense_messages(name, n_ranks):
    schedule, few = build(name, n_ranks)
    sums = []
    for density in (0.01, 0.1, 0.5, 1.0):
        occupancy = drawn_occupancy(n_ranks, 50_000, density=density, block=FORMS[name].block, pattern="overlapping")
        sums.append(FORMS[name].transfer_bytes(schedule, occupancy, few).sum())
    assert sums == sorted(sums)
    assert sums[-1] <= 2 * dense(transfer_contents(schedule, occupancy)).sum()  # an index is as long as a value
