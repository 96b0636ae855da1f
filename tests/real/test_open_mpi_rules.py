import pytest

from collectives import COLLECTIVES
from commsim.real import open_mpi_rules
from commsim.real.library_rules import LIBRARIES
from commsim.real.open_mpi_rules import RULES

K = 1024


@pytest.mark.parametrize(
    ("operation", "n", "size", "name"),
    [
        ("all_reduce", 2, 256 * K - 1, "ring_all_reduce"),
        ("all_reduce", 2, 256 * K, "halving_doubling_all_reduce"),
        ("all_reduce", 4, 8 * K - 1, "recursive_doubling_all_reduce"),
        ("all_reduce", 4, 8 * K, "halving_doubling_all_reduce"),
        ("all_reduce", 16, 60, "recursive_doubling_all_reduce"),  # a ring needs an element for each rank
        ("all_reduce", 17, 63, "recursive_doubling_all_reduce"),
        ("all_reduce", 2, 16 * K, "ring_all_reduce"),
        ("all_reduce", 200, 100 * K, "binomial_tree_all_reduce"),
        ("all_gather", 2, 2**24, "recursive_doubling_all_gather"),
        ("all_gather", 12, 2**20, "bruck_all_gather"),  # doubling runs Bruck's where ranks are no power of two
        ("all_gather", 48, 48 * K, "ring_all_gather"),
        ("all_gather", 33, 33 * K - 33, "bruck_all_gather"),
        ("all_to_all", 2, 2 * 32 * K, "direct_all_to_all"),
        ("all_to_all", 2, 2 * 256 * K, "pairwise_all_to_all"),
        ("all_to_all", 16, 16 * 511, "bruck_all_to_all"),
        ("broadcast", 8, 2**24, "binomial_broadcast"),
        ("broadcast", 4, 2**20, "chain_broadcast"),
        ("reduce", 3, 2**20, "chain_reduce"),
    ],
)
def test_what_open_mpi_runs_changes_at_its_sizes(operation: str, n: int, size: int, name: str) -> None:
    assert LIBRARIES["open-mpi"][operation](size, n) == name


def test_releases_before_4_1_had_other_sizes() -> None:
    assert LIBRARIES["open-mpi-4.0"]["all_reduce"](9_999, 8) == "recursive_doubling_all_reduce"
    assert LIBRARIES["open-mpi-4.0"]["all_reduce"](10_000, 2501) == "recursive_doubling_all_reduce"
    assert LIBRARIES["open-mpi"]["all_reduce"](9_999, 8) == "halving_doubling_all_reduce"


def test_every_size_and_number_of_ranks_has_a_collective_of_its_operation() -> None:
    for operation, rule in RULES.items():
        for n in (2, 3, 5, 12, 24, 48, 100, 200, 400, 800, 1500, 3000, 5000):
            for size in (4**k for k in range(14)):
                assert COLLECTIVES[rule(size, n)].metadata["operation"] == operation, (operation, n, size)


@pytest.mark.parametrize("table", ["_ALL_REDUCE", "_ALL_GATHER", "_ALL_TO_ALL", "_BROADCAST", "_REDUCE"])
def test_thresholds_ascend(table: str) -> None:
    rows = getattr(open_mpi_rules, table)
    assert [row[0] for row in rows] == sorted({row[0] for row in rows})
    assert rows[-1][0] == float("inf")
    for _, limits, _ in rows:
        sizes = [limit for limit, _ in limits]
        assert sizes == sorted(set(sizes))
