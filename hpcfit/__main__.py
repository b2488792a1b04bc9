"""The command line: parse, dispatch, and turn errors into messages and exit statuses."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module, metadata
from typing import Any

from hpcfit.mpi.together import is_agreed
from hpcfit.mpi.world import world
from hpcfit.records import InputError

VERBS = (
    *("run", "check", "show", "report", "submit", "status", "resume", "cancel", "logs", "task", "merge"),
    *("models", "doctor"),
)
BUG, BAD_INPUT, INTERRUPTED = 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """The hpcfit command; returns the exit status."""
    arguments = _parser().parse_args(argv)
    logging.basicConfig(level=logging.WARNING if arguments.quiet else logging.INFO, format="%(message)s")
    comm: Any = None
    try:
        if getattr(arguments, "parallel", False):
            signal.signal(
                signal.SIGTERM, signal.default_int_handler
            )  # so that mpirun and SLURM can end it cleanly
            comm = world()
            return int(arguments.run(comm, arguments))
        return int(arguments.run(arguments))
    except InputError as error:
        return _refuse(comm, error)
    except KeyboardInterrupt:
        sys.stderr.write("\nhpcfit: interrupted; nothing was written\n")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has gone, as in `| head`
        return 0
    except Exception as error:
        return _give_up(comm, error)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hpcfit",
        description="Fit differential equations to chaotic data, on one core or many.",
        epilog="example:\n  hpcfit run jobs/demo.toml && hpcfit show demo.h5",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"hpcfit {metadata.version('hpcfit')}")
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="VERB")
    for name in VERBS:
        import_module(f"hpcfit.commands.{name}").add(verbs)
    return parser


def _refuse(comm: Any, error: InputError) -> int:
    """Bad input: the messages, once; if only this rank knows of it, the others are stopped too."""
    if comm is None or comm.rank == 0 or not is_agreed(comm, error):
        for mistake in error.mistakes:
            sys.stderr.write(f"hpcfit: {mistake}\n")
        sys.stderr.flush()
    if comm is not None and not is_agreed(comm, error):
        comm.Abort(BAD_INPUT)
    return BAD_INPUT


def _give_up(comm: Any, error: Exception) -> int:
    """A bug: the traceback, and an end for all ranks rather than a hang."""
    if comm is None or comm.rank == 0 or not is_agreed(comm, error):
        traceback.print_exception(error)
        sys.stderr.write("hpcfit: this is a bug; please report it with the lines above\n")
        sys.stderr.flush()
    if comm is not None and not is_agreed(comm, error):
        comm.Abort(BUG)
    return BUG


if __name__ == "__main__":
    sys.exit(main())
