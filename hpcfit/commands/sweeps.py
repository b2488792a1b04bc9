"""The members of an ensemble from the tables of a job: which problem each is, which random numbers it has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hpcfit.commands.fitting import exact_data, known_truth, posing, solving
from hpcfit.commands.loading import Inputs, of_cell
from hpcfit.commands.spectra import spectrum_arguments
from hpcfit.ensemble.plan import Numbers, Plan
from hpcfit.jobfile.check import Job
from hpcfit.jobfile.grids import lane_keys
from hpcfit.jobfile.values import number
from hpcfit.models.define import Model
from hpcfit.mpi.serial import SERIAL
from hpcfit.records import Array
from hpcfit.studies.ensemble import rows_in_rounds
from hpcfit.studies.members import Bench, FitBench, Setting, Wanted
from hpcfit.studies.spectra import SpectrumBench

_SHAPES = re.compile(r"\.(times|observe|method)\b")  # keys of the truth


def plan_of(job: Job) -> Plan:
    """The members of a job of kind ensemble."""
    return Plan(job["ensemble"]["members"], job["ensemble"]["grid"])


@dataclass(frozen=True)
class Sweep:
    """An ensemble of fits, of which cells that differ in guesses only are one problem; or of spectra."""

    inputs: Inputs
    model: Model

    @cached_property
    def plan(self) -> Plan:
        return plan_of(self.inputs.job)

    @cached_property
    def bench(self) -> Bench:
        seed = self.inputs.job.seed
        if self.of_spectra:
            return SpectrumBench(self.model, lambda cell: spectrum_arguments(self._cell(cell)), seed)
        return FitBench(self.model, self._setting, seed)

    @property
    def of_spectra(self) -> bool:
        return bool(self.inputs.job["ensemble"]["of"] == "lyapunov")

    @property
    def doing(self) -> str:
        """What is done, for a line of progress."""
        return f"{'spectra of' if self.of_spectra else 'fitting'} {self.model.name}"

    @property
    def strict(self) -> bool:
        """Whether a guess that cannot be integrated is a mistake; in a sweep it is a finding."""
        return not self.plan.grid

    def wanted(self, numbers: Sequence[int] | Numbers) -> Wanted:
        """What has to be computed for some members."""
        members = np.asarray(numbers, dtype=np.int64)
        plan, grid = self.plan, self.plan.grid
        chosen = plan.choices(plan.cell_of(members))
        columns = dict(zip(grid, chosen.T, strict=True))
        guesses = {
            key.partition(".")[2]: np.array([number(value) for value in grid[key]])[columns[key]]
            for key in self._lanes
        }
        settings = np.zeros(len(members), dtype=np.int64)
        for key in self._problems:
            settings = settings * len(grid[key]) + columns[key]
        return Wanted(plan.realisation_of(members), settings, guesses)

    def shapes(self) -> list[int]:
        """Problems of all sizes that there are: each may need machine code of its own."""
        shaping = [key for key in self._problems if key.startswith("fit.") or _SHAPES.search(key)]
        columns = Plan(1, self._problems)
        chosen = columns.choices(np.arange(columns.cells))[:, [list(columns.grid).index(k) for k in shaping]]
        return [int(k) for k in np.unique(chosen, axis=0, return_index=True)[1]]

    def known(self) -> dict[str, Any]:
        """What a table of members tells beside its rows."""
        if self.of_spectra:
            return {"truth": {}, "grid": self.plan.grid}
        truth, varied = known_truth(self.inputs), self._cell_truth()
        same = {name: value for name, value in truth.items() if name not in varied}
        return {"truth": same, "cell_truth": varied, "grid": self.plan.grid}

    @cached_property
    def _lanes(self) -> tuple[str, ...]:
        return () if self.of_spectra else lane_keys(self.plan.grid, self.inputs.job["fit"]["local"])

    @cached_property
    def _problems(self) -> Mapping[str, Sequence[Any]]:
        """The keys that make another problem."""
        return {key: values for key, values in self.plan.grid.items() if key not in self._lanes}

    def _cell(self, number: int) -> Inputs:
        """The job of a problem."""
        if not self.plan.grid:
            return self.inputs
        first = {key: values[0] for key, values in self.plan.grid.items()}
        return of_cell(self.inputs, first | Plan(1, self._problems).values(number), self.model)

    def _setting(self, number: int) -> Setting:
        inputs = self._cell(number)
        noises = tuple(truth["noise"] for _, truth in inputs.job.several("truth"))
        return Setting(exact_data(inputs, self.model), noises, posing(inputs.job), solving(inputs.job))

    def _cell_truth(self) -> dict[str, Array]:
        """Truths that differ between cells: those do so whose grid varies the truth, or a variable."""
        touching = [key for key in self._problems if key.startswith("truth") or "." not in key]
        if not touching:
            return {}
        problems = Plan(1, {key: self.plan.grid[key] for key in touching})
        first = {key: values[0] for key, values in self.plan.grid.items()}
        found = [
            known_truth(of_cell(self.inputs, first | problems.values(k), self.model))
            for k in range(problems.cells)
        ]
        table = {name: np.array([each[name] for each in found]) for name in found[0]}
        varied = {name: values for name, values in table.items() if np.ptp(values) > 0.0}
        return {name: values[self._place_in(problems)] for name, values in varied.items()}

    def _place_in(self, problems: Plan) -> Numbers:
        """Which cell of a coarser plan every cell lies in (cells,)."""
        chosen = dict(zip(self.plan.grid, self.plan.choices(np.arange(self.plan.cells)).T, strict=True))
        place = np.zeros(self.plan.cells, dtype=np.int64)
        for key, values in problems.grid.items():
            place = place * len(values) + chosen[key]
        return place


def compile_all(sweep: Sweep) -> None:
    """Have the machine code that any member needs: one of each kind of problem is computed."""
    if sweep.of_spectra:
        sweep.bench.check(SERIAL, strict=False)
        return
    for setting in sweep.shapes():
        one = Wanted(
            np.array([1]), np.array([setting]), {k: v[:1] for k, v in sweep.wanted([1]).guesses.items()}
        )
        for _ in rows_in_rounds(SERIAL, sweep.bench, one):
            pass


def alone(inputs: Inputs, member: int, model: Model) -> tuple[Inputs, int]:
    """The job of one member of an ensemble, and the realisation of its noise."""
    plan = plan_of(inputs.job)
    which = np.array([member])
    cell, realisation = int(plan.cell_of(which)[0]), int(plan.realisation_of(which)[0])
    return (of_cell(inputs, plan.values(cell), model) if plan.grid else inputs), realisation


def numeric(values: Sequence[Any]) -> Array | None:
    """Values of a key as numbers; None if they are none."""
    try:
        return np.array([number(value) for value in values])
    except ValueError:
        return None
