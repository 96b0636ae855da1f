"""What programs set and the tables of their steps do not say: precision, kernels of attention, graphs, what hides.

Of Megatron-Bridge: read in ``src/megatron/bridge/perf_recipes`` at 067f987df, the commit of the tables. Some recipes
there also hide exchanges of experts (``overlap_moe_expert_parallel_comm``). The tables are of many releases and do not
say it, and steps of these setups took as long as if nothing hid them, so no row is taken to. Gradients are sent in BF16
(``grad_reduce_in_fp32 = False``), with full sharding too.

Of MLPerf 5.1: read in the submissions' ``config_*.sh`` and, where they print it, in the configuration at the head of
their logs (mlcommons/training_results_v5.1). Their Llama 3.1 8B is FP8 but for those of ``FP4_SUBMISSIONS``.

References
----------
Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM", SC 2021: tensor
parallel all-reduces stand between products, gradients are summed after the last pass, nothing is sharded.
"""

from __future__ import annotations

import re
from dataclasses import replace

from benchmarks.steps.setup import Setup
from commsim.training.steps.roofline import FUSED
from commsim.training.steps.transformer import ACTIVATION

# Models whose recipes capture a whole step as a graph on GB200 with MXFP8; since 26.06, before which their steps took
# 15 to 60 % longer.
WHOLE_GRAPHS = ("deepseek-v3", "gpt-oss-120b", "qwen3-30b-a3b", "qwen3-235b-a22b")
GRAPHS_SINCE = (26, 6)
# Submissions to MLPerf 5.1 whose Llama 3.1 8B is NVFP4; those of Lenovo publish neither configuration nor log, and take
# the time of the others.
FP4_SUBMISSIONS = (
    "Dell/results/1xXE9680L", "Lenovo/results/", "NVIDIA/results/tyche_ngpu8_", "Nebius/results/nebius_b200_",
    "Oracle/results/1xBM.GPU.B200", "Supermicro/results/AS-4126GS-NBR", "Supermicro/results/SYS-422GS",
)  # fmt: skip
# Racks whose Llama 3.1 405B of MLPerf 5.1 is NVFP4 (the only configuration of hsg, and tyche's time against 5.0's FP8).
FP4_RACKS = ("gb200", "gb300")
# Kinds of traffic that no program hid in 2021.
EXPOSED_2021 = "tensor,pipeline,data"


def with_recipe(one: Setup, release: str) -> Setup:
    """Return the row with what its recipe sets.

    Parameters
    ----------
    one : Setup
        Row of the tables.
    release : str
        Container, such as ``26.04.01``.
    """
    numbers = tuple(int(word) for word in release.split(".") if word.isdigit())
    on = (one.gpu, one.variant or one.precision)
    graphs = on == ("gb200", "mxfp8") and one.model in WHOLE_GRAPHS and numbers >= GRAPHS_SINCE
    told = ("a step is one graph, as its recipe has it",) if graphs else ()
    return replace(one, attention=FUSED, gradient_bytes=ACTIVATION, graphs=graphs, assumed=(*one.assumed, *told))


def of_submission(one: Setup) -> Setup:
    """Return a row of MLPerf with the precision that its submission ran.

    Parameters
    ----------
    one : Setup
        Row with its model and GPU.
    """
    precision, told = ("bf16" if one.gpu in ("a100", "v100") else "fp8"), "precision {}"
    if "5.1" in one.software:
        small = any(re.search(rf"\b{re.escape(name)}", one.source) for name in FP4_SUBMISSIONS)
        if small if one.model == "llama3-8b" else one.gpu in FP4_RACKS:
            precision = "fp4"
        told += ", as its configuration says"
    return replace(one, precision=precision, assumed=(*one.assumed, told.format(precision)))
