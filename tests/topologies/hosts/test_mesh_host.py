import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.machines.parts import NVLINK_METRIC
from commsim.routing.routing import find_routes
from topologies.hosts.mesh_host import mesh_host


def of_each_gpu(machine):
    nvlinks = machine.metric == NVLINK_METRIC
    return np.bincount(machine.src[nvlinks], machine.bandwidth[nvlinks])


@pytest.mark.parametrize(("layout", "n_pairs"), [("full", 28), ("pairs", 4), ("cube", 16)])
def test_every_gpu_has_its_links_in_any_layout(layout, n_pairs):
    machine = mesh_host(n_gpus=8, n_pcie_switches=4, layout=layout, nvlink=450e9)
    assert of_each_gpu(machine) == pytest.approx([450e9] * 8)
    assert (machine.metric == NVLINK_METRIC).sum() == 2 * n_pairs


def test_in_the_cube_mesh_two_gpus_are_at_most_two_links_apart():
    machine = mesh_host(n_gpus=8, n_pcie_switches=4, layout="cube")
    src, dst = np.divmod(np.arange(64), 8)
    routes = find_routes(machine, src, dst)
    assert np.diff(routes.first).max() == 2
    assert (machine.metric[routes.link] == NVLINK_METRIC).all()


def test_two_gpus_of_different_pairs_go_over_pcie():
    machine = mesh_host(n_gpus=4, layout="pairs")
    routes = find_routes(machine, [0, 0], [1, 2])
    assert machine.metric[routes.link[: routes.first[1]]].tolist() == [NVLINK_METRIC]
    assert (machine.metric[routes.link[routes.first[1] :]] != NVLINK_METRIC).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_gpus": 4, "layout": "cube"}, "layout=cube joins 8 GPUs, got n_gpus=4"),
        ({"n_gpus": 3, "n_cpus": 1, "layout": "pairs"}, "needs an even number of GPUs, got n_gpus=3"),
        ({"layout": "ring"}, "layout must be one of full, pairs, cube, dies, got 'ring'"),
    ],
)
def test_a_layout_for_another_number_of_gpus_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        mesh_host(**arguments)
