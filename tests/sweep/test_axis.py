import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.sweep.axis import kind_in, read_axis
from commsim.sweep.quantities import UNITS, as_kind, kind_of, write_value


def axis(given, sampled=False):
    return read_axis("engine.x", given, kind_in("engine.x", [given]), sampled)


@pytest.mark.parametrize(
    ("given", "kind", "values"),
    [
        (4, "whole", (4,)),
        ([4, 8.5], "number", (4.0, 8.5)),
        (["1KiB", "1MB"], "size", (1024.0, 1e6)),
        (["100Gbps", "1GB/s"], "bandwidth", (12.5e9, 1e9)),
        ("1.5us", "time", (1.5e-6,)),
        ("4x4x8", "text", ("4x4x8",)),
        (["ring", "star"], "text", ("ring", "star")),
        ([True, False], "truth", (True, False)),
        ({"from": 64, "to": 512, "steps": 8}, "whole", (64, 128, 192, 256, 320, 384, 448, 512)),
        (
            {"from": "1KiB", "to": "16KiB", "scale": "log", "steps": 5},
            "size",
            (1024.0, 2048.0, 4096.0, 8192.0, 16384.0),
        ),
        ({"from": 0.0, "to": 1.0, "steps": 3}, "number", (0.0, 0.5, 1.0)),
        ({"from": 0.0, "to": 1.0, "steps": 2}, "number", (0.0, 1.0)),
    ],
)
def test_values_are_read_in_si_units(given, kind, values):
    found = axis(given)
    assert (found.kind, found.values) == (kind, values)


@given(st.one_of(st.integers(-(2**62), 2**62), st.floats(1e-9, 1e12), st.booleans()))
def test_values_are_written_so_that_they_read_back(value):
    kind = kind_of(value)
    read = {"truth": lambda text: text == "true", "whole": int, "number": float}[kind]
    assert read(write_value(value, kind)) == value


@given(st.sampled_from(sorted(UNITS)), st.floats(1e-6, 1e12))
def test_quantities_are_written_so_that_they_read_back(kind, value):
    assert as_kind(write_value(value, kind), kind) == value


@given(st.floats(0, 1, exclude_max=True))
def test_a_sample_of_a_range_of_whole_numbers_is_in_the_range(share):
    found = axis({"from": 2, "to": 9}, sampled=True)
    assert found.at(share) in range(2, 10)
    assert axis({"from": "1B", "to": "1GiB", "scale": "log"}, sampled=True).at(share) <= 2**30
    assert axis([3, 5, 7], sampled=True).at(share) in (3, 5, 7)


def test_the_ends_of_a_range_of_whole_numbers_are_as_likely_as_the_middle():
    found = axis({"from": 1, "to": 4}, sampled=True)
    assert [found.at(i / 8) for i in range(8)] == [1, 1, 2, 2, 3, 3, 4, 4]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "values of one kind, got none"),
        ([4, 4], "has the value 4 twice"),
        (["1KiB", "1024B"], "has the value 1024.0 twice"),
        ([1, "x"], "values of one kind, got text and whole"),
        ([1, True], "values of one kind"),
        (float("nan"), "must be numbers"),
        (2**63, "64 bits"),
        ([[1]], "must be numbers"),
        ({"from": 1}, "must be {from"),
        ({"from": 1, "to": 2, "stepz": 3}, "must be {from"),
        ({"from": 5, "to": 2, "steps": 3}, "from below to"),
        ({"from": 0, "to": 2, "scale": "log", "steps": 3}, "from positive and below to"),
        ({"from": 1, "to": 2, "scale": "cubic", "steps": 3}, "linear or log"),
        ({"from": 1, "to": 2, "steps": 10**12}, "steps = 2 to 1000000"),
        ({"from": 1, "to": 2, "steps": 1}, "steps = 2 to 1000000"),
        ({"from": 1, "to": 3, "steps": 30}, "only 3 different values in 30 steps"),
        ({"from": 1, "to": 3}, "a range in a grid has steps"),
        ({"from": "a", "to": "b", "steps": 2}, "a range of numbers"),
    ],
)
def test_what_makes_no_sense_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        axis(given)


def test_a_sample_has_no_steps():
    with pytest.raises(InputError, match="steps belong to"):
        axis({"from": 1, "to": 9, "steps": 3}, sampled=True)
