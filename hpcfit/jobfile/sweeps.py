"""What is wrong with a grid: every value is tried, and cells must be the same kind of problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hpcfit.jobfile.read import Document
from hpcfit.records import Mistake

MOST_TRIED = 40  # values of one key; the others are looked at when their members are computed


def has_grid(document: Document) -> bool:
    table = document.values.get("ensemble")
    return document.values.get("kind") == "ensemble" and isinstance(table, dict) and "grid" in table


def lacks_members(document: Document) -> bool:
    table = document.values.get("ensemble")
    return isinstance(table, dict) and "members" not in table


def single_changes(grid: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """One key at a time at another value than its first; of many values some, the last among them."""
    for key, values in grid.items():
        for k in np.unique(np.linspace(1, len(values) - 1, min(len(values) - 1, MOST_TRIED)).astype(int)):
            yield {key: values[k]}


def in_cell(
    document: Document, wrong: Mistake, chosen: Mapping[str, Any], told: Mapping[str, Any]
) -> Mistake:
    """A mistake of a cell: at its key in the job, unless the grid has put it there."""
    by_grid = [key for key in chosen if wrong.key == key or wrong.key.startswith((f"{key}.", f"{key}["))]
    place = document.place(f"ensemble.grid.{by_grid[0]}" if by_grid else wrong.key)
    what = ", ".join(f"{key} = {value}" for key, value in told.items() if key not in by_grid)
    return replace(wrong, place=place, problem=f"with {what}: {wrong.problem}" if what else wrong.problem)


def different_unknowns(
    document: Document, changed: Mapping[str, Any], first: Mapping[str, Any], other: Mapping[str, Any]
) -> list[Mistake]:
    """All members of an ensemble have the same unknowns: the columns of their table."""
    if not other or _unknowns(first) == _unknowns(other):
        return []
    (key, value), *_ = changed.items()
    problem = "gives these members other unknowns than those of the first value"
    place = document.place(f"ensemble.grid.{key}")
    return [Mistake(place, problem, "submit a job for each", f"ensemble.grid.{key}", value)]


def _unknowns(tables: Mapping[str, Any]) -> tuple[Any, ...]:
    """What decides on the names of the unknowns: fixed and local parameters; how many exponents there are."""
    fit, exponents = tables.get("fit", {}), tables.get("lyapunov", {}).get("exponents")
    return set(fit.get("fixed") or ()), tuple(fit.get("local") or ()), set(tables.get("guess", {})), exponents
