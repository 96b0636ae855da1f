"""Operators left out: which tables count, and in which class."""

from benchmarks.nccl_tables.unseen import EIGHT, PEAKS, by_size, classes_of, is_out
from commsim.prediction.build import prepare


def site(topology):
    return prepare("nccl_all_reduce", topology).launch.known_site


def test_an_operator_whose_tables_made_a_constant_is_not_left_out():
    """Hopper's costs are of aic; InfiniBand's hops are fitted again without each operator, so that mn5 is left out."""
    two = site("hgx-h100@star:machines=2")
    assert [is_out(name, two) for name in ("dell_h100_2x8_ar", "mn5_h100_4x4_ar_auto", "aic_h100_2x8_ar")] == [
        True, True, False,
    ]  # fmt: skip
    assert is_out("mn5_h100_1x4_ar", site("hgx-h100"))  # of one machine no constant is of InfiniBand


def test_what_is_left_of_a_rack_s_switch_is_of_one_operator():
    """Machines of 8 B200 do not have it, so that they are left out, as are racks of others."""
    rack, eight = site("gb200-nvl72"), site("hgx-b200@star:machines=2")
    assert [is_out(name, rack) for name in ("cw_gb200_32x4_ar", "oci_gb300_16x4_ar")] == [False, True]
    assert is_out("cw_b200_2x8_ar", eight)


def test_classes_are_those_of_a_user_s_cluster():
    assert classes_of(site("hgx-h100@star:machines=2")) == ["several machines, InfiniBand", EIGHT]
    assert classes_of(site("hgx-h100:net=roce@star:machines=2")) == ["several machines, RoCE", EIGHT]
    assert classes_of(site("hgx-b200@star:machines=2")) == ["several machines, InfiniBand"]
    assert classes_of(site("hgx-h100")) == ["one machine"]


def test_errors_are_by_class_and_size_with_the_usual_cluster_first():
    found = by_size([("one machine", 1024, 0.1), (PEAKS, 2**34, 0.2), (EIGHT, 2**20, 0.3), (EIGHT, 2**20 - 1, 0.4)])
    assert list(found.values()) == [[0.3], [0.4], [0.1], [0.2]]
    assert next(iter(found)) == f"{EIGHT}, from 1 MiB"
