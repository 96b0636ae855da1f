import re

import numpy as np
import pytest

from collectives import COLLECTIVES
from commsim import predict
from commsim.core.errors import InputError
from commsim.jobs.groups import prepare_groups
from commsim.prediction.build import prepare
from commsim.ranking.contenders import algorithms_for
from commsim.sparse.generate import drawn_gradients, drawn_occupancy
from commsim.sparse.union_density import union_density

STAR = "star:n_hosts=8,bandwidth=100Gbps,latency=1us"


def write(tmp_path, gradients):
    path = tmp_path / "gradients.npy"
    np.save(path, gradients)
    return path


def test_drawn_data_decides_bytes_counters_and_the_printed_note():
    ready = prepare("agsparse:density=0.01,pattern=overlapping,seed=3", STAR)
    result = ready.predict(400_000)
    assert result.bytes_on_wire == 8 * 7 * 8 * 1000  # ranks, rounds, bytes of an element, elements
    assert result.counters["density"] == result.counters["union_density"] == 0.01
    assert result.counters["densification"] == 1
    assert "pattern overlapping, density 0.01, seed 3" in str(ready.notes[-1])


@pytest.mark.parametrize("engine", ["flow", "packet", "alpha-beta"])
def test_every_simulated_engine_sends_what_the_data_says(engine):
    result = predict("sparcml_ssar:density=0.01,pattern=overlapping", STAR, 400_000, engine=engine, overhead="0us")
    assert result.counters["union_density"] == 0.01
    if engine == "packet":  # whose messages are whole packets with headers
        assert result.bytes_on_wire > 8 * 3 * 8 * 1000
    else:
        assert result.bytes_on_wire == 8 * 3 * 8 * 1000


def test_the_same_seed_gives_the_same_bits_and_another_one_does_not():
    times = [predict(f"zen:density=0.01,seed={seed}", STAR, 400_000, overhead="0us").time for seed in (1, 1, 2)]
    assert times[0] == times[1] != times[2]


def test_without_data_it_is_dense_which_is_said():
    ready = prepare("agsparse", STAR)
    assert ready.data is None
    assert "all data is dense" in str(ready.notes[-1])
    assert ready.predict(400_000).time == pytest.approx(ready.predict(400_000, engine="closed-form").time)


def test_real_gradients_are_read_and_have_the_size_that_they_have(tmp_path):
    occupancy = drawn_occupancy(8, 5000, density=0.02)
    path = write(tmp_path, drawn_gradients(occupancy))
    ready = prepare(f"agsparse:gradients={path}", STAR)
    result = ready.predict(20_000)
    assert result.bytes_on_wire == 8 * 7 * 8 * 100
    assert result.counters["union_density"] == union_density(occupancy)
    with pytest.raises(InputError, match="holds gradients of 20000 bytes a rank, got size 40000"):
        ready.predict(40_000)


def test_values_of_eight_bytes_take_eight_bytes(tmp_path):
    path = write(tmp_path, drawn_gradients(drawn_occupancy(8, 5000, density=0.02), dtype=np.float64))
    assert prepare(f"agsparse:gradients={path}", STAR).predict(40_000).bytes_on_wire == 8 * 7 * 12 * 100


def test_a_threshold_drops_what_is_below_it(tmp_path):
    gradients = np.zeros((8, 100), np.float32)
    gradients[:, :10], gradients[:, 10:14] = 0.01, 1.0
    path = write(tmp_path, gradients)
    result = prepare(f"agsparse:gradients={path},threshold=0.5", STAR).predict(400)
    assert result.counters["density"] == 0.04


def test_groups_carry_the_data_too():
    both = prepare_groups("agsparse:density=0.01", STAR, [(0, 1, 2, 3), (4, 5, 6, 7)]).predict(400_000)
    assert [r.bytes_on_wire for r in both] == [4 * 3 * 8 * 1000] * 2


def test_sparse_collectives_are_not_ranked_among_dense_ones():
    assert not {"agsparse", "zen", "omnireduce"} & set(algorithms_for("all_reduce"))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("agsparse:density=1.5", "density must be above 0 and at most 1, got 1.5"),
        ("agsparse:density=0", "density must be above 0 and at most 1, got 0"),
        ("agsparse:density=nan", "must be a number, got 'nan'"),
        ("agsparse:density=0.1,pattern=odd", "pattern must be one of random, overlapping, disjoint, zipf, got 'odd'"),
        ("agsparse:density=0.5,pattern=disjoint", "without sharing any"),
        ("agsparse:density=0.1,seed=-1", "seed of at least 0"),
        ("agsparse:density=0.1,block=0", "at least 1"),
        ("agsparse:block=4", "needs density=... or gradients=FILE"),
        ("agsparse:densty=0.1", "did you mean density?"),
        ("agsparse:gradients=none.npy", "none.npy: No such file"),
        ("omnireduce:density=0.1,n_aggregators=8", "no place is left for a rank: 8 helpers, 8 hosts"),
        ("ring_all_reduce:density=0.1", "has no parameter 'density'"),
    ],
)
def test_what_makes_no_sense_is_refused(spec, message):
    with pytest.raises(InputError, match=re.escape(message)):
        prepare(spec, STAR).predict(400_000)


