"""The command line: `shardtool`, or `python -m shardtool`."""

import signal
import sys

from ._shardtool import run


def main() -> int:
    """Runs the command line with this process's arguments."""
    # Restores the default action of Ctrl-C: Python's handler would run only after `run` returns.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run(["shardtool", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
