"""What Python functions refuse: wrong values of options, sizes, networks and collectives, each in one line."""

import inspect
from pathlib import Path

import numpy as np
import pytest

import commsim as cs
from commsim.prediction.checks import CHECKS
from commsim.prediction.options import ScenarioOptions

STAR = "star:n_hosts=4,bandwidth=100Gbps,latency=1us"
MEASURED = Path(__file__).parents[1] / "answers" / "inputs" / "osu_allreduce.txt"
OPTIONS = [
    ({"operation": "x"}, "unknown operation 'x'"),
    ({"operation": 3}, "operation must be text such as 'all_reduce', got 3"),
    ({"operation": "barrier"}, "ring_all_reduce implements all_reduce, not barrier"),
    ({"operation": "all_gather"}, "ring_all_reduce implements all_reduce, not all_gather"),
    ({"iterations": 0}, "iterations must be a whole number, 1 or more, got 0"),
    ({"iterations": -1}, "iterations must be a whole number, 1 or more, got -1"),
    ({"iterations": float("nan")}, "iterations must be a whole number, 1 or more, got nan"),
    ({"placement": [0.9, 2.9]}, "placement must name nodes, by number or by name, got 0.9"),
    ({"placement": 3}, "placement must be text such as 'packed', .* got 3"),
    ({"framing": {}}, "framing must be a Framing, got {}"),
    ({"framing": "x"}, "framing must be a Framing, got 'x'"),
    ({"routing": ""}, "routing must be text such as 'ecmp', got ''"),
    ({"routing": 3}, "routing must be text such as 'ecmp', got 3"),
    ({"engine": []}, r"engine must be text such as 'flow', got \[\]"),
    ({"assume_programmable": "x"}, "assume_programmable must be True or False, got 'x'"),
    ({"engine": "packet", "packets": {"ack_every": 1.5}}, "ack_every must be a whole number, 1 or more, got 1.5"),
    ({"engine": "packet", "packets": {"window": 0}}, "window must be above 0, got 0"),
    ({"engine": "packet", "transport": "window", "packets": {"transport": "dctcp"}}, "transport is given in packets"),
    ({"packets": "x"}, "packets must be a mapping such as"),
    ({"seed": float("nan")}, "seed must be a whole number, 0 or more, got nan"),
    ({"seed": 1.5, "placement": "random"}, "seed must be a whole number, 0 or more, got 1.5"),
    ({"seed": -1}, "seed must be a whole number, 0 or more, got -1"),
    ({"fail": [3]}, r"fail must be a list such as \['links:5%'\], got \[3\]"),
    ({"fail": 3}, "fail must be a list such as"),
    ({"fail": "links:1"}, "fail must be a list such as .* got 'links:1'"),
    ({"scale": [5]}, "scale must be a list such as"),
    ({"flap": [3]}, "flap must be a list such as"),
    ({"compressor": 3}, "compressor must be text such as"),
    ({"overhead": b"1us"}, "overhead must be a number or text such as '1us', got b'1us'"),
    ({"n_ranks": "4"}, "n_ranks must be a whole number, got '4'"),
    ({"software": []}, "software must be text such as"),
    ({"groups": 3}, "groups must be lists such as .* got 3"),
    ({"tolerance": "ten", "engine": "auto"}, "tolerance must be a number or text such as '10%', got 'ten'"),
    ({"jobs": 3}, "jobs must be a file of jobs or a Composition, got 3"),
]
SIZES = [1048576.7, 0.5, float("nan"), 10**400, b"1MiB", b"", -1, None, True, "1.5B", 2**63]
QUESTIONS = {
    "predict": lambda network, size: cs.predict("ring_all_reduce", network, size, overhead="0us"),
    "rank": lambda network, size: cs.rank("all_reduce", network, size),
    "over_bound": lambda network, size: cs.over_bound("all_reduce", network, size),
    "synthesize": lambda network, size: cs.synthesize("all_reduce", network, size, overhead="0us"),
    "advise_for": lambda network, size: cs.advise_for(size, network),
    "lower_bound": lambda network, size: cs.lower_bound("all_reduce", network).time(size),
}


def test_every_keyword_has_a_check():
    assert CHECKS.keys() == ScenarioOptions.__annotations__.keys()


