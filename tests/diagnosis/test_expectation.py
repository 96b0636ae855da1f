"""What machines should reach: it is the prediction, with a floor that follows from the errors."""

import math

import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.diagnosis.expectation import USUAL_OPERATIONS


def test_ends_that_are_printed_are_not_said_to_be_missing():
    """Beside low and high of two racks stood "no interval: too few public tables"."""
    found = cs.expect("gb200-nvl72", ["all_reduce"], ["1GiB"], machines=2)
    said = [str(remark) for remark in found.remarks]
    told = "low, high, floor: of all kinds of machines; few public tables are of NVLink domains joined by a network"
    assert told in said
    assert not [line for line in said if line.startswith("no interval")]


def test_an_expectation_is_the_prediction_with_its_interval():
    (found,) = cs.expect("dgx-h100", ["all_reduce"], ["1GiB"]).sizes
    result = cs.predict("nccl_all_reduce", "dgx-h100", "1GiB")
    assert found.time == result.time
    assert found.busbw == pytest.approx(result.busbw)
    low, high = result.interval
    assert (found.high, found.low) == pytest.approx(
        (result.busbw * result.time / low, result.busbw * result.time / high)
    )


def test_a_rarer_false_alarm_has_a_lower_floor():
    floors = [cs.expect("dgx-h100", ["all_reduce"], ["1GiB"], false_alarms=rate).sizes[0].floor for rate in (0.1, 0.01)]
    assert floors[1] < floors[0]
    found = cs.expect("dgx-h100", ["all_reduce"], ["1GiB"], false_alarms=0.1)
    assert found.floor("all_reduce", "1GiB") == found.sizes[0].floor


def test_two_of_a_machine_are_joined_by_a_fabric():
    found = cs.expect("dgx-h100", ["all_reduce"], ["1GiB"], machines=2)
    assert (found.n_ranks, found.n_machines, found.network) == (16, 2, "dgx-h100@star:machines=2")
    assert found.sizes == cs.expect("dgx-h100@star:machines=2", ["all_reduce"], ["1GiB"]).sizes
    with pytest.raises(InputError, match="already has its fabric"):
        cs.expect("dgx-h100@star:machines=2", machines=2)


def test_what_limits_is_said_of_all_operations_or_of_each():
    """Two machines of NICs at 1/8 are limited by these; inside of one machine NVLink is the limit."""
    slow = "hgx-h100:nic=50Gbps@star:machines=2"
    assert cs.expect(slow, ["all_reduce"], ["1GiB"]).limited_by == "the NICs"
    assert cs.expect("hgx-h100", sizes=["1KiB", "1GiB"]).limited_by == "NVLink"
    both = cs.expect("hgx-h100", ["all_reduce"], ["1GiB"]).joined([cs.expect(slow, ["all_gather"], ["1GiB"])])
    assert both.limited_by == "NVLink (all_reduce), the NICs (all_gather)"


def test_what_the_library_has_is_expected_where_nothing_is_named():
    found = cs.expect("dgx-h100", sizes=["1GiB"])
    assert found.operations == USUAL_OPERATIONS
    assert cs.expect("dgx-h100", sizes=["1GiB"], collective="nccl_all_gather").operations == ("all_gather",)
    assert cs.expect("dgx-h100", ["all_gather"], ["1GiB"], collective="nccl:version=2.18").sizes[0].busbw > 0


def test_machines_without_tables_are_said_to_have_the_errors_of_all():
    found = cs.expect("alps", ["all_reduce"], ["1GiB"], machines=2)
    assert [note.code for note in found.remarks if note.needed][:1] == ["errors-of-all"]
    assert "errors-of-all" not in [note.code for note in cs.expect("dgx-h100", ["all_reduce"], ["1GiB"]).remarks]


@pytest.mark.parametrize("rate", [0.0, 0.6, math.nan])
def test_a_rate_that_tables_cannot_show_is_refused(rate):
    with pytest.raises(InputError, match=r"must be 0\.01% to 50%"):
        cs.expect("dgx-h100", false_alarms=rate)


def test_what_several_operations_assume_is_said_once():
    """The rate between two sockets was said three times, by operation."""
    notes = [one.code for one in cs.expect("l40s", sizes=["1GiB"]).remarks]
    assert notes.count("sockets-busiest") == 1
