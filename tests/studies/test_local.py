"""Parameters that every experiment has for itself, against independent routes to the same numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import least_squares

from hpcfit import Experiment, fit, model, simulate
from hpcfit.files.results import Saved, load, save
from hpcfit.models import catalogue
from hpcfit.records import FitResult, InputError, Noise, Outcome, Series
from hpcfit.reporting import tables
from hpcfit.studies.ensemble import fit_ensemble

LORENZ = catalogue.find("lorenz", None)
GUESS = {"sigma": 7.0, "r": 22.0, "b": 2.0}
R = (28.0, 30.0, 26.0)


def recorded(e: int, noise: Noise | None = None, observe: tuple[str, ...] | None = None) -> Series:
    path = simulate(
        LORENZ,
        start={"x": 1.0 + e, "y": 2.0, "z": 20.0},
        parameters={"sigma": 10.0, "r": R[e], "b": 8 / 3},
        times=(0.1 - 0.01 * e) * np.arange(30 + 5 * e),
        observe=observe,
        noise=noise or Noise(sd=0.3),
        seed=5,
        experiment=e,
    )
    assert path.observed is not None
    return path.observed


@pytest.fixture(scope="module")
def data() -> list[Series]:
    return [recorded(e) for e in range(3)]


@pytest.fixture(scope="module")
def result(data: list[Series]) -> FitResult:
    return fit(LORENZ, data, guess=GUESS, local=("r",), derived={"rate": "r*b"})


def test_with_all_parameters_local_experiments_are_fitted_as_if_alone(data: list[Series]) -> None:
    together = fit(LORENZ, data, guess=GUESS, local=("sigma", "r", "b"))
    assert together.converged
    for e, series in enumerate(data):
        alone = fit(LORENZ, series, guess=GUESS)
        factor = np.sqrt(together.beta2 / alone.beta2)
        for name, value in alone.parameters.items():
            assert together.parameters[f"{name}@{e + 1}"] == pytest.approx(value, rel=1e-9)
            own = together.errors[f"{name}@{e + 1}"]
            assert own == pytest.approx(factor * alone.errors[name], rel=1e-7)
        for name, value in alone.initial_states.items():
            assert together.initial_states[name if e == 0 else f"{name}@{e + 1}"] == pytest.approx(
                value, rel=1e-9
            )


@model(states="x y", parameters="k s")
def decay(t, u, p):
    """x -> y -> nothing, at the rates k and s."""
    return -p.k * u.x, p.k * u.x - p.s * u.y


def bateman(times: np.ndarray, x: float, y: float, k: float, s: float) -> np.ndarray:
    first, second = np.exp(-k * times), np.exp(-s * times)
    return np.stack([x * first, y * second + x * k / (s - k) * (first - second)], axis=1)


def test_shared_and_local_rates_against_scipy_on_the_solution_in_closed_form() -> None:
    rng = np.random.default_rng(3)
    rates, grids = (0.8, 1.1, 1.7), [np.linspace(0.0, 3.0 + e, 12 + e) for e in range(3)]
    sizes = (0.02, 0.01, 0.03)
    values = [
        bateman(t, 1.0, 0.2 * e, k, 0.4) + sd * rng.standard_normal((len(t), 2))
        for e, (t, k, sd) in enumerate(zip(grids, rates, sizes, strict=True))
    ]
    experiments = [
        Experiment(t, {"x": v[:, 0], "y": v[:, 1]} if e != 1 else {"y": v[:, 1]}, sigma=sd)
        for e, (t, v, sd) in enumerate(zip(grids, values, sizes, strict=True))
    ]
    found = fit(decay, experiments, guess={"k": 1.0, "s": 0.5}, local=["k"])

    def residuals(z: np.ndarray) -> np.ndarray:
        parts = []
        for e, (t, v, sd) in enumerate(zip(grids, values, sizes, strict=True)):
            apart = (bateman(t, *z[2 * e : 2 * e + 2], z[7 + e], z[6]) - v) / sd
            parts.append(apart[:, 1] if e == 1 else apart.ravel())
        return np.concatenate(parts)

    start = [1.0, 0.0, 1.0, 0.2, 1.0, 0.4, 0.4, *rates]
    peer = least_squares(residuals, start, method="lm", xtol=1e-15, ftol=1e-15, gtol=1e-15)
    covariance = np.linalg.inv(peer.jac.T @ peer.jac) * 2.0 * peer.cost / (len(peer.fun) - 10)
    assert found.converged
    assert found.unknowns.names == ("x", "y", "x@2", "y@2", "x@3", "y@3", "s", "k@1", "k@2", "k@3")
    assert found.degrees_of_freedom == len(peer.fun) - 10
    np.testing.assert_allclose(found.unknowns.values, peer.x, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.unknowns.errors, np.sqrt(np.diag(covariance)), rtol=1e-4)


def test_local_parameters_are_parameters_in_all_that_is_told(result: FitResult) -> None:
    assert result.converged
    assert result.state_names == ("x", "y", "z")
    assert result.parameter_names == ("sigma", "b", "r@1", "r@2", "r@3")
    assert list(result.parameters) == list(result.parameter_names)
    assert len(result.initial_states) == 9
    assert result.nodes.shape == result.node_errors.shape == (105, 3)
    assert result.initial.states.shape[2] == result.final.states.shape[2] == 3
    assert result.covariance.shape == (5, 5)
    for e, r in enumerate(R):
        assert abs(result.parameters[f"r@{e + 1}"] - r) < 4.0 * result.errors[f"r@{e + 1}"]
        assert result.guess[f"r@{e + 1}"] == 22.0
    rate = result.parameters["r@1"] * result.parameters["b"]
    assert result.derived.by_name()["rate"] == pytest.approx(rate, rel=1e-12)


def test_a_local_parameter_does_not_make_a_fit_one_of_hidden_states(result: FitResult) -> None:
    assert {each.phase for each in result.history} == {"presolve", "exact"}


def test_rough_guesses_of_local_parameters_are_enough(data: list[Series]) -> None:
    far = fit(LORENZ, data, guess={"sigma": 15.0, "r": 14.0, "b": 4.0}, local=("r",))
    assert far.converged
    assert far.parameters == pytest.approx(fit(LORENZ, data, guess=GUESS, local=("r",)).parameters, rel=1e-8)


def test_a_local_parameter_of_one_experiment_is_the_parameter(data: list[Series]) -> None:
    local, plain = (fit(LORENZ, data[0], guess=GUESS, local=own) for own in (("r",), ()))
    assert local.parameters["r@1"] == pytest.approx(plain.parameters["r"], rel=1e-9)
    assert local.errors["r@1"] == pytest.approx(plain.errors["r"], rel=1e-7)


def test_files_and_pages_show_them(result: FitResult, tmp_path: Path) -> None:
    save(tmp_path / "r.h5", Saved(result, "fit", "kind = 'fit'\n", "hash", {}))
    back = load(tmp_path / "r.h5").record
    assert isinstance(back, FitResult)
    assert back.parameter_names == result.parameter_names
    assert back.unknowns.names == result.unknowns.names
    page = tables.as_json(back, {})
    assert list(page["parameters"]) == ["sigma", "b", "r@1", "r@2", "r@3"]  # type: ignore[call-overload]
    assert list(page["initial_states"])[:4] == ["x", "y", "z", "x@2"]  # type: ignore[call-overload]
    text = tables.as_text(back, {}, unicode=True)
    assert text.index("r@3") < text.index("initial state") < text.index("x@2")


def test_a_map_and_an_opaque_model_have_local_parameters_too() -> None:
    henon = catalogue.find("henon_map", None)

    @model(states="x y", parameters="a b", kind="map", opaque=True)
    def opaque(t, u, p):
        return 1.0 - p.a * u.x**2 + u.y, p.b * u.x

    experiments = [
        simulate(
            henon,
            start={"x": 0.1 * e, "y": 0.1},
            parameters={"a": a, "b": 0.3},
            times=np.arange(25),
            noise=Noise(sd=0.001),
            experiment=e,
        ).observed
        for e, a in enumerate((1.4, 1.3))
    ]
    guess = {"a": 1.2, "b": 0.2}
    traced, called = (fit(m, experiments, guess=guess, local="a") for m in (henon, opaque))  # type: ignore[arg-type]
    assert traced.converged
    assert abs(traced.parameters["a@2"] - 1.3) < 5.0 * traced.errors["a@2"]
    assert called.parameters == pytest.approx(traced.parameters, rel=1e-6)


def test_what_an_experiment_does_not_determine_is_named() -> None:
    @model(states="x", parameters="a b")
    def product(t, u, p):
        return -p.a * p.b * u.x

    t = np.linspace(0.0, 1.0, 9)
    experiments = [Experiment(t, {"x": np.exp(-k * t)}, sigma=0.01) for k in (1.0, 2.0)]
    found = fit(product, experiments, guess={"a": 1.0, "b": 1.0}, local=("a",))
    assert found.outcome is Outcome.RANK_DEFICIENT
    assert "a@1" in found.cause
    assert "a@2" in found.cause


def test_an_ensemble_of_many_experiments_gives_what_its_member_gives_alone(data: list[Series]) -> None:
    noise, members = [Noise(sd=0.3), Noise(sd=0.2), Noise(sd={"x": 0.3, "z": 0.1})], range(1, 5)
    observe = (None, None, ("x", "z"))
    exact = []
    for e in range(3):
        series = recorded(e, noise[e], observe[e])
        truth = simulate(
            LORENZ,
            start={"x": 1.0 + e, "y": 2.0, "z": 20.0},
            parameters={"sigma": 10.0, "r": R[e], "b": 8 / 3},
            times=series.times,
            observe=observe[e],
        )
        assert truth.exact is not None
        exact.append(truth.exact)
    table = fit_ensemble(LORENZ, exact, noise, seed=5, members=members, guess=GUESS, local=("r",))
    assert table.converged
    assert table.parameter_names == ("sigma", "b", "r@1", "r@2", "r@3")
    first = [recorded(e, noise[e], observe[e]) for e in range(3)]  # member 0
    assert not np.array_equal(first[0].values[:10], first[1].values[:10])
    alone = fit(LORENZ, [_noisy(exact[e], noise[e], 3, e) for e in range(3)], guess=GUESS, local=("r",))
    row = dict(zip(table.names, table.estimates[2], strict=True))
    for name, value in (alone.parameters | alone.initial_states).items():
        assert row[name] == pytest.approx(value, rel=1e-9)


def _noisy(exact: Series, noise: Noise, member: int, experiment: int) -> Series:
    from hpcfit.ensemble.noise import add_noise

    numbers = [LORENZ.quantities.index(name) for name in exact.names]
    values, sigma = add_noise(exact.values, exact.names, numbers, noise, 5, member, experiment)
    return Series(exact.names, exact.times, values, sigma)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"local": ("rr",)}, "fit.local = \\[\"rr\"\\]: lorenz has no parameter 'rr'; did you mean 'r'"),
        (
            {"local": ("b",), "fixed": {"b": 2.6}, "guess": {"sigma": 9.0, "r": 20.0}},
            "the parameter b is fixed",
        ),
        ({"local": ("r",), "start": {"r": 3.0}}, "nodes.r = 3.0: is a local parameter; give guess.r"),
        ({"local": ("r",), "guess": {"sigma": 9.0, "b": 2.0}}, "r has neither a guess nor a fixed value"),
    ],
)
def test_local_parameters_that_cannot_be_are_refused(
    data: list[Series], change: dict[str, object], message: str
) -> None:
    asked: dict[str, object] = {"guess": GUESS} | change
    with pytest.raises(InputError, match=message):
        fit(LORENZ, data, **asked)  # type: ignore[arg-type]


def test_a_mistake_of_one_of_many_experiments_says_which(data: list[Series]) -> None:
    short = Series(("x",), np.array([0.0]), np.array([[1.0]]))
    with pytest.raises(InputError, match="experiment 3: data: only one time"):
        fit(LORENZ, [*data[:2], short], guess=GUESS)
