"""What people say of NCCL beside the network, in one set of words.

``commsim nccl --net-type PXB`` and ``run --collective nccl:net_type=PXB`` (also in ``cs.predict`` and sweeps) say the
same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from collectives.nccl.call import BUFFERS
from commsim.core.errors import InputError
from commsim.core.spec import is_whole
from commsim.core.units import parse_bandwidth, parse_size, parse_time

from .nccl_setting import CPUS, GENERATIONS, MAX_CHANNELS

# Most threads of a rank that send and receive over sockets (src/transport/net_socket.cc).
MAX_THREADS = 16
NET_TYPES = ("PIX", "PXB", "P2C", "PXN", "PHB", "SYS")


def read_channels(text: str, name: str) -> tuple[int, float]:
    """Read a number of channels and the rate of each, ``12:30GB/s``."""
    count, colon, rate = text.partition(":")
    if not colon or not is_whole(count, 4) or not int(count):
        raise InputError(f"{name} must be a number of channels and the rate of each, such as 12:30GB/s, got {text!r}")
    return int(count), parse_bandwidth(rate, name)


def _nvls(text: str, name: str) -> tuple[int, float]:
    return (0, 0.0) if text == "none" else read_channels(text, name)


def _one_of(known: tuple[str, ...]) -> Callable[[str, str], str]:
    def read(text: str, name: str) -> str:
        if text not in known:
            raise InputError(f"{name} must be one of {', '.join(known)}, got {text!r}")
        return text

    return read


def _flag(text: str, name: str) -> bool:
    return _one_of(("true", "false"))(text, name) == "true"


def _ctas(text: str, name: str) -> int:
    if not is_whole(text, 4) or not 1 <= int(text) <= MAX_CHANNELS:
        raise InputError(f"{name} must be 1..{MAX_CHANNELS}, got {text!r}")
    return int(text)


def _buffer(text: str, name: str) -> int:
    size, (least, most) = parse_size(text, name), BUFFERS
    if not least <= size <= most or size % least:
        raise InputError(f"{name} must be a multiple of {least} B up to 1 GiB, got {text!r}")
    return int(size)


def _threads(text: str, name: str) -> int:
    if not is_whole(text, 2) or not 1 <= int(text) <= MAX_THREADS:
        raise InputError(f"{name} must be 1..{MAX_THREADS}, got {text!r}")
    return int(text)


# By word: the field of Given, and how its text is read.
WORDS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "gpu": ("gpu", _one_of(GENERATIONS)),
    "cpu": ("cpu", _one_of(CPUS)),
    "channels": ("channels", read_channels),
    "nvls": ("nvls", _nvls),
    "nic": ("nic", parse_bandwidth),
    "net_type": ("path_inter", _one_of(NET_TYPES)),
    "net_latency": ("net_latency", parse_time),
    "collnet": ("collnet", _flag),
    "min_ctas": ("min_ctas", _ctas),
    "max_ctas": ("max_ctas", _ctas),
    "buffer": ("buffer", _buffer),
    "socket_threads": ("socket_threads", _threads),
    "net_chunk": ("net_chunk", _buffer),
    "nvls_chunk": ("nvls_chunk", _buffer),
}


def read_words(words: Mapping[str, str], name: Callable[[str], str]) -> dict[str, Any]:
    """Return fields of :class:`commsim.nccl.of_network.NcclOptions`.

    Parameters
    ----------
    words : mapping of str to str
        Texts by word.
    name : callable
        What the user calls a word, for messages.

    Raises
    ------
    InputError
        If a text cannot be read, or min_ctas is more than max_ctas.
    """
    fields = {WORDS[word][0]: WORDS[word][1](text, name(word)) for word, text in words.items()}
    low, high = fields.get("min_ctas", 0), fields.get("max_ctas", MAX_CHANNELS)
    if low > high:
        raise InputError(f"{name('min_ctas')} must be up to {name('max_ctas')} ({high}), got {low}")
    return fields
