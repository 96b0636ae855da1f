import pytest

from commsim.core.curves import Curve, Curves
from commsim.core.errors import InputError
from commsim.core.files.network_file import read_network, write_network
from commsim.core.network import Network, both_ways, kinds

SIZES = [1024.0, 65536.0, 2.0**20]
CURVES = Curves(
    (
        Curve("copy", False, False, 0, SIZES, [1e-6, 1e-5, 1.2345678e-4], [5e-7, 9e-6, 1e-4], [9e-7, 9e-6, 1e-4]),
        Curve("reduce", True, True, 2**23, SIZES[1:], [1 / 3e5, 2 / 3e5]),
        Curve("start", False, False, 0, [1024, 4096], [1e-6, 2e-6]),
    ),
    "a machine",
    "times spread by 120%",
)
NETWORK = Network("n", ("h0", "h1", "m"), kinds(2, 1), *both_ways([0, 1], [2, 2]), 1e9, 1e-6, curves=CURVES)


@pytest.mark.parametrize("suffix", [".toml", ".json", ".npz"])
def test_curves_come_back_from_a_file(tmp_path, suffix) -> None:
    path = tmp_path / f"n{suffix}"
    write_network(NETWORK, path)
    assert read_network(path) == NETWORK


@pytest.mark.parametrize(
    ("then", "now", "message"),
    [
        ('"10us"', '"100ns"', r"curves.steps\[0\].*must not descend, and 64 KiB takes less than 1 KiB"),
        ("ways = 2", "ways = 3", "ways must be a whole number 1..2, got 3"),
        ('step = "reduce"', 'step = "send"', "step must be one of copy, reduce, local, start, got 'send'"),
        ('"10us"', "1e-5", r"seconds\[1\] must be text with a unit"),
        ('    "10us",\n', "", "seconds must have one time for each of 3 sizes, got 2"),
        ('data = "relayed"', 'datum = "relayed"', "datum is not a field here; did you mean data"),
        ('step = "copy"', 'step = "reduce"', "must include one of `copy`, one way, with fresh data"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, then, now, message) -> None:
    path = tmp_path / "n.toml"
    write_network(NETWORK, path)
    text = path.read_text()
    assert then in text
    path.write_text(text.replace(then, now, 1))
    with pytest.raises(InputError, match=message) as error:
        read_network(path)
    assert "\n" not in str(error.value)


def test_a_curve_of_one_size_is_refused(tmp_path) -> None:
    path = tmp_path / "n.toml"
    write_network(Network("n", ("a", "b"), kinds(2, 0), *both_ways([0], [1]), 1e9, 0.0), path)
    curve = '[[curves.steps]]\nstep = "copy"\nsize = ["1KiB"]\nseconds = ["1us"]\n'
    path.write_text(path.read_text() + curve)
    with pytest.raises(InputError, match="needs at least two sizes, got 1"):
        read_network(path)


def test_a_network_file_without_curves_has_none(tmp_path) -> None:
    path = tmp_path / "n.toml"
    write_network(Network("n", ("a", "b"), kinds(2, 0), *both_ways([0], [1]), 1e9, 0.0), path)
    assert read_network(path).curves is None
    assert "curves" not in path.read_text()