@pytest.mark.parametrize(
    ("spec", "n_ranks", "size", "engine", "message"),
    [
        ("agsparse:density=0.01", None, 400_000, "closed-form", "closed form is that of dense data; use engine flow"),
        ("agsparse:density=0.1", None, 1001, "flow", "whole elements of 4 bytes, got a size of 1001"),
        ("omnireduce:density=0.1,n_aggregators=3", 6, 400_000, "flow", r"6 ranks and 3 helpers need 9 hosts, .* has 8"),
    ],
)
def test_an_engine_a_size_or_ranks_that_do_not_fit_the_data_are_refused(spec, n_ranks, size, engine, message):
    with pytest.raises(InputError, match=message):
        prepare(spec, STAR, n_ranks=n_ranks).predict(size, engine=engine)


def test_data_may_be_drawn_in_runs_of_another_length_than_a_block():
    lists = prepare("agsparse:density=0.02,run=64", STAR).predict(400_000)
    blocks = prepare("agsparse:density=0.02,block=64", STAR).predict(400_000)
    assert lists.bytes_on_wire == blocks.bytes_on_wire  # the same elements
    scattered = prepare("omnireduce:density=0.02,run=1", STAR, n_ranks=7)
    assert "drawn, element by element: pattern random" in str(scattered.notes[-1])
    drawn = drawn_occupancy(7, 100_000, density=0.02)
    hit = np.pad(drawn.bitmap, ((0, 0), (0, -100_000 % 256))).reshape(7, -1, 256).any(axis=2)
    assert scattered.predict(400_000).counters["density"] == pytest.approx(hit.mean())
    with pytest.raises(InputError, match="a run has at least 1 element, got run=0"):
        prepare("agsparse:density=0.1,run=0", STAR)


@pytest.mark.parametrize(
    ("values", "message"),
    [(np.nan, "rank 2: .*got nan"), (np.inf, "rank 2: .*got inf"), (0.0, "an empty bitmap")],
)
def test_gradients_that_are_not_finite_or_all_zero_are_refused(tmp_path, values, message):
    gradients = np.zeros((8, 50), np.float32)
    gradients[2, 7] = values
    path = write(tmp_path, gradients)
    with pytest.raises(InputError, match=message):
        prepare(f"agsparse:gradients={path}", STAR).predict(200)


@pytest.mark.parametrize("extra", ["density=0.1", "pattern=zipf", "seed=1", "exponent=2", "run=8"])
def test_what_has_no_effect_beside_gradients_is_refused(tmp_path, extra):
    path = write(tmp_path, np.ones((8, 50), np.float32))
    with pytest.raises(InputError, match="gradients from a file are not drawn, got "):
        prepare(f"agsparse:gradients={path},{extra}", STAR)


def test_gradients_of_another_number_of_ranks_are_refused(tmp_path):
    path = write(tmp_path, np.ones((4, 50), np.float32))
    with pytest.raises(InputError, match="needs gradients of 8 ranks, got 4"):
        prepare(f"agsparse:gradients={path}", STAR)


SPARSE = sorted(name for name in COLLECTIVES if COLLECTIVES[name].metadata.get("sparse") is not None)


@pytest.mark.parametrize("name", SPARSE)
def test_an_empty_bitmap_takes_latencies_and_what_is_sent_whatever_is_in_it(name):
    empty, some = (prepare(f"{name}:density={density}", STAR).predict(4_000_000) for density in (1e-9, 0.9))
    lossy = COLLECTIVES[name].metadata["sparse"].lossy
    assert empty.counters["density"] == (1e-6 if lossy else 0)  # what is lossy keeps an element
    assert 0 < empty.time <= some.time
    assert empty.bytes_on_wire < some.bytes_on_wire


def test_zeros_that_are_sent_before_it_is_known_what_is_zero_are_told_with_their_part_of_the_bytes():
    """Eight threads send 8 messages to each of 4 aggregators before any answer: 256 blocks, of 10 that are not zero."""
    (plan, many) = (prepare(f"omnireduce:density={d}", "star:n_hosts=8", n_ranks=4) for d in (0.01, 1))
    result = plan.predict(2**20)
    (said,) = [one for one in plan.remarks([result]) if one.code == "first-messages"]
    less = prepare("omnireduce:density=0.01,slots=1", "star:n_hosts=8", n_ranks=4).predict(2**20)
    assert 1 - less.bytes_on_wire / result.bytes_on_wire < -said.effect < 1
    assert not [one for one in many.remarks([many.predict(2**20)]) if one.code == "first-messages"]
    other = prepare("zen:density=0.01", "star:n_hosts=8", n_ranks=4)
    assert not [one for one in other.remarks([other.predict(2**20)]) if one.code == "first-messages"]
