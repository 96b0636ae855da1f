"""The switch that real workers talk to over UDP: its verbs; the switch itself is in switch_model."""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = ("switch_model",)


def register(house: House) -> None:
    """Bring a switch for real workers."""
    house.doctor["live"] = "commsim.live.cli.this_machine:doctor_rows"
    house.warmup("a real switch", "commsim.live.cli.this_machine:compile_live", own=True)
    house.commands("commsim.live.cli", switch="")
