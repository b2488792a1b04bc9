"""Sweeps of spectra: one row a cell, exponents along a key, the largest one over two."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcfit.records import Array, EnsembleResult
from hpcfit.reporting.ensembles.members import good
from hpcfit.reporting.layout import matched, number
from hpcfit.reporting.sweeps.groups import axis_numbers, cell_values, value_text

NOTE = (
    "Exponents: natural logarithm per unit of time, with standard errors; of exponents that vanish the error "
    "is the bound C/T. regular: per cent of the trajectories, which are not averaged in."
)
MOST_EXPONENTS = 6  # of a table
NORMAL95 = 1.96


def exponents(ensemble: EnsembleResult) -> list[str]:
    return [name for name in ensemble.names if name.startswith("lambda")]


def by_cell(ensemble: EnsembleResult, name: str) -> tuple[Array, Array]:
    """Values and errors of each cell (cells,); NaN where there is no spectrum."""
    count = int(np.prod([len(values) for values in ensemble.grid.values()]))
    found, picked = np.full((2, count), np.nan), good(ensemble)
    k = ensemble.names.index(name)
    found[0, ensemble.cells[picked]] = ensemble.estimates[picked, k]
    found[1, ensemble.cells[picked]] = ensemble.errors[picked, k]
    return found[0], found[1]


def rows(ensemble: EnsembleResult) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and one row a cell."""
    names = exponents(ensemble)[:MOST_EXPONENTS]
    shown = [word for name in names for word in (name, "error")]
    columns = {name: by_cell(ensemble, name) for name in (*names, "dimension", "regular")}
    found = []
    for cell in range(len(columns["dimension"][0])):
        keys = [value_text(value) for value in cell_values(ensemble.grid, cell)]
        pairs = [(columns[name][0][cell], columns[name][1][cell]) for name in names]
        texts = [text for value, error in pairs for text in (matched(value, error), number(error, 2))]
        dimension, regular = (columns[name][0][cell] for name in ("dimension", "regular"))
        found.append((*keys, *texts, number(dimension, 5), number(100.0 * regular, 3)))
    return (*ensemble.grid, *shown, "dimension", "regular %"), found


def figures(ensemble: EnsembleResult) -> list[tuple[str, Any]]:
    """Exponents along the only key, or the largest one over the two keys with the most values."""
    from hpcfit.reporting.spectra.sweep import sweep, sweep_map

    axes = {key: axis_numbers(values) for key, values in ensemble.grid.items() if len(values) > 1}
    keys = [key for key, values in axes.items() if values is not None]
    if len(axes) != len(keys) or not keys:
        return []
    names = exponents(ensemble)
    tables = {name: by_cell(ensemble, name) for name in (*names, "dimension", "regular")}
    if len(keys) == 1:
        values = axes[keys[0]]
        assert values is not None
        heights, errors = (np.stack([tables[name][k] for name in names], axis=1) for k in (0, 1))
        drawn = sweep(keys[0], values, heights, NORMAL95 * errors, *tables["dimension"], tables["regular"][0])
        return [(f"Spectra along {keys[0]}, with 95 % intervals.", drawn)]
    if len(keys) > 2:
        return []
    first, second = axes[keys[1]], axes[keys[0]]
    assert first is not None
    assert second is not None
    upwards, across = np.argsort(second), np.argsort(first)
    found = []
    for name, what in ((names[0], "largest exponent"), ("dimension", "Kaplan-Yorke dimension")):
        table = tables[name][0].reshape(len(second), len(first))[np.ix_(upwards, across)]
        if np.isfinite(table).any():
            drawn = sweep_map((keys[1], keys[0]), first[across], second[upwards], table, what)
            found.append((f"The {what} over {keys[1]} and {keys[0]}.", drawn))
    return found
