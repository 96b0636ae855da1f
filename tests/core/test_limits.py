import math
import subprocess
import sys

import pytest

from commsim.core import limits
from commsim.core.errors import InputError


def test_work_of_more_than_the_limit_is_refused_with_its_estimate_and_the_way_round(monkeypatch):
    monkeypatch.delenv(limits.VARIABLE, raising=False)
    with pytest.raises(InputError, match=r"counting would take about 2 h, but the limit is 60 min: ask for less of it"):
        limits.expect(7200.0, "counting", "less of it")
    with pytest.raises(InputError, match="COMMSIM_MAX_SECONDS=10000"):
        limits.expect(7200.0, "counting", "less of it")
    monkeypatch.setenv(limits.VARIABLE, "10000")
    limits.expect(7200.0, "counting", "less of it")
    assert (limits.EXPECTED.what, limits.EXPECTED.seconds) == ("counting", 7200.0)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "soon"])
def test_a_limit_is_positive_seconds(monkeypatch, text):
    monkeypatch.setenv(limits.VARIABLE, text)
    with pytest.raises(InputError, match="COMMSIM_MAX_SECONDS must be positive seconds"):
        limits.expect(1.0, "counting", "less")


def test_an_estimate_that_is_no_number_is_refused(monkeypatch):
    monkeypatch.delenv(limits.VARIABLE, raising=False)
    with pytest.raises(InputError, match="counting would take about"):
        limits.expect(math.nan, "counting", "less")


def test_tables_larger_than_what_is_free_are_refused(monkeypatch):
    monkeypatch.setattr(limits, "available_bytes", lambda: 2.0**30)
    limits.expect_bytes(2.0**30, "a log", "less")
    with pytest.raises(InputError, match=r"a log would take 2 GiB of memory, but only 1 GiB are free: ask for less"):
        limits.expect_bytes(2.0**31, "a log", "less")


def test_tables_that_nobody_can_mean_are_refused_though_they_are_free_unless_the_variable_allows_them(monkeypatch):
    monkeypatch.setattr(limits, "available_bytes", lambda: 2.0**40)
    monkeypatch.delenv(limits.MEMORY_VARIABLE, raising=False)
    limits.expect_bytes(2.0**33, "a log", "less")
    with pytest.raises(InputError, match=r"would take 16 GiB .*, but the limit is 8 GiB: ask for less, or set COMMSIM"):
        limits.expect_bytes(2.0**34, "a log", "less")
    monkeypatch.setenv(limits.MEMORY_VARIABLE, "32GiB")
    limits.expect_bytes(2.0**34, "a log", "less")
    monkeypatch.setenv(limits.MEMORY_VARIABLE, "1GiB")
    with pytest.raises(InputError, match="the limit is 1 GiB"):
        limits.expect_bytes(2.0**31, "a log", "less")
    monkeypatch.setenv(limits.MEMORY_VARIABLE, "much")
    with pytest.raises(InputError, match="COMMSIM_MEMORY"):
        limits.expect_bytes(2.0**31, "a log", "less")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.25, "250 ms"),
        (59, "59 s"),
        (119.4, "119 s"),
        (600, "10 min"),
        (3e4, "8.33 h"),
        (8e5, "9.26 days"),
        (1e9, "31.7 years"),
    ],
)
def test_a_duration_has_a_unit_that_leaves_few_digits(seconds, text):
    assert limits.duration(seconds) == text


def test_libraries_are_not_loaded_where_they_hang_or_abort(monkeypatch):
    """`synthesize` under `ulimit -v` of 400 to 580 MB hung, or ended in tracebacks of what was half loaded."""
    monkeypatch.setattr(limits, "_address_space", lambda: (900e6, 150e6))
    with pytest.raises(InputError, match=r"under `ulimit -v`, 900 MB: give at least 1000 MB"):
        limits.check_room_for_libraries()
    monkeypatch.setattr(limits, "_address_space", lambda: (1e9, 150e6))
    limits.check_room_for_libraries()


LINES = [
    ("synthesize --operation all_to_all --topology torus:dims=3x3 -b 1M -e 1M", 400_000),
    ("run ring_all_reduce --engine packet --topology star:n_hosts=4 -b 1M -e 1M", 480_000),
]


@pytest.mark.parametrize(("line", "kib"), LINES)
def test_a_command_under_a_limit_of_memory_ends_and_says_why(line, kib):
    """The synthesis looks before SciPy is loaded, whose BLAS ends the process; a kernel looks before Numba is."""
    limited = f"ulimit -v {kib}; exec {sys.executable} -m commsim {line}"
    done = subprocess.run(["sh", "-c", limited], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 2
    limit = f"{kib * 1024 / 1e6:.0f} MB"
    assert f"do not fit into the address space under `ulimit -v`, {limit}: give at least" in done.stderr
