"""``commsim workload kv`` and ``weights``: KV caches to decode ranks, and weights to inference ranks, on a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commsim.cli.flags import TOPOLOGY, flag, switched
from commsim.core.errors import InputError
from commsim.core.units import format_bandwidth, format_size, format_time, parse_nccl_size
from commsim.report.answer import Answer, Table, remarks
from commsim.report.hash_columns import with_ends

from .step import OnNetwork

if TYPE_CHECKING:
    from commsim.training.parallel.transfers import Side

HEAD_DIM, VALUE_BYTES = 128, 2  # by default
COLUMNS = ["way", "time", "rate", "bound", "messages"]


class Transfer(OnNetwork):
    """Network of a transfer; the first ranks send, the next ones receive."""

    topology: str = flag(
        "--topology", "--network", required=True, metavar=TOPOLOGY, help="network; the first ranks placed are senders"
    )
    senders: int = flag("--from", required=True, metavar="N", help="ranks that send")
    receivers: int = flag("--to", required=True, metavar="N", help="ranks that receive")


class KvConfig(Transfer):
    """All flags of ``commsim workload kv``."""

    model: str | None = flag(metavar="NAME", help="transformer, such as llama3-70b, in place of layers and heads")
    layers: int | None = flag(metavar="N", help="number of layers")
    kv_heads: int | None = flag(metavar="N", help="heads of keys and values")
    head_dim: int | None = flag(metavar="N", help=f"elements of a head (default: {HEAD_DIM})")
    value_bytes: int = flag(default=VALUE_BYTES, metavar="N", help="bytes of an element")
    tokens: int = flag(required=True, metavar="N", help="tokens whose keys and values are sent")


class WeightsConfig(Transfer):
    """All flags of ``commsim workload weights``."""

    model: str | None = flag(metavar="NAME", help="transformer whose weights are sent, in place of --size")
    size: str | None = flag("-b", metavar="SIZE", help="size of all weights")
    value_bytes: int = flag(default=VALUE_BYTES, metavar="N", help="bytes of a parameter, with --model")
    parts: int = flag(default=1, metavar="N", help="ranks among which an inference engine divides the weights")
    synthesize: bool = switched(help="with one sender: make the fastest broadcast, with its lower bound")


def run_kv(config: KvConfig) -> Answer:
    """Send the keys and values of a prompt."""
    from commsim.training.parallel.transfers import kv_side

    per_token, heads = _kv_of(config)
    if config.tokens < 1:
        raise InputError(f"--tokens must be 1 or more, got {config.tokens}")
    sides = kv_side(config.senders, heads, "--from"), kv_side(config.receivers, heads, "--to")
    title = f"{format_size(per_token * config.tokens)} of {config.tokens} tokens"
    return _answer(config, *sides, per_token * config.tokens, title, ("direct",))


def run_weights(config: WeightsConfig) -> Answer:
    """Push weights."""
    from commsim.training.parallel.transfers import WAYS, Side
    from commsim.training.steps.transformer import transformer

    if (config.model is None) == (config.size is None):
        raise InputError("give --model NAME or --size SIZE, one of them")
    if config.value_bytes < 1:
        raise InputError(f"--value-bytes must be 1 or more, got {config.value_bytes}")
    size = (
        transformer(config.model).total * config.value_bytes
        if config.model
        else parse_nccl_size(config.size or "", "--size")
    )
    sides = Side(config.senders, config.senders, False, "--from"), Side(config.receivers, config.parts, True, "--to")
    if config.synthesize and (config.senders > 1 or config.parts > 1):
        raise InputError("--synthesize makes a broadcast: it takes --from 1 and --parts 1")
    return _answer(config, *sides, size, f"{format_size(size)} of weights", WAYS)


def _kv_of(config: KvConfig) -> tuple[float, int]:
    """Bytes of keys and values of a token in all layers, and the heads among which they are divided."""
    from commsim.training.steps.transformer import transformer

    if config.value_bytes < 1:
        raise InputError(f"--value-bytes must be 1 or more, got {config.value_bytes}")
    if config.model is not None:
        if flags := config.given("layers", "kv_heads", "head_dim"):
            raise InputError(f"{flags[0]} and --model exclude each other")
        model = transformer(config.model)
        heads = 0 if model.kv_bytes_per_token_and_layer else model.kv_heads
        return model.kv_bytes / 2 * config.value_bytes * (model.attention_layers or model.layers), heads
    if config.layers is None or config.kv_heads is None:
        raise InputError("give --model NAME, or --layers N and --kv-heads N")
    dim = HEAD_DIM if config.head_dim is None else config.head_dim
    for name, value in (("--layers", config.layers), ("--kv-heads", config.kv_heads), ("--head-dim", dim)):
        if value < 1:
            raise InputError(f"{name} must be 1 or more, got {value}")
    return 2.0 * config.layers * config.kv_heads * dim * config.value_bytes, config.kv_heads


def _answer(
    config: KvConfig | WeightsConfig, senders: Side, receivers: Side, size: float, title: str, ways: tuple[str, ...]
) -> Answer:
    from commsim.training.parallel.transfer_times import best_push, transfer_rows

    options = {name: getattr(config, name) for name in ("placement", "fail", "scale", "overhead", "software")}
    rows, notes = transfer_rows(
        config.topology, senders, receivers, size, ways, seed=config.seed or 0, hashes=config.hashes, **options
    )
    if isinstance(config, WeightsConfig) and config.synthesize:
        rows.append(best_push(config.topology, receivers.ranks, size, seed=config.seed or 0, **options))
    shown = [_cells(row) for row in rows]
    return Answer([Table(*with_ends(COLUMNS, shown, 2, rows), title), *remarks(notes)], rows)


def _cells(row: dict[str, Any]) -> list[str]:
    bound = "-" if row["bound_s"] is None else format_time(row["bound_s"])
    rate, messages = format_bandwidth(row["rate_Bps"]), "-" if row["messages"] is None else str(row["messages"])
    return [row["way"], format_time(row["time_s"]), rate, bound, messages]
