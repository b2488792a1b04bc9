"""Errors of Lyapunov exponents: 200 independent runs of four systems, none skipped."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from hpcfit.flow.frames import grow, start_bundle
from hpcfit.lyapunov.dimension import derived
from hpcfit.lyapunov.estimate import Estimate, estimate
from hpcfit.lyapunov.hamiltonian import energy_slope, hamiltonian_form
from hpcfit.lyapunov.intervals import rhythm
from hpcfit.lyapunov.starts import orthonormal_frame, symplectic_frame
from hpcfit.models.catalogue import find
from hpcfit.models.define import Model
from hpcfit.records import Array
from hpcfit.studies.beginnings import points_on_orbits

pytestmark = pytest.mark.science
RUNS = 200
LEAST, MOST = 0.90, 0.99  # of the 95 % intervals that hold the long-run value


@dataclass(frozen=True)
class Case:
    """A system, how long each run is, and how far apart on one orbit the runs begin."""

    start: tuple[float, ...]
    parameters: tuple[float, ...]
    duration: float
    apart: float
    exponents: tuple[int, ...]  # those that do not vanish
    dissipative: bool = True


CASES = {
    "lorenz": Case((1.0, 1.0, 20.0), (10.0, 28.0, 8 / 3), 1e4, 200.0, (0, 2)),
    "rossler": Case((1.1, -1.7, 0.02), (0.15, 0.2, 10.0), 2e4, 1003.0, (0, 2)),
    "henon_map": Case((0.1, 0.1), (1.4, 0.3), 1e5, 1000.0, (0, 1)),
    "henon_heiles": Case(
        (0.0, 0.0, 0.1275**0.5, -0.35), (1.0, 1.0, -1.0), 1e6, 1e4, (0, 3), dissipative=False
    ),
}


def frames(model: Model, starts: Array, parameters: Array) -> Array:
    """Symplectic where it belongs."""
    form = hamiltonian_form(model, starts[0], parameters)
    if form is None:
        return orthonormal_frame(len(model.states))
    return np.array([symplectic_frame(form, energy_slope(model, form, x, parameters)) for x in starts])


@cache
def growths(name: str) -> tuple[Array, float]:
    """Log growth (200, B, k) of all runs, and the length of a block."""
    case, model = CASES[name], find(name)
    start, parameters = np.array(case.start), np.array(case.parameters)
    starts, _ = points_on_orbits(model, start[None], parameters[None], 0.0, case.apart, RUNS + 1, None, None)
    beat = rhythm(model, start, parameters, duration=case.duration)
    bundle = start_bundle(model, starts[1:], parameters, frames(model, starts[1:], parameters))
    grown = grow(model, bundle, blocks=beat.blocks, block=beat.block, interval=beat.interval)
    assert not grown.failures
    return grown.logarithms, beat.block


@cache
def found(name: str) -> tuple[Estimate, ...]:
    grown, block = growths(name)
    return tuple(estimate(each[None], block) for each in grown)


@pytest.mark.parametrize("name", CASES)
def test_intervals_hold_the_long_run_value(name: str) -> None:
    """The mean of all runs is 200 times as long as each of them."""
    case, grown = CASES[name], growths(name)[0]
    long_run = grown.sum(axis=(0, 1)) / (RUNS * case.duration)
    for k in case.exponents:
        values, half = (
            np.array([getattr(e, part)[k] for e in found(name)]) for part in ("exponents", "half_widths")
        )
        covered = float((np.abs(values - long_run[k]) <= half).mean())
        spread = values.std(ddof=1)
        print(
            f"{name} λ{k + 1}: {long_run[k]:.6g}, spread {spread:.2g}, "
            f"mean half width {half.mean() / spread:.2f} of it, covered {covered:.3f}"
        )
        assert LEAST <= covered <= MOST, f"{name} λ{k + 1}"


@pytest.mark.parametrize("name", CASES)
def test_exponents_that_vanish_are_recognised_in_every_run(name: str) -> None:
    case = CASES[name]
    vanishing = set(range(len(found(name)[0].exponents))) - set(case.exponents)
    for each in found(name):
        assert {k for k, value in enumerate(each.bounds) if np.isfinite(value)} == vanishing
        assert not each.regular.any()
        assert all(abs(each.exponents[k]) <= each.bounds[k] for k in vanishing)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.dissipative])
def test_intervals_of_the_dimension_hold_its_long_run_value(name: str) -> None:
    """With the t quantile of many degrees of freedom: 1.96 errors."""
    grown, block = growths(name)
    whole = estimate(grown, block)
    truth = derived(whole.cleaned, grown / block, whole.zeros, grown.shape[2], hamiltonian=False).dimension
    each = [
        derived(one.cleaned, own[None] / block, one.zeros, grown.shape[2], hamiltonian=False)
        for one, own in zip(found(name), grown, strict=True)
    ]
    covered = np.mean([abs(one.dimension - truth) <= 2.06 * one.dimension_error for one in each])
    print(f"{name}: dimension {truth:.6f}, covered {covered:.3f}")
    assert LEAST <= covered <= MOST
