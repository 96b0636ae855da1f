"""Write an algorithm as XML, in the form that MSCCL's runtime reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import quoteattr

from commsim.core.formats.files import replacing

from .algorithm import Algorithm, Step


def write_msccl(algorithm: Algorithm, path: str | Path) -> None:
    """Write an algorithm; the file appears whole or not at all."""
    lines = [_tag("algo", {
        "name": algorithm.name, "proto": algorithm.protocol, "nchannels": algorithm.n_channels,
        "nchunksperloop": algorithm.n_chunks, "ngpus": len(algorithm.gpus), "coll": algorithm.collective,
        "inplace": int(algorithm.in_place), "outofplace": int(not algorithm.in_place),
        "minBytes": algorithm.min_bytes, "maxBytes": algorithm.max_bytes,
    })]  # fmt: skip
    for rank, gpu in enumerate(algorithm.gpus):
        lines.append(" " + _tag("gpu", {"id": rank, **{f"{name}_chunks": n for name, n in gpu.chunks.items()}}))
        for number, block in enumerate(gpu.blocks):
            ends = {"id": number, "send": block.send, "recv": block.recv, "chan": block.channel}
            lines.append("  " + _tag("tb", ends))
            lines += ["   " + _tag("step", _step(s, step), close="/") for s, step in enumerate(block.steps)]
            lines.append("  </tb>")
        lines.append(" </gpu>")
    with replacing(path) as out:
        out.write("\n".join([*lines, "</algo>\n"]).encode())


def _step(number: int, step: Step) -> dict[str, object]:
    block, of_block = step.wait or (-1, -1)
    return {
        "s": number, "type": step.kind, "srcbuf": step.src_buffer, "srcoff": step.src_chunk,
        "dstbuf": step.dst_buffer, "dstoff": step.dst_chunk, "cnt": step.count, "depid": block, "deps": of_block,
        "hasdep": int(step.waited_for), **({"hop": step.hop, "stage": step.stage} if step.hop >= 0 else {}),
    }  # fmt: skip


def _tag(name: str, attributes: Mapping[str, object], close: str = "") -> str:
    return f"<{name} {' '.join(f'{key}={quoteattr(str(value))}' for key, value in attributes.items())}{close}>"
