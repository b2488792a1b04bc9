"""hpcfit submit JOB.toml -d DIR: make a campaign of an ensemble, and hand its tasks to SLURM or to this machine."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from hpcfit.cluster import slurm
from hpcfit.cluster.sizing import Sizes, local_sizes, sizes
from hpcfit.commands.campaigns import Ready, prepared, refuse_unless_ensemble
from hpcfit.commands.clusters import add_cluster_options, chosen_profile, given_options, wants_local
from hpcfit.commands.launching import Launch, launch
from hpcfit.commands.loading import load
from hpcfit.commands.verb import new_verb
from hpcfit.reporting.standing import duration

log = logging.getLogger(__name__)


def add(verbs: Any) -> None:
    parser = new_verb(
        verbs,
        "submit",
        "make a campaign of an ensemble and start it",
        "hpcfit submit jobs/ensemble.toml -d campaign --dry-run",
        "hpcfit submit jobs/ensemble.toml -d campaign --cluster big --ranks 16",
        "hpcfit submit jobs/ensemble.toml -d campaign --local --set ensemble.members=100000",
    )
    parser.add_argument("job", type=Path, help="job file (.toml) of kind ensemble")
    parser.add_argument("-d", "--directory", type=Path, required=True, metavar="DIR", help="folder to make")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override a key of the job"
    )
    parser.add_argument("--tasks", type=int, help="how many; default: as many as take half an hour each")
    add_cluster_options(parser)
    parser.set_defaults(run=run)
