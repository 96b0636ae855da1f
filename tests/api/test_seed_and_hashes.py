"""``--seed`` has one default in all verbs, and verbs whose times depend on the hash of routes take ``--hashes``."""

import argparse

import pytest

from commsim.cli import listed_verbs, main, parser_of

# Networks whose hash of routes is not drawn, and why.
WITHOUT_HASHES = {
    "synthesize": "sends are made for the links that they take",
    "validate": "the network is fitted to measurements",
    "watch": "a floor of what machines reach, by no draw of routes",
    "testbed up": "kernels hash",
    "testbed run": "kernels hash",
    "testbed share": "kernels hash",
    "switch simulate": "one path to each switch",
    "workload import": "nothing is timed",
    "workload export": "nothing is timed",
    "place import": "nothing is timed",
    "topo import": "nothing is timed",
    "topo export": "nothing is timed",
    "schedule show": "nothing is timed",
    "schedule import": "nothing is timed",
    "schedule export": "nothing is timed",
}


def leaves(parser, name):
    """Parsers without further verbs, by name."""
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not inner:
        return {name: parser}
    return {
        key: one
        for action in inner
        for word, part in action.choices.items()
        for key, one in leaves(part, f"{name} {word}").items()
    }


PARSERS = {key: one for verb in listed_verbs() for key, one in leaves(parser_of(verb)[0], verb).items()}


def option(parser, *names):
    return next((one for one in parser._actions if set(names) & set(one.option_strings)), None)


def test_the_seed_has_one_default():
    seeds = {name: found for name, parser in PARSERS.items() if (found := option(parser, "--seed"))}
    assert len(seeds) > 20
    for name, found in seeds.items():
        assert found.default in (None, 0, "0"), name
        assert "(default: 0)" in found.help % {"default": found.default}, name


@pytest.mark.parametrize("verb", ["run", "traffic", "bound", "advise"])
def test_no_seed_is_seed_0(verb, capsys):
    words = [
        *VERBS_OF[verb],
        "--topology",
        "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4",
        "--hashes",
        "1",
        "--csv",
        "-",
    ]
    assert main(words) == 0
    without = capsys.readouterr().out
    assert main([*words, "--seed", "0"]) == 0
    assert capsys.readouterr().out == without


VERBS_OF = {
    "run": ["run", "halving_doubling_all_reduce", "--size", "1M"],
    "traffic": ["traffic", "--pattern", "permutation", "--size", "1MiB"],
    "bound": ["bound", "--operation", "all_reduce", "--size", "1M"],
    "advise": ["advise", "--size", "1MiB"],
}


def test_verbs_with_a_network_take_hashes():
    missing = {
        name
        for name, parser in PARSERS.items()
        if option(parser, "--topology", "--network", "--routing") and not option(parser, "--hashes")
    }
    assert missing == WITHOUT_HASHES.keys()
