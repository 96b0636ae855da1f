"""What programs set beside the tables of published steps: recipes of Megatron-Bridge, submissions to MLPerf."""

import pytest

from benchmarks.steps.recipes import of_submission, with_recipe
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


@pytest.mark.parametrize(
    ("release", "model", "accelerator", "source", "precision"),
    [
        ("5.1", "llama3-8b", "gb200", "NVIDIA/results/tyche_ngpu512_ngc25.09_nemo/llama31_8b", "fp8"),
        ("5.1", "llama3-8b", "gb200", "NVIDIA/results/tyche_ngpu8_ngc25.09_nemo/llama31_8b", "fp4"),
        ("5.1", "llama3-8b", "b200", "Oracle/results/8xBM.GPU.B200.8/llama31_8b", "fp8"),
        ("5.1", "llama3-8b", "b200", "Oracle/results/1xBM.GPU.B200.8/llama31_8b", "fp4"),
        ("5.1", "llama3-8b", "b200", "Dell/results/2xXE9680Lx8B200-SXM-180GB/llama31_8b", "fp8"),
        ("5.1", "llama3-405b", "gb200", "NVIDIA/results/tyche_ngpu512_ngc25.09_nemo/llama31_405b", "fp4"),
        ("5.1", "llama3-405b", "b200", "University-of-Florida/results/hpg.dgxb200x8.n32/llama31_405b", "fp8"),
        ("5.0", "llama3-405b", "gb200", "NVIDIA/results/tyche_ngpu512_ngc25.04_nemo/llama31_405b", "fp8"),
        ("4.1", "gpt3-175b", "a100", "somebody", "bf16"),
    ],
)
def test_the_precision_of_a_submission_is_that_of_its_configuration(release, model, accelerator, source, precision):
    row = Setup("mlperf_steps.csv", "s", "t", f"mlcommons/training_results_v{release} {source}", model, accelerator,
                software=f"MLPerf {release}")  # fmt: skip
    one = of_submission(row)
    assert one.precision == precision
    assert one.assumed[-1].startswith(f"precision {precision}")
