"""The command line: `shardtool`, or `python -m shardtool`."""

import signal
import sys

from ._shardtool import run


def main() -> int:
    """Runs the command line with this process's arguments."""
    # Ctrl-C ends it as it ends any program: Python's handler would wait for Python code to run.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run(["shardtool", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
