"""Ensembles: a member's row depends on the member alone, not on its neighbours, its batch or the ranks."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from hpcfit import Noise, fit, simulate
from hpcfit.leastsq.course import Course
from hpcfit.leastsq.strategy import Options
from hpcfit.linear.solvers import SOLVERS, Solver
from hpcfit.models.catalogue import find
from hpcfit.models.define import Model
from hpcfit.models.strings import model_from_strings
from hpcfit.mpi.serial import SERIAL
from hpcfit.records import EnsembleResult, Outcome, Series
from hpcfit.shooting.experiments import Experiment
from hpcfit.shooting.pose import Posed, pose
from hpcfit.studies import ensemble
from hpcfit.studies.ensemble import ensemble_rounds, fit_ensemble
from hpcfit.studies.fit import solve_posed
from hpcfit.studies.result import unknown_values
from tests.conftest import ROOT, Mpirun

HENON_HEILES, LORENZ = find("henon_heiles"), find("lorenz")
CASES: dict[str, dict[str, Any]] = {
    "henon_heiles": {
        "start": [0.0, 0.0, math.sqrt(0.1275), -0.35],
        "parameters": [1.0, 1.0, -1.0],
        "times": 0.2 * np.arange(60),
        "sd": 0.06,
        "guess": {"a": 10.0, "b": 10.0, "c": 2.0},
    },
    "lorenz": {  # long enough for several windows, whose number differs between members
        "start": [5.76540, 10.50547, 30.58941],
        "parameters": [10.0, 46.0, 8 / 3],
        "times": 0.1 * np.arange(150),
        "sd": 1.5,
        "guess": {"sigma": 8.0, "r": 40.0, "b": 3.0},
    },
}
SEED = 5


def exact(name: str) -> Series:
    case = CASES[name]
    path = simulate(find(name), start=case["start"], parameters=case["parameters"], times=case["times"])
    assert path.exact is not None
    return path.exact


def run(name: str, members: Any, **more: Any) -> EnsembleResult:
    case = CASES[name]
    return fit_ensemble(
        find(name),
        exact(name),
        Noise(sd=case["sd"]),
        **({"seed": SEED, "members": members, "guess": case["guess"]} | more),
    )


def assert_same_rows(one: EnsembleResult, other: EnsembleResult) -> None:
    """Bit for bit, for the members that both have."""
    places = [list(other.members).index(member) for member in one.members]
    for name in ("estimates", "errors", "objective", "degrees_of_freedom", "iterations", "linearisations"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name)[places], err_msg=name)
    assert one.outcomes == tuple(other.outcomes[k] for k in places)


@pytest.mark.parametrize("level", ["natural", "T1"])
@pytest.mark.parametrize("name", list(CASES))
def test_members_are_the_single_fits_of_the_same_member(name: str, level: str) -> None:
    case = CASES[name]
    table = run(name, range(1, 7), level=level)
    assert table.names == (*find(name).states, *find(name).parameters)
    for k, member in enumerate(table.members):
        path = simulate(
            find(name),
            start=case["start"],
            parameters=case["parameters"],
            times=case["times"],
            noise=Noise(sd=case["sd"]),
            seed=SEED,
            member=int(member),
        )
        assert path.observed is not None
        single = fit(find(name), path.observed, guess=case["guess"], level=level)
        assert table.outcomes[k] is single.outcome
        np.testing.assert_array_equal(table.estimates[k], single.unknowns.values)
        np.testing.assert_allclose(table.errors[k], single.unknowns.errors, rtol=1e-15)
        assert table.objective[k] == single.objective
        assert (table.iterations[k], table.linearisations[k]) == (single.iterations, single.linearisations)


@pytest.mark.parametrize("name", list(CASES))
def test_rows_do_not_depend_on_order_company_or_batch(name: str) -> None:
    table = run(name, range(1, 10))
    assert len(np.unique(table.estimates[:, 0])) == 9
    assert_same_rows(run(name, [7, 2, 9, 4]), table)
    assert_same_rows(run(name, [3]), table)
    assert_same_rows(run(name, range(1, 10), side_by_side=2), table)


SHORT = {"times": 0.2 * np.arange(30), "sd": 0.02}


@pytest.mark.parametrize("level", ["natural", "T1"])
def test_members_side_by_side_do_not_matter(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Places are used again and again, or every member has one of its own."""
    monkeypatch.setitem(CASES, "henon_heiles", CASES["henon_heiles"] | SHORT)
    members = range(1, 151 if level == "natural" else 21)
    table = run("henon_heiles", members, level=level)
    assert table.converged
    assert table.members.tolist() == list(members)
    assert len(set(table.linearisations.tolist())) > 1
    for side_by_side in (1, 3, 64, 1000):
        assert_same_rows(run("henon_heiles", members, level=level, side_by_side=side_by_side), table)


