"""Settings of fabrics that cannot be: one line on standard error that says what would be right, exit code 2."""

import pytest

FABRIC = ("--topology", "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=2,bandwidth=10Gbps")
CABLE = "link:leaf0:spine0"
LOAD = '[[background]]\nkind = "poisson"\nload = {}\nuntil = "1ms"\n'


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--routing spray:entropies=0", "ecmp:qps=N, 1 to 4096, got 'spray:entropies=0'"),
        ("--engine packet --buffer 10B", "a queue holds at least one packet of 4178 bytes, got 10"),
        ("--engine packet --shared-buffer 10B", "every buffer must hold a packet of 4178 bytes, got 10"),
        ("--flap link:leaf0:spine9@1ms+1ms", "has no node 'spine9'; did you mean spine1 or spine0?"),
        (f"--flap {CABLE}@1ms+1ms --flap {CABLE}@1.5ms+1ms", "overlap: the same cable is down in both"),
        (f"--flap {CABLE}@1000s+1ms", "give a larger size"),
        (f"--engine packet --transport dctcp -b 64K -e 64K --flap {CABLE}@1000s+1ms", "give a larger size"),
    ],
)
def test_what_no_fabric_has_is_one_line(commsim, words, said):
    assert said in commsim.refuses("run", *words.split(), *FABRIC)


@pytest.mark.parametrize(
    ("spec", "size", "said"),
    [
        ("panama:header=1000000", "16M", "panama: an rto of 1 ms repeats packets faster than links send them"),
        ("panama", "1T", "packets, counted on each link would take about"),
    ],
)
def test_packets_of_a_switch_system_are_counted_before_they_are_sent(commsim, monkeypatch, spec, size, said):
    monkeypatch.setenv("COMMSIM_MAX_SECONDS", "60")
    star = ("--topology", "star:n_hosts=4", "-b", size, "-e", size)
    assert said in commsim.refuses("run", spec, *star, "--engine", "packet")


@pytest.mark.parametrize(("loads", "said"), [((1.7,), "at most 1 (100 %), got 1.7"), ((0.7, 0.5), "add up to 1.2")])
def test_more_background_than_hosts_can_send_is_one_line(commsim, tmp_path, loads, said):
    job = '[[job]]\ncollective = "ring_all_reduce"\nranks = "0-3"\nsize = "1MiB"\n'
    path = tmp_path / "jobs.toml"
    path.write_text(job + "".join(LOAD.format(load) for load in loads))
    assert said in commsim.refuses("run", *FABRIC, "--jobs", str(path))


RING = "ring_all_reduce"
JOB = '[[job]]\ncollective = "{}"\nranks = "{}"\nsize = "1MB"\n{}\n'
OTHER = JOB.format(RING, "1,5", "")


WRONG = {
    'preset = "uecc"': "unknown preset 'uecc'; did you mean uec? known: uec",
    'transport = "tcp"': "unknown transport 'tcp'",
    'transport = "nscc"\nentropies = 3': "a power of two from 1 to 65536, got 3",
    'transport = "hpcc"\nbalancing = "spray"': "balancing ecmp, flowlet or path",
}


@pytest.mark.parametrize("own", WRONG)
def test_what_no_job_can_have_is_one_line(commsim, tmp_path, own):
    path = tmp_path / "jobs.toml"
    path.write_text(JOB.format(RING, "0,2,4", own) + OTHER)
    assert WRONG[own] in commsim.refuses("run", *FABRIC, "--engine", "packet", "--jobs", str(path))


def test_a_switch_system_has_no_transport_of_its_own_and_flows_have_none(commsim, tmp_path):
    path = tmp_path / "jobs.toml"
    path.write_text(JOB.format("switchml", "0,2,4", 'preset = "uec"') + OTHER)
    words = ("run", *FABRIC, "--jobs", str(path))
    assert "keep to the links of its tree" in commsim.refuses(*words, "--engine", "packet")
    path.write_text(JOB.format(RING, "0,2,4", 'preset = "uec"') + OTHER)
    assert "transport of a job needs engine packet, got engine flow" in commsim.refuses(*words)
