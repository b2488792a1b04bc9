"""Coverage, chi-square and worst members of ensembles against scipy.stats and against what can be counted."""

from __future__ import annotations

import shlex
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from hpcfit.records import EnsembleResult, Outcome
from hpcfit.reporting.ensembles import chi_square, coverage, summary
from hpcfit.reporting.ensembles.members import ended, good
from hpcfit.reporting.ensembles.worst import rerun, worst
from tests.reporting.fit_material import ENSEMBLES, ensemble


def normal(n_members: int, freedom: int, *, size: float = 1.0, seed: int = 5) -> EnsembleResult:
    """One parameter whose errors come from the objectives, as those of fits do."""
    rng = np.random.default_rng(seed)
    objective = size**2 * rng.chisquare(freedom, n_members)
    return ensemble(
        n_members,
        failed=0,
        names=("p",),
        parameter_names=("p",),
        truth={"p": 3.0},
        estimates=3.0 + 0.2 * size * rng.standard_normal((n_members, 1)),
        errors=0.2 * np.sqrt(objective / freedom)[:, None],
        objective=objective,
        degrees_of_freedom=np.full(n_members, freedom),
    )


@pytest.mark.parametrize("count", [1, 2, 7, 100, 995, 13_198, 1_000_000])
@pytest.mark.parametrize("level", coverage.LEVELS)
def test_binomial_bands_are_exact(count: int, level: float) -> None:
    low, high = coverage.binomial_band(count, level)
    assert (low, high) == tuple(stats.binom.ppf([0.0005, 0.9995], count, level))
    inside = stats.binom.cdf(high, count, level) - stats.binom.cdf(low - 1, count, level)
    assert inside >= 0.999  # and no smaller band would do:
    assert stats.binom.cdf(low, count, level) >= 0.0005 > stats.binom.cdf(low - 1, count, level)
    assert stats.binom.sf(high, count, level) <= 0.0005 < stats.binom.sf(high - 1, count, level)


def test_student_quantiles_belong_to_the_freedom_of_each_member() -> None:
    found = coverage.student_quantiles(np.array([3, 100, 3, 0]))
    expected = stats.t.ppf(0.5 + 0.5 * np.array(coverage.LEVELS)[:, None], [3, 100, 3])
    np.testing.assert_allclose(found[:, :3], expected)
    assert np.isnan(found[:, 3]).all()


@pytest.mark.parametrize("freedom", [3, 93])
def test_correct_intervals_are_inside_their_bands_and_small_ones_outside(freedom: int) -> None:
    """With 3 degrees of freedom normal quantiles instead of Student's would fail."""
    right = normal(20_000, freedom)
    (row,) = summary.rows(right)
    assert [each.level for each in row.coverages] == [0.5, 0.9, 0.95, 0.99]
    assert not any(each.outside for each in row.coverages)
    assert abs(row.bias) < 4.0
    assert abs(row.ratio - 1.0) < 4.0 * row.chance
    assert row.chance == pytest.approx(0.005, rel=1e-3)
    (narrow,) = summary.rows(ensemble(20_000, failed=0, **_changed(right, errors=0.9 * right.errors)))
    assert all(each.outside for each in narrow.coverages)
    assert narrow.ratio > 1.0 + 10.0 * narrow.chance


def _changed(whole: EnsembleResult, **changes: object) -> dict[str, object]:
    names = ("names", "parameter_names", "truth", "estimates", "errors", "objective", "degrees_of_freedom")
    return {name: getattr(whole, name) for name in names} | changes


def test_members_without_an_interval_are_not_counted() -> None:
    deviations = np.array([0.0, np.nan, np.inf, 1.0])
    quantiles = np.tile([[0.5], [1.5], [2.0], [2.5]], 4)
    quantiles[:, 3] = np.nan
    found = coverage.coverages(deviations, quantiles)
    assert [(each.members, each.holding) for each in found] == [(2, 1)] * 4
    assert coverage.coverages(np.full(4, np.nan), quantiles) == ()


@pytest.mark.parametrize(("count", "tolerance"), [(1, 0.16), (5, 0.025), (30, 0.02), (1_000, 0.005)])
def test_distance_from_uniform_is_that_of_kolmogorov_and_smirnov(count: int, tolerance: float) -> None:
    for power in (1.0, 1.3):
        values = np.random.default_rng(count).random(count) ** power
        expected = stats.kstest(values, "uniform")
        found = chi_square.uniform_distance(values)
        assert found == pytest.approx(expected.statistic, rel=1e-12)
        assert chi_square.distance_probability(found, count) == pytest.approx(expected.pvalue, abs=tolerance)


@pytest.mark.parametrize("count", [1, 10, 100, 1_000])
def test_uniform_numbers_leave_the_band_once_in_a_thousand(count: int) -> None:
    beyond = stats.kstwo.sf(chi_square.distance_band(count), count)
    assert beyond <= 0.00105
    assert count < 10 or beyond > 0.0008


