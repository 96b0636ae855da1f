"""Numbers of the collectives in Chakra traces."""

OPERATIONS = {
    "all_reduce": 0, "reduce": 1, "all_gather": 2, "gather": 3, "scatter": 4, "broadcast": 5, "all_to_all": 6,
    "reduce_scatter": 7, "barrier": 9,
}  # fmt: skip
NAMES = {number: name for name, number in OPERATIONS.items()} | {8: "reduce_scatter"}  # 8: of equal blocks
RESOURCE = "commsim_resource"
"""Our own attribute: what a task occupies, without the name of its worker."""
GROUPS = ".groups.json"
"""What the name of the file ends with that says which ranks each process group has, as ASTRA-sim reads it."""
