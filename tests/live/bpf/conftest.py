import os

import pytest


@pytest.fixture(scope="package")
def cable():
    """Two ends of a cable that nothing is connected to, and which stays down."""
    from switch_model.bpf.commands import output_of

    ends = [f"cs{os.getpid()}{end}" for end in "ab"]
    output_of(["ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1]])
    yield ends
    output_of(["ip", "link", "del", ends[0]])
