"""Spectra to show: usual ones and awkward ones, built by hand."""

from __future__ import annotations

import dataclasses

import numpy as np

from hpcfit.records import Convergence, Failure, Outcome, Section, Spectrum

NOTHING = float("nan")


def growth_of(
    exponents: np.ndarray, lanes: int, blocks: int, block: float, regular: int, failed: int
) -> np.ndarray:
    """Chances around the exponents; the first trajectories are regular, the last ones failed."""
    rng = np.random.default_rng(1)
    grown = block * (
        exponents + 0.3 * np.abs(exponents) * rng.standard_normal((lanes, blocks, len(exponents)))
    )
    slow = np.diff(np.log(1.0 + np.arange(blocks + 1.0)))
    grown[:regular] = slow[None, :, None] * np.sign(
        np.arange(len(exponents))[::-1] - len(exponents) / 2 + 0.5
    )
    if failed:
        grown[-failed:, blocks // 2 :] = np.nan
    return grown


def spectrum(
    exponents: tuple[float, ...] = (0.9, 0.0, -14.6),
    *,
    lanes: int = 3,
    blocks: int = 200,
    regular: int = 0,
    failed: int = 0,
    **changes: object,
) -> Spectrum:
    """Exponents of 0 vanish; the others have errors of one in a hundred."""
    values, block = np.array(exponents), 2.5
    k, duration = len(values), blocks * block
    zero = values == 0.0
    errors = np.where(zero, NOTHING, 0.01 * np.abs(values))
    bounds = np.where(zero, 3.0 / duration, NOTHING)
    half = np.where(zero, bounds, 2.1 * errors)
    times = np.geomspace(min(4.0 * block, duration), duration, 30)
    way = values + 0.5 * np.sin(5.0 * np.log(times))[:, None] / times[:, None] ** 0.5
    way[-1] = values
    failures = tuple(
        Failure(lanes - failed + j, 250.125 + j, Outcome.BLOW_UP, "largest component <1e9>")
        for j in range(failed)
    )
    whole = Spectrum(
        model="rolls",
        state_names=tuple(f"x{i + 1}" for i in range(k)),
        parameter_names=("sigma", "r"),
        kind="flow",
        starts=np.arange(lanes * k, dtype=float).reshape(lanes, k),
        parameters=np.tile([10.0, 28.0], (lanes, 1)),
        outcome=Outcome.DONE,
        cause="",
        exponents=values,
        errors=errors,
        bounds=bounds,
        dimension=2.0621,
        dimension_error=0.0004,
        entropy=float(values[values > 0.0].sum()),
        entropy_error=0.009,
        zeros=int(zero.sum()),
        duration=duration,
        transient=50.0,
        block=block,
        interval=0.25,
        growth=growth_of(values, lanes, blocks, block, regular, failed),
        regular=np.arange(lanes) < regular,
        failures=failures,
        divergence=float(values.sum()),
        drift=NOTHING,
        half_widths=half,
        doubling_time_error=0.008,
        history=Convergence(times, way, np.tile(half, (30, 1)) * (duration / times)[:, None] ** 0.5),
        seconds=1.25,
        units={"x1": "m", "t": "s"},
        seed=7,
    )
    return dataclasses.replace(whole, **changes)  # type: ignore[arg-type]


def hamiltonian(**changes: object) -> Spectrum:
    """Pairs, a section with its area, energy, orbits, regular and failed trajectories, doubts."""
    angle = np.linspace(0.0, 2.0 * np.pi, 101)
    rng = np.random.default_rng(2)
    section = Section(
        surface="x1",
        direction=1,
        axes=("x2", "x4"),
        points=0.6 * rng.uniform(-1.0, 1.0, (500, 2)),
        trajectories=np.repeat([0, 1], 250),
        border=np.column_stack([np.cos(angle), np.sin(angle)]),
    )
    usual = {
        "dimension": 4.0,
        "dimension_error": 0.0,
        "hamiltonian": True,
        "integrals": 1,
        "drift": 3.2e-14,
        "orbits": 0.16,
        "section": section,
        "warnings": ("the orbit sticks: <often>",),
    }
    return spectrum((0.05, 0.0, 0.0, -0.05), lanes=5, regular=1, failed=1, **(usual | changes))  # type: ignore[arg-type]


def hostile() -> Spectrum:
    """Names and texts that want to be markup, formulas or terminal commands."""
    return spectrum(
        model="<script>alert(1)</script>\x1b[31m",
        state_names=("<b>", "$x^{$", "z"),
        parameter_names=("_p&", "$\\frac"),
        outcome=Outcome.NOT_INTEGRABLE,
        cause='"><img src="https://example.org/x.png">',
        warnings=("<i>\x1b[31m",),
    )


def missing() -> Spectrum:
    """No trajectory finished: nothing is known."""
    nothing = np.full(3, NOTHING)
    names = ("dimension", "dimension_error", "entropy", "entropy_error", "divergence")
    return dataclasses.replace(
        spectrum(lanes=2, failed=2),
        outcome=Outcome.NOT_INTEGRABLE,
        exponents=nothing,
        errors=nothing,
        bounds=nothing,
        half_widths=nothing,
        zeros=0,
        history=None,
        **dict.fromkeys(names, NOTHING),
    )


def torus() -> Spectrum:
    """All trajectories are regular."""
    return spectrum(
        (0.0, 0.0, 0.0, 0.0),
        lanes=2,
        regular=2,
        dimension=NOTHING,
        dimension_error=NOTHING,
        entropy_error=0.0,
        hamiltonian=True,
        integrals=2,
    )


def drawn() -> Spectrum:
    """Of a fit: three trajectories of the estimate, and two of each of four draws, one of which failed."""
    rng = np.random.default_rng(3)
    exponents = np.array([0.9, 0.0, -14.6]) + 0.05 * rng.standard_normal((4, 3))
    exponents[2] = NOTHING
    return spectrum(
        lanes=11,
        draws=np.array([0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4]),
        draw_exponents=exponents,
        draw_errors=np.where(np.isnan(exponents), NOTHING, 0.01),
        driven=True,
    )


AWKWARD = {
    "drawn": drawn(),
    "usual": spectrum(),
    "hamiltonian": hamiltonian(),
    "hostile": hostile(),
    "missing": missing(),
    "torus": torus(),
    "one exponent": spectrum((0.4,), lanes=1, dimension=NOTHING, dimension_error=NOTHING),
    "equilibrium": spectrum((-0.1, -2.0), dimension=0.0, dimension_error=0.0, regular=3),
    "one block": spectrum(blocks=1, lanes=1),
    "40 exponents": spectrum(tuple(np.linspace(1.7, -5.0, 40)), lanes=1, dimension=27.1),
    "200 trajectories": spectrum(lanes=200, regular=30, failed=5),
    "map": spectrum((0.4, -1.6), kind="map", dimension=1.25),
    "bare": spectrum(
        history=None, half_widths=None, seed=None, parameter_names=(), parameters=np.zeros((3, 0))
    ),
    "huge": spectrum((3e200, 0.0, -5e200)),
    "tiny": spectrum((3e-200, 0.0, -5e-200)),
}
