import pytest

from commsim.core.errors import InputError
from commsim.sweep.check_names import check_specs
from commsim.sweep.config import read_config
from commsim.sweep.point_parameters import collective_spec, network_spec


def test_a_case_overrides_what_all_cases_have(small):
    small["case"] = [{"topology": {"n_hosts": 16}}, {"topology": {"name": "ring"}, "collective": {"ranks": 2}}]
    first, second = ({axis.name: axis.values for axis in case.axes} for case in read_config(small).cases)
    assert (first["topology.name"], first["topology.n_hosts"], first["collective.ranks"]) == (("star",), (16,), (4, 8))
    assert (second["topology.name"], second["topology.n_hosts"], second["collective.ranks"]) == (("ring",), (8,), (2,))


def test_the_hash_is_of_what_decides_the_points(small, tmp_path):
    plain = read_config(small).hash
    small["goal"] = {"keep": "time", "within": "1s"}
    assert read_config(small).hash == plain
    small["sweep"] = {"seed": 1}
    assert read_config(small).hash != plain


def test_a_file_that_is_named_and_changes_makes_another_sweep(small, tmp_path):
    own = tmp_path / "mine.py"
    own.write_text("x = 1")
    small["topology"] = {"name": f"{own}:mine"}
    before = read_config(small, [own])
    assert list(before.files) == [str(own)]
    own.write_text("x = 2")
    assert read_config(small, [own]).hash != before.hash


def test_specs_are_written_as_the_command_line_takes_them(small):
    config = read_config(small)
    first = {axis.name: axis.values[0] for axis in config.cases[0].axes}
    assert network_spec(first, config.kinds) == "star:n_hosts=8,bandwidth=100Gbps,latency=1us"
    assert collective_spec(first, config.kinds) == "ring_all_reduce"
    first["topology.name"] = "dgx-a100@fat_tree:k=4"
    assert network_spec(first, config.kinds) == "dgx-a100@fat_tree:k=4,n_hosts=8,bandwidth=100Gbps,latency=1us"


@pytest.mark.parametrize(
    ("table", "key", "value", "message"),
    [
        ("topology", "name", "stra", "unknown topology 'stra'; did you mean star"),
        ("topology", "bandwith", "1Gbps", "star has no parameter 'bandwith'; did you mean bandwidth"),
        ("topology", "bandwidth", "1MiB", "bandwidth must be a rate"),
        ("topology", "n_hosts", "many", "n_hosts must be a whole number"),
        ("collective", "name", "rign_all_reduce", "unknown collective"),
        ("collective", "root", 1, "ring_all_reduce has no parameter 'root'"),
        ("collective", "size", "1 GB/s", "collective.size must be a size such as 64MiB, got '8Gbps'"),
        ("collective", "size", 1024, "collective.size must be a size such as 64MiB, got 1024"),
        ("collective", "ranks", "8", "collective.ranks must be a whole number"),
        ("engine", "nmae", "flow", "no parameter engine.nmae; did you mean engine.name"),
        ("engine", "seed", [1, 2], r"no parameter engine.seed; seeds are drawn by repeats and seed of \[sweep\]"),
        ("engine", "routing", "ecmp", r"no parameter engine.routing; did you mean topology.routing\? "),
        ("collective", "bandwidth", "1Gbps", "ring_all_reduce has no parameter 'bandwidth'"),
        ("placement", "transport", "dctcp", r"no parameter placement.transport; did you mean engine.transport\? "),
        ("engine", "name", "flwo", "engine.name must be one of flow, packet, .*, got 'flwo'"),
        ("topology", "routing", "magic", "topology.routing must be one of ecmp"),
        ("placement", "strategy", "best", "placement.strategy must be one of .*packed, random, spread.*, or a file"),
        ("engine", "overhead", 3, "engine.overhead must be a time"),
        ("collective", "ranks", [4, -4], "collective.ranks must be 1 or more, got -4"),
        ("engine", "iterations", 0, "engine.iterations must be 1 or more, got 0"),
        ("placement", "where", "packed", "no parameter placement.where"),
        ("workload", "trace", "x.csv", "workload.trace needs workload.workers"),
        ("sweep", "sample", "random", "one of grid, latin_hypercube, sobol"),
        ("sweep", "sample", "sobol", "sweep.n is missing"),
        ("sweep", "repeats", 0, "a whole number 1"),
        ("sweep", "sede", 3, "is not a field here; did you mean seed"),
        ("sweep", "filters", "ranks > 3", "a list of text"),
        ("sweep", "filters", ["print(3)"], "Call is not allowed"),
        ("topolgy", "name", "star", "is not a field here; did you mean topology"),
    ],
)
def test_what_is_wrong_is_named_before_anything_runs(small, table, key, value, message):
    small.setdefault(table, {})[key] = value
    with pytest.raises(InputError, match=message):
        check_specs(read_config(small))


def test_a_case_that_is_wrong_is_numbered(small):
    small["case"] = [{}, {"topology": {"name": "torus"}}]
    with pytest.raises(InputError, match="case 2: torus has no parameter 'n_hosts'"):
        check_specs(read_config(small))


def test_a_missing_name_is_said(small):
    del small["collective"]["name"]
    with pytest.raises(InputError, match=r"collective.name is missing"):
        check_specs(read_config(small))
