"""Host time of layers with experts: kernels that the program launches one by one while the accelerator waits.

The tokens that each expert gets are counted on the accelerator, and the host needs these counts before it can launch
the kernels of the experts. So it cannot run ahead, and what it takes to launch adds to a pass. A program that is
captured as one graph launches nothing.

Megatron-LM launches the products of each expert of a rank (Transformer Engine's GroupedLinear, a loop over cuBLAS).
Programs with PyTorch's full sharding have one kernel for them all: torch._grouped_mm in torchtitan, that or
grouped_gemm in NeMo AutoModel.
"""

from __future__ import annotations

from commsim.training.gpus import WIDE

from .step_setting import StepSetting

# Seconds of the host for a call: of a matrix product, and of an element-wise kernel (docs/data/gpus.md, launches of
# PyTorch on the hosts of an H100 and an H200).
PRODUCT_LAUNCH, ELEMENTWISE_LAUNCH = 21e-6, 10.3e-6
# Mean of these and of a norm, 15.8 us.
LAUNCH = 16e-6
# Calls of a layer outside of its experts, counted in a program that permutes tokens: router, choice of experts, sums
# by expert and their copies to the host, permutation, both exchanges and the way back, and the attention between.
CALLS_FORWARD, CALLS_BACKWARD = 45, 55
# Of one expert: two products forward and four backward; below BF16, casts of what comes in of each pair of products.
PRODUCTS_FORWARD, PRODUCTS_BACKWARD, CASTS = 2, 4, 2


def expert_launches(setting: StepSetting, *, backward: bool) -> float:
    """Return the seconds of the host for launches in a pass of the mean layer; 0 without experts, and of a graph.

    Parameters
    ----------
    setting : StepSetting
        Model, parallelism, and precision: factors of products are cast below BF16.
    backward : bool
        Which pass.
    """
    model = setting.model
    if setting.graphs or not model.experts:
        return 0.0
    calls, products = (CALLS_BACKWARD, PRODUCTS_BACKWARD) if backward else (CALLS_FORWARD, PRODUCTS_FORWARD)
    each = products * PRODUCT_LAUNCH + CASTS * ELEMENTWISE_LAUNCH * (setting.precision not in WIDE)
    kernels = 1 if setting.sharding == "full" else model.experts / setting.layout.expert
    return (calls * LAUNCH + kernels * each) * model.n_expert_layers / model.layers
