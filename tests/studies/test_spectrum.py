"""Spectra with known answers; pairs, zeros and drift of Hamiltonian systems; starts, draws and failures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hpcfit import InputError, Noise, fit, simulate, spectrum
from hpcfit.models import catalogue
from hpcfit.models.define import Model
from hpcfit.models.strings import model_from_strings
from hpcfit.records import Outcome, Spectrum

CLASSIC = {"sigma": 10.0, "r": 28.0, "b": 8 / 3}
LORENZ: dict[str, Any] = {"start": [1.0, 1.0, 20.0], "parameters": CLASSIC}
LINEAR = model_from_strings(
    "linear",
    states=["x", "y", "z"],
    parameters=[],
    equations={"x": "-0.1*x + 2*y", "y": "-0.5*y + z", "z": "-2*z"},
)
JERK = model_from_strings(
    "jerk",
    states=["x", "y", "z"],
    parameters=["a"],
    equations={"x": "y", "y": "z", "z": "-a*z - y + abs(x) - 1"},
)
FORCED = model_from_strings(
    "forced",
    states=["x", "y"],
    parameters=["d", "a", "w"],
    equations={"x": "y", "y": "d*(1 - x**2)*y - x + a*cos(w*t)"},
)
KICKED = model_from_strings(
    "kicked",
    states=["q", "p"],
    parameters=["k"],
    equations={"q": "q + p + k*sin(q)", "p": "p + k*sin(q)"},
    kind="map",
)
ESCAPING = model_from_strings(
    "escaping", states=["x", "y"], parameters=["e"], equations={"x": "e*x**2", "y": "-y"}
)


def errors_away(found: Spectrum, known: tuple[float, ...]) -> float:
    """The largest distance from known exponents, in errors; of exponents that vanish, in bounds."""
    size = np.where(np.isnan(found.bounds), found.errors, found.bounds)
    return float(np.abs((found.exponents - np.array(known)) / size).max())


def test_a_linear_system_has_the_real_parts_of_its_eigenvalues() -> None:
    """Analytic: the frame turns into the eigenvectors within the transient, and C/T is nothing by then."""
    found = spectrum(LINEAR, start=[1.0, 1.0, 1.0], duration=100.0, transient=60.0)
    np.testing.assert_allclose(found.exponents, [-0.1, -0.5, -2.0], atol=1e-10)
    assert found.divergence == pytest.approx(-2.6, abs=1e-12)


@pytest.mark.parametrize(
    ("model", "given", "duration", "known"),
    [
        (catalogue.find("lorenz"), LORENZ, 2000.0, (0.90564, 0.0, -14.57231)),
        (
            catalogue.find("henon_map"),
            {"start": [0.1, 0.1], "parameters": [1.4, 0.3]},
            30_000,
            (0.41922, -1.62319),
        ),
        (JERK, {"start": [0.1, 0.0, 0.0], "parameters": [0.6]}, 20_000.0, (0.0362, 0.0, -0.6362)),
        (FORCED, {"start": [1.0, 1.0], "parameters": [5.0, 5.0, 2.466]}, 10_000.0, (0.0980, -6.839)),
    ],
    ids=["lorenz", "henon_map", "linz_sprott", "van_der_pol"],
)
def test_known_exponents_lie_within_four_errors(
    model: Model, given: dict[str, Any], duration: float, known: tuple[float, ...]
) -> None:
    found = spectrum(model, **given, duration=duration, trajectories=4)
    assert found.outcome is Outcome.DONE
    assert errors_away(found, known) < 4.0
    assert (found.errors[np.isnan(found.bounds)] < 0.02).all()
    assert found.exponents.sum() == pytest.approx(found.divergence, abs=1e-10)


def test_a_hamiltonian_system_keeps_pairs_zeros_and_energy() -> None:
    found = spectrum(catalogue.find("henon_heiles"), duration=5000.0, invariant=0.12905)
    assert found.hamiltonian
    assert abs(found.exponents[0] + found.exponents[3]) < 1e-14
    assert abs(found.exponents[1] + found.exponents[2]) < 1e-14
    assert found.exponents[0] > 0.02
    assert np.abs(found.exponents[1:3]).max() < 2e-3
    assert found.drift < 1e-13
    assert found.zeros == 2
    assert found.integrals == 1


def test_a_regular_orbit_is_told_as_regular_and_its_exponents_fall() -> None:
    model = catalogue.find("henon_heiles")
    short, long = (spectrum(model, start=[0.0, 0.1, 0.35, 0.1], duration=length) for length in (1e3, 1e5))
    assert short.regular.all()
    assert long.regular.all()
    assert np.abs(long.exponents).max() < 2.0 * np.log(1e5) / 1e5
    assert np.abs(long.exponents).max() < 0.05 * np.abs(short.exponents).max()


def test_a_symplectic_map_is_found_and_pairs() -> None:
    found = spectrum(KICKED, start=[1.0, 0.3], parameters=[7.0], duration=5000)
    assert found.hamiltonian
    assert found.exponents.sum() == pytest.approx(0.0, abs=1e-13)
    assert found.exponents[0] == pytest.approx(np.log(7.0 / 2.0), abs=0.05)  # Chirikov 1979


def test_conjugate_tangents_can_be_left_out() -> None:
    plain = spectrum(catalogue.find("henon_heiles"), duration=1000.0, symplectic=False)
    assert plain.hamiltonian
    assert 1e-14 < abs(plain.exponents[0] + plain.exponents[3]) < 1e-2


def test_the_first_exponents_alone_have_the_bits_of_all() -> None:
    given: dict[str, Any] = {**LORENZ, "duration": 100.0, "interval": 0.1, "block": 1.0}
    every, first = (spectrum(catalogue.find("lorenz"), **given, exponents=k) for k in (3, 1))
    np.testing.assert_array_equal(first.growth[..., 0], every.growth[..., 0])
    assert np.isnan(first.dimension)


def test_further_trajectories_begin_on_the_orbit_of_the_first() -> None:
    model = catalogue.find("lorenz")
    found = spectrum(model, **LORENZ, duration=20.0, trajectories=3, spacing=0.5)
    path = simulate(model, **LORENZ, times=[0.0, 0.5, 1.0])
    np.testing.assert_allclose(found.starts, path.states, rtol=1e-11)


def test_given_starts_take_the_place_of_points_on_the_orbit() -> None:
    starts = [{"x": 1.0, "y": 1.0, "z": 21.0}, {"x": 2.0, "y": 1.0, "z": 21.0}]
    found = spectrum(catalogue.find("lorenz"), **LORENZ, duration=10.0, starts=starts)
    np.testing.assert_array_equal(found.starts, [[1.0, 1.0, 20.0], [1.0, 1.0, 21.0], [2.0, 1.0, 21.0]])


def test_without_values_the_example_of_the_catalogue_is_taken() -> None:
    model = catalogue.find("rossler")
    found = spectrum(model, duration=20.0)
    np.testing.assert_array_equal(found.starts[0], list(model.examples[0].start.values()))
    np.testing.assert_array_equal(found.parameters[0], list(model.examples[0].parameters.values()))


def test_it_ends_when_the_error_is_reached_and_says_if_it_is_not() -> None:
    model = catalogue.find("lorenz")
    early = spectrum(model, **LORENZ, trajectories=4, duration=20_000.0, error=0.01)
    assert early.outcome is Outcome.DONE
    assert early.duration < 20_000.0
    assert np.nanmax(early.errors) <= 0.01
    late = spectrum(model, **LORENZ, trajectories=4, duration=100.0, error=1e-6)
    assert late.outcome is Outcome.NOT_PRECISE
    assert not late.converged


def test_draws_from_a_fit_have_parameters_and_exponents_of_their_own() -> None:
    model = catalogue.find("lorenz")
    start, values = [5.76540, 10.50547, 30.58941], {"sigma": 10.0, "r": 46.0, "b": 8 / 3}
    times = 0.1 * np.arange(40)
    path = simulate(model, start=start, parameters=values, times=times, noise=Noise(sd=1.0), seed=3)
    assert path.observed is not None
    result = fit(model, path.observed, guess={"sigma": 8.0, "r": 40.0, "b": 2.0})
    found = spectrum(model, fit=result, draws=40, duration=50.0, seed=5)
    assert found.draws is not None
    np.testing.assert_array_equal(found.draws, np.arange(41))
    np.testing.assert_allclose(found.parameters[0], list(result.parameters.values()))
    scatter = found.parameters[1:].std(axis=0) / [result.errors[name] for name in model.parameters]
    assert ((scatter > 0.6) & (scatter < 1.5)).all()
    assert found.draw_exponents is not None
    assert found.draw_exponents.shape == (40, 3)
    rhythm = {"interval": found.interval, "block": found.block, "transient": found.transient}
    given: dict[str, Any] = {"start": found.starts[7], "parameters": found.parameters[7], "seed": 5}
    own = spectrum(model, **given, duration=50.0, **rhythm)
    np.testing.assert_array_equal(own.growth[0], found.growth[7])
    fewer = spectrum(model, fit=result, draws=3, duration=50.0, seed=5)
    np.testing.assert_array_equal(fewer.parameters, found.parameters[:4])
    with pytest.raises(InputError, match="start: is that of the fit"):
        spectrum(model, fit=result, start=start, duration=50.0)


def test_draws_need_a_fit() -> None:
    with pytest.raises(InputError, match="draws need the covariance of a fit"):
        spectrum(catalogue.find("lorenz"), duration=10.0, draws=3)


def test_a_trajectory_that_escapes_is_told_and_the_others_go_on() -> None:
    starts = [[-1.0, 1.0], [1.0, 2.0]]
    found = spectrum(ESCAPING, start=[1.0, 1.0], starts=starts, parameters=[1 / 37.2], duration=100.0)
    assert found.outcome is Outcome.DONE
    assert [failure.lane for failure in found.failures] == [0, 2]
    assert found.failures[0].time == pytest.approx(37.2, rel=1e-6)
    assert "trajectory 0 stopped at t = 37.2" in found.cause
    assert "give another start" in found.cause
    assert np.isfinite(found.exponents).all()
    none = spectrum(ESCAPING, start=[1.0, 1.0], parameters=[1 / 37.2], duration=100.0)
    assert none.outcome is Outcome.NOT_INTEGRABLE
    assert np.isnan(none.exponents).all()


def test_a_section_counts_the_turns() -> None:
    choice = {"surface": "x", "direction": 1, "axes": ("y", "z")}
    found = spectrum(catalogue.find("rossler"), duration=500.0, section=choice)
    assert found.section is not None
    assert len(found.section.points) > 50
    assert (found.section.points[:, 0] < 0.0).all()
    assert found.orbits == pytest.approx(1 / 6.0, rel=0.05)


def test_128_bits_agree_with_64_where_errors_have_not_grown() -> None:
    given: dict[str, Any] = {"duration": 40.0, "transient": 0.0, "block": 4.0, "interval": 2.0}
    model = catalogue.find("henon_heiles")
    double, quad = (spectrum(model, **given, method=method) for method in ("taylor", "taylor128"))
    np.testing.assert_allclose(double.growth, quad.growth, atol=1e-9)
    assert quad.drift < 1e-15
