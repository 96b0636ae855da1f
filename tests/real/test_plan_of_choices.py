import pytest

import commsim as cs
from commsim.cli import main
from commsim.core.errors import InputError
from commsim.real.library_rules import LIBRARIES

STAR = "star:n_hosts=16,bandwidth=25Gbps,latency=5us"


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("operation", ["all_reduce", "all_gather", "all_to_all", "broadcast", "reduce_scatter"])
def test_a_library_takes_as_long_at_each_size_as_the_algorithm_that_it_chooses(library, operation):
    sizes = ["8B", "16KiB", "64MiB"]
    asked = cs.scenario_of(library, STAR, operation=operation)
    assert asked.work.title == f"{library}_{operation}"
    for size, result in zip(sizes, cs.solve(asked, sizes).results, strict=True):
        chosen = LIBRARIES[library][operation](result.size, 16)
        assert result.time == cs.predict(chosen, STAR, size).time


def test_small_sums_are_four_rounds_and_large_ones_send_all_but_a_sixteenth_twice():
    small, large = (cs.predict("mpi", STAR, size).time for size in ("8B", "64MiB"))
    assert small == pytest.approx(4 * (1e-6 + 2 * 5e-6), rel=1e-3)  # of doubling: overhead and two cables each
    assert large == pytest.approx(2 * 15 / 16 * 2**26 / 3.125e9, rel=5e-3)


def test_the_table_says_which_algorithms_they_are(capsys):
    assert main(["run", "OpenMPI", "--topology", STAR, "--size", "8B,64MiB", "--overhead", "10us"]) == 0
    said = capsys.readouterr().out
    assert "open-mpi_all_reduce on star" in said
    assert "open-mpi: recursive_doubling_all_reduce from 8 B, halving_doubling_all_reduce from 64 MiB" in said


def test_other_hashes_and_routings_are_those_of_the_algorithm():
    fabric = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4"
    chosen = LIBRARIES["mpich"]["all_to_all"](2**26, 8)
    for more in ({"hashes": 3}, {"routing": "spray"}, {"seed": 5, "hashes": 1}):
        found, wanted = (
            cs.predict(name, fabric, "64MiB", operation="all_to_all", **more) for name in ("mpich", chosen)
        )
        assert found.time == wanted.time


@pytest.mark.parametrize(
    ("spec", "operation", "message"),
    [
        ("mpich", "send_recv", "mpich has no rule for send_recv; it has them for all_gather"),
        ("open-mpi:n_chunks=4", None, "open-mpi chooses by size and ranks, and takes no parameters"),
    ],
)
def test_what_a_library_does_not_choose_is_refused(spec, operation, message):
    with pytest.raises(InputError, match=message):
        cs.solve(cs.scenario_of(spec, STAR, operation=operation), ["1MiB"])


def test_a_verb_that_needs_one_algorithm_says_so(capsys):
    assert main(["schedule", "show", "mpich", "--ranks", "4"]) == 2
    assert "chooses an algorithm by size" in capsys.readouterr().err
