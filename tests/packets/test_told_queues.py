"""Where queues mark and pause is said with the answer."""

import commsim as cs
from commsim.packets.packet_options import told_queues

LEAF = "leaf_spine:n_leaves=4,n_spines=4,hosts_per_leaf=4,bandwidth=400Gbps"


def test_where_queues_mark_and_pause_is_said_whoever_chose_it():
    def told(**given):
        asked = cs.scenario_of("ring_all_reduce", LEAF, engine="packet", packets=given, overhead="0us")
        return " ".join(told_queues(asked.wish.model.transport, asked.network))

    said = told(preset="roce")
    assert "mark from 50 kB (up to 0.01 of packets) to 2000 kB (all)" in said
    assert "pause a link (PFC) from 5000 kB to 4000 kB" in said
    assert "rises every 55 us" in said
    assert "from 200 kB to 100 kB" in told(preset="roce", pause_at=200e3, resume_at=100e3)
    assert told() == ""


def test_only_constants_that_nobody_gave_are_called_the_papers():
    def told(transport, rate):
        asked = cs.scenario_of("ring_all_reduce", f"star:n_hosts=4,bandwidth={rate}", engine="packet",
                               packets={"transport": transport}, overhead="0us")  # fmt: skip
        return told_queues(asked.wish.model.transport, asked.network)[-1]

    usual = told("dcqcn", "100Gbps")
    assert "rise_time and additive are a paper's" in usual
    assert "not scaled to the 100 Gb/s" in usual
    assert "scaled" not in told("dcqcn", "40Gbps")
    own = told("dcqcn:rise_time=5us", "100Gbps")
    assert "rises every 5 us" in own
    assert "; additive is a paper's" in own
    assert "paper" not in told("dcqcn:rise_time=5us,additive=100Mbps", "100Gbps")
