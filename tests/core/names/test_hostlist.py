import pytest
from drawn_inputs import names
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.names.hostlist import MAX_NAMES, compress_hosts, expand_hosts

ANY_NAME = st.from_regex(r"[a-zA-Z][a-z0-9.\-]{0,6}[0-9]{0,4}", fullmatch=True)


@pytest.mark.slow
@given(st.lists(ANY_NAME, min_size=1, max_size=30))
def test_any_names_come_back_in_their_order(hosts):
    assert expand_hosts(compress_hosts(hosts)) == tuple(hosts)


@given(names(12))
def test_numbered_names_come_back_in_their_order(hosts):
    assert expand_hosts(compress_hosts(hosts)) == tuple(hosts)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("node[08-10,20]", "node08 node09 node10 node20"),
        ("n[9-11]", "n9 n10 n11"),
        ("login,n[1-2]", "login n1 n2"),
        ("r[0-1]n[0-1]", "r0n0 r0n1 r1n0 r1n1"),
        ("n[1-2]-ib", "n1-ib n2-ib"),
        ("[1-2]", "1 2"),
    ],
)
def test_ranges_are_written_out(text, hosts):
    assert expand_hosts(text) == tuple(hosts.split())


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        ("node01 node02 node03 node20", "node[01-03,20]"),
        ("n09 n10 n11", "n[09-11]"),
        ("n99 n100", "n[99-100]"),
        ("n099 n100", "n[099-100]"),
        ("n9 n010", "n[9,010]"),
        ("n1 x n2", "n1,x,n2"),
    ],
)
def test_runs_are_written_shortly(hosts, text):
    assert compress_hosts(hosts.split()) == text


@pytest.mark.parametrize("text", ["n[0-999999999]", "n[0-999][0-999][0-999]", ",".join(["n[0-70000]"] * 3)])
def test_a_short_text_cannot_fill_the_memory(text):
    with pytest.raises(InputError, match=f"more than {MAX_NAMES} hosts"):
        expand_hosts(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "n[1-2",
        "n1]",
        "n[]",
        "n[2-1]",
        "n[a-b]",
        "n[[1]]",
        "n[1-2-3]",
        "n[-1]",
        "a,,b",
        "[" * 10**6,
        "a[1]" * 10**5 + "[",
    ],
)
def test_what_is_no_list_is_refused(text):
    with pytest.raises(InputError, match="not a"):
        expand_hosts(text)


@pytest.mark.parametrize("name", ["", "a b", "a,b", "a[1]", "a#b", "a=b", "a\nb"])
def test_names_that_would_change_the_meaning_are_not_written(name):
    with pytest.raises(InputError, match="the name of a host must be"):
        compress_hosts([name])


def test_a_long_range_that_is_none_is_quoted_from_its_beginning():
    with pytest.raises(InputError, match="is not a range of numbers") as error:
        expand_hosts(f"n[{'<a>' * 5000}]")
    assert len(str(error.value)) < 300
