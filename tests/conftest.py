"""Markers that mean something: a test that needs a feature of the kernel is skipped where the feature is missing."""

import functools
import signal

import pytest

# A shell has what it starts in the background ignore SIGINT, and children inherit that:
# tests that interrupt them would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


@functools.cache
def lacking(feature):
    from commsim.testbed import places as testbed
    from switch_model.bpf import requirements  # whether our own program loads is for the tests to say

    look = {
        "bpf": requirements.lacking,
        "namespaces": requirements.lacking_namespaces,
        "testbed": testbed.lacking,
        "losses": lambda: testbed.lacking() or ("" if can_lose(testbed) else "neither netem nor nftables"),
    }
    return look[feature]()


def can_lose(testbed):
    return testbed.has_netem() or testbed.has_nftables()


def pytest_runtest_setup(item):
    for marker in item.iter_markers("needs_kernel"):
        for feature in marker.args:
            why = lacking(feature)
            if why:
                pytest.skip(f"no {feature}: {why}")
