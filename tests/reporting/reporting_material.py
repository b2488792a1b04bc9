"""Paths to show: usual ones and awkward ones, built by hand."""

from __future__ import annotations

import dataclasses

import numpy as np

from hpcfit.records import Outcome, Path, Series

PROVENANCE = {
    "hpcfit": "0.1.0",
    "host": "node<1>",
    "versions": {"numpy": "1.26"},
    "seconds": np.float64(np.nan),
}
JOB = 'kind = "simulate"\n# </pre><script>alert("job")</script> $x$\n'


def path(n_states: int = 4, n_times: int = 60, n_parameters: int = 3, **changes: object) -> Path:
    """Oscillations with noise, sensitivities and an invariant."""
    rng = np.random.default_rng(1)
    times = 0.1 * np.arange(n_times)
    states = np.cos(times[:, None] * (1.0 + 0.1 * np.arange(n_states)) + np.arange(n_states))
    names = tuple(f"x{k + 1}" for k in range(n_states))
    seen = (names[0], "energy")
    exact = np.column_stack([states[:, 0], (states**2).sum(axis=1)])
    sigma = np.full_like(exact, 0.1)
    whole = Path(
        model="waves",
        state_names=names,
        parameter_names=tuple(f"p{k}" for k in range(n_parameters)),
        kind="flow",
        start=states[0],
        parameters=np.arange(n_parameters) / 3.0,
        times=times,
        states=states,
        outcome=Outcome.DONE,
        by_start=rng.standard_normal((n_times, n_states, n_states)),
        by_parameters=rng.standard_normal((n_times, n_states, n_parameters)),
        invariant=1.0 + 1e-12 * rng.standard_normal(n_times),
        observed=Series(seen, times, exact + sigma * rng.standard_normal(exact.shape), sigma),
        exact=Series(seen, times, exact),
        units={"x1": "rad", "p0": "1/s", "t": "s"},
        seed=7,
        steps=12,
    )
    return dataclasses.replace(whole, **changes)  # type: ignore[arg-type]


def failed(rows: int = 20) -> Path:
    """NaN from some row on."""
    whole = path()
    states, exact, observed = whole.states.copy(), whole.exact, whole.observed
    assert exact is not None
    assert observed is not None
    states[rows - 1 : rows] = 1e200
    states[rows:] = exact.values[rows:] = observed.values[rows:] = np.nan
    return dataclasses.replace(
        whole, states=states, outcome=Outcome.BLOW_UP, cause="largest component <1e200>"
    )


def recorded() -> Path:
    """Compared with a recording that has gaps."""
    whole = path()
    values = whole.states[:, :2] + 0.2
    values[3, 0] = np.nan
    return dataclasses.replace(
        whole, data=Series(("x1", "x2"), whole.times, values, np.full_like(values, 0.1))
    )


def hostile() -> Path:
    """Names and texts that want to be markup, formulas or terminal commands."""
    whole = path(2, 20, 1)
    return dataclasses.replace(
        whole,
        model="<script>alert(1)</script>\x1b[31m",
        state_names=("<b>", "$x^{$"),
        parameter_names=("_p&",),
        observed=None,
        exact=None,
        outcome=Outcome.NOT_FINITE,
        cause='"><img src="https://example.org/x.png">',
        units={"<b>": "<i>", "_p&": "$\\frac"},
    )


AWKWARD = {
    "usual": path(),
    "failed half-way": failed(),
    "failed at once": failed(0),
    "failed after one": failed(1),
    "recorded": recorded(),
    "hostile": hostile(),
    "no parameters": path(n_parameters=0),
    "one state": path(1),
    "two states": path(2),
    "three states": path(3),
    "five states": path(5),
    "one time": path(3, 1),
    "two times": path(3, 2),
    "map": path(2, kind="map"),
    "one time, one state": path(1, 1, 0),
    "equal values": path(
        states=np.full((60, 4), 2.0), invariant=np.full(60, 2.0), by_start=np.zeros((60, 4, 4))
    ),
    "bare": path(by_start=None, by_parameters=None, invariant=None, observed=None, exact=None, seed=None),
    "huge": path(states=1.7e308 * np.linspace(-1.0, 1.0, 240).reshape(60, 4)),
    "tiny": path(states=np.linspace(0, 5e-324, 240).reshape(60, 4)),
    "400 states": path(400, 30, 2, by_start=None),
    "30 parameters": path(3, 30, 30),
}
