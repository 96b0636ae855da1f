"""What recipes of Megatron-Bridge set beside the tables of published steps."""

import pytest

from benchmarks.steps.recipes import with_recipe
from benchmarks.steps.setup import Setup


@pytest.mark.parametrize(
    ("model", "accelerator", "release", "graphs", "hides"),
    [
        ("qwen3-30b-a3b", "gb200", "26.06", True, False),
        ("qwen3-30b-a3b", "gb200", "26.04.01", False, False),
        ("qwen3-30b-a3b", "b200", "26.06.01", False, True),
        ("deepseek-v3", "gb200", "26.08", True, True),
        ("deepseek-v3", "gb200", "25.11", False, False),
        ("llama3-70b", "gb200", "26.08", False, False),
        ("qwen3-30b-a3b", "gb200", "", False, False),
    ],
)
def test_graphs_are_those_of_the_releases_that_have_them(model, accelerator, release, graphs, hides):
    one = with_recipe(Setup("f", "s", "t", "u", model=model, gpu=accelerator, variant="mxfp8"), release)
    assert (one.graphs, one.hides_experts, one.attention) == (graphs, hides, "fused")
    assert bool(one.assumed) == (graphs or hides)
