"""Linear systems, states and all derivatives against the exponential of a matrix."""

import numpy as np
import pytest
from scipy.linalg import expm

from hpcfit.models.define import model
from tests.flow.extrapolation_lanes import propagate

N = 4
TIMES = np.array([0.0, 0.3, 1.0, 2.7])


def linear(n):
    """x' = A x + c with all entries of A and c as parameters."""
    names = [f"a{i}{j}" for i in range(n) for j in range(n)] + [f"c{i}" for i in range(n)]

    @model(states=[f"x{i}" for i in range(n)], parameters=names)
    def system(t, u, p):
        matrix = np.array(p[: n * n], dtype=object).reshape(n, n)
        return matrix @ np.asarray(u) + np.array(p[n * n :], dtype=object)

    return system


def exact(a, c, start, t):
    """x, dx/dx0 and dx/dp at t; the last by the exponential of a block matrix for each parameter."""
    n = len(start)
    whole = np.zeros((n + 1, n + 1))  # the inhomogeneity as a state that stays 1
    whole[:n, :n], whole[:n, n] = a, c
    extended = np.append(start, 1.0)
    flow = expm(whole * t)
    by_parameters = []
    for i, j in [*((i, j) for i in range(n) for j in range(n)), *((i, n) for i in range(n))]:
        direction = np.zeros_like(whole)
        direction[i, j] = 1.0
        block = np.block([[whole, direction], [np.zeros_like(whole), whole]])
        by_parameters.append((expm(block * t)[: n + 1, n + 1 :] @ extended)[:n])
    return (flow @ extended)[:n], flow[:n, :n], np.array(by_parameters).T


RNG = np.random.default_rng(4)
MATRICES = {
    "stable": RNG.normal(size=(N, N)) - 2.5 * np.eye(N),
    "unstable": 0.6 * RNG.normal(size=(N, N)) + 0.3 * np.eye(N),
    "oscillating": np.kron(np.diag([1.0, 3.7]), [[0.0, 1.0], [-1.0, 0.0]]),
    "nilpotent": np.triu(RNG.normal(size=(N, N)), 1),
    "zero": np.zeros((N, N)),
}


@pytest.mark.parametrize("inhomogeneous", [False, True])
@pytest.mark.parametrize("name", MATRICES)
def test_a_linear_system_against_expm(name, inhomogeneous):
    """Relative to the largest entry: states to 1e-11, derivatives to 1e-10."""
    a, c = MATRICES[name], np.array([0.5, -1.0, 0.25, 2.0]) * inhomogeneous
    start = np.array([1.0, -2.0, 0.5, 3.0])
    lanes = propagate(linear(N), TIMES, start, np.append(a.ravel(), c), sensitivities=True)
    assert lanes.failures == ()
    for k, t in enumerate(TIMES):
        x, by_start, by_parameters = exact(a, c, start, t)
        assert np.abs(lanes.states[0, k] - x).max() <= 1e-11 * np.abs(x).max()
        assert np.abs(lanes.by_start[0, k] - by_start).max() <= 1e-10 * np.abs(by_start).max()
        scale = max(np.abs(by_parameters).max(), 1e-3)
        assert np.abs(lanes.by_parameters[0, k] - by_parameters).max() <= 1e-10 * scale


def test_the_first_output_is_the_start_itself():
    lanes = propagate(linear(2), [1.5, 2.0], [3.0, 4.0], np.ones(6), sensitivities=True)
    assert lanes.states[0, 0].tolist() == [3.0, 4.0]
    assert lanes.by_start[0, 0].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert (lanes.by_parameters[0, 0] == 0.0).all()


def test_at_an_equilibrium_the_tangents_are_the_exponential_of_the_jacobian():
    """Lorenz at (c, c, r - 1), c = sqrt(b (r - 1)): the state stays, dx/dx0 = expm(J t)."""
    sigma, r, b, t = 10.0, 28.0, 2.0, 1.5
    c = np.sqrt(b * (r - 1))

    @model(states="x y z", parameters="sigma r b")
    def lorenz(t, u, p):
        return p.sigma * (u.y - u.x), u.x * (p.r - u.z) - u.y, u.x * u.y - p.b * u.z

    jacobian = np.array([[-sigma, sigma, 0], [1, -1, -c], [c, c, -b]])
    lanes = propagate(lorenz, [0, t], [c, c, r - 1], [sigma, r, b], sensitivities=True)
    assert lanes.states[0, 1] == pytest.approx([c, c, r - 1], rel=1e-12)
    assert np.abs(lanes.by_start[0, 1] - expm(jacobian * t)).max() <= 1e-10 * np.abs(expm(jacobian * t)).max()


@pytest.mark.parametrize("method", ["extrapolation", "extrapolation-differences"])
def test_at_the_origin_where_everything_is_zero(method):
    """The origin of a linear system: nothing moves, nothing is divided by zero, tangents are expm(A t)."""
    a = MATRICES["stable"]
    lanes = propagate(
        linear(N), TIMES, np.zeros(N), np.append(a.ravel(), np.zeros(N)), sensitivities=True, method=method
    )
    assert lanes.failures == ()
    assert (lanes.states == 0.0).all()
    expected = expm(a * TIMES[-1])
    tolerance = 1e-10 if method == "extrapolation" else 1e-7
    assert np.abs(lanes.by_start[0, -1] - expected).max() <= tolerance * np.abs(expected).max()


def test_a_decay_to_nothing_finishes_soon():
    """exp(-t) until it underflows: below 1e-292 numbers have no relative precision left to ask for."""
    decay = model(states="x", parameters="k")(lambda t, u, p: -p.k * u.x)
    lanes = propagate(decay, [0.0, 100.0, 2000.0], [1.0], [1.0])
    assert lanes.failures == ()
    assert lanes.states[0, 1, 0] == pytest.approx(np.exp(-100.0), rel=1e-10)
    assert abs(lanes.states[0, 2, 0]) < 1e-290
    assert lanes.steps[0] < 2000
