"""``commsim place``: rank placements of jobs, score links, and speak to schedulers."""

from __future__ import annotations

import argparse
import importlib
import keyword

VERBS = {
    "score": "how well jobs fit on one link, and when each should start",
    "serve": "answer schedulers over HTTP",
    "import": "a network, or a cluster, from files of schedulers and machines",
    "export": "what schedulers should know of a cluster's network, in the files that they read",
}
_USUAL = "candidates"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take all words as they are: what the first one is decides what the others mean."""
    parser.prefix_chars = "\0"  # so that flags are words too, --help among them
    parser.add_argument("words", nargs=argparse.REMAINDER)


def main(args: argparse.Namespace) -> int:
    """Do what the first word says; without one of the verbs, rank candidates."""
    from .. import Parser

    words: list[str] = args.words
    verb = words[0] if words and words[0] in VERBS else ""
    name = verb or _USUAL
    module = importlib.import_module(f"commsim.cli.place.{name}{'_' if keyword.iskeyword(name) else ''}")
    if verb:
        parser = Parser(prog=f"commsim place {verb}", description=VERBS[verb][0].upper() + VERBS[verb][1:] + ".")
    else:
        listing = "\n".join(f"  {name:<8} {what}" for name, what in VERBS.items())
        parser = Parser(
            prog="commsim place",
            description="Rank ways to place jobs on a cluster by what the network thinks of them.",
            epilog=f"other verbs:\n{listing}\n\n`commsim place VERB --help` says more.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
    module.add_arguments(parser)
    return int(module.main(parser.parse_args(words[1:] if verb else words)))
