"""The active-set method against independent ones: non-negative least squares, linear programming, SLSQP."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog, minimize, nnls

from hpcfit.linear.active_set import DEPENDENT, Rows, Solution, solve

CASES = 50
Problem = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # s, b, G, g, exact


def random_problem(seed: int) -> Problem:
    """A feasible one; every fourth with conditions twice or as sums of others, some that just touch."""
    rng = np.random.default_rng(seed)
    f = int(rng.integers(1, 9))
    equal, less = int(rng.integers(0, (f + 1) // 2 + 1)), int(rng.integers(1, 12))
    s, b = np.sort(rng.uniform(0.05, 10.0, f))[::-1], 5.0 * rng.normal(size=f)
    normals, inside = rng.normal(size=(equal + less, f)), rng.normal(size=f)
    normals *= 10.0 ** rng.uniform(-2, 2, size=(equal + less, 1))
    g = -normals @ inside
    g[equal:] += rng.uniform(0.0, 1.0, less) * (rng.random(less) < 0.7)
    exact = np.arange(equal + less) < equal
    if seed % 4 == 0 and less > 3:
        normals[-1], g[-1] = 2.0 * normals[0], 2.0 * g[0]
        normals[-2], g[-2] = normals[-3] + normals[-4], g[-3] + g[-4]
    return s, b, normals, g, exact


def solved(problem: Problem, likely: np.ndarray | None = None) -> Solution:
    s, b, normals, g, exact = problem
    return solve(Rows.of(s), b, normals, g, exact, np.zeros_like(exact) if likely is None else likely)


def by_nnls(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """y and multipliers by least distance (Lawson and Hanson 1974, ch. 23); an equality is two bounds."""
    s, b, normals, g, exact = problem
    whole, right = np.concatenate([normals, -normals[exact]]), np.concatenate([g, -g[exact]])
    sizes = np.linalg.norm(whole / s, axis=1)
    by_distance = whole / s / sizes[:, None]
    least = (whole @ (b / s) - right) / sizes
    table = np.concatenate([by_distance.T, least[None]])
    u, _ = nnls(table, np.eye(len(s) + 1)[-1], maxiter=10_000)
    rest = table @ u
    rest[-1] -= 1.0
    distance, pulls = -rest[:-1] / rest[-1], -u / rest[-1] / sizes
    multipliers = pulls[: len(g)].copy()
    multipliers[exact] -= pulls[len(g) :]
    return (distance - b) / s, multipliers


@pytest.mark.parametrize("seed", range(1, CASES + 1))
def test_optimum_and_multipliers_are_those_of_another_method(seed: int) -> None:
    problem = random_problem(seed)
    s, b, normals, g, exact = problem
    found = solved(problem)
    y, multipliers = by_nnls(problem)
    scale = np.abs(y).max() + 1.0
    assert not found.conflict
    np.testing.assert_allclose(found.y, y, atol=1e-8 * scale)
    pull = np.abs(s * (s * y + b)).max() + 1.0
    pulling = found.active | (multipliers != 0.0)
    if pulling.any() and np.linalg.matrix_rank(normals[pulling]) == pulling.sum():  # else they are not unique
        largest = np.abs(multipliers).max(initial=1.0)
        np.testing.assert_allclose(found.multipliers, multipliers, atol=1e-6 * largest)
    np.testing.assert_allclose(normals.T @ found.multipliers, s * (s * found.y + b), atol=1e-9 * pull)
    assert (found.multipliers[~exact] >= 0.0).all()
    left = (normals @ found.y + g) / np.linalg.norm(normals, axis=1)
    assert (left[~exact] > -1e-10 * scale).all()
    assert (np.abs(left[exact]) < 1e-10 * scale).all()
    assert (np.abs(left[found.active]) < 1e-10 * scale).all()


@pytest.mark.parametrize("seed", range(1, 11))
def test_slsqp_agrees(seed: int) -> None:
    problem = random_problem(seed)
    s, b, normals, g, exact = problem
    sizes = np.linalg.norm(normals, axis=1)
    kinds = [
        {"type": "eq" if e else "ineq", "fun": lambda y, k=k: (normals[k] @ y + g[k]) / sizes[k]}
        for k, e in enumerate(exact)
    ]
    _, keep = np.unique(np.round(normals / sizes[:, None], 9), axis=0, return_index=True)
    other = minimize(
        lambda y: 0.5 * ((s * y + b) ** 2).sum(),
        np.zeros(len(s)),
        jac=lambda y: s * (s * y + b),
        constraints=[kinds[k] for k in sorted(keep)],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    own = solved(problem).y
    assert 0.5 * ((s * own + b) ** 2).sum() == pytest.approx(other.fun, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("seed", range(1, CASES + 1))
def test_the_face_where_the_search_begins_does_not_matter(seed: int) -> None:
    problem = random_problem(seed)
    rng = np.random.default_rng(seed)
    cold = solved(problem)
    for part in (0.2, 0.5, 1.0):
        warm = solved(problem, rng.random(len(problem[3])) < part)
        np.testing.assert_allclose(warm.y, cold.y, atol=1e-9 * (np.abs(cold.y).max() + 1.0))
    again = solved(problem, cold.active)
    assert (
        set(again.held) == set(cold.held)
        or np.linalg.matrix_rank(problem[2][cold.active]) < cold.active.sum()
    )


@pytest.mark.parametrize("seed", range(1, 31))
def test_contradictory_conditions_are_named_and_violated_as_little_as_possible(seed: int) -> None:
    s, b, normals, g, exact = random_problem(seed)
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 1.5, 2)
    ones = np.flatnonzero(~exact)[:2] if seed % 2 and np.count_nonzero(~exact) > 1 else np.array([0])
    turned = -(weights[: len(ones), None] * normals[ones]).sum(axis=0)
    shifted = -(weights[: len(ones)] * g[ones]).sum() - np.linalg.norm(turned)
    normals, g = np.concatenate([normals, turned[None]]), np.append(g, shifted)
    exact = np.append(exact, False)
    found = solve(Rows.of(s), b, normals, g, exact, np.zeros_like(exact))
    named = list(found.conflict)
    assert len(g) - 1 in named
    for some, feasible in ((named, False), (named[1:], True), (named[:-1], True)):
        equal = exact[some]
        answer = linprog(
            np.zeros(len(s)),
            A_ub=-normals[some][~equal],
            b_ub=g[some][~equal],
            A_eq=normals[some][equal],
            b_eq=-g[some][equal],
            bounds=(None, None),
        )
        assert (answer.status == 0) == feasible
    sizes = np.linalg.norm(normals, axis=1)

    def misses(y: np.ndarray) -> float:
        left = (normals @ y + g) / sizes
        return float((np.where(exact, left, np.minimum(left, 0.0)) ** 2).sum())

    def slope(y: np.ndarray) -> np.ndarray:
        left = (normals @ y + g) / sizes
        return 2.0 * (np.where(exact, left, np.minimum(left, 0.0)) / sizes) @ normals

    least = minimize(misses, found.y, jac=slope, method="BFGS", options={"gtol": 1e-10})
    assert misses(found.y) <= least.fun * (1.0 + 1e-5) + 1e-12


def test_dependent_exact_conditions_are_held_once() -> None:
    normals, g = (
        np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 1.0], [0.0, 3.0]]),
        np.array([-1.0, -2.0, -3.0, -6.0]),
    )
    found = solve(Rows.of(np.ones(2)), np.zeros(2), normals, g, np.ones(4, bool), np.zeros(4, bool))
    np.testing.assert_allclose(found.y, [1.0, 2.0], rtol=1e-14)
    assert (found.held, found.conflict, found.rank) == ((0, 2), (), 2)


def test_what_the_rows_do_not_see_conditions_may_determine() -> None:
    rows = Rows.of(np.array([2.0, 0.0]))
    one = np.array([[1.0, 1.0]])
    free = solve(rows, np.array([4.0, 9.0]), one, np.array([0.0]), np.array([False]), np.array([False]))
    np.testing.assert_allclose(free.y, [-2.0, 2.0], rtol=1e-5)  # the least step that meets it
    bound = solve(rows, np.array([4.0, 9.0]), one, np.array([-1.0]), np.array([True]), np.array([False]))
    np.testing.assert_allclose(bound.y, [-2.0, 3.0], rtol=1e-5)
    assert (bound.rank, bound.unseen.shape[1]) == (2, 0)
    np.testing.assert_allclose(np.abs(bound.factor[:, 0]), [0.5, 0.5], rtol=1e-12)
    alone = solve(rows, np.array([4.0, 9.0]), one[:0], np.zeros(0), np.zeros(0, bool), np.zeros(0, bool))
    np.testing.assert_allclose(alone.y, [-2.0, 0.0], rtol=1e-12)
    assert (alone.rank, alone.unseen.shape[1]) == (1, 1)


def test_a_normal_that_is_zero_but_for_rounding_is_implied_or_contradicts_itself() -> None:
    rows, tiny = Rows.of(np.ones(2)), np.array([[0.1 * DEPENDENT, 0.0]])
    for value, named in ((1e-12, ()), (1e-3, (0,))):
        given = (np.zeros(2), tiny, np.array([value]), np.array([True]), np.array([False]))
        found = solve(rows, *given, summed=np.array([1.0]))
        assert found.conflict == named
        np.testing.assert_allclose(found.y, 0.0, atol=1e-12)


def test_errors_of_multipliers_are_their_scatter_over_noise() -> None:
    s, _, normals, _, _ = random_problem(3)
    rng, exact = np.random.default_rng(1), np.ones(2, bool)
    normals = normals[:2]
    found = [
        solve(Rows.of(s), rng.normal(size=len(s)), normals, np.zeros(2), exact, exact) for _ in range(4000)
    ]
    scatter = np.std([each.multipliers for each in found], axis=0)
    np.testing.assert_allclose(found[0].errors, scatter, rtol=0.05)