def test_chi_square_objectives_pass_and_smaller_ones_do_not() -> None:
    right = chi_square.chi_square_test(normal(5_000, 93))
    assert right.members == 5_000
    assert right.chance == pytest.approx(np.sqrt(2.0 / (93 * 5_000)))
    assert abs(right.beta2 - 1.0) < 4.0 * right.chance
    assert right.probability > 0.001
    assert right.implausible == 0
    cut_off = chi_square.chi_square_test(normal(5_000, 93, size=0.9866))
    assert cut_off.beta2 == pytest.approx(0.9866**2, abs=4.0 * right.chance)
    assert cut_off.probability < 1e-6


def test_degrees_of_freedom_may_differ_between_members() -> None:
    rng = np.random.default_rng(8)
    freedom = rng.integers(1, 200, 3_000)
    mixed = ensemble(3_000, failed=0, degrees_of_freedom=freedom, objective=rng.chisquare(freedom))
    test = chi_square.chi_square_test(mixed)
    assert test.probability > 0.001
    assert test.chance == pytest.approx(np.sqrt((2.0 / freedom).sum()) / 3_000)


def test_suspicious_members_are_counted_apart() -> None:
    shown = ensemble(100, failed=5)
    shown.objective[[0, 7, 9]] = 1e4  # the first of them did not converge
    shown.objective[11] = stats.chi2.isf(2e-6, 93)
    test = chi_square.chi_square_test(shown)
    assert (test.members, test.implausible) == (95, 2)
    ends = summary.successes(shown, test)
    assert ends[0] == ("converged", 95)
    assert ends[1][1] == 2
    assert "1e-6" in ends[1][0]
    assert ends[2] == ("no descent at the smallest step", 5)


@pytest.mark.parametrize("name", ENSEMBLES)
def test_awkward_ensembles_have_statistics(name: str) -> None:
    shown = ENSEMBLES[name]
    test = chi_square.chi_square_test(shown)
    assert test.members <= good(shown).sum()
    assert np.isnan(test.probability) == (test.members == 0)
    assert len(summary.rows(shown)) == 3
    assert len(worst(shown)) <= 10


def test_unknown_sigma_makes_all_members_suspicious_but_keeps_the_intervals() -> None:
    shown = ENSEMBLES["sigma not known"]
    assert chi_square.chi_square_test(shown).implausible == 195
    assert all(row.coverage95 > 0.88 for row in summary.rows(shown))


def test_worst_members_are_the_failed_ones_and_the_farthest() -> None:
    shown = ensemble(300, failed=3)
    shown.estimates[40, 1] = 0.1 - 0.02 * 9.0  # p0, below the truth
    shown.estimates[41, 2] = -2.0 + 0.3 * 8.0
    shown.estimates[42, 0] = 1.0 + 0.1 * 50.0  # an initial state: parameters count
    found = worst(shown)
    assert len(found) == 10
    assert [each.member for each in found[:5]] == [0, 1, 2, 40, 41]
    assert [each.outcome for each in found[:3]] == [Outcome.STALLED] * 3
    assert (found[3].name, found[4].name) == ("p0", "p1")
    assert found[3].value == pytest.approx(-9.0)
    assert found[4].value == pytest.approx(8.0)
    sizes = [abs(each.value) for each in found[3:]]
    assert sizes == sorted(sizes, reverse=True)
    deviations = (shown.estimates[3:, 1:] - [0.1, -2.0]) / shown.errors[3:, 1:]
    assert sizes[::-1] == pytest.approx(np.sort(np.abs(deviations).max(axis=1))[-7:])


def test_every_reason_has_its_place() -> None:
    reasons = (Outcome.STALLED,) * 50 + (Outcome.NOT_INTEGRABLE,) * 2 + (Outcome.CONVERGED,) * 48
    shown = ensemble(100, failed=52, outcomes=reasons, members=np.arange(1000, 1100))
    found = worst(shown)
    assert [each.member for each in found[:5]] == [1050, 1051, 1000, 1001, 1002]
    assert all(each.outcome is Outcome.CONVERGED for each in found[5:])
    alone = worst(ensemble(100, failed=100, outcomes=reasons[:52] + (Outcome.STALLED,) * 48))
    assert len(alone) == 10
    assert ended(shown, Outcome.NOT_INTEGRABLE).sum() == 2


def test_without_a_truth_the_least_probable_are_the_worst() -> None:
    shown = ensemble(100, failed=0, truth={})
    shown.objective[[5, 6, 7]] = 1e5, 250.0, 2e5  # the probabilities of two are 0
    found = worst(shown)
    assert [each.member for each in found[:3]] == [7, 5, 6]
    assert found[2].value == pytest.approx(stats.chi2.sf(250.0, 93))


def test_the_command_that_runs_a_member_again_survives_the_shell() -> None:
    provenance = {"job_file": "my jobs/s18.toml", "overrides": ["model.name='a b'", "fit.nodes=data"]}
    command = rerun(provenance, 4711)
    assert shlex.split(command) == [
        *("hpcfit", "run", "my jobs/s18.toml"),
        *("--set", "model.name='a b'", "--set", "fit.nodes=data", "--member", "4711"),
    ]
    assert rerun({"job_file": "s18.toml", "overrides": []}, 4711) == "hpcfit run s18.toml --member 4711"
    assert rerun({}, 1) == "hpcfit run JOB.toml --member 1"


def test_scipy_is_loaded_only_when_it_is_asked() -> None:
    code = "import sys, hpcfit.reporting.tables; assert 'scipy.special' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
