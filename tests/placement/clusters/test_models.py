import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.placement.cluster import read_cluster
from commsim.placement.clusters.machines import DAY
from commsim.placement.clusters.models import EFFICIENCY, MODELS, profile, read_assumptions

TEXT = """
restart = "5s"
[models.vgg16]
compute = "100ms"
speeds = {h100 = 3.0, slow = 0.5}
[models.mine]
size = "10MB"
compute = "1ms"
[hosts]
type = "v100"
cpu = 96
memory = "512GiB"
inference = ["h3"]
[hosts.per_host.h1]
type = "a100"
"""


def written(folder, text):
    path = folder / "assume.toml"
    path.write_text(text)
    return path


def test_a_file_changes_rows_and_adds_some(tmp_path, cluster_of, replay):
    assumed = read_assumptions(written(tmp_path, TEXT))
    assert assumed.restart == 5.0
    assert (assumed.models["vgg16"].compute, assumed.models["vgg16"].size) == (0.1, MODELS["vgg16"].size)
    assert assumed.models["vgg16"].speeds == {**MODELS["vgg16"].speeds, "h100": 3.0, "slow": 0.5}
    assert assumed.models["mine"].size == 10e6
    assert assumed.models["bert"] == MODELS["bert"]
    from commsim.placement.clusters.machines import machines_of

    machines = machines_of(cluster_of(), assumed)
    assert machines.types == ("v100", "a100", "v100", "v100")
    assert machines.cpu.tolist() == [96.0] * 4
    assert machines.n_gpus == 24
    assert machines.lent(4 / 24 * DAY, np.zeros(4, int)).tolist() == [True] * 4
    assert machines.lent(16 / 24 * DAY, np.zeros(4, int)).tolist() == [True, True, True, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[models.new]\nsize = '1MB'", "compute is missing"),
        ("[models.vgg16]\nsize = 528", "size"),
        ("[models.vgg16]\nbusy = 2.0", "busy must be 0..1, got 2.0"),
        ("[models.vgg16.speeds]\na100 = 0", "a100 must be more than 0"),
        ("[models.vgg16]\nsizes = '1MB'", "sizes"),
        ("[hosts]\ncpu = -1", "cpu must be 0 or more"),
        ("[hosts]\ninference = 'h1'", "inference"),
        ("restart = 5", "restart"),
        ("contended = 1.01", "contended must be more than 0 and at most 1"),
        ("contended = 0", "contended must be more than 0 and at most 1"),
        ("other = 1", "other"),
        ("x = ", "assume.toml"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as caught:
        read_assumptions(written(tmp_path, text))
    assert "assume.toml" in str(caught.value)


def test_a_host_that_is_not_there_is_refused(tmp_path, replay, cluster_of):
    assumed = read_assumptions(written(tmp_path, "[hosts]\ninference = ['h9']"))
    with pytest.raises(InputError, match="'h9' is not a host with free GPUs; the first is h0"):
        replay.machines(cluster_of(), inference=assumed.inference)


def test_vgg16_on_two_workers_of_50_gbps_is_cassinis_profile():
    """CASSINI, section 2: 255 ms, of which 141 ms compute; the size is Table 3's."""
    job = profile(MODELS["vgg16"], "vgg16", 2, 2, 50e9 / 8)
    assert job.period == pytest.approx(0.255, rel=0.01)
    assert job.phases[0].rate == EFFICIENCY * 50e9 / 8
    assert job.n_bytes == pytest.approx(528e6)
    assert profile(MODELS["vgg16"], "vgg16", 8, 1, 50e9 / 8).phases == ()


def test_models_of_images_need_more_than_a_share_of_synergys_hosts_and_others_leave_some():
    share = 24 / 8  # CPUs per GPU of its testbed
    needs = {name: model.cpu for name, model in MODELS.items()}
    assert all(needs[name] > share for name in ("vgg16", "resnet50", "wideresnet101"))
    assert all(needs[name] < share for name in ("bert", "gpt3", "dlrm"))


def test_stages_are_three_times(tmp_path):
    path = tmp_path / "assume.toml"
    path.write_text('[models.vgg16]\nstages = ["82ms", "75ms", "66ms"]\n')
    assert read_assumptions(path).models["vgg16"].stages == pytest.approx((0.082, 0.075, 0.066))
    for wrong in ('["82ms", "75ms"]', '["0s", "0s", "0s"]'):
        path.write_text(f"[models.vgg16]\nstages = {wrong}\n")
        with pytest.raises(InputError, match="stages must be 3 times, of storage and CPUs, GPU, network"):
            read_assumptions(path)


def test_a_model_spreads_its_bytes_over_the_nics_of_a_machine(replay):
    """A job's rings leave by a NIC each; a GPU's NVLink is no port of the machine."""
    spec = "dgx-h100@leaf_spine:n_leaves=2,n_spines=2,machines=2"
    machines = replay.machines(read_cluster({"topology": {"spec": spec}, "hosts": {}}))
    network = machines.cluster.network
    out = (network.machine[network.src] >= 0) & (network.machine[network.dst] < 0)
    assert set(machines.port) == {network.bandwidth[out].max()}
    assert set(machines.nics) == {8}
    job = profile(MODELS["vgg16"], "vgg16", 16, 2, 48e9, nics=8)
    assert job.phases[0].rate == EFFICIENCY * 48e9
    assert job.n_bytes == pytest.approx(2 * 15 / 16 * 528e6 / 8)
