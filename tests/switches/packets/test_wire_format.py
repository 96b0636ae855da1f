"""Sizes and places of header fields, as the specifications say."""

import numpy as np
import pytest

from commsim.core.errors import InputError
from switch_model.packets import packet_event as p
from switch_model.packets import wire_format as w

BITS = {
    "ETHERNET": (14, {"dst": 0, "src": 6, "type": 12}),
    "IPV4": (20, {"tos": 1, "total_length": 2, "flags_fragment": 6, "ttl": 8, "protocol": 9, "checksum": 10, "src": 12,
                  "dst": 16}),
    "UDP": (8, {"src_port": 0, "dst_port": 2, "length": 4, "checksum": 6}),
    "SWITCHML": (8, {"type_size": 0, "job": 1, "tsi": 2, "pool_index": 6}),
    "EXPONENTS": (2, {"e0": 0, "e1": 1}),
    "BTH": (12, {"opcode": 0, "partition_key": 2, "destination": 4, "sequence": 8}),
    "RETH": (16, {"address": 0, "rkey": 8, "length": 12}),
    "IMMEDIATE": (4, {"message": 0, "e0": 2, "e1": 3}),
    "ATP_HEADER": (14, {"bitmap": 0, "n_workers": 4, "flags": 5, "job": 6, "sequence": 8, "slot": 10, "slot2": 12}),
    "ATP_TRAILER": (12, {"key": 0, "tensor_length": 8}),
    "PCAP_HEADER": (24, {"major": 4, "snaplen": 16, "link_type": 20}),
    "PCAP_RECORD": (16, {"seconds": 0, "fraction": 4, "captured": 8, "length": 12}),
}  # fmt: skip


@pytest.mark.parametrize("name", BITS)
def test_headers_are_as_long_as_specified_and_fields_where_they_belong(name):
    size, places = BITS[name]
    dtype = getattr(w, name)
    assert dtype.itemsize == size
    assert {field: dtype.fields[field][1] for field in places} == places


@pytest.mark.parametrize("name", ["ETHERNET", "IPV4", "UDP", "BTH", "RETH", "IMMEDIATE", "ATP_HEADER"])
def test_fields_of_several_bytes_are_in_network_order(name):
    for field, (dtype, _) in getattr(w, name).fields.items():
        assert dtype.base.byteorder in "|>", field


def test_nodes_have_addresses_of_their_own():
    assert [p.dotted(a) for a in p.node_address([0, 255, 70_000])] == ["10.0.0.1", "10.0.1.0", "10.1.17.113"]
    with pytest.raises(InputError, match=r"nodes get addresses of 10\.0\.0\.0/8"):
        p.node_address([-1])
    with pytest.raises(InputError, match="16777214"):
        p.node_address(2**24 - 2)
    with pytest.raises(InputError, match=r"got 0\.\.16777214"):
        p.node_address([0, 2**24 - 2])


def test_rows_of_another_kind_are_refused():
    with pytest.raises(InputError, match="packets are PACKET_EVENT"):
        p.check_events(np.zeros(3))
