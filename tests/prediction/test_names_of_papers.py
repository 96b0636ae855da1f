import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.prediction.collective_names import check_collective, spelled_out
from commsim.prediction.names_of_papers import KNOWN_AS, known_as

STAR = "star:n_hosts=8,bandwidth=100Gbps,latency=2.5us"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("rabenseifner", "halving_doubling_all_reduce"),
        ("Double-Binary-Tree", "double_tree_all_reduce"),
        ("double_binary_tree_all_reduce", "double_tree_all_reduce"),
        ("parameter-server:n_servers=2", "parameter_server:n_servers=2"),
        ("Ok-Topk:density=0.1", "ok_topk:density=0.1"),
        ("switchml-udp", "switchml:system=switchml_udp"),
        ("switchml_udp:pool_size=64", "switchml:system=switchml_udp,pool_size=64"),
        ("ring_all_reduce:blocking=true", "ring_all_reduce:blocking=true"),
        ("./Ring_All_Reduce.py", "./Ring_All_Reduce.py"),
        ("nobody", "nobody"),
    ],
)
def test_names_of_papers_and_other_spellings_mean_what_is_registered(written, name):
    assert spelled_out(written, None) == name


def test_every_name_of_papers_is_one_and_hides_no_registered_one():
    for written in KNOWN_AS:
        assert known_as(written) == KNOWN_AS[written]
        check_collective(KNOWN_AS[written])


def test_rabenseifner_takes_what_the_textbook_says():
    """2 log2 p alpha + 2 (p - 1)/p S/B of 100 MB on 8 ranks at 12.5 GB/s, alpha 5 us."""
    result = cs.predict("rabenseifner", STAR, 1e8, engine="alpha-beta", overhead="0us")
    assert result.time == pytest.approx(6 * 5e-6 + 2 * 7 / 8 * 8e-3, rel=1e-12)


def test_hpcc_keeps_to_a_path_unless_it_is_spread():
    star = "star:n_hosts=4"
    asked = cs.predict("ring_all_reduce", star, "64KiB", engine="packet", packets={"transport": "hpcc"})
    given = {"transport": "hpcc", "balancing": "path"}
    assert asked.time == cs.predict("ring_all_reduce", star, "64KiB", engine="packet", packets=given).time
    with pytest.raises(InputError, match="hpcc follows the links of one path"):
        cs.predict(
            "ring_all_reduce", star, "64KiB", engine="packet", packets={"transport": "hpcc", "balancing": "mixed"}
        )
