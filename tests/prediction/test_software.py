import dataclasses
import importlib.resources

import numpy as np
import pytest
from remark_codes import codes

import commsim as cs
from commsim.core.errors import InputError
from commsim.core.files.network_file import write_network
from commsim.core.network import NIC
from commsim.prediction.build import prepare
from commsim.prediction.read import with_costs
from commsim.prediction.software import known_software, software

SIZE = 1e9


def rate(name, gbps, n):
    network = with_costs(cs.load_network(f"star:n_hosts={n},bandwidth={gbps}Gbps"), software=name)
    return SIZE / 4e6 / prepare("ring_all_reduce", network).predict(SIZE).time


@pytest.mark.parametrize(
    ("name", "gbps", "n", "published"),
    [("nccl-rdma", 100, 8, 1280), ("nccl-rdma", 10, 8, 160), ("nccl-tcp", 100, 8, 290), ("nccl-tcp", 10, 8, 163),
     ("gloo", 100, 8, 110), ("gloo", 10, 8, 85), ("nccl-tcp", 100, 4, 330), ("nccl-rdma", 100, 4, 1370)],
)  # fmt: skip
def test_rings_reach_the_rates_that_were_measured(name, gbps, n, published):
    # rows of 8 workers are those that the presets were fitted to; those of 4 are predicted
    assert rate(name, gbps, n) == pytest.approx(published, rel=0.01 if n == 8 else 0.1)


@pytest.mark.parametrize(
    ("machines", "us", "within"),
    [("ndv4@star:machines=2,bandwidth=200Gbps", 23071.5, 0.01),
     ("dgx-h100@star:machines=2,bandwidth=400Gbps", 11076.24, 0.05)],
)  # fmt: skip
def test_kernels_of_mscclpp_over_infiniband(machines, us, within):
    """MSCCL++'s baselines of its CI, 16 ranks, 1 GiB: that of NDv4 is what the preset is fitted to, NDv5's is not."""
    network = with_costs(cs.load_network(machines), software="mscclpp")
    assert cs.predict("direct_all_to_all", network, 2**30).time == pytest.approx(us * 1e-6, rel=within)


@pytest.mark.parametrize(
    ("machine", "kib", "us", "within"),
    [("ndv4", 24, 7.24, 0.001), ("ndv4", 8, 6.51, 0.1), ("ndv4", 48, 7.91, 0.1), ("ndv4", 72, 8.28, 0.1),
     ("dgx-h100", 24, 6.18, 0.17), ("dgx-h100", 48, 6.62, 0.17), ("dgx-h100", 72, 6.91, 0.17)],
)  # fmt: skip
def test_kernels_of_mscclpp_in_one_machine(machine, kib, us, within):
    """The same baselines, 8 ranks: 24 KiB on NDv4 is what the fixed time is fitted to, the others are not."""
    network = with_costs(cs.load_network(machine), software="mscclpp")
    assert cs.predict("recursive_doubling_all_reduce", network, kib * 1024).time == pytest.approx(us * 1e-6, rel=within)


def test_only_ports_of_the_fabric_are_slower():
    network = cs.load_network("dgx-h100@star:machines=2")
    slowed = software("nccl-rdma").on(network)
    changed = slowed.bandwidth != network.bandwidth
    assert np.all((network.kind[network.src] == NIC) | (network.kind[network.dst] == NIC), where=changed)
    assert np.count_nonzero(changed) == 2 * 2 * 8
    assert np.all(slowed.bandwidth[changed] == pytest.approx(71.7e9 / 8))


def test_every_preset_says_where_it_is_from_and_what_it_was_fitted_to():
    for one in known_software().values():
        assert one.source
        assert one.fitted
        assert one.source in str(one.remark)
        assert 0 < one.efficiency <= 1 < one.rate


def test_an_unknown_one_is_refused():
    with pytest.raises(InputError, match=r"'mpi'; did you mean mpi-infiniband or mpi-slingshot\? known: nccl-rdma"):
        software("mpi")


def test_hosts_of_omnireduce_add_at_the_rate_of_their_threads_and_switches_as_fast_as_before():
    network = cs.load_network("star:n_hosts=4,bandwidth=100Gbps")
    preset = software("omnireduce-gdr")
    slowed = preset.adding(preset.on(network))
    assert np.allclose(slowed.gamma[network.endpoints], preset.gamma)
    assert preset.gamma == pytest.approx(1 / 7.52e9)
    switches = np.setdiff1d(np.arange(len(network.kind)), network.endpoints)
    assert np.array_equal(slowed.gamma[switches], network.gamma[switches])
    assert not software("nccl-gdr").own_costs
    assert "1.99 ms per call and 0.133 ns to add a byte, both of omnireduce only" in str(preset.remark)


