"""Sparse vectors through real messages: between threads here, under mpiexec with real gradients below."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numeric_run import run_reference
from sparse_run import run_sparse
from thread_transport import ThreadTransport, World

from collectives import COLLECTIVES
from commsim.core.errors import BackendError, InputError
from commsim.core.program import Program
from commsim.core.schedule import Schedule
from commsim.real.sparse_execute import SparseExecution
from commsim.sparse.encodings import ENCODINGS, coo
from commsim.sparse.form import SparseForm
from commsim.sparse.generate import drawn_gradients, drawn_occupancy
from commsim.sparse.occupancy import occupancy_of
from commsim.sparse.partition import balanced_bounds
from commsim.sparse.sparse_vector import SparseVector

LOSSLESS = [
    name
    for name in COLLECTIVES
    if COLLECTIVES[name].metadata["sparse"] and not COLLECTIVES[name].metadata["sparse"].lossy
]


LOSSY = [
    name for name in COLLECTIVES if COLLECTIVES[name].metadata["sparse"] and COLLECTIVES[name].metadata["sparse"].lossy
]


def execute(
    schedule: Schedule, form: SparseForm, gradients: Any, block: int, k: int | None = None, bounds: Any = None
) -> list[Any]:
    def work(transport: ThreadTransport) -> SparseExecution:
        run = SparseExecution(
            transport, schedule, form, gradients.shape[1], str(gradients.dtype), block=block, k=k, bounds=bounds
        )
        run.load(gradients[min(transport.rank, schedule.n_ranks - 1)])
        run.run()
        return run

    return World(schedule.n_participants, rendezvous=False).run(work)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSLESS)
@given(data=st.data())
@settings(max_examples=settings().max_examples // 5)
def test_the_sum_has_the_bits_of_the_dense_reference_and_as_many_bytes_as_predicted(name, data):
    n_ranks = data.draw(st.integers(1, 6))
    n_elements = data.draw(st.integers(1, 400))
    form = COLLECTIVES[name].metadata["sparse"]
    block = data.draw(st.sampled_from([1, 4, 7]) if form.block > 1 else st.just(1))
    few = {"n_partitions": 3} if "n_partitions" in COLLECTIVES[name].parameters else {}
    schedule = COLLECTIVES[name].build(n_ranks, **few)
    n_blocks = -(-n_elements // block)
    density = data.draw(st.integers(1, n_blocks)) / n_blocks
    occupancy = drawn_occupancy(n_ranks, n_elements, density=density, block=block, seed=data.draw(st.integers(0, 99)))
    dtype = data.draw(st.sampled_from(["float32", "float64"]))
    # positive, since a sum that cancels to zero is left out of what is read from a dense message, and passed on
    gradients = np.abs(drawn_gradients(occupancy, dtype=dtype, whole=True))
    ran = execute(schedule, form, gradients, block)
    for rank in range(n_ranks):
        assert np.array_equal(ran[rank].result().to_dense(), gradients.sum(axis=0)), rank
    as_is = dataclasses.replace(form, sends=None)  # blocks that are sent though they are zero are not, for real
    away = schedule.expand()["src"] != schedule.expand()["dst"]
    predicted = as_is.transfer_bytes(schedule, occupancy, few, gradients.itemsize)[away].sum()
    assert sum(run.n_bytes for run in ran) == predicted


@pytest.mark.parametrize("name", LOSSLESS)
def test_sums_of_any_floats_have_the_bits_of_the_numeric_reference(name):
    schedule = COLLECTIVES[name].build(5)
    form = COLLECTIVES[name].metadata["sparse"]
    n_elements = 3 * schedule.n_chunks
    gradients = drawn_gradients(drawn_occupancy(5, n_elements, density=0.4, seed=3))
    ran = execute(schedule, form, gradients, 1)
    vectors = [SparseVector.from_dense(row) for row in gradients]
    wanted = run_sparse(schedule, vectors, hashed=form.hashed).outputs
    for rank in range(5):
        assert np.array_equal(ran[rank].result().to_dense(), wanted[rank].to_dense()), rank
    if not form.hashed:
        assert np.array_equal(ran[0].result().to_dense(), run_reference(schedule, gradients)[0])


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("hashed", [False, True])
@given(data=st.data())
@settings(max_examples=settings().max_examples // 6)
def test_every_encoding_is_read_as_it_was_written_also_in_messages_of_several_chunks(encoding, hashed, data):
    n_elements, block = data.draw(st.integers(1, 300)), data.draw(st.sampled_from([1, 3, 32]))
    n_blocks = -(-n_elements // block)
    density = data.draw(st.integers(1, n_blocks)) / n_blocks
    occupancy = drawn_occupancy(5, n_elements, density=density, block=block)
    gradients = drawn_gradients(occupancy, whole=True)
    schedule = COLLECTIVES["sparcml_split"].build(5)
    ran = execute(schedule, SparseForm(ENCODINGS[encoding], hashed=hashed), gradients, block)
    for run in ran:
        assert np.array_equal(run.result().to_dense(), gradients.sum(axis=0))


@pytest.mark.parametrize("name", LOSSY)
@given(n_ranks=st.integers(1, 6), k=st.integers(1, 30), seed=st.integers(0, 9))
@settings(max_examples=10)
def test_what_is_truncated_is_what_the_numeric_reference_truncates(name, n_ranks, k, seed):
    form, n_elements = COLLECTIVES[name].metadata["sparse"], 120
    schedule = COLLECTIVES[name].build(n_ranks)
    gradients = drawn_gradients(drawn_occupancy(n_ranks, n_elements, density=k / n_elements, seed=seed), seed=seed)
    vectors = [SparseVector.from_dense(row) for row in gradients]
    bounds = balanced_bounds(occupancy_of(gradients), schedule.n_chunks) if form.balanced else None
    wanted = run_sparse(schedule, vectors, keep=form.truncate(schedule, k), bounds=bounds)
    ran = execute(schedule, form, gradients, 1, k=k, bounds=bounds)
    for rank in range(n_ranks):
        assert np.array_equal(ran[rank].result().to_dense(), wanted.outputs[rank].to_dense())
        assert np.allclose(ran[rank].residual.to_dense(), wanted.residuals[rank].to_dense(), atol=1e-6)


def test_what_a_hop_has_written_is_cut_once_and_the_rest_is_kept_as_residual():
    p = Program(3, 1)
    p.reduce(0, src=[1, 2], dst=0)
    schedule = p.build()
    form = SparseForm(coo, truncate=lambda schedule, k: np.full(schedule.n_transfers, k))
    gradients = np.array([[5, 1, 0, 0], [0, 2, 4, 0], [0, 3, 0, 1]], np.float32)
    ran = execute(schedule, form, gradients, 1, k=2)
    assert ran[0].result().to_dense().tolist() == [5, 6, 0, 0]
    assert ran[0].residual.to_dense().tolist() == [0, 0, 4, 1]


def test_a_lossy_form_must_be_told_k_and_an_encoding_that_only_counts_cannot_be_sent():
    schedule = COLLECTIVES["sparcml_ssar"].build(1)
    transport = ThreadTransport(World(1), 0)
    lossy = SparseForm(coo, truncate=lambda schedule, k: np.full(schedule.n_transfers, k))
    with pytest.raises(InputError, match="lossy, and needs the k"):
        SparseExecution(transport, schedule, lossy, 4)
    two = COLLECTIVES["sparcml_ssar"].build(2)
    with pytest.raises(BackendError, match="counts bytes, and cannot be sent"):
        SparseExecution(ThreadTransport(World(2), 0), two, SparseForm(lambda contents: contents.elements * 1.0), 4)


def test_nan_infinite_values_and_other_lengths_are_refused_before_anything_is_sent():
    run = SparseExecution(ThreadTransport(World(1), 0), COLLECTIVES["agsparse"].build(1), SparseForm(coo), 4)
    with pytest.raises(InputError, match="nan"):
        run.load([0, np.nan, 0, 0])
    with pytest.raises(InputError, match="inf"):
        run.load([0, np.inf, 0, 0])
    with pytest.raises(InputError, match="needs 4 elements, got 3"):
        run.load([0, 1, 0])