def test_rounds_bring_every_member_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CASES, "henon_heiles", CASES["henon_heiles"] | SHORT)
    members = [9, 4, 30, *range(100, 140)]
    table = run("henon_heiles", members)
    assert table.members.tolist() == members  # in the order in which they were asked for
    monkeypatch.setattr(ensemble, "ROUND", 10)
    told: list[float] = []
    case = CASES["henon_heiles"]
    rounds = list(
        ensemble_rounds(
            HENON_HEILES,
            exact("henon_heiles"),
            Noise(sd=case["sd"]),
            seed=SEED,
            members=members,
            guess=case["guess"],
            side_by_side=7,
            watch=told.append,
        )
    )
    assert len(rounds) > 3
    assert sorted(place for places, _ in rounds for place in places.tolist()) == list(range(43))
    for places, part in rounds:
        assert part.members.tolist() == [members[place] for place in places]
        assert_same_rows(part, table)
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_another_seed_is_another_ensemble_and_the_truth_is_only_shown() -> None:
    one = run("henon_heiles", range(1, 4))
    other = run("henon_heiles", range(1, 4), seed=SEED + 1)
    assert not np.isin(one.objective, other.objective).any()
    told = run("henon_heiles", range(1, 4), truth={"a": 5.0, "x1": 3.0, "elsewhere": 1.0})
    assert_same_rows(told, one)
    assert (one.truth, told.truth) == ({}, {"a": 5.0, "x1": 3.0})


def test_the_scatter_of_many_members_is_their_stated_error() -> None:
    """Of 200 fits: mean within 4 standard errors of the truth, scatter within 4 sigma / sqrt(2 * 200)."""
    case = CASES["henon_heiles"]
    table = run("henon_heiles", range(1, 201), guess={"a": 1.2, "b": 1.2, "c": -0.7}, fixed={}, weights={})
    assert table.converged
    truth = np.array([*case["start"], *case["parameters"]])
    standardised = (table.estimates - truth) / table.errors
    assert np.abs(standardised[:, :5].mean(axis=0)).max() < 4.0 / math.sqrt(200.0)
    assert np.abs(standardised[:, :5].std(axis=0) - 1.0).max() < 4.0 / math.sqrt(400.0)
    assert table.objective.mean() == pytest.approx(240 - 7, abs=4.0 * math.sqrt(2.0 * 233.0 / 200.0))


# Failures of members


EXPLOSION = model_from_strings("explosion", states=["x"], parameters=["a"], equations={"x": "a*x**2"})
BOUNDED = model_from_strings("bounded", states=["x"], parameters=["k"], equations={"x": "atan(k) - x"})


def small(flow: Model, start: float, parameter: float, end: float) -> Series:
    path = simulate(flow, start=[start], parameters=[parameter], times=np.linspace(0.0, end, 9))
    assert path.exact is not None
    return path.exact


def test_members_whose_path_cannot_be_integrated_are_values_beside_the_others() -> None:
    """Nodes begin at the data: where noise is large enough, x explodes within an interval."""
    clean = small(EXPLOSION, 1.0, 1.0, 0.8)
    more: dict[str, Any] = {"seed": 1, "guess": {"a": 2.2}}
    table = fit_ensemble(EXPLOSION, clean, Noise(sd=1.0), members=range(1, 41), **more)
    bad = np.array([outcome is Outcome.NOT_INTEGRABLE for outcome in table.outcomes])
    assert 0 < bad.sum() < 40
    assert np.isnan(table.errors[bad]).all()
    assert np.isnan(table.objective[bad]).all()
    good = np.array([outcome is Outcome.CONVERGED for outcome in table.outcomes])
    assert np.isfinite(table.errors[good]).all()
    assert not table.converged
    alone = fit_ensemble(EXPLOSION, clean, Noise(sd=1.0), members=table.members[~bad].tolist(), **more)
    assert_same_rows(alone, table)
    only_bad = fit_ensemble(EXPLOSION, clean, Noise(sd=1.0), members=table.members[bad].tolist(), **more)
    assert set(only_bad.outcomes) == {Outcome.NOT_INTEGRABLE}


