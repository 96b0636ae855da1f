import contextlib
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.units import (
    count_text,
    format_bandwidth,
    format_size,
    format_time,
    microseconds,
    parse_bandwidth,
    parse_cost,
    parse_nccl_size,
    parse_nccl_sizes,
    parse_rate,
    parse_ratio,
    parse_size,
    parse_time,
    write_bandwidth,
    write_cost,
    write_ratio,
    write_size,
    write_time,
)


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [
        ("400Gbps", 50e9),
        ("50GB/s", 50e9),
        ("50 GB/s", 50e9),
        ("25GBps", 25e9),
        ("46.566GiB/s", 46.566 * 2**30),
        ("8bit/s", 1.0),
        ("1kbps", 125.0),
        ("1Kibps", 128.0),
        (" 1e2 Mb/s ", 12.5e6),
        (".5Tbps", 62.5e9),
        ("+8bps", 1.0),
    ],
)
def test_a_rate_is_read_as_bytes_per_second(text, bytes_per_s):
    assert parse_bandwidth(text) == bytes_per_s


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [("64MiB", 64 * 2**20), ("4 kB", 4000), ("0B", 0), ("1.5KiB", 1536), ("2GB", 2e9), ("1TiB", 2**40)],
)
def test_a_size_is_read_as_bytes(text, n_bytes):
    assert parse_size(text) == n_bytes


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1.5us", 1.5e-6),
        ("1.5\u00b5s", 1.5e-6),
        ("1.5\u03bcs", 1.5e-6),
        ("500ns", 500e-9),
        ("7ps", 7e-12),
        ("3 ms", 3e-3),
        ("2s", 2.0),
        ("2m", 120.0),
        ("1h", 3600.0),
        ("0s", 0.0),
    ],
)
def test_a_time_is_read_as_the_float_that_python_writes(text, seconds):
    assert parse_time(text) == seconds


@pytest.mark.parametrize("parse", [parse_bandwidth, parse_size, parse_time, parse_cost])
@pytest.mark.parametrize("text", ["5", "1e9", "0"])
def test_a_bare_number_is_refused_because_nobody_can_tell_its_unit(parse, text):
    with pytest.raises(InputError, match="needs a unit"):
        parse(text)


@pytest.mark.parametrize("parse", [parse_bandwidth, parse_size, parse_time, parse_cost])
@pytest.mark.parametrize("text", ["", " ", "Gbps", "nan s", "inf s", "1_0s", "--1s", "0x10B", "1,5us", "\u0663s"])
def test_what_is_no_number_is_refused(parse, text):
    with pytest.raises(InputError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("100Gb", "did you mean 100Gbps (bits) or 100GB/s (bytes)?"),
        ("100GB", "did you mean 100Gbps (bits) or 100GB/s (bytes)?"),
        ("10gbps", "case counts"),
        ("10KB/s", "case counts"),
        ("10Mbitps", "must be a rate"),
        ("10G", "must be a rate"),
        ("10GBPS", "must be a rate"),
    ],
)
def test_a_rate_that_is_nearly_right_is_refused_with_a_hint(text, hint):
    with pytest.raises(InputError) as refusal:
        parse_bandwidth(text, "uplink")
    assert str(refusal.value).startswith("uplink must be a rate such as 400Gbps or 50GB/s, got ")
    assert hint in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("64P", "write PiB (1024) or PB (1000)"),
        ("64KB", "write KiB (1024) or kB (1000)"),
        ("64mib", "b is a bit, B is a byte"),
        ("64mIB", "write MiB (1024) or MB (1000)"),
        ("64Mb", "b is a bit, B is a byte"),
        ("64Xi", "must be a size"),
    ],
)
def test_a_size_that_is_nearly_right_is_refused_with_a_hint(text, hint):
    with pytest.raises(InputError) as refusal:
        parse_size(text)
    assert hint in str(refusal.value)


@pytest.mark.parametrize("text", ["64K", "64k", "3M", "1.5G", "2 T", "64KiB", "7kB"])
def test_a_size_means_the_same_to_every_reader_of_sizes(text):
    assert parse_size(text) == parse_nccl_size(text)
    assert parse_size("64k") == parse_size("64KiB") == 65536


def test_the_sizes_that_a_hint_offers_are_read():
    assert (parse_size("64KiB"), parse_size("64kB")) == (65536, 64000)


@pytest.mark.parametrize(
    ("parse", "texts", "message"),
    [
        (parse_bandwidth, ["0Gbps", "-1Gbps", "1e-400Gbps"], "positive and finite"),
        (parse_bandwidth, ["1e-320Gbps", "1e-40Gbps"], "too small"),
        (parse_size, ["-1B"], "must not be negative or infinite"),
        (parse_time, ["-1ns", "-1e9h"], "must not be negative or infinite"),
        (parse_time, ["1u", "1US", "1sec", "1 u s"], "units are ps, ns, us, ms, s, m, h"),
        (parse_time, ["1e400s", "1e301s", "-1e400s", "1e999999999s", "9" * 5000 + "s"], "too large"),
    ],
)
def test_what_is_out_of_range_or_of_another_unit_is_refused(parse, texts, message):
    for text in texts:
        with pytest.raises(InputError, match=message):
            parse(text)


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [("8", 8), ("1K", 1024), ("16m", 16 * 2**20), ("8G", 2**33), ("2T", 2**41), ("1MB", 10**6), ("64MiB", 2**26)],
)
def test_nccl_sizes_are_bytes_and_powers_of_1024(text, n_bytes):
    assert parse_nccl_size(text) == n_bytes


