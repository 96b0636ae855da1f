import itertools
import math

import pytest

from commsim.core.errors import InputError
from commsim.sweep.config import read_config
from commsim.sweep.points import count_candidates, count_points, points


def walked(tree):
    return list(points(read_config(tree)))


def test_a_grid_has_every_combination_once_and_sizes_change_first(small):
    found = walked(small)
    assert len(found) == 24 == count_points(read_config(small))
    assert len({p.digest for p in found}) == 24
    assert [p.order for p in found] == list(range(24))
    assert [p.parameters["collective.size"] for p in found[:3]] == [1024.0, 32768.0, 1048576.0]
    wanted = set(itertools.product((12.5e9, 50e9), ("ring_all_reduce", "halving_doubling_all_reduce"), (4, 8)))
    names = ("topology.bandwidth", "collective.name", "collective.ranks")
    assert {tuple(p.parameters[name] for name in names) for p in found} == wanted


def test_a_point_is_known_by_its_contents_not_by_its_place_or_its_spelling(small):
    few = {**small, "collective": {**small["collective"], "size": ["1024B"]}, "sweep": {"filters": ["ranks == 8"]}}
    few["topology"] = {"latency": "1000ns", "name": "star", "bandwidth": "50GB/s", "n_hosts": 8}
    every = {p.digest for p in walked(small)}
    assert len(walked(few)) == 2
    assert {p.digest for p in walked(few)} < every


def test_filters_of_a_case_and_of_all_cases_are_applied(small):
    small["sweep"] = {"filters": ["size < '1MiB'", "ranks <= topology.n_hosts"]}
    small["case"] = [{"topology": {"n_hosts": 4}}, {"filters": ["collective.name == 'ring_all_reduce'"]}]
    found = walked(small)
    hosts = [p.parameters["topology.n_hosts"] for p in found]
    assert (hosts.count(4), hosts.count(8)) == (2 * 2 * 1 * 2, 2 * 1 * 2 * 2)
    assert all(p.parameters["collective.size"] < 2**20 for p in found)


def test_hosts_are_counted_where_they_are_no_parameter(small):
    small["topology"] = {"name": "fat_tree", "k": [2, 4]}
    small["collective"]["ranks"] = [2, 16]
    small["sweep"] = {"filters": ["ranks <= topology.n_hosts"]}
    assert {(p.parameters["topology.k"], p.parameters["collective.ranks"]) for p in walked(small)} == {
        (2, 2), (4, 2), (4, 16),
    }  # fmt: skip


def test_repeats_have_seeds_of_their_own(small):
    small["sweep"] = {"repeats": 3, "seed": 7}
    found = walked(small)
    assert len(found) == 72 == len({p.digest for p in found})
    assert [p.seed for p in found[:10]] == [7, 7, 7, 8, 8, 8, 9, 9, 9, 7]  # of three sizes each


def test_cases_that_have_the_same_points_share_them(small):
    small["case"] = [{}, {"collective": {"ranks": [8, 2]}}]
    found = walked(small)
    assert len(found) == 24 + 12 == len({p.digest for p in found})
    assert count_candidates(read_config(small)) == 48
    assert count_points(read_config(small)) == 36


@pytest.mark.parametrize("sample", ["latin_hypercube", "sobol"])
def test_a_sample_spreads_evenly_and_is_the_same_every_time(small, sample):
    small["sweep"] = {"sample": sample, "n": 64, "seed": 3}
    small["collective"]["size"] = {"from": "1KiB", "to": "1MiB", "scale": "log"}
    found = walked(small)
    assert [p.digest for p in found] == [p.digest for p in walked(small)]
    part = [int((math.log2(p.parameters["collective.size"]) - 10) / 10 * 16) for p in found]
    assert [part.count(i) for i in range(16)] == [4] * 16
    assert sum(p.parameters["collective.ranks"] == 4 for p in found) == 32
    small["sweep"]["seed"] = 4
    assert [p.digest for p in found] != [p.digest for p in walked(small)]


def test_a_grid_of_1e12_points_is_counted_and_refused_at_once(small):
    small["collective"]["size"] = {"from": "1B", "to": "1GiB", "steps": 100_000}
    small["collective"]["ranks"] = {"from": 1, "to": 100_000, "steps": 100_000}
    small["topology"]["latency"] = {"from": "1ns", "to": "1s", "steps": 100}
    small["sweep"] = {"filters": ["ranks < 3"]}
    config = read_config(small)
    assert count_candidates(config) == 2 * 2 * 10**12
    with pytest.raises(InputError, match="4000000000000 points before filters are more than 10000000; --max-points"):
        next(points(config))


def test_a_filter_that_names_nothing_is_refused(small):
    small["sweep"] = {"filters": ["topology.k > 3"]}
    with pytest.raises(InputError, match=r"the sweep: filter .* no topology.k; did you mean topology.name"):
        walked(small)


def test_a_digest_has_128_bits(small):
    """Files of results hold them: with another length, a sweep that goes on starts anew."""
    assert {len(p.digest) for p in walked(small)} == {32}