@pytest.mark.parametrize(("options", "message"), OPTIONS)
def test_a_wrong_value_is_refused_by_the_name_of_its_option(options, message):
    with pytest.raises(cs.InputError, match=message):
        cs.predict("ring_all_reduce", STAR, "1MiB", **({"overhead": "0us"} | options))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: cs.rank(None, STAR, "1MiB"), "operation must be text such as 'all_reduce', got None"),
        (lambda: cs.rank("all_reduce", STAR, "1MiB", named="nccl"), r"named must be a list such as \['nccl'\]"),
        (lambda: cs.rank("all_reduce", STAR, "1MiB", algorithms=[3]), "algorithms must be a list such as"),
        (lambda: cs.over_bound("all_reduce", STAR, "1MiB", named="nccl"), "named must be a list such as"),
        (lambda: cs.lower_bound("broadcast", STAR, root=1.5), "root must be a whole number, 0 or more, got 1.5"),
        (lambda: cs.synthesize("broadcast", STAR, "1MiB", root=1.5, overhead="0us"), "root must be a whole number"),
        (lambda: cs.advise_for("1MiB", STAR, seed=1.5), "seed must be a whole number, 0 or more, got 1.5"),
        (lambda: cs.advise_for("1MiB", STAR, density="x"), "density must be a number or a list such as"),
        (lambda: cs.compare_with(MEASURED, STAR, 3, n_ranks=4), "collective must be text such as"),
        (lambda: cs.solve("ring_all_reduce", "1MiB"), "solve takes what cs.scenario_of returns, got 'ring_all_reduce'"),
        (lambda: cs.place_jobs("cluster.toml", 3), "cluster.toml: No such file"),
        (lambda: cs.advise_for(1e18, STAR, density=0.01), "of drawn data"),
        (lambda: cs.predict("ring_all_reduce", STAR, 0, engine="closed-form", overhead="0us"), "size must be positive"),
        (lambda: cs.predict("ring_all_reduce", STAR, 0, overhead="0us"), "size must be positive"),
    ],
)
def test_a_question_refuses_a_wrong_value_in_one_line(ask, message):
    with pytest.raises(cs.InputError, match=message):
        ask()


@pytest.mark.parametrize(
    ("question", "size"),
    [(question, size) for question in QUESTIONS for size in SIZES if (question, size) != ("advise_for", None)],
    ids=lambda value: repr(value)[:12],
)
def test_a_size_is_a_whole_number_of_bytes_everywhere(question, size):
    with pytest.raises(cs.InputError, match=r"^sizes? (must be a whole number|is one number|must be a size|must not)"):
        QUESTIONS[question](STAR, size)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("network", [None, {}, 3])
def test_what_is_no_network_is_refused(question, network):
    with pytest.raises(cs.InputError, match="network must be text such as"):
        QUESTIONS[question](network, "1MiB")


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_network_is_a_path_too(question, tmp_path):
    file = tmp_path / "star.toml"
    cs.save(cs.load_network(STAR), file)
    QUESTIONS[question](file, "1MiB")


@pytest.mark.parametrize("collective", [[], 3, cs.COLLECTIVES["ring_all_reduce"]])
def test_what_is_no_collective_is_refused(collective):
    with pytest.raises(cs.InputError, match="collective must be text such as"):
        cs.predict(collective, STAR, "1MiB", overhead="0us")


def test_collectives_and_placements_are_paths_too(tmp_path):
    plan = cs.prepare("ring_all_reduce", STAR, overhead="0us")
    cs.save(plan.schedule, tmp_path / "ring.npz")
    cs.save(plan.placement, tmp_path / "placed.toml", network=plan.network)
    found = cs.predict(tmp_path / "ring.npz", STAR, "1MiB", placement=tmp_path / "placed.toml", overhead="0us")
    assert found.time == cs.predict("ring_all_reduce", STAR, "1MiB", overhead="0us").time


@pytest.mark.parametrize("seed", [np.int64(1), np.uint8(1)])
def test_seeds_are_whole_numbers_of_numpy_too(seed):
    options = {"placement": "random", "engine": "packet", "n_ranks": np.int32(3)}
    assert cs.predict("ring_all_reduce", STAR, "1MiB", seed=seed, **({"overhead": "0us"} | options)) == cs.predict(
        "ring_all_reduce", STAR, "1MiB", seed=1, **({"overhead": "0us"} | options)
    )
    asked = cs.scenario_of("ring_all_reduce", STAR, groups=[[0, 1], [2, 3]], seed=seed, overhead="0us")
    assert len(cs.solve(asked, "1MiB").results) == 2
    assert cs.advise_for("1MiB", STAR, seed=seed).ranked
    assert cs.compare_with(MEASURED, STAR, n_ranks=4, seed=seed).pairs


