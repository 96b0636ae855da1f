"""The command line, run in the process of a test."""

import json


class CommandLine:
    """Runs the command line in this process; keeps what it printed."""

    def __init__(self, capsys, folder):
        self._capsys, self.folder = capsys, folder

    def __call__(self, *argv):
        from commsim.cli import main

        try:
            self.code = main([str(a) for a in argv])
        except SystemExit as stop:
            self.code = stop.code
        self.out, self.err = self._capsys.readouterr()
        return self

    def results(self, *argv):
        path = self.folder / "results.json"
        assert self(*argv, "--json", path).code == 0, self.err
        return json.loads(path.read_text())

    def refuses(self, *argv):
        self(*argv)
        assert self.code == 2
        lines = [line for line in self.err.strip().splitlines() if not line.startswith("commsim: compiling kernels")]
        assert len(lines) == 1, self.err
        assert "Traceback" not in self.err
        return self.err