def test_stalled_and_unfinished_members_are_values() -> None:
    clean = small(BOUNDED, 1.0, 0.2, 3.0)
    more: dict[str, Any] = {"seed": 1, "members": range(1, 5), "phases": "exact"}
    far = fit_ensemble(BOUNDED, clean, Noise(sd=0.01), guess={"k": 1e5}, **more)
    assert far.outcomes == (Outcome.STALLED,) * 4
    assert (far.estimates[:, 1] == 1e5).all()
    short = fit_ensemble(BOUNDED, clean, Noise(sd=0.01), guess={"k": 2.0}, max_iterations=1, **more)
    assert short.outcomes == (Outcome.UNFINISHED,) * 4
    assert fit_ensemble(BOUNDED, clean, Noise(sd=0.01), guess={"k": 2.0}, **more).converged


def solved(posed: Posed, solver: Solver) -> tuple[Course, np.ndarray, np.ndarray]:
    """Course, estimates and covariance factors of all members."""
    found = solve_posed(SERIAL, posed, Options(solver=solver))
    course, freedom = found.course, found.degrees_of_freedom
    return course, *unknown_values(posed, course.z, course.spread, freedom)


@pytest.mark.parametrize("solver", ["dense", "reference"])
@pytest.mark.parametrize("damage", ["outlier", "holes", "constant"])
@pytest.mark.parametrize("name", list(CASES))
def test_one_bad_member_leaves_the_others_bit_for_bit(name: str, damage: str, solver: str) -> None:
    case, clean = CASES[name], exact(name)
    rng = np.random.default_rng(9)
    values = clean.values + case["sd"] * rng.normal(size=(5, *clean.values.shape))
    good = values.copy()
    if damage == "outlier":
        values[2, 17] = 1e4
    elif damage == "holes":
        values[2, :-8] = np.nan
    else:
        values[2] = 0.0
    sigma = np.full(clean.values.shape, case["sd"])

    def rows(table: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[Outcome]]:
        series = Series(clean.names, clean.times, table[0], sigma)
        posed = pose(find(name), [series], guess=case["guess"]).with_values([table])
        course, estimates, factors = solved(posed, SOLVERS[solver])
        return estimates, factors, course.outcomes

    damaged, whole = rows(values), rows(good)
    assert damaged[2][2] is not Outcome.CONVERGED or not np.array_equal(damaged[0][2], whole[0][2])
    for k in (0, 1, 3, 4):
        np.testing.assert_array_equal(damaged[0][k], whole[0][k])
        np.testing.assert_array_equal(damaged[1][k], whole[1][k])
        assert damaged[2][k] is whole[2][k] is Outcome.CONVERGED


def test_bad_members_among_a_thousand_are_reported_and_leave_the_others_bit_for_bit() -> None:
    """Diverging, stalling, endless, and without any data; in any places."""
    times = 0.2 * np.arange(30)
    case = CASES["henon_heiles"]
    clean = simulate(HENON_HEILES, start=case["start"], parameters=case["parameters"], times=times).exact
    assert clean is not None
    rng = np.random.default_rng(4)
    good = clean.values + 0.02 * rng.normal(size=(1000, 30, 4))
    values = good.copy()
    diverging, empty, endless = 7, 500, 999
    stalling = np.array([0, 64, 65, 130, 301, 640, 777, 998])
    values[diverging, 17] = 1e4
    values[empty] = np.nan
    values[endless] = rng.normal(size=(30, 4))
    values[stalling, :-4] = np.nan  # the last four times tell little of what was before
    series = Series(clean.names, times, clean.values, np.full((30, 4), 0.02))
    posed = pose(HENON_HEILES, [series], guess=case["guess"])
    bad = np.union1d(stalling, [diverging, empty, endless])
    rest = np.setdiff1d(np.arange(1000), bad)
    (whole, *damaged), (alone, *expected) = (
        solved(posed.with_values([each]), SOLVERS["dense"]) for each in (values, good[rest])
    )
    assert whole.outcomes[diverging] is Outcome.NOT_INTEGRABLE
    assert whole.outcomes[empty] is Outcome.RANK_DEFICIENT
    assert whole.outcomes[endless] is Outcome.UNFINISHED
    assert Outcome.STALLED in {whole.outcomes[member] for member in stalling}
    assert np.isnan(damaged[1][diverging]).all()
    assert [whole.outcomes[member] for member in rest] == [Outcome.CONVERGED] * len(rest) == alone.outcomes
    for mine, theirs in zip(damaged, expected, strict=True):
        np.testing.assert_array_equal(mine[rest], theirs)
    np.testing.assert_array_equal(whole.z.nodes[rest], alone.z.nodes)
    np.testing.assert_array_equal(whole.spread.objective[rest], alone.spread.objective)
    np.testing.assert_array_equal(whole.iterations[rest], alone.iterations)
    np.testing.assert_array_equal(whole.linearisations[rest], alone.linearisations)


