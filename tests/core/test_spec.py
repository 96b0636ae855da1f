from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.spec import as_number, check_arguments, network_with, read_arguments, split_spec, write_spec
from commsim.core.units import Bandwidth, Bytes, Seconds, share
from commsim.formats.measured import read_measured


def example(
    n_hosts: int,
    ratio: float = 1.0,
    bandwidth: Bandwidth = 1e9,
    latency: Seconds = 0.0,
    buffer: Bytes | None = None,
    dims: tuple[int, ...] = (2, 2),
    wrap: bool = True,
    kind: Literal["mesh", "torus"] = "mesh",
    label: str = "x",
) -> None:
    """Take one parameter of every type that a registered function may declare."""


def arguments(text):
    return read_arguments(example, split_spec(text)[1])


def test_a_name_alone_has_no_parameters():
    assert split_spec("fat_tree") == ("fat_tree", {})
    assert split_spec(" fat_tree: ") == ("fat_tree", {})


def test_parameters_are_split_at_commas_and_spaces_are_dropped():
    assert split_spec("a: k = 4 , b=1:2=3") == ("a", {"k": "4", "b": "1:2=3"})


@pytest.mark.parametrize("text", ["", ":k=4", "a:k", "a:k=", "a:=4", "a:k=4,,b=1", "a:k=4,"])
def test_what_is_not_key_equals_value_is_refused(text):
    with pytest.raises(InputError, match="expected"):
        split_spec(text)


def test_a_key_that_comes_twice_is_refused():
    with pytest.raises(InputError, match="k is given twice"):
        split_spec("a:k=4,k=6")


def test_values_get_the_types_that_the_function_declares():
    text = "n_hosts=4,ratio=2.5,bandwidth=8Gbps,latency=1us,buffer=1MiB,dims=4x4x2,wrap=False,kind=torus,label=y"
    assert arguments(f"example:{text}") == {
        "n_hosts": 4,
        "ratio": 2.5,
        "bandwidth": 1e9,
        "latency": 1e-6,
        "buffer": 2.0**20,
        "dims": (4, 4, 2),
        "wrap": False,
        "kind": "torus",
        "label": "y",
    }


@pytest.mark.parametrize("written", ["torus", "Torus", "TORUS", "to_rus", "to-rus"])
def test_a_choice_may_be_spelled_as_the_library_spells_it(written):
    """NCCL's NVLSTree is our nvls_tree."""
    assert arguments(f"example:n_hosts=4,kind={written}")["kind"] == "torus"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n_hosts=4.0", "example: n_hosts must be a whole number, got '4.0'"),
        ("n_hosts=1_0", "n_hosts must be a whole number"),
        ("n_hosts=\u0663", "n_hosts must be a whole number"),
        ("n_hosts=" + "9" * 30, "n_hosts is out of range"),
        ("n_hosts=" + "9" * 5000, "n_hosts must be a whole number"),
        ("n_hosts=1,ratio=nan", "ratio must be a number"),
        ("n_hosts=1,ratio=inf", "ratio must be a number"),
        ("n_hosts=1,ratio=1e999", "ratio is out of range"),
        ("n_hosts=1,wrap=yes", "wrap must be true or false"),
        ("n_hosts=1,dims=4x", "dims must be whole numbers such as 4x4x4"),
        ("n_hosts=1,kind=ring", "kind must be one of mesh, torus, got 'ring'"),
        ("n_hosts=1,bandwidth=100Gb", "did you mean 100Gbps"),
        ("n_hosts=1,bandwith=1Gbps", "no parameter 'bandwith'; did you mean bandwidth\\? known: n_hosts, ratio"),
        ("ratio=1", "example needs n_hosts, such as example:n_hosts=4"),
    ],
)
def test_a_wrong_parameter_is_refused_by_name(text, message):
    with pytest.raises(InputError, match=message):
        arguments(f"example:{text}")


def test_a_count_without_its_n_is_meant_before_what_is_spelled_alike():
    """`nics` of a machine led to `nic`, the rate of one."""

    def machine(nic: Bandwidth = 1e9, n_nics: int = 8) -> None:
        """Take a rate and a count."""

    assert read_arguments(machine, {"nics": "4"}) == {"n_nics": 4}
    assert read_arguments(machine, {"nic": "8Gbps"}) == {"nic": 1e9}
    with pytest.raises(InputError, match="n_nics is given twice: 2 and 4"):
        read_arguments(machine, {"n_nics": "2", "nics": "4"})
    with pytest.raises(InputError, match="no parameter 'nics'"):
        read_arguments(machine, {"nics": "4"}, names=("n_nics",))