def predicted(collective, name, **options):
    network = cs.load_network("star:n_hosts=16,bandwidth=100Gbps,latency=1us")
    return cs.predict(collective, network, 100 * 2**20, n_ranks=8, software=name, **options)


def test_costs_of_one_system_are_of_that_system_only_and_with_them_the_published_gain_is_predicted():
    """OmniReduce's artifact: 3.09 ms at density 0.01, and 17.14 ms by NCCL's ring; fitted were 0.1, and the ring."""
    sparse, ring = "omnireduce:density=0.01,n_aggregators=8", "ring_all_reduce"
    ours, dense = predicted(sparse, "omnireduce-gdr").time, predicted(ring, "omnireduce-gdr").time
    assert dense == predicted(ring, "nccl-gdr").time
    assert ours == pytest.approx(3.09e-3, rel=0.06)
    assert dense / ours == pytest.approx(17.14 / 3.09, rel=0.06)


@pytest.mark.parametrize("engine", ["flow", "alpha-beta", "packet"])
def test_the_time_of_a_call_is_in_the_result_of_every_engine(engine):
    network = cs.load_network("star:n_hosts=2,bandwidth=200Gbps")
    plain = with_costs(network, software="mscclpp")
    without = dataclasses.replace(plain, software="")
    times = [cs.predict("ring_all_reduce", one, 4096, engine=engine).time for one in (plain, without)]
    assert times[0] - times[1] == pytest.approx(software("mscclpp").fixed, rel=1e-9)
    assert "call-left-out" in codes(prepare("switchml", plain).notes)
    assert "call-left-out" not in codes(prepare("switchml", without).notes)


def test_a_ranking_leaves_out_sparse_ways_whose_software_was_not_measured_and_says_who_has_its_costs():
    network = cs.load_network("star:n_hosts=16,bandwidth=100Gbps,latency=2us")
    advice = cs.advise_for("10MB", network, n_workers=8, density=0.01, software="omnireduce-gdr")
    assert {one.candidate.spec.partition(":")[0] for one in advice.ranked if one.candidate.way == "sparse"} == {
        "omnireduce"
    }
    assert advice.left_out["zen"] == "software omnireduce-gdr has no costs of zen"
    (ours,) = (one for one in advice.ranked if one.candidate.label == "omnireduce:n_aggregators=8")
    assert ours.bound.phrase.startswith("time of a call of software omnireduce-gdr")
    assert any("1.99 ms per call" in line and "the rate of its ports" in line for line in map(str, advice.assumed))
    ring = advice.times["ring_all_reduce"]
    assert ring == cs.predict("ring_all_reduce", network, 10e6, n_ranks=8, software="nccl-gdr").time


def test_adding_beside_jobs_of_other_software_is_refused(tmp_path):
    job = '[[job]]\nname = "{0}"\ncollective = "{0}"\nranks = [{1}]\nsize = "1MiB"\n'
    path = tmp_path / "jobs.toml"
    path.write_text(job.format("omnireduce", "0, 1, 2, 3") + job.format("ring_all_reduce", "4, 5"))
    network = "star:n_hosts=16,bandwidth=100Gbps"
    with pytest.raises(InputError, match="software omnireduce-gdr: its adding is not modelled beside collectives"):
        cs.solve(cs.scenario_of(None, network, jobs=path, software="omnireduce-gdr"), [0])
    assert cs.solve(cs.scenario_of(None, network, jobs=path, software="nccl-gdr"), [0]).results


def test_a_sparse_result_says_beside_it_that_it_is_of_links_only_and_why_its_busbw_is_above_them():
    network = "star:n_hosts=16,bandwidth=100Gbps,latency=2us"
    asked = [cs.scenario_of("omnireduce:density=0.01", network, n_ranks=8, software=name)
             for name in (None, "omnireduce-gdr")]  # fmt: skip
    links, whole = (cs.solve(one, ["100MB"]) for one in asked)
    assert "busbw-above-link" in [one.code for one in links.remarks]
    (left_out,) = (one for one in links.remarks if one.code == "software-left-out")
    assert "--software omnireduce-gdr" in left_out.text
    assert "commsim reproduce omnireduce" in left_out.details
    assert "software-left-out" not in [one.code for one in whole.remarks]
    papers = importlib.resources.files("commsim.papers").joinpath("published")
    for system in {system for one in known_software().values() for system in one.systems}:
        assert papers.joinpath(f"{system}.toml").is_file()


