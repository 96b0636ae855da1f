import pytest

from commsim.core.errors import InputError
from commsim.schedulers.fabric_tree import Switch, Tree
from commsim.schedulers.slurm_job import sbatch_options

pytestmark = pytest.mark.nojit

TREE = Tree((Switch("a", nodes=("n0", "n1")), Switch("b", nodes=("n2",)), Switch("t", ("a", "b"))))


def test_a_placement_is_nodes_and_leaf_switches():
    assert sbatch_options(TREE, ["n0", "n0", "n1", "n1"]) == "--nodes=2 --nodelist=n[0-1] --switches=1"
    assert sbatch_options(TREE, ["n2", "n1"]) == "--nodes=2 --nodelist=n[2,1] --switches=2"


def test_a_host_that_the_tree_does_not_have_is_refused():
    with pytest.raises(InputError, match="'x', which is not a node of the tree"):
        sbatch_options(TREE, ["x"])
