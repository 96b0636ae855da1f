"""What ``import commsim as cs`` offers in a notebook: a question of the command line is one typed function.

Names, files, numbers and text are taken as they come: a network by name, as a value or as a :class:`NetworkBuilder`, a
size as bytes or as text such as ``64MiB``, a placement as a list of nodes. Answers print short, show themselves in a
notebook, and become data frames.
"""

from .builder import NetworkBuilder
from .given import NetworkLike, PlacementLike, SizeLike
from .graphs import from_networkx, to_networkx
from .predicted import Predicted, predict
from .questions import Comparison, advise_for, compare_with, lower_bound, rank, synthesize
from .reports import write_report

__all__ = [
    "Comparison", "NetworkBuilder", "NetworkLike", "PlacementLike", "Predicted", "SizeLike", "advise_for",
    "compare_with", "from_networkx", "lower_bound", "predict", "rank", "synthesize", "to_networkx", "write_report",
]  # fmt: skip
