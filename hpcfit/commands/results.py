"""Results as people name them: a file, or the folder of a campaign."""

from __future__ import annotations

from pathlib import Path

from hpcfit.files.campaigns import partial_file, plan_file, result_file
from hpcfit.files.results import Saved, load
from hpcfit.records import InputError, Mistake


def load_named(path: Path) -> Saved:
    """A result file, or the merged result of a campaign."""
    return load(named_file(path))


def named_file(path: Path) -> Path:
    """The file that holds the result; a partial one if a campaign has no other."""
    if not path.is_dir() or not plan_file(path).exists():
        return path
    for file in (result_file(path), partial_file(path)):
        if file.exists():
            return file
    remedy = f"run: hpcfit merge {path}, with --partial while tasks are missing"
    raise InputError(Mistake(str(path), "this campaign is not merged yet", remedy))
