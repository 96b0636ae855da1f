"""Every way to add up gradients on a network: all registered all-reduces, with what they need to be compared."""

from __future__ import annotations

from dataclasses import dataclass

from collectives import COLLECTIVES
from commsim.core.network import Network
from commsim.core.registry import Entry
from commsim.core.schedule import Schedule
from commsim.core.spec import read_arguments, split_spec
from commsim.routing.aggregator_placement import able_switches
from switch_model.systems import SYSTEMS

from .question import Question
from .variants import coarser, server_key, spec_of, variants

ASSUME = "--programmable assumes it"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way.

    Parameters
    ----------
    spec : str
        ``name:key=value,...``, as ``commsim run --collective`` takes it.
    label : str
        The same without what all have in common: the data, but for the density where several are asked about.
    group : (str, str)
        The same without partitions, and the density: of one group only the fastest is ranked.
    way : {"dense", "servers", "in-network", "sparse", "lossy"}
        What kind it is.
    exact : bool
        Whether the sum is that of all values, but for the rounding of floats.
    reduced : bool
        Whether it has fewer servers or partitions than it might, so that the answer comes in seconds.
    """

    spec: str
    label: str
    group: tuple[str, str]
    way: str
    exact: bool
    reduced: bool


def candidates(question: Question, network: Network) -> tuple[list[Candidate], dict[str, str]]:
    """List what is to be compared.

    Parameters
    ----------
    question : Question
        As :meth:`.question.Question.on` returns it.
    network : Network
        Where.

    Returns
    -------
    list of Candidate, dict of str to str
        And by name what is not, and why.
    """
    found: list[Candidate] = []
    left_out: dict[str, str] = {}
    for name in COLLECTIVES:
        entry = COLLECTIVES[name]
        form = entry.facts["sparse"]
        if entry.facts["operation"] != "all_reduce":
            continue
        if form is not None and not question.is_sparse:
            left_out[name] = "needs --density or --gradients to know what is zero"
        elif form is not None and form.lossy and not question.lossy:
            left_out[name] = "does not sum all values; --lossy ranks it too"
        elif entry.facts["helpers"] is not None and not question.programmable and able_switches(network)[1]:
            left_out[name] = f"needs switches that aggregate, and {network.name} says of none that it can; {ASSUME}"
        else:
            way, exact = _kind(entry)
            for fitted, reduced in variants(entry, question, network, left_out):
                group = spec_of(name, {key: x for key, x in fitted.items() if key != "n_partitions"})
                for own in coarser(entry, fitted, network):
                    for density, data in {"": ""}.items() if form is None else question.data_of(form).items():
                        label = spec_of(name, own, density if len(question.densities) > 1 else "")
                        found.append(Candidate(spec_of(name, own, data), label, (group, density), way, exact, reduced))
    return found, left_out


def _kind(entry: Entry[Schedule]) -> tuple[str, bool]:
    """Kind of a way, and whether it is exact: switches that add integers in place of floats are not."""
    form, tree = entry.facts["sparse"], entry.facts["helpers"]
    if form is not None:
        return ("lossy", False) if form.lossy else ("sparse", True)
    if tree is None:
        return ("dense" if server_key(entry) is None else "servers"), True
    systems = [(SYSTEMS[name].build, raw) for name, raw in map(split_spec, tree.systems)]
    return "in-network", all(build(**read_arguments(build, raw)).quantizer == "none" for build, raw in systems)
