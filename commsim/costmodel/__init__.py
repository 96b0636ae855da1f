"""Cost models: files of times that other programs embed, with evaluators that depend on nothing."""

from __future__ import annotations

from commsim.extensions import House

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = ()


def register(house: House) -> None:
    """Bring the files, and their page."""
    house.services["cost model of a file"] = "commsim.costmodel.estimates_of_file:model_of_file"
    house.schemas["cost_model.json"] = "commsim.costmodel.cost_model_file:schema"
    house.commands(
        "commsim.costmodel.cli.export",
        export="write what other programs embed: a cost model, its evaluators, a page that shows it",
    )
