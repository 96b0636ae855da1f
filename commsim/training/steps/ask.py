"""The one function from names and numbers to a training step; command line, Python and sweeps call it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from commsim.core.errors import InputError
from commsim.core.machines.hardware import read_hardware
from commsim.core.network import Network
from commsim.core.placement import PACKED
from commsim.core.remark import Remark
from commsim.prediction.checks import checked_all, texts
from commsim.prediction.inputs import NetworkLike, load_placement, network_of
from commsim.prediction.read import changed_network
from commsim.prediction.scenario import ENGINES
from commsim.training.gpus import Gpu
from commsim.training.gpus import gpu as gpu_named

from .calibration import calibration_for
from .memory import check_memory
from .parallel_sizes import MAX_RANKS, ParallelSizes
from .predicted_step import Step, predict_step
from .step_interval import spread_of
from .step_setting import HIDDEN, PRECISION, SHARDING, StepSetting
from .step_traffic import StepTraffic
from .transformer import transformer

# Machines of racks with 72 GPUs, of which layouts of powers of two use 64.
RACK, USED = 72, 64
# Tokens of a sequence where neither the user nor the model tells them.
SEQUENCE = 8192


def training_step(
    model: str,
    gpu: str,
    network: NetworkLike | None = None,
    *,
    global_batch: int,
    ranks: int | None = None,
    tp: int = 1,
    pp: int = 1,
    cp: int = 1,
    ep: int = 1,
    vp: int = 1,
    replicas: int = 1,
    micro_batch: int = 1,
    sequence: int | None = None,
    precision: str | None = None,
    factor: float | None = None,
    sharding: str = SHARDING,
    recompute: bool = False,
    frozen: bool = False,
    overlap: Sequence[str] = HIDDEN,
    placement: str = PACKED,
    seed: int = 0,
    engine: str = ENGINES[0],
    fail: Sequence[str] = (),
    scale: Sequence[str] = (),
    hashes: int | None = None,
    overhead: float | str | None = None,
    software: str | None = None,
    attention: str = "",
    graphs: bool = False,
    ignore_memory: bool = False,
    schedule: str = "",
) -> Step:
    """Predict a step of training a transformer on a network, and what each kind of its traffic exposes.

    Parameters
    ----------
    model, gpu : str
        Names in ``commsim/training/transformers.toml`` and ``commsim/training/gpus.toml``.
    network : str, Network or NetworkBuilder, optional
        Network. Default: the machines of the GPU behind one switch, which shares nothing but their NICs.
    global_batch : int
        Sequences of a step.
    ranks : int, optional
        GPUs. Default: all of the network.
    tp, pp, cp, ep : int
        Ranks of a tensor, pipeline, context and expert parallel group; the others are data parallel.
    vp : int
        Parts of the model on each stage, of the interleaved schedule.
    replicas : int
        Groups of data parallel ranks that each divide all parameters, and add up their gradients.
    micro_batch : int
        Sequences of a micro-batch.
    sequence : int, optional
        Tokens of a sequence. Default: those of the model's pre-training, or 8192 where they are not known.
    precision : str, optional
        Precision of matrix products. Default: bf16, in which most models are trained.
    factor : float, optional
        Compute time over the roofline's. Default: the nearest calibration.
    sharding, recompute, frozen, overlap
        Same as in :class:`commsim.training.steps.step_setting.StepSetting`.
    placement : str
        Placement of the ranks.
    seed, engine, fail, scale, hashes, overhead, software
        As in :func:`commsim.prediction.read.scenario_of`.
    attention : {"", "fused", "flash", "unfused"}
        Kernels of attention: of cuDNN and flash attention 3, flash attention 2, or products and a softmax, as before
        2022. Default: flash with full sharding, else fused.
    graphs : bool
        Whether a step is captured as a CUDA graph, so that the host launches no kernel of a layer with experts.
    ignore_memory : bool
        Whether a step is predicted that does not fit in the memory of the GPUs.
    schedule : str
        Order of the passes of a pipeline, such as gpipe. Default: interleaved with vp, else 1f1b.

    Returns
    -------
    Step
        Time, what is exposed by kind, and what was assumed.

    Raises
    ------
    InputError
        If something is unknown or wrong, does not divide, or does not fit in memory.

    Examples
    --------
    >>> import commsim as cs
    >>> step = cs.training_step("llama3-8b", "h100", ranks=8, tp=2, global_batch=8)
    >>> 0.1 < step.time < 2
    True
    """
    if network is None and ranks is None:
        raise InputError("a step needs a network (topology) or a number of ranks, got neither")
    notes: list[Remark] = []
    if network is None:
        network = network_for(gpu_named(gpu), ranks or 0)
        notes.append(Remark("network-assumed", f"{network}: no topology is given", needed=True))
    changes = checked_all({"fail": fail, "scale": scale})
    built, remarks = changed_network(network_of(network), **changes, seed=seed, overhead=overhead, software=software)
    check_machines(gpu_named(gpu), built)
    setting, found = setting_of(
        model, gpu, len(built.endpoints) if ranks is None else ranks, global_batch=global_batch, tp=tp, pp=pp, cp=cp,
        ep=ep, vp=vp, replicas=replicas, micro_batch=micro_batch, sequence=sequence, precision=precision,
        factor=factor, sharding=sharding, recompute=recompute, frozen=frozen, overlap=texts("data")("overlap", overlap),
        attention=attention, graphs=graphs, ignore_memory=ignore_memory, schedule=schedule,
    )  # fmt: skip
    traffic = traffic_on(
        built, setting.layout.n_ranks, placement, seed, engine, damaged=bool(fail or scale), hashes=hashes
    )
    if built.software:
        traffic.cables = changed_network(network_of(network), fail=fail, scale=scale, seed=seed)[0]
    step = predict_step(setting, traffic)
    return replace(step, notes=(*notes, *found, *remarks, *step.notes))


def setting_of(
    model: str,
    gpu: str,
    ranks: int,
    *,
    tp: int = 1,
    pp: int = 1,
    cp: int = 1,
    ep: int = 1,
    vp: int = 1,
    replicas: int = 1,
    precision: str | None = None,
    factor: float | None = None,
    sequence: int | None = None,
    attention: str = "",
    ignore_memory: bool = False,
    **options: Any,
) -> tuple[StepSetting, tuple[Remark, ...]]:
    """Read names and sizes, and find the calibration; parameters as of :func:`training_step`.

    Returns
    -------
    StepSetting, tuple of str
        And what was assumed.
    """
    accelerator = gpu_named(gpu)
    for name, size in (
        ("tp", tp),
        ("pp", pp),
        ("cp", cp),
        ("ep", ep),
        ("vp", vp),
        ("replicas", replicas),
        ("ranks", ranks),
    ):
        if size < 1:
            raise InputError(f"{name} must be 1 or more, got {size}")
    if ranks % (tp * pp * cp):
        raise InputError(f"ranks must be a multiple of tp x pp x cp = {tp * pp * cp}, got {ranks}")
    chosen = precision or PRECISION
    accelerator.peak(chosen)
    shape = transformer(model)
    calibration = calibration_for(model, gpu, chosen) if factor is None else None
    layout = ParallelSizes(tp, pp, cp, ranks // (tp * pp * cp), ep, vp, replicas)
    used = calibration.factor if calibration else float(factor or 0.0)
    tokens = shape.sequence or SEQUENCE if sequence is None else sequence
    remarks = (Remark("calibration", calibration.text),) if calibration else ()
    if precision is None:
        remarks = (Remark("precision", f"{chosen}: the default (--precision)"), *remarks)
    if sequence is None:
        whose = f"those of {model}'s pre-training" if shape.sequence else f"assumed, since those of {model} are unknown"
        remarks = (*remarks, Remark("sequence", f"sequences of {tokens} tokens: {whose}", needed=not shape.sequence))
    if tp > shape.kv_heads:
        heads = f"tp {tp} is above the {shape.kv_heads} KV heads of {model}: each is on several ranks"
        remarks = (*remarks, Remark("kv-heads", heads, needed=True))
    setting = StepSetting(
        shape, accelerator, layout, precision=chosen, factor=used, sequence=tokens, kernels=attention,
        spread=None if calibration is None else spread_of(calibrated=calibration.is_own, experts=bool(shape.experts)),
        **options,
    )  # fmt: skip
    if not ignore_memory:
        check_memory(setting)
    return setting, remarks


def check_machines(gpu: Gpu, network: Network) -> None:
    """Refuse an accelerator of another generation than the GPUs of a network's machines, where both are known.

    Raises
    ------
    InputError
        If they differ.
    """
    facts = read_hardware(network.hardware)
    has = facts.get("gpu", gpu.generation)
    if has != gpu.generation and "gpu" not in facts.get("guessed", "").split("+"):
        raise InputError(
            f"gpu {gpu.name} is {gpu.generation}, and the machines of {network.name} have GPUs of {has}: name the GPU "
            f"that they have, or machines with {gpu.name}, such as {gpu.machine}"
        )


def traffic_on(
    network: Network,
    n_ranks: int,
    placement: str = PACKED,
    seed: int = 0,
    engine: str = ENGINES[0],
    *,
    damaged: bool = False,
    hashes: int | None = None,
) -> StepTraffic:
    """Return the times of collectives of so many ranks on a network.

    Raises
    ------
    InputError
        If the ranks do not fit.
    """
    where = load_placement(placement, network, n_ranks, seed)
    return StepTraffic(network, where, seed, engine, damaged=damaged, hashes=hashes)


def network_for(gpu: Gpu, n_ranks: int) -> str:
    """Name the machines of a GPU behind one switch.

    Raises
    ------
    InputError
        If there are too few or too many ranks.
    """
    if not 1 <= n_ranks <= MAX_RANKS:
        raise InputError(f"ranks must be 1 to {MAX_RANKS}, got {n_ranks}")
    from topologies.presets import PRESETS

    machine = gpu.machine
    each = int(PRESETS[machine].arguments.get("n_gpus", 0))
    if not each:
        return machine
    if each == RACK and n_ranks % RACK:
        machine, each = f"{machine}:n_gpus={USED},n_nics={USED},n_pcie_switches={USED}", USED
    n = -(-n_ranks // each)
    return machine if n == 1 else f"{machine}@star:machines={n}"
