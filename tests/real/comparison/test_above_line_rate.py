import pytest

from commsim.formats.measurement import Measurement
from commsim.prediction.build import prepare
from commsim.real.comparison.above_line_rate import LineRate, explain_above, line_of_prediction


def row(ratio, operation="all_reduce", n_ranks=8, algorithm=""):
    """A measurement whose busbw is so many times 10 GB/s."""
    factor = {"all_reduce": 2 * (n_ranks - 1) / n_ranks, "broadcast": 1.0}[operation]
    return Measurement(operation, 1e9, factor / (ratio * 10), n_ranks, algorithm)


LINE = LineRate(10e9, "a link")


def reasons(measured, line=LINE):
    return explain_above(measured, line)[1:]


def test_a_busbw_below_the_line_needs_no_explanation():
    assert explain_above(row(1.004), LINE) == ()
    assert explain_above(Measurement("all_reduce", 1e9, 0.001), LINE) == ()  # nobody knows the ranks


def test_the_factor_and_the_true_load_are_always_said():
    head = explain_above(row(1.5), LineRate(10e9, "a link", load=9.5e9))[0]
    assert "busbw 15 GB/s is 1.5 times the 10 GB/s of a link" in head
    assert "algbw 8.571 GB/s times 1.75, the factor of all_reduce on 8 ranks" in head
    assert "in our prediction it carries 9.5 GB/s" in head


@pytest.mark.parametrize(
    ("ratio", "word"),
    [(8.0, "Gb/s"), (7.6, "Gb/s"), (2.0, "one direction"), (1.07, "GiB/s"), (3.0, "no known reason fits")],
)
def test_mistaken_units_are_recognised_by_their_ratio(ratio, word):
    assert any(word in text for text in reasons(row(ratio)))
    assert len(reasons(row(ratio))) == 1


def test_algorithms_that_let_the_network_add_explain_it_by_name():
    assert "NVLS lets the network add" in reasons(row(1.3, algorithm="NVLS"))[0]
    assert "a switch of this network can add" in reasons(row(1.3), LineRate(10e9, "a link", switch_adds=True))[0]
    assert not any("can add" in text for text in reasons(row(5.0), LineRate(10e9, "a link", switch_adds=True)))


def test_a_tree_on_two_hosts_and_several_nics_are_reasons_where_they_can_be():
    two = LineRate(10e9, "--line-rate", n_hosts=2, links_per_host=8, is_given=True)
    assert [text[:14] for text in reasons(row(1.5), two)] == ["on two hosts a", "a host has 8 s"]
    assert [text[:14] for text in reasons(row(1.5, algorithm="ring"), two)] == ["a host has 8 s"]
    assert not any("two hosts" in text for text in reasons(row(3.0), two))
    given = LineRate(10e9, "--line-rate", n_hosts=1, is_given=True)
    assert any("all ranks are in one host" in text for text in reasons(row(3.0), given))


def test_reasons_of_which_none_is_enough_alone_are_combined():
    rails = LineRate(10e9, "--line-rate", n_hosts=2, links_per_host=8, switch_adds=True, is_given=True)
    # 12 times the line: 8 rails times the 1.875 of 16 ranks, not 8 rails alone, and less than 8 times a tree's 2
    (text,) = reasons(row(12.0, n_ranks=16), rails)
    assert text.startswith("a switch of this network can add")
    assert "and a host has 8 such links" in text
    assert text.endswith("together up to 15 times")
    (named,) = reasons(row(12.0, n_ranks=16, algorithm="NVLSTree"), rails)
    assert named.startswith("NVLSTree lets the network add")
    assert "8 such links" in named
    assert reasons(row(20.0, n_ranks=16), rails) == ("no known reason fits: check the line rate and the measurement",)


def test_the_line_of_a_prediction_is_all_that_leaves_its_busiest_host():
    ready = prepare("ring_all_reduce", "dgx-h100@star:machines=2,bandwidth=400Gbps")
    result = ready.predict(2**30)
    line = line_of_prediction(ready, result)
    assert (line.n_hosts, line.ranks_per_host, line.switch_adds) == (2, 8, True)
    assert 0 < line.load <= line.rate * (1 + 1e-9)
    outside = prepare("pairwise_all_to_all", "dgx-h100@star:machines=2,bandwidth=50Gbps")
    sums = line_of_prediction(outside, outside.predict(2**26))
    leaving = outside.network.machine[outside.network.src] > outside.network.machine[outside.network.dst]
    assert (sums.links_per_host, sums.rate) == (8, pytest.approx(outside.network.bandwidth[leaving].sum() / 2))
    assert "the 8 links of a host, such as m" in sums.source


def test_a_cable_between_switches_is_no_line_of_a_host():
    """Several hosts share it, so that its rate is no limit of one rank's busbw."""
    ready = prepare("ring_all_reduce", "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=4,uplink_bandwidth=10Gbps")
    line = line_of_prediction(ready, ready.predict(2**26))
    assert line.source.startswith("link h")
    assert line.rate == ready.network.bandwidth[0]


def test_a_busbw_within_the_sum_of_a_hosts_links_says_nothing():
    ready = prepare("ring_all_reduce", "dgx-h100@star:machines=4")
    line = line_of_prediction(ready, ready.predict(2**30))
    assert line.links_per_host == 8
    assert explain_above(Measurement("all_reduce", 2**30, 6e-3, 32), line) == ()  # 346.7 GB/s
    assert "links of a host" in explain_above(Measurement("all_reduce", 2**30, 3e-3, 32), line)[0]
