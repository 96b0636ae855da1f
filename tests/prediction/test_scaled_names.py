from commsim.prediction.faults import with_faults
from commsim.prediction.inputs import load_network


def test_slow_links_are_named_in_one_phrase_and_drawn_cables_by_name():
    network = load_network("leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4")
    both, notes = with_faults(network, [], ["link:leaf0:spine0=0.5", "link:leaf1:spine1=0.5"])
    assert both.name == f"{network.name} with 2 cables at 0.5 of their rate, both ways"
    one, _ = with_faults(network, [], ["link:leaf0:spine0=0.25"])
    assert one.name == f"{network.name} with 1 cable at 0.25 of its rate, both ways"
    assert "faults-drawn" not in [note.code for note in notes]
    drawn, (note, *_) = with_faults(network, [], ["links:2=0.5"])
    slow = [drawn.link_name(i) for i in range(drawn.n_links) if drawn.bandwidth[i] < network.bandwidth[i]]
    assert note.text.startswith("scale links:2=0.5: 2 cables: ")
    assert set(note.text.partition("cables: ")[2].split(", ")) < set(slow)
