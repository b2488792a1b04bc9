"""How a verb joins the command line."""

from __future__ import annotations

import argparse
from typing import Any


def new_verb(verbs: Any, name: str, summary: str, *examples: str) -> argparse.ArgumentParser:
    """The parser of a verb, whose --help ends with examples."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog="\n  ".join(["example:", *examples]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser
