"""Unknown noise levels are found, with true errors; a linear model has them by restricted likelihood."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from hpcfit import Noise, fit, simulate
from hpcfit.models.catalogue import find
from hpcfit.models.strings import model_from_strings
from hpcfit.records import InputError, Series

HENON_HEILES = find("henon_heiles")
SD = {"x1": 0.01, "x2": 0.03, "x3": 0.02, "x4": 0.005}
GUESS = {"a": 1.5, "b": 1.5, "c": -0.5}


def noisy(member: int, count: int = 40) -> Series:
    start, times = [0.0, 0.0, 0.1275**0.5, -0.35], 0.2 * np.arange(count)
    found = simulate(
        HENON_HEILES,
        start=start,
        parameters=[1, 1, -1],
        times=times,
        noise=Noise(sd=SD),
        seed=3,
        member=member,
    ).observed
    assert found is not None
    return replace(found, sigma=None)


def test_the_levels_of_all_quantities_are_found():
    """60 members: their mean squares are unbiased, and they spread as their errors say."""
    found = [fit(HENON_HEILES, noisy(member), guess=GUESS, unknown_sigma=list(SD)) for member in range(60)]
    assert all(each.converged for each in found)
    np.testing.assert_allclose([each.beta2 for each in found], 1.0, rtol=1e-6)
    levels = np.array([[each.noise_levels[name] for name in SD] for each in found])
    errors = np.array([[each.noise_level_errors[name] for name in SD] for each in found])
    truth = np.array(list(SD.values()))
    off = (levels**2 - truth**2) / (2.0 * truth * errors.mean(axis=0))
    assert (np.abs(off.mean(axis=0)) < 3.3 / np.sqrt(60)).all()
    assert (np.abs(np.log(levels.std(axis=0, ddof=1) / errors.mean(axis=0))) < 0.33).all()


def likelihood(design: list[Any], data: list[Any], sizes: np.ndarray) -> float:
    """-2 log of the restricted likelihood of a linear model whose channels have these standard deviations."""
    weighted = np.concatenate([each / size for each, size in zip(design, sizes, strict=True)])
    values = np.concatenate([each / size for each, size in zip(data, sizes, strict=True)])
    rest = values - weighted @ np.linalg.lstsq(weighted, values, rcond=None)[0]
    counts = np.array([len(each) for each in data])
    return float(rest @ rest + 2 * counts @ np.log(sizes) + np.linalg.slogdet(weighted.T @ weighted)[1])


def test_levels_are_those_of_restricted_maximum_likelihood():
    """x' = v, v' = g: straight lines and parabolas of t, so that everything is linear in the unknowns."""
    fall = model_from_strings("fall", states=("x", "v"), parameters=("g",), equations={"x": "v", "v": "g"})
    random, times = np.random.default_rng(1), np.linspace(0.0, 3.0, 12)
    x = 1.0 + 2.0 * times - 0.8 * times**2 + 0.1 * random.normal(size=12)
    v = 2.0 - 1.6 * times + 0.4 * random.normal(size=12)
    series = Series(("x", "v"), times, np.stack([x, v], axis=1))
    found = fit(fall, series, guess={"g": -1.0}, unknown_sigma="x v")
    one, none = np.ones(12), np.zeros(12)
    design = [np.stack([one, times, times**2 / 2], axis=1), np.stack([none, one, times], axis=1)]
    best = minimize(
        lambda logs: likelihood(design, [x, v], np.exp(logs)),
        np.log([0.1, 0.4]),
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-13},
    )
    np.testing.assert_allclose([found.noise_levels[k] for k in "xv"], np.exp(best.x), rtol=1e-5)


def test_stated_sizes_are_multiplied():
    """A factor of what is stated for one quantity; the others keep theirs."""
    given = noisy(1, 80)
    stated = np.tile([0.01, 0.01, 0.02, 0.005], (80, 1))
    found = fit(HENON_HEILES, replace(given, sigma=stated), guess=GUESS, unknown_sigma="x2")
    assert set(found.noise_levels) == {"x2"}
    assert abs(found.noise_levels["x2"] - 3.0) < 4.0 * found.noise_level_errors["x2"]
    np.testing.assert_allclose(found.experiments[0].sigma[:, 1], 0.01 * found.noise_levels["x2"])
    np.testing.assert_array_equal(found.experiments[0].sigma[:, 0], 0.01)


def test_what_cannot_be_told_is_refused():
    with pytest.raises(InputError, match=r"fit\.unknown_sigma = .*: 'x5' is not observed"):
        fit(HENON_HEILES, noisy(1), guess=GUESS, unknown_sigma="x5")
    timed = replace(noisy(1), sigma_t=np.full(40, 0.01))
    with pytest.raises(InputError, match="cannot both be told"):
        fit(HENON_HEILES, timed, guess=GUESS, unknown_sigma="x1")
