"""Spectra of many cells of a grid: ranks take cells as they need them, each is a row."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from hpcfit.leastsq.course import Numbers
from hpcfit.models.define import Model
from hpcfit.mpi.serial import SERIAL
from hpcfit.mpi.together import everywhere, on_root
from hpcfit.records import EnsembleResult, Outcome, Spectrum
from hpcfit.studies.members import BY_MEMBER, Rows, Supply, Wanted
from hpcfit.studies.spectra_in_lanes import spectra_in_lanes
from hpcfit.studies.spectrum import spectrum_stages

DERIVED = ("dimension", "entropy", "regular", "drift")


class SpectrumBench:
    """What `members.Bench` promises, for spectra: some cells at a time on every rank, in the same lanes."""

    side_by_side = 16

    def __init__(self, model: Model, asked_of: Callable[[int], Mapping[str, Any]], seed: int) -> None:
        """asked_of: the arguments of `spectrum_stages` for each cell."""
        self.model, self._seed = model, seed
        self._asked_of = lru_cache(maxsize=64)(asked_of)
        self._begun = time.perf_counter()

    @property
    def names(self) -> tuple[str, ...]:
        count = self._asked_of(0)["asked"].exponents or len(self.model.states)
        return (*(f"lambda{k + 1}" for k in range(count)), *DERIVED)

    def check(self, comm: Any, *, strict: bool) -> None:
        asked = everywhere(comm, lambda: self._asked_of(0))

        def compile_it() -> None:
            next(spectrum_stages(SERIAL, self.model, **asked))  # does so before its first stage

        on_root(comm, compile_it)

    def rows(self, wanted: Wanted, supply: Supply, width: int) -> Iterator[Rows]:
        while taken := _taken(supply, width):
            found = spectra_in_lanes(self.model, [self._asked_of(setting) for setting, _ in taken])
            for (_, places), own in zip(taken, found, strict=True):
                yield places, self._columns(own, len(places))

    def table(self, members: Numbers, columns: Sequence[Any], **known: Any) -> EnsembleResult:
        outcomes, *rows = columns
        return EnsembleResult(
            model=self.model.name,
            names=self.names,
            parameter_names=self.names,
            outcomes=tuple(outcomes),
            **dict(zip(BY_MEMBER, (members, *rows), strict=True)),
            seed=self._seed,
            seconds=time.perf_counter() - self._begun,
            of="lyapunov",
            **known,
        )

    def _columns(self, found: Spectrum, count: int) -> list[Any]:
        """Outcome, exponents and what follows from them, standard errors; of what vanishes the bound."""
        errors = np.where(np.isnan(found.errors), found.bounds, found.errors)
        regular = float(found.regular.mean()) if len(found.regular) else np.nan
        derived = [found.dimension, found.entropy, regular, found.drift]
        of_derived = [found.dimension_error, found.entropy_error, np.nan, np.nan]
        outcome: Outcome = found.outcome
        zeros = np.zeros(count, dtype=np.int64)
        return [
            np.array([outcome] * count, dtype=object),
            np.repeat([[*found.exponents, *derived]], count, axis=0),
            np.repeat([[*errors, *of_derived]], count, axis=0),
            np.full(count, np.nan),
            zeros,
            zeros,
            zeros,
        ]


def _taken(supply: Supply, width: int) -> list[tuple[int, Numbers]]:
    """The next cells with the places of their members; together they fill the width."""
    taken: list[tuple[int, Numbers]] = []
    left = width
    while left > 0 and (setting := supply.setting(left)) is not None:
        places = supply.of(setting, left)
        taken.append((setting, places))
        left -= len(places)
    return taken
