"""Places of a job in a file: names of nodes, each as often as it counts; and groups of its ranks."""

from __future__ import annotations

from commsim.core.files.fields import TableFields
from commsim.core.names.hostlist import repeated_names, spelled_out


def kept_of(n_gpus: int) -> str:
    """Return what to do where a job has more places than GPUs, as one that shrinks has."""
    return f"a job that shrinks lists the {n_gpus} that it keeps, and `commsim place rank` compares choices of these"


def _names_of(fields: TableFields, key: str) -> list[str]:
    if not isinstance(fields.raw(key), list):
        fields.refuse(key, 'a list of names of nodes, such as ["h0x4", "h1x4"]')
    names: list[str] = fields.items(key, str, "the name of a node")
    return names


def placement_of(fields: TableFields, n_gpus: int, key: str = "placement") -> tuple[str, ...] | None:
    """Return the node of each rank of a job in a file, None without; a name may count, such as ``h0-3x4``.

    Different names without counts, such as ``h[0-1]`` of a job of eight, have equal parts of its GPUs.
    """
    if fields.raw(key) is None:
        return None
    nodes: list[str] = _names_of(fields, key)
    names = nodes
    for read in (repeated_names, spelled_out):  # a node may have a name such as h2x4 or h1-2: only where they must be
        names = names if len(names) == n_gpus else read(nodes)
    if 0 < len(names) < n_gpus and n_gpus % len(names) == 0 and len({*names}) == len(names):
        names = [name for name in names for _ in range(n_gpus // len(names))]
    if len(names) != n_gpus:
        wanted = f"{n_gpus} nodes, one per GPU, such as h0 or h0x4 for 4 GPUs, or h0-3x4 for 4 of each"
        more = f": {kept_of(n_gpus)}" if len(names) > n_gpus else ""
        fields.fail(key, f"must name {wanted}, got {len(names)}{more}")
    return tuple(names)


def placed_of(fields: TableFields, n_gpus: int) -> tuple[str, ...]:
    """Return the nodes that the first ranks of a job in a file keep."""
    if fields.raw("placed") is None:
        return ()
    names: list[str] = _names_of(fields, "placed")
    if not all(names):
        fields.refuse("placed", "names of nodes")
    if len(names) > n_gpus:
        fields.fail("placed", f"names {len(names)} GPUs, but the job has {n_gpus}: {kept_of(n_gpus)}")
    return tuple(names)


def groups_of(table: TableFields, n_gpus: int) -> tuple[tuple[int, ...], ...]:
    """Read the ranks of each group of a phase."""
    rows = table.raw("groups")
    if not isinstance(rows, list) or not all(isinstance(row, list) and row for row in rows):
        table.refuse("groups", "a list of lists of ranks")
    ranks = [rank for row in rows for rank in row]
    if not all(isinstance(rank, int) and 0 <= rank < n_gpus for rank in ranks) or len(set(ranks)) < len(ranks):
        table.refuse("groups", f"groups of ranks 0..{n_gpus - 1}, each in one")
    return tuple(map(tuple, rows))
