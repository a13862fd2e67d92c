"""The command ``shallows``."""

from __future__ import annotations

import os
import signal
import sys

from . import _native


def main() -> int:
    """Runs the command line of this process."""
    # Processes that a run starts, such as tasks of a cluster, start this script.
    os.environ["SHALLOWS_PROGRAM"] = os.path.abspath(sys.argv[0])
    # Python's handler would wait for the end of the command.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.command(["shallows", *sys.argv[1:]])