def test_a_network_in_a_file_keeps_its_software(tmp_path):
    network = with_costs(cs.load_network("star:n_hosts=2"), software="mscclpp")
    for name in ("network.toml", "network.npz"):
        write_network(network, tmp_path / name)
        assert cs.load_network(str(tmp_path / name)).software == "mscclpp"
    announcing = with_costs(cs.load_network("star:n_hosts=2"), software="mpi-slingshot")
    for name in ("network.toml", "network.npz"):
        write_network(announcing, tmp_path / name)
        assert cs.load_network(str(tmp_path / name)).protocol == announcing.protocol


@pytest.mark.parametrize(
    ("name", "n", "us"), [("mpi-infiniband", 32, 48.73), ("mpi-slingshot", 16, 52.24)]
)  # fmt: skip
def test_small_messages_of_mpi_take_what_the_fitted_ring_says(name, n, us):
    network = with_costs(cs.load_network(f"star:n_hosts={n},bandwidth=200Gbps"), software=name)
    assert prepare("ring_all_gather", network).predict(64).time == pytest.approx(us * 1e-6, rel=0.01)


@pytest.mark.parametrize(
    ("name", "size", "us", "within"),
    [("mpi-infiniband", 8, 1.58, 0.02), ("mpi-infiniband", 2**22, 177.5, 0.03), ("mpi-slingshot", 8, 3.34, 0.05),
     ("mpi-slingshot", 2**22, 182.4, 0.04)],
)  # fmt: skip
def test_ends_of_other_tables_of_mpi_are_near(name, size, us, within):
    """Point to point on Azure HB96 (Open MPI, HDR200) and on Alps (Open MPI, Slingshot), which nothing is fitted to."""
    network = with_costs(cs.load_network("star:n_hosts=2,bandwidth=200Gbps"), software=name)
    assert prepare("ring_send_recv", network).predict(size).time == pytest.approx(us * 1e-6, rel=within)


@pytest.mark.parametrize(
    ("name", "size", "us", "line"),
    [("mpi-slingshot", 8192, 8.31, -0.54), ("mpi-slingshot", 65536, 11.16, -0.45),
     ("mpi-slingshot", 2**18, 19.41, -0.26), ("mpi-infiniband", 65536, 8.975, -0.53),
     ("mpi-infiniband", 2**19, 27.895, -0.17)],
)  # fmt: skip
def test_messages_that_are_announced_take_longer_than_a_line(name, size, us, line):
    """Alps and Azure, point to point: nothing is fitted to either; the protocol takes away half the error and more."""
    network = with_costs(cs.load_network("star:n_hosts=2,bandwidth=200Gbps"), software=name)
    error, without = (
        prepare("ring_send_recv", one).predict(size).time / (us * 1e-6) - 1
        for one in (network, dataclasses.replace(network, protocol=None))
    )
    assert without == pytest.approx(line, abs=0.01)
    assert abs(error) <= 0.52 * abs(without)


@pytest.mark.parametrize("collective", ["ring_all_reduce", "direct_all_to_all", "halving_doubling_all_reduce"])
def test_engines_agree_on_messages_that_are_announced(collective):
    line = with_costs(cs.load_network("star:n_hosts=4,bandwidth=200Gbps"), software="mpi-slingshot")
    times = [cs.predict(collective, line, 2**20, engine=engine).time for engine in ("flow", "alpha-beta")]
    assert times[0] == pytest.approx(times[1], rel=0.02)
    assert times[0] > prepare(collective, dataclasses.replace(line, protocol=None)).predict(2**20).time


@pytest.mark.parametrize("name", ["mpi-efa", "mpi-tcp", "mpi-shared-memory"])
def test_software_that_nobody_measured_has_no_number(name):
    with pytest.raises(InputError, match=f"software {name} has no measured rate: .*commsim calibrate"):
        cs.predict("ring_all_reduce", "star:n_hosts=4", "1MiB", software=name)


def test_ranks_that_share_a_machine_have_no_number_of_mpi_between_machines():
    network = "cpu_host:n_cpus=4,n_nics=4,nic=200Gbps@star:machines=2"
    with pytest.raises(InputError, match="software mpi-slingshot has no number for messages inside a machine"):
        cs.predict("direct_all_to_all", network, "1MiB", software="mpi-slingshot")
    assert cs.predict(
        "direct_all_to_all", network, "1MiB", n_ranks=2, placement="spread", software="mpi-slingshot"
    ).time
