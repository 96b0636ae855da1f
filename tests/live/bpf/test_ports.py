import pytest

from commsim.core.errors import BackendError, InputError
from switch_model.bpf.commands import output_of
from switch_model.bpf.ports import Interface, chosen_ports, switch_address

pytestmark = [pytest.mark.needs_kernel("namespaces")]


def test_interfaces_that_are_not_there_are_named(cable):
    with pytest.raises(InputError, match="no interface 'nowhere' here; known: lo"):
        chosen_ports([cable[0], "nowhere"], 64)


@pytest.mark.parametrize("names", [[], ["lo", "lo"]])
def test_a_switch_has_each_port_once(names):
    with pytest.raises(InputError, match="interfaces, each once"):
        chosen_ports(names, 64)


def test_packets_must_fit(cable):
    output_of(["ip", "link", "set", cable[1], "mtu", "1000"])
    assert [port.name for port in chosen_ports(cable, 64)] == cable
    with pytest.raises(InputError, match=f"256 values need an MTU of 1062, {cable[1]} has 1000"):
        chosen_ports(cable, 256)
    output_of(["ip", "link", "set", cable[1], "mtu", "1500"])


def test_the_switch_has_the_one_address_of_its_ports_or_one_must_be_named():
    assert switch_address([Interface("a", 1, 1500, addresses=("10.0.0.1",)), Interface("b", 2, 1500)]) == "10.0.0.1"
    with pytest.raises(BackendError, match=r"they have 10\.0\.0\.1 and 10\.0\.0\.2"):
        switch_address([Interface("a", 1, 1500, addresses=("10.0.0.1", "10.0.0.2"))])
    with pytest.raises(BackendError, match="they have none"):
        switch_address([Interface("a", 1, 1500)])
