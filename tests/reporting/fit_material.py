"""Fits and ensembles to show: usual ones and awkward ones, built by hand."""

from __future__ import annotations

import dataclasses

import numpy as np

from hpcfit.records import (
    Constraint,
    EnsembleResult,
    Estimates,
    FitResult,
    Iteration,
    Outcome,
    Pieces,
    Series,
)


def fit(n_times: int = 40, n_experiments: int = 1, n_parameters: int = 2, **changes: object) -> FitResult:
    """Oscillations x with hidden speed v, and an observed quantity that is no state."""
    rng = np.random.default_rng(2)
    times = 0.1 * np.arange(n_times)
    states = np.stack([np.cos(times), -np.sin(times)], axis=1)
    names = tuple(f"p{k}" for k in range(n_parameters))
    marks = ["" if e == 0 else f"@{e + 1}" for e in range(n_experiments)]
    unknowns = (*(f"{name}{mark}" for mark in marks for name in ("x", "v")), *names)
    factor = rng.standard_normal((len(unknowns), len(unknowns))) / 50.0
    residuals = rng.standard_normal((n_times, 2))
    residuals[3 % n_times, 0] = np.nan
    exact = np.stack([states[:, 0], states[:, 0] ** 2], axis=1)
    series = Series(("x", "square"), times, exact + 0.1 * residuals, np.full((n_times, 2), 0.1))
    inner = times[:-1, None] + 0.1 * np.linspace(0.0, 1.0, 5)
    inner[:, -1] = times[1:]
    path = np.stack([np.cos(inner), -np.sin(inner)], axis=2)
    freedom = 2 * n_times * n_experiments - 1 - len(unknowns)
    whole = FitResult(
        model="waves",
        state_names=("x", "v"),
        parameter_names=names,
        fixed={"g": 9.81},
        outcome=Outcome.CONVERGED,
        cause="",
        unknowns=Estimates(unknowns, rng.standard_normal(len(unknowns)), factor @ factor.T),
        derived=Estimates(("energy",), np.array([0.5]), np.array([[1e-4]])),
        experiments=(series,) * n_experiments,
        weights={"square": 1.0},
        residuals=(residuals,) * n_experiments,
        node_times=np.tile(times, n_experiments),
        node_experiments=np.repeat(np.arange(n_experiments), n_times),
        nodes=np.tile(states, (n_experiments, 1)),
        node_errors=np.full((n_times * n_experiments, 2), 0.01),
        guess={name: 1.0 + k for k, name in enumerate(names)},
        initial=Pieces(np.tile(inner, (n_experiments, 1)), 1.5 * np.tile(path, (n_experiments, 1, 1))),
        final=Pieces(np.tile(inner, (n_experiments, 1)), np.tile(path, (n_experiments, 1, 1))),
        objective=float(np.nansum(residuals**2)) * n_experiments,
        degrees_of_freedom=freedom,
        sigma_known=True,
        gamma=3.5,
        t95=1.99,
        iterations=6,
        linearisations=9,
        history=_history(),
        solver="dense",
        seconds=0.25,
        truth={"x": 1.0, "p0": 0.1, "energy": 0.5},
        units={"x": "m", "v": "m/s", "t": "s", "p0": "1/s"},
        seed=18,
        member=3,
        strategy=(
            "presolve, exact: all states observed",
            "weak continuity from 1, exact: the exact method stalled",
        ),
    )
    return dataclasses.replace(whole, **changes)  # type: ignore[arg-type]


def with_outliers(n_times: int, places: tuple[int, ...]) -> FitResult:
    """A long fit with residuals of +20, -21, +22, ... sigma in x at some data times."""
    whole = fit(n_times)
    (residuals,) = whole.residuals
    for k, place in enumerate(places):
        residuals[place, 0] = (20.0 + k) * (-1) ** k
    return whole


def many_experiments(count: int = 1_000, bad: int = 616) -> FitResult:
    """Short experiments, one of which does not fit."""
    whole = fit(50, count)
    residuals = list(whole.residuals)
    residuals[bad] = 2.0 * residuals[bad]
    return dataclasses.replace(whole, residuals=tuple(residuals))


def _history() -> tuple[Iteration, ...]:
    phases = ["presolve"] * 2 + ["weak"] * 3 + ["exact"] * 6
    return tuple(
        Iteration(phase, 80.0 + 10.0 ** (3 - k), 10.0**-k, 10.0 ** (1 - k), 1.0, 3)
        for k, phase in enumerate(phases)
    )


