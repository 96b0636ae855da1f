"""MSCCL's XML: read, with what its runtime would refuse refused and what it would never use warned of; and written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import quoteattr

from commsim.core.files.whole_files import replacing
from commsim.formats.markup import Element, read_xml

from .algorithm import (
    BUFFERS,
    MAX_BLOCKS,
    MAX_BLOCKS_OF_CHANNEL,
    MAX_COUNT,
    MAX_STEPS,
    OPERATIONS,
    PROTOCOLS,
    RECEIVING,
    SENDING,
    STEP_TYPES,
    Algorithm,
    BlockStep,
    GpuProgram,
    ThreadBlock,
)

MAX_GPUS = 2**16
MAX_CHUNKS = 2**24
USUAL_MAX_BYTES = 2**27


def read_msccl(path: str | Path) -> tuple[Algorithm, tuple[str, ...]]:
    """Read an algorithm.

    Returns
    -------
    Algorithm, tuple of str
        What the file holds, and what should be said to the user of it.

    Raises
    ------
    InputError
        If the file is not well formed, or the runtime would refuse it; names the line.
    """
    top = read_xml(path)
    if top.tag != "algo":
        top.fail("is not an algorithm of MSCCL: expected <algo>")
    n_gpus = top.whole("ngpus", minimum=1, maximum=MAX_GPUS)
    gpus = _numbered(top, "gpu", n_gpus)
    algorithm = Algorithm(
        top.text("name"),
        top.one_of("coll", OPERATIONS),
        top.one_of("proto", PROTOCOLS),
        bool(top.whole("inplace", 0, 0, 1)),
        top.whole("nchunksperloop", minimum=1, maximum=MAX_CHUNKS),
        top.whole("minBytes", 0),
        _max_bytes(top),
        tuple(_gpu(gpu, n_gpus) for gpu in gpus),
        top.whole("nchannels", minimum=1, maximum=2**15 - 1),
        _weights(top),
    )
    for element, gpu in zip(gpus, algorithm.gpus, strict=True):
        _check_chunks(element, gpu, algorithm)
        if any(block.channel >= algorithm.n_channels for block in gpu.blocks):
            element.fail(f"uses a channel that is not below nchannels={algorithm.n_channels}")
    notes: tuple[str, ...] = ()
    if algorithm.min_bytes >= algorithm.max_bytes:
        notes = (
            f"the runtime never uses this file: minBytes={algorithm.min_bytes} <= bytes < "
            f"maxBytes={algorithm.max_bytes} holds for no size",
        )
    return algorithm, notes


def _weights(top: Element) -> tuple[float, ...]:
    try:
        weights = tuple(map(float, top.text("weights", "").split()))
    except ValueError:
        weights = (0.0,)
    if not all(0 < weight < float("inf") for weight in weights):
        top.fail(f"weights must be positive numbers, one for each channel, got {top.text('weights')!r}")
    return weights


def _max_bytes(top: Element) -> int:
    if top.text("maxBytes", "").strip() == "-1":  # without end, in later versions
        return 2**63 - 1
    return top.whole("maxBytes", USUAL_MAX_BYTES)


def _gpu(element: Element, n_gpus: int) -> GpuProgram:
    chunks = {name: element.whole(f"{name}_chunks", maximum=MAX_CHUNKS) for name in BUFFERS}
    blocks = _numbered(element, "tb", len(element.children), MAX_BLOCKS)
    gpu = GpuProgram(chunks, tuple(_block(block, n_gpus, chunks) for block in blocks))
    seen: set[tuple[str, int, int]] = set()
    on_channel: dict[int, int] = {}
    for tag, block in zip(blocks, gpu.blocks, strict=True):
        on_channel[block.channel] = on_channel.get(block.channel, 0) + 1
        if on_channel[block.channel] > MAX_BLOCKS_OF_CHANNEL:
            tag.fail(f"is one of more than {MAX_BLOCKS_OF_CHANNEL} thread blocks of channel {block.channel}")
        for way, peer in (("send", block.send), ("recv", block.recv)):
            if peer >= 0 and (way, peer, block.channel) in seen:
                tag.fail(f"is the second with {way}={peer} on channel {block.channel}")
            seen.add((way, peer, block.channel))
        _check_waits(tag, block, gpu)
    return gpu


def _block(element: Element, n_gpus: int, chunks: dict[str, int]) -> ThreadBlock:
    send, recv = (_signed(element, key, n_gpus) for key in ("send", "recv"))
    steps = _numbered(element, "step", len(element.children), MAX_STEPS, "s")
    return ThreadBlock(
        send,
        recv,
        element.whole("chan", maximum=2**15 - 2),
        tuple(_step(step, send, recv, chunks) for step in steps),
    )


def _step(element: Element, send: int, recv: int, chunks: dict[str, int]) -> BlockStep:
    kind = element.one_of("type", STEP_TYPES)
    if (kind in SENDING and send < 0) or (kind in RECEIVING and recv < 0):
        element.fail(
            f"of type {kind} is in a thread block without a peer to {'send to' if send < 0 else 'receive from'}"
        )
    block, of_block = _signed(element, "depid", MAX_BLOCKS), _signed(element, "deps", MAX_STEPS)
    wait = (block, of_block) if block >= 0 and of_block >= 0 else None
    waited_for = bool(element.whole("hasdep", 0, 0, 1))
    if kind == "nop":
        return BlockStep(kind, wait=wait, waited_for=waited_for)
    count = element.whole("cnt", minimum=1, maximum=MAX_COUNT - 1)
    places: list[tuple[str, int]] = []
    for end, other in (("src", kind == "r"), ("dst", kind in ("s", "rrs"))):
        buffer, chunk = element.one_of(f"{end}buf", BUFFERS), _signed(element, f"{end}off", MAX_CHUNKS)
        # the far end's address is there to be read by people; this end's must exist
        if not other and not (kind == "rcs" and end == "src") and not 0 <= chunk <= chunks[buffer] - count:
            element.fail(f"{end}off={chunk} with cnt={count} is outside of the {chunks[buffer]} chunks of {buffer}")
        places.append((buffer, chunk))
    hop, stage = (_signed(element, key, MAX_CHUNKS) for key in ("hop", "stage"))
    return BlockStep(kind, *places[0], *places[1], count, wait, waited_for, hop, stage)


def _check_waits(element: Element, block: ThreadBlock, gpu: GpuProgram) -> None:
    for number, step in enumerate(block.steps):
        if step.wait is None:
            continue
        other, of_other = step.wait
        if other >= len(gpu.blocks) or of_other >= len(gpu.blocks[other].steps):
            element.fail(f"step {number} waits for step {of_other} of thread block {other}, which is not there")


def _check_chunks(element: Element, gpu: GpuProgram, algorithm: Algorithm) -> None:
    """Check that the buffers are as large as the collective says, as the runtime does."""
    n = len(algorithm.gpus)
    for buffer, parts in (("i", n if algorithm.collective == "allgather" else 1),
                          ("o", n if algorithm.collective == "reduce_scatter" else 1)):  # fmt: skip
        held = gpu.chunks[buffer]
        if held and held * parts != algorithm.n_chunks and algorithm.collective != "custom":
            element.fail(f"{buffer}_chunks={held} times {parts} must be nchunksperloop={algorithm.n_chunks}")


def _numbered(parent: Element, tag: str, n: int, most: int = MAX_GPUS, key: str = "id") -> list[Element]:
    """Return the children, which must all have this tag, in the order of their numbers from 0."""
    for child in parent.children:
        if child.tag != tag:
            child.fail(f"is not known inside <{parent.tag}>; known: {tag}")
    if len(parent.children) != n:
        parent.fail(f"must have {n} <{tag}>, got {len(parent.children)}")
    if n > most:
        parent.fail(f"has {n} <{tag}>, the runtime takes {most}")
    children = sorted(parent.children, key=lambda child: child.whole(key))
    for number, child in enumerate(children):
        if child.whole(key) != number:
            child.fail(f"{key} must be one of 0..{n - 1}, each once, got {child.text(key)}")
    return children


def _signed(element: Element, key: str, limit: int) -> int:
    """Return a number from -1, which means none, up to but without `limit`."""
    if element.text(key, "-1").strip() == "-1":
        return -1
    return element.whole(key, maximum=limit - 1)


def write_msccl(algorithm: Algorithm, path: str | Path) -> None:
    """Write an algorithm; the file appears whole or not at all."""
    lines = [_tag("algo", {
        "name": algorithm.name, "proto": algorithm.protocol, "nchannels": algorithm.n_channels,
        "nchunksperloop": algorithm.n_chunks, "ngpus": len(algorithm.gpus), "coll": algorithm.collective,
        "inplace": int(algorithm.in_place), "outofplace": int(not algorithm.in_place),
        "minBytes": algorithm.min_bytes, "maxBytes": algorithm.max_bytes,
        **({"weights": " ".join(map(repr, algorithm.weights))} if algorithm.weights else {}),
    })]  # fmt: skip
    for rank, gpu in enumerate(algorithm.gpus):
        lines.append(" " + _tag("gpu", {"id": rank, **{f"{name}_chunks": n for name, n in gpu.chunks.items()}}))
        for number, block in enumerate(gpu.blocks):
            ends = {"id": number, "send": block.send, "recv": block.recv, "chan": block.channel}
            lines.append("  " + _tag("tb", ends))
            lines += ["   " + _tag("step", _step_write(s, step), close="/") for s, step in enumerate(block.steps)]
            lines.append("  </tb>")
        lines.append(" </gpu>")
    with replacing(path) as out:
        out.write("\n".join([*lines, "</algo>\n"]).encode())


def _step_write(number: int, step: BlockStep) -> dict[str, object]:
    block, of_block = step.wait or (-1, -1)
    return {
        "s": number, "type": step.kind, "srcbuf": step.src_buffer, "srcoff": step.src_chunk,
        "dstbuf": step.dst_buffer, "dstoff": step.dst_chunk, "cnt": step.count, "depid": block, "deps": of_block,
        "hasdep": int(step.waited_for), **({"hop": step.hop, "stage": step.stage} if step.hop >= 0 else {}),
    }  # fmt: skip


def _tag(name: str, attributes: Mapping[str, object], close: str = "") -> str:
    return f"<{name} {' '.join(f'{key}={quoteattr(str(value))}' for key, value in attributes.items())}{close}>"