@pytest.mark.parametrize(("name", "rounding"), [("henon_heiles", 1e-12), ("lorenz", 1e-11)])
def test_machine_code_and_numpy_end_at_the_same_estimates_and_errors(name: str, rounding: float) -> None:
    """The same steps in other arithmetic: what is left is rounding, though the tolerance is 1e-10.

    Lorenz has five windows, with growth times condition of 5e4 (tests/linear/test_compiled.py), by which
    rounding errors are multiplied: to the floor of rounding (tolerance 1e-300) the differences are the same.
    """
    case, clean = CASES[name], exact(name)
    rng = np.random.default_rng(10)
    values = clean.values + case["sd"] * rng.normal(size=(20, *clean.values.shape))
    series = Series(clean.names, clean.times, clean.values, np.full(clean.values.shape, case["sd"]))
    posed = pose(find(name), [series], guess=case["guess"]).with_values([values])
    (one, *dense), (other, *reference) = (solved(posed, SOLVERS[each]) for each in ("dense", "reference"))
    assert one.outcomes == other.outcomes == [Outcome.CONVERGED] * 20
    np.testing.assert_array_equal(one.iterations, other.iterations)
    np.testing.assert_array_equal(one.linearisations, other.linearisations)
    errors, theirs = (np.sqrt((factors**2).sum(axis=2)) for factors in (dense[1], reference[1]))
    size = np.maximum(np.abs(reference[0]), theirs)
    assert (np.abs(dense[0] - reference[0]) / size).max() < rounding
    assert np.abs(errors / theirs - 1.0).max() < 1e-12
    assert np.abs(one.spread.objective / other.spread.objective - 1.0).max() < 1e-12


# Ranks


ON_RANKS = """
import json
from hpcfit.mpi.world import world
from tests.studies.test_ensemble import on_ranks
comm = world()
told = comm.allgather(on_ranks(comm))
assert all(each == told[0] for each in told), "ranks disagree"
if comm.rank == 0:
    print(json.dumps([comm.size, told[0]]))
"""


def on_ranks(comm: Any) -> dict[str, list[str]]:
    """Numbers to the last bit, as text: an ensemble, a long fit, and a fit with a single interval."""
    table = run("lorenz", range(1, 8), comm=comm)
    few = run("henon_heiles", [3], comm=comm)  # fewer members than ranks
    narrow = run("henon_heiles", range(1, 30), comm=comm, side_by_side=2)  # every rank many times
    case = CASES["lorenz"]
    clean = exact("lorenz")
    noisy = clean.values + np.random.default_rng(1).normal(size=clean.values.shape)
    experiment = Experiment(clean.times, dict(zip(clean.names, noisy.T, strict=True)), 1.0)
    long = fit(LORENZ, experiment, guess=case["guess"], comm=comm)
    parts = small(BOUNDED, 1.0, 0.2, 3.0)
    wiggle = parts.values[:, 0] + 0.01 * np.cos(40.0 * parts.times)
    single = fit(
        BOUNDED, Experiment(parts.times, {"x": wiggle}, 0.01), guess={"k": 0.5}, nodes=[0.0, 3.0], comm=comm
    )
    assert len(single.node_times) == 2
    found = {}
    for name, each in (("table", table), ("few", few), ("narrow", narrow)):
        found[name] = [
            number.hex() for number in np.column_stack([each.estimates, each.errors]).ravel().tolist()
        ]
        found[name] += [outcome.name for outcome in each.outcomes]
    for name, result in (("long", long), ("single", single)):
        numbers = [*result.unknowns.values, *result.unknowns.errors, *result.nodes.ravel(), result.objective]
        found[name] = [float(number).hex() for number in numbers] + [result.outcome.name]
    return found


@pytest.fixture(scope="module")
def serial() -> dict[str, list[str]]:
    found = on_ranks(SERIAL)
    assert all(each[-1] == "CONVERGED" for each in found.values())
    return found


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_any_number_of_ranks_gives_the_serial_numbers(
    ranks: int, mpirun: Mpirun, serial: dict[str, list[str]]
) -> None:
    """Ensembles, one distributed fit, and one with fewer intervals than ranks: bit for bit."""
    done = mpirun(ranks, "-c", ON_RANKS, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [ranks, serial]
