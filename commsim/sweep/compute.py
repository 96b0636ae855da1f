"""One point: from its parameters to a row of numbers. What neighbours have in common is prepared once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError

from .specs import LATE, collective_spec, network_costs_of, network_spec, prediction_options
from .training import Trainer

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.run import Prepared


class Bench:
    """Computes points one after the other, and keeps the last network and the last preparation.

    Parameters
    ----------
    kinds : mapping of str to str
        Kind of every parameter of the sweep.
    """

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self._kinds = kinds
        self._network: tuple[Any, Network] | None = None
        self._prepared: tuple[Any, Prepared] | None = None
        self._trainer = Trainer()

    def row(self, seed: int, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Compute one point.

        Parameters
        ----------
        seed : int
            Of all that is drawn at random.
        parameters : mapping of str to value
            By table and key, in SI units.

        Returns
        -------
        dict
            Columns of the results; a rate that does not exist is None.

        Raises
        ------
        CommsimError
            If the point cannot be computed.
        """
        if any(name.startswith("workload.") for name in parameters):
            network = self._network_of(parameters) if "topology.name" in parameters else None
            return self._trainer.row(seed, parameters, network)
        prepared = self._prepare(seed, parameters)
        size = parameters.get("collective.size")
        if size is None:
            raise InputError("collective.size is missing: the size of the operation, such as 64MiB")
        options = prediction_options(parameters, prepared.network)
        if options["engine"] == "auto":
            from commsim.run.auto import choose

            options["engine"] = choose(prepared, size, parameters["engine.tolerance"]).engine
        result = prepared.predict(size, **options, seed=seed)
        row = result.row()
        return row | {f"counters.{name}": float(value) for name, value in row.pop("counters").items()}

    def forget(self) -> None:
        """Forget what was prepared."""
        self._network = self._prepared = None
        self._trainer = Trainer()

    def _prepare(self, seed: int, parameters: Mapping[str, Any]) -> Prepared:
        key = (seed, *((k, v) for k, v in parameters.items() if k not in LATE))
        if self._prepared is None or self._prepared[0] != key:
            from commsim.run import prepare

            self._prepared = None  # before the next one is built: two large ones need not fit at once
            ranks = parameters.get("collective.ranks")
            ready = prepare(
                collective_spec(parameters, self._kinds),
                self._network_of(parameters),
                n_ranks=ranks,
                placement=parameters.get("placement.strategy", "packed"),
                routing=parameters.get("topology.routing"),
                seed=seed,
            )
            self._prepared = (key, ready)
        return self._prepared[1]

    def _network_of(self, parameters: Mapping[str, Any]) -> Network:
        costs = network_costs_of(parameters)
        key = (network_spec(parameters, self._kinds), tuple(costs.items()))
        if self._network is None or self._network[0] != key:
            from commsim.run import with_costs
            from commsim.run.inputs import load_network

            self._network = (key, with_costs(load_network(key[0]), **costs))
        return self._network[1]