def stopped() -> FitResult:
    """Not determined, with NaN wherever it may be."""
    whole = fit()
    states = whole.initial.states.copy()
    states[5:, 2:] = np.nan
    states[4, 1:] = 1e300
    blind = Estimates(
        whole.unknowns.names, whole.unknowns.values, np.full_like(whole.unknowns.covariance, np.nan)
    )
    return dataclasses.replace(
        whole,
        outcome=Outcome.RANK_DEFICIENT,
        cause="not determined: <p0>, p1",
        unknowns=blind,
        initial=Pieces(whole.initial.times, states),
        final=Pieces(whole.final.times, states),
        objective=np.nan,
        degrees_of_freedom=0,
        gamma=np.nan,
        t95=np.nan,
        truth={},
        history=(Iteration("exact", np.nan, np.inf, 0.0, 0.0, 0),),
        node_errors=np.full_like(whole.node_errors, np.nan),
        seed=None,
    )


def without_sigma() -> FitResult:
    """Data without standard deviations, one quantity not considered."""
    whole = fit()
    (series,) = whole.experiments
    return dataclasses.replace(
        whole,
        experiments=(dataclasses.replace(series, sigma=None),),
        sigma_known=False,
        weights={"square": 0.0},
    )


def constrained() -> FitResult:
    """One exact condition, one at its bound, one that is free."""
    whole = fit()
    nan = float("nan")
    steps = [dataclasses.replace(each, multipliers=(-2.0, 3.0, nan)) for each in whole.history[-2:]]
    return dataclasses.replace(
        whole,
        history=(*whole.history[:-2], *steps),
        constraints=(
            Constraint("x@end = x@start", True, 1e-14, True, -2.0, 0.5),
            Constraint("p0 >= 0", False, 0.0, True, 3.0, 0.5, "p0"),
            Constraint("v@2.5 <= 1", False, 0.25, False, 0.0, nan),
        ),
    )


def hostile() -> FitResult:
    """Names and texts that want to be markup, formulas or terminal commands."""
    whole = fit(n_parameters=2)
    return dataclasses.replace(
        whole,
        model="<script>alert(1)</script>\x1b[31m",
        state_names=("<b>", "$x^{$"),
        parameter_names=("_p&", "p,\n1"),
        unknowns=dataclasses.replace(whole.unknowns, names=("<b>", "$x^{$", "_p&", "p,\n1")),
        outcome=Outcome.STALLED,
        cause='"><img src="https://example.org/x.png">',
        units={"<b>": "<i>", "_p&": "$\\frac"},
        constraints=(Constraint("<b>@end = \x1b[31m", False, -1.0, False, 0.0, 0.0, "<b>"),),
    )


AWKWARD = {
    "usual": fit(),
    "stopped": stopped(),
    "without sigma": without_sigma(),
    "hostile": hostile(),
    "constrained": constrained(),
    "three experiments": fit(n_experiments=3),
    "long": fit(3_000),
    "very long": fit(12_000),
    "many experiments": many_experiments(60, 40),
    "two times": fit(2),
    "no parameters": fit(n_parameters=0),
    "30 parameters": fit(n_parameters=30),
    "no history": fit(
        history=(), truth={}, units={}, fixed={}, derived=Estimates((), np.zeros(0), np.zeros((0, 0)))
    ),
}


def ensemble(n_members: int = 200, *, failed: int = 5, **changes: object) -> EnsembleResult:
    """Estimates that scatter as their errors say."""
    rng = np.random.default_rng(4)
    truth = {"x": 1.0, "p0": 0.1, "p1": -2.0}
    sizes = np.array([0.1, 0.02, 0.3])
    estimates = np.array(list(truth.values())) + sizes * rng.standard_normal((n_members, 3))
    errors = np.broadcast_to(sizes, (n_members, 3)).copy()
    failed = min(failed, n_members)
    estimates[:failed], errors[:failed] = np.nan, np.nan
    whole = EnsembleResult(
        model="waves",
        names=("x", "p0", "p1"),
        parameter_names=("p0", "p1"),
        members=np.arange(n_members),
        outcomes=(Outcome.STALLED,) * failed + (Outcome.CONVERGED,) * (n_members - failed),
        estimates=estimates,
        errors=errors,
        objective=rng.chisquare(93.0, n_members),
        degrees_of_freedom=np.full(n_members, 93),
        iterations=rng.integers(5, 9, n_members),
        linearisations=rng.integers(8, 14, n_members),
        truth=truth,
        seed=7,
        seconds=1.5,
        units={"x": "m"},
    )
    return dataclasses.replace(whole, **changes)  # type: ignore[arg-type]


ENSEMBLES = {
    "usual": ensemble(),
    "without truth": ensemble(truth={}, units={}),
    "none converged": ensemble(4, failed=4),
    "one member": ensemble(1, failed=0),
    "sigma not known": ensemble(objective=1e9 * np.arange(1.0, 201.0)),
    "no degrees of freedom": ensemble(degrees_of_freedom=np.zeros(200, dtype=np.int64)),
    "no numbers": ensemble(
        estimates=np.full((200, 3), np.nan),
        errors=np.full((200, 3), np.nan),
        objective=np.full(200, np.nan),
    ),
}
