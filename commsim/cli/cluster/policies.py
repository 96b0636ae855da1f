"""``commsim cluster policies``: what policies there are, and what each is good for."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: this verb has no flags."""


def main(args: argparse.Namespace) -> int:  # noqa: ARG001 - every verb takes them
    """List the policies."""
    from commsim.cluster.policy import POLICIES

    for name in POLICIES:
        facts = POLICIES[name].facts
        lease = f"may stop jobs every {facts['interval']:g} s" if facts["interval"] else "stops nobody"
        print(f"{name.ljust(9)} {POLICIES[name].summary}")
        print(f"{'':9} {lease}{'; ' if facts['paper'] else ''}{facts['paper']}")
    return 0
