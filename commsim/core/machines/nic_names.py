"""Names of NICs: which names are, how a host's and a NIC's come in one, and in what order people count them."""

from __future__ import annotations

import re

from commsim.core.spec import is_whole

_PARTS = re.compile(r"(\d+)")
# What a NIC is called by its driver, its system or its position; the device may come before, as in node07-mlx5_3.
_NIC = re.compile(
    r"(?:(?P<host>.*?\S)(?:\s+|[-_.:/]))?"
    r"(?P<nic>(?:mlx[45]_|hfi1_|bnxt_re|irdma|efa_?|rdmap|rocep?|ionic_|cxi|qedr|erdma_|hca[-_ ]?|ibp?|nic[-_]?|hsn"
    r"|rail|eth|en[opsx]|ens|enp|bond|stor(?:age)?[-_]?|mgmt|gpu[-_]?|net)\w*)",
    re.IGNORECASE | re.ASCII,
)
# Letters of a name; a longer one is not looked into.
_MAX_NAME = 256
# NICs that no job sends by: of storage and of management.
_STORAGE = re.compile(r"stor|nfs|lustre|ceph|san\d*$|mgmt|manage|bmc|ipmi|oob|front|bond|inband", re.IGNORECASE)


def in_order(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key by which names sort as people count: node2 before node10."""
    return tuple(_part_key(part) for part in _PARTS.split(text) if part)


def _part_key(part: str) -> tuple[int, int, str]:
    if not is_whole(part, len(part)):
        return 0, 0, part
    digits = part.lstrip("0")
    return 1, len(digits), digits  # of any length, which int() would refuse


def split_nic(text: str) -> tuple[str, str]:
    """Split ``node07-mlx5_3`` or ``node07 mlx5_3`` into host and NIC; the NIC is empty where the text has none."""
    match = _match(text)
    if match is None or not match["host"]:
        return text, ""
    return match["host"].rstrip("-_.:/ "), match["nic"]


def is_nic(port: str) -> bool:
    """Whether a port is called as NICs are."""
    match = _match(port)
    return match is not None and not match["host"]


def _match(text: str) -> re.Match[str] | None:
    """Match a name; not one that is too long, in which the expression would try each pair of places."""
    return _NIC.fullmatch(text) if len(text) <= _MAX_NAME else None


def is_storage(nic: str) -> bool:
    """Whether a NIC is called as those of storage and of management are, which no job sends by."""
    return bool(_STORAGE.search(nic))
