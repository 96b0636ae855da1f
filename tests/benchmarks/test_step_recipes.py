"""What recipes of Megatron-Bridge set beside the tables of published steps."""

import pytest

from benchmarks.steps.recipes import with_recipe
from benchmarks.steps.setup import Setup


@pytest.mark.parametrize(
    ("model", "accelerator", "release", "graphs"),
    [
        ("qwen3-30b-a3b", "gb200", "26.06", True),
        ("qwen3-30b-a3b", "gb200", "26.04.01", False),
        ("qwen3-30b-a3b", "b200", "26.06.01", False),
        ("deepseek-v3", "gb200", "26.08", True),
        ("deepseek-v3", "gb200", "25.11", False),
        ("llama3-70b", "gb200", "26.08", False),
        ("qwen3-30b-a3b", "gb200", "", False),
    ],
)
def test_graphs_are_those_of_the_releases_that_have_them(model, accelerator, release, graphs):
    one = with_recipe(Setup("f", "s", "t", "u", model=model, gpu=accelerator, variant="mxfp8"), release)
    assert (one.graphs, one.hides_experts, one.attention) == (graphs, False, "fused")
    assert bool(one.assumed) == graphs
