"""Files of cost models: their schema, what is refused, and that the engine is met."""

import json

import jsonschema
import pytest

import commsim as cs
from commsim.cli import main
from commsim.costmodel.build_cost_model import CostModelQuestion, build_cost_model
from commsim.costmodel.cost_model_file import read_cost_model, schema, write_cost_model
from commsim.costmodel.evaluators.cost_model import CostModel

STAR = "star:n_hosts=4,bandwidth=100Gbps,latency=1us"


@pytest.fixture(scope="module")
def star(tmp_path_factory):
    path = tmp_path_factory.mktemp("star") / "star.json"
    words = [
        "export",
        "cost-model",
        STAR,
        "--operation",
        "all_reduce",
        "--points",
        "30",
        "--jobs",
        "1",
        "-o",
        str(path),
    ]
    assert main(words) == 0
    return path


def test_a_file_is_as_its_schema_says(star, tree):
    jsonschema.Draft202012Validator.check_schema(schema())
    for found in (tree, json.loads(star.read_text())):
        jsonschema.validate(found, schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tree | {"version": 2}, schema())


def test_an_answer_of_a_file_is_the_engines(star):
    for size in (1, 1000, 64 << 20, 12_345_678):
        exact = cs.predict("ring_all_reduce", STAR, size).time
        assert cs.estimate("all_reduce", size, 4, str(star)).time == pytest.approx(exact, rel=0.01)
    assert CostModel(read_cost_model(str(star))).curves() == [("all_reduce", 2, 1, ""), ("all_reduce", 4, 1, "")]


@pytest.mark.parametrize(
    ("given", "said"),
    [(("all_gather", 8, 4), "has no all_gather of 4 ranks; it has all_reduce of 2 ranks"),
     (("all_reduce", 8, 3), "no all_reduce of 3"), (("all_reduce", 2**40, 4), "sizes up to 17179869184 bytes")],
)  # fmt: skip
def test_what_a_file_does_not_have_is_said(star, given, said):
    with pytest.raises(cs.InputError, match=said):
        cs.estimate(*given, str(star))


@pytest.mark.parametrize(
    ("change", "said"),
    [({"format": "x"}, "no cost model"), ({"version": 2}, "version must be 1"), ({"curves": []}, "at least one"),
     ({"largest_size": 7}, "must ascend, up to largest_size"), ({"curves": [3]}, "expected a table")],
)  # fmt: skip
def test_a_wrong_file_is_refused(tree, tmp_path, change, said):
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(tree | change))
    with pytest.raises(cs.InputError, match=said):
        read_cost_model(str(path))


def test_a_curve_with_wrong_columns_is_refused(tree, tmp_path):
    path = tmp_path / "wrong.json"
    for change in ({"time": [1.0]}, {"low": ["x"] * 40}, {"machines": "4"}, {"size": tree["curves"][0]["size"][::-1]}):
        path.write_text(json.dumps(tree | {"curves": [tree["curves"][0] | change]}))
        with pytest.raises(cs.InputError, match=r"curves\[0\]"):
            read_cost_model(str(path))


def test_a_file_of_more_than_1_mib_is_refused(tmp_path):
    with pytest.raises(cs.InputError, match=r"more than 1 MiB; name fewer"):
        write_cost_model(str(tmp_path / "large.json"), "x" * (2**20 + 1))


@pytest.mark.slow
def test_a_library_with_jumps_is_met_everywhere():
    """NCCL's choices are breaks, single sizes that take less are kept, and faults are a case."""
    asked = CostModelQuestion(network="dgx-h100", operations=["all_gather"], gpus=[8], points=20, high=2**24)
    made = build_cost_model(asked, jobs=1)
    tree = json.loads(made.text)
    curve, model = tree["curves"][0], CostModel(tree)
    assert tree["release"] == "NCCL 2.32"
    assert tree["certificate"]["largest_error"] <= 0.01
    for start, _ in curve["choices"][1:]:
        assert start in curve["size"] or model.answer("all_gather", 1, 8, start)[0] > 0
    for size in (65_536, 65_552, 98_304, 2**20, 2**20 + 16, 5_000_000 // 16 * 16):
        exact = cs.predict("nccl", "dgx-h100", size, operation="all_gather")
        found = model.answer("all_gather", 1, 8, size)
        assert found == pytest.approx((exact.time, *exact.interval), rel=0.011)


def test_faults_are_cases_beside_the_whole_network():
    network = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4"
    asked = CostModelQuestion(
        network=network, operations=["all_to_all"], machines=[8], faults=["link:leaf0:spine0"], points=10, hashes=1
    )
    model = CostModel(json.loads(build_cost_model(asked, jobs=1).text))
    whole, broken = (model.answer("all_to_all", 8, 1, 2**26, faults)[0] for faults in ("", "link:leaf0:spine0"))
    assert broken > 1.1 * whole
