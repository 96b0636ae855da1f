import sys

import pytest

from commsim.core.errors import BackendError
from switch_model.bpf.commands import output_of

ENDS = {
    "import os; os.kill(os.getpid(), 9)": "' was ended by SIGKILL, without a word",
    "raise SystemExit(3)": "' failed with exit status 3, without a word",
    "raise SystemExit('no such device')": "' failed with exit status 1: no such device",
    "print('usage'); raise SystemExit('Error: a bad value')": "' failed with exit status 1: Error: a bad value",
}


@pytest.mark.parametrize(("program", "end"), ENDS.items())
def test_an_error_says_what_was_called_and_how_it_ended(program, end):
    with pytest.raises(BackendError) as error:
        output_of([sys.executable, "-c", program])
    assert str(error.value).startswith(f"{sys.executable} -c ")
    assert str(error.value).endswith(end)


def test_of_a_long_command_an_error_shows_the_beginning():
    with pytest.raises(BackendError, match=r"-c 'raise SystemExit\(3\)' (word ){3,}.*\.\.\. failed with exit status 3"):
        output_of([sys.executable, "-c", "raise SystemExit(3)", *["word"] * 99])