@pytest.mark.parametrize("density", [np.float64(0.01), np.array([0.01]), [0.01]])
def test_a_density_of_numpy_is_a_density(density):
    wanted = cs.advise_for("1MiB", STAR, density=0.01)
    found = cs.advise_for("1MiB", STAR, density=density)
    assert [one.row() for one in found.ranked] == [one.row() for one in wanted.ranked]
    assert any("density" in one.candidate.spec for one in found.ranked)


def test_parts_are_text_as_on_the_command_line():
    by_text = cs.scenario_of("ring_all_reduce", STAR, engine="auto", tolerance="10%", overhead="0us")
    assert by_text.wish.model.tolerance == 0.1
    lossy = cs.predict(
        "ring_all_reduce", STAR, "1MiB", engine="packet", transport="dctcp", packets={"loss": "0.1%"}, overhead="0us"
    )
    assert lossy == cs.predict(
        "ring_all_reduce", STAR, "1MiB", engine="packet", transport="dctcp", packets={"loss": 0.001}, overhead="0us"
    )


def test_what_is_none_is_not_given():
    none = dict.fromkeys(("groups", "fail", "scale", "flap", "trace", "method"))
    assert cs.predict("ring_all_reduce", STAR, "1MiB", **({"overhead": "0us"} | none)) == cs.predict(
        "ring_all_reduce", STAR, "1MiB", overhead="0us"
    )
    assert cs.rank("all_reduce", STAR, "1MiB", algorithms=None).plans


def test_a_bound_takes_sizes_as_text():
    least = cs.lower_bound("all_reduce", STAR)
    assert least.time("1MiB") == least.time(2**20)
    assert least.why("1MiB") == least.why(2**20)


@pytest.mark.parametrize("ask", [cs.rank, cs.over_bound])
@pytest.mark.parametrize(
    ("operation", "algorithm"), [("all_reduce", "ring_all_gather"), ("broadcast", "dissemination_barrier")]
)
def test_an_algorithm_of_another_operation_is_refused(ask, operation, algorithm):
    with pytest.raises(cs.InputError, match=f"{algorithm} implements .*, not {operation}"):
        ask(operation, STAR, "1MiB", algorithms=[algorithm])


# What each public question needs beside the keyword that is tried.
NEEDED = {
    "network": STAR, "operation": "all_reduce", "sizes": ["1MiB"], "size": "1MiB", "collective": "ring_all_reduce",
    "cluster": {"topology": {"spec": "star:n_hosts=4"}, "hosts": {"gpus": 2}}, "program": ["true"], "ranks": 2,
    "config": {}, "sweep": "s.toml", "directory": "none", "model": "llama3-8b", "gpu": "h100", "global_batch": 64,
    "jobs": [{"job": "a", "gpus": 2, "iter_time_ms": 9, "phases": [{"offset_ms": 0, "dur_ms": 8, "rate_Gbps": 40}]}],
}  # fmt: skip
NEEDED["placed"] = {"a": [NEEDED["jobs"][0] | {"placement": ["h0", "h1"]}]}
NEEDED["topology"] = NEEDED["network"]


def keywords_of_lists():
    """Yield each keyword of a public function that is a list of texts."""
    for name in cs.__all__:
        function = getattr(cs, name)
        if inspect.isfunction(function):
            for parameter in inspect.signature(function).parameters.values():
                if str(parameter.annotation) in ("Sequence[str]", "Sequence[str | Path]", "Code"):
                    yield name, parameter.name


@pytest.mark.parametrize(("name", "keyword"), list(keywords_of_lists()))
def test_one_text_in_place_of_a_list_is_refused_and_not_taken_letter_by_letter(name, keyword):
    function = getattr(cs, name)
    parameters = inspect.signature(function).parameters.values()
    needed = {one.name: NEEDED[one.name] for one in parameters if one.default is one.empty and one.name in NEEDED}
    needed |= {"ranks": 8} if name == "training_step" else {}
    with pytest.raises(cs.InputError, match=f"{keyword} must be a list such as .*, got 'ring'"):
        function(**needed | {keyword: "ring"})


def test_one_size_stands_for_a_list_of_it():
    assert cs.expect("dgx-h100", ["allreduce"], "1GiB") == cs.expect("dgx-h100", ["all_reduce"], ["1GiB"])
    assert cs.fake_osu(STAR, sizes="1MiB") == cs.fake_osu(STAR, sizes=["1MiB"])