def test_what_the_caller_supplies_the_user_may_not():
    assert read_arguments(example, {}, names=("n_hosts",)) == {}
    with pytest.raises(InputError, match="no parameter 'n_hosts'"):
        read_arguments(example, {"n_hosts": "4"}, names=("n_hosts",))


@given(
    st.fixed_dictionaries(
        {
            "n_hosts": st.integers(-(2**60), 2**60),
            "ratio": st.floats(allow_nan=False, allow_infinity=False),
            "bandwidth": st.floats(1e-9, 1e20),
            "latency": st.floats(0, 1e9),
            "buffer": st.none() | st.floats(0, 1e20),
            "dims": st.lists(st.integers(0, 99), min_size=1).map(tuple),
            "wrap": st.booleans(),
            "kind": st.sampled_from(["mesh", "torus"]),
        }
    )
)
def test_what_is_written_reads_back_exactly(values):
    name, raw = split_spec(write_spec(example, values))
    assert name == "example"
    assert read_arguments(example, raw) == {k: v for k, v in values.items() if v is not None}


def test_a_function_without_arguments_is_written_by_its_name():
    assert write_spec(example, {"buffer": None}) == "example"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("n_hosts", 4.0, "n_hosts must be a whole number, got 4.0"),
        ("n_hosts", True, "n_hosts must be a whole number, got True"),
        ("n_hosts", None, "n_hosts must be a whole number, got None"),
        ("ratio", "2", "ratio must be a number, got '2'"),
        ("latency", "1us", "latency must be a number of seconds, got '1us'"),
        ("dims", 4, r"dims must be whole numbers such as \(4, 4, 4\), got 4"),
        ("dims", [4, 4], r"dims must be whole numbers such as \(4, 4, 4\), got \[4, 4\]"),
        ("dims", (4, 0.5), r"dims must be whole numbers such as \(4, 4, 4\), got \(4, 0.5\)"),
        ("buffer", "1B", "buffer must be a number of bytes, got '1B'"),
    ],
)
def test_from_python_the_types_are_checked_too(key, value, message):
    with pytest.raises(InputError, match=message):
        check_arguments(example, {key: value})


def test_a_number_may_be_in_percent():
    def build(density: float) -> None:
        pass

    assert read_arguments(build, {"density": "1%"}) == {"density": 0.01}
    with pytest.raises(InputError, match="density must be a number, got '1 '"):
        read_arguments(build, {"density": "1 %"})


def test_from_python_numpy_numbers_and_none_for_an_optional_are_taken():
    np = pytest.importorskip("numpy")
    check_arguments(example, {"n_hosts": np.int32(4), "ratio": np.float64(2), "buffer": None, "latency": 0})


@pytest.mark.parametrize("text", ["1_0", "\u0664", "nan", "inf", "1e", "", "0x10", "1 0"])
def test_a_number_has_digits_0_to_9(text, tmp_path):
    """`float` takes the first four, so that a cell of CSV, a share and a factor of computing did."""
    for read in (as_number, share):
        with pytest.raises(ValueError):
            read(text)
    if text:
        (tmp_path / "all_reduce.csv").write_text(f"bytes,time_us\n8,{text}\n", "utf-8")
        with pytest.raises(InputError, match="line 2: time_us must be a number of at least 0"):
            read_measured(tmp_path / "all_reduce.csv")


@pytest.mark.parametrize("text", ["1", " -2.5 ", "+.5", "3.", "1e-3", "2E+2"])
def test_a_number_is_what_python_reads(text):
    assert as_number(text) == float(text)
    assert share(f"{text.strip()}%") == float(text) / 100


def test_a_parameter_of_a_network_goes_to_the_fabric_whatever_the_machine_has():
    assert network_with("dgx-h100:rates=spec@star", "machines=2") == "dgx-h100:rates=spec@star:machines=2"
    assert network_with("dgx-h100@star:machines=2", "latency=1us") == "dgx-h100@star:machines=2,latency=1us"
    assert network_with("star", "n_hosts=4") == "star:n_hosts=4"
