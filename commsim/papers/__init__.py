"""Published figures beside ours: one file per paper, and the measures that its figures are of."""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = (
    "packets",
    "pages",
    "placement",
    "sparse",
    "switch_model",
    "traffic",
    "training",
)


def register(house: House) -> None:
    """Bring figures of papers."""
    house.commands(
        "commsim.papers.cli.reproduce",
        reproduce="print figures of papers next to predictions, with the error and what was assumed or fitted",
    )
    house.commands("commsim.papers.cli.systems", workload="")