@pytest.mark.parametrize(
    ("words", "sizes"),
    [
        (("1K", "8K", "2"), [1024, 2048, 4096, 8192]),
        (("1K", "4K", "1.5"), [1024, 1536, 2304, 3456]),
        (("1K", "2K", "1.3"), [1024, 1328, 1728]),  # 1331.2 and 1730.56, in elements of 4 bytes
        (("1", "5", "1.5"), [1, 2, 3]),  # an odd number of bytes is no array of floats anyhow; 5.06 is too much
        (("1K", "3K", "2", "1K"), [1024, 2048, 3072]),
    ],
)
def test_sizes_rise_by_a_factor_above_1_or_by_steps(words, sizes):
    assert parse_nccl_sizes(*words) == sizes


@pytest.mark.parametrize("factor", ["1", "1.0", "0.5", "-2", "inf", "nan", "two", "1.0001", ""])
def test_a_factor_that_gives_no_table_is_refused_with_what_does(factor):
    with pytest.raises(InputError, match=r"-f must be a number above 1 .*; -i SIZE is a step in bytes"):
        parse_nccl_sizes("1", "8G", factor)


@pytest.mark.parametrize("text", ["0", "0K", "-8", "1.5", "1.0001K", "0.3B", "", "8Q", "1P", "1 K B", "9" * 5000 + "B"])
def test_an_nccl_size_that_is_no_whole_positive_number_is_refused(text):
    with pytest.raises(InputError):
        parse_nccl_size(text)


positive = st.floats(min_value=1e-30, max_value=1e30)


@given(positive)
@example(12.5e9 / 3)
def test_a_rate_reads_back_exactly_as_it_was_written(value):
    assert parse_bandwidth(write_bandwidth(value)) == value


@given(positive | st.just(0.0) | st.integers(0, 2**50).map(float))
def test_a_size_a_time_and_a_cost_read_back_exactly_as_they_were_written(value):
    assert parse_size(write_size(value)) == value
    assert parse_time(write_time(value)) == value
    assert parse_cost(write_cost(value)) == value


def test_what_is_written_is_what_people_write():
    assert write_bandwidth(50e9) == "400Gbps"
    assert write_bandwidth(33.3e9 / 8) == "33.3Gbps"
    assert write_size(64 * 2**20) == "64MiB"
    assert write_time(500e-9) == "500ns"
    assert write_time(0.0) == "0.0s"
    assert write_cost(0.02e-9) == "2e-11s/B"


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text):
    for parse in (parse_bandwidth, parse_size, parse_time, parse_cost, parse_nccl_size):
        with contextlib.suppress(InputError):
            assert math.isfinite(parse(text))


def test_formats_are_those_that_people_read():
    assert format_size(64 * 2**20) == "64 MiB"
    assert format_size(100) == "100 B"
    assert format_bandwidth(50e9) == "400 Gb/s (50 GB/s)"
    assert format_bandwidth(math.inf) == "unlimited"
    assert [format_time(t) for t in (0, 1.5e-6, 2e-9, 0.25, 3.0)] == ["0 s", "1.5 us", "2 ns", "250 ms", "3 s"]


@pytest.mark.parametrize(("n", "text"), [(0, "0 switches"), (1, "1 switch"), (2, "2 switches")])
def test_a_noun_agrees_with_its_number(n, text):
    assert count_text(n, "switch", "switches") == text


def test_a_plural_that_is_not_named_ends_in_s():
    assert (count_text(1, "rank"), count_text(8, "rank")) == ("1 rank", "8 ranks")


@pytest.mark.parametrize(
    ("text", "ratio"),
    [("2:1", 2.0), ("2", 2.0), ("4:3", 4 / 3), (" 3 : 1.5 ", 2.0), ("0.5", 0.5), ("1e1", 10.0)],
)
def test_a_ratio_is_read_with_or_without_what_it_is_over(text, ratio):
    assert parse_ratio(text) == ratio


@pytest.mark.parametrize("text", ["0:1", "1:0", "0", "-1", "2:1:1", "two", "", "inf", "2:", ":2", "1e300:1e-300"])
def test_what_is_no_ratio_of_positive_numbers_is_refused(text):
    with pytest.raises(InputError, match="oversubscription must be a ratio"):
        parse_ratio(text, "oversubscription")


def test_a_ratio_with_the_smaller_number_first_is_refused_with_what_is_meant():
    with pytest.raises(InputError, match=r"did you mean 4:1\?"):
        parse_ratio("1:4", "oversubscription")


@given(st.floats(1e-300, 1e300))
def test_a_ratio_reads_back_exactly_as_it_was_written(value):
    assert parse_ratio(write_ratio(value)) == value
    assert write_ratio(2.0) == "2"


def test_what_rounding_leaves_of_a_time_has_no_sign():
    """A flap that no message met cost -0.00 us."""
    assert microseconds(-1e-12) == "0.00"
    assert microseconds(-1e-6) == "-1.00"


@pytest.mark.parametrize(
    ("text", "meant"),
    [("4000Tbps", "4000Gbps"), ("400 TB/s", "400GB/s"), ("400Tbit/s", "400Gbit/s"), ("1Pb/s", "1Tb/s")],
)
def test_a_link_faster_than_any_port_is_a_mistake_in_the_unit(text, meant):
    with pytest.raises(InputError, match=f"^uplink is '{text}', .* did you mean {meant}[?]$"):
        parse_bandwidth(text, "uplink")
    assert parse_rate(text) == parse_bandwidth(meant) * 1000  # of a memory, or of sums


def test_a_rate_in_plain_units_is_meant():
    assert parse_bandwidth("4e14B/s") == parse_bandwidth(write_bandwidth(4e14)) == 4e14
    for text in ("400000000000kbps", "4000Pbps"):  # 4000Tbps would be refused, too
        with pytest.raises(InputError, match=r"at most 144Tbps \(18TB/s\)$"):
            parse_bandwidth(text)
