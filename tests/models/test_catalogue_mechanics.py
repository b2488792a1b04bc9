"""Pendulums of the catalogue against their Lagrange functions, differentiated by mpmath at 40 digits."""

import mpmath as mp
import numpy as np
import pytest

from hpcfit.models.catalogue import find
from hpcfit.models.evaluate import evaluate


def accelerations(lagrangian, q, v, t=0.0):
    """q'' of the Euler-Lagrange equations: L_vv q'' = L_q - L_vq v - L_vt."""
    n = len(q)

    def partial(*orders):
        """Derivative of L by (q..., v..., t), given how often by each."""
        return mp.diff(lambda *z: lagrangian(z[:n], z[n : 2 * n], z[-1]), (*q, *v, t), orders)

    def once(*places):
        orders = [0] * (2 * n + 1)
        for place in places:
            orders[place] += 1
        return partial(*orders)

    mass = mp.matrix(n, n)
    force = mp.matrix(n, 1)
    for i in range(n):
        force[i] = once(i) - sum(once(n + i, j) * v[j] for j in range(n)) - once(n + i, 2 * n)
        for j in range(n):
            mass[i, j] = once(n + i, n + j)
    return mp.lu_solve(mass, force)


def values(name, u, p, t=0.0):
    made = find(name)
    return [float(value) for value in evaluate(made, made.equations, t, u, p)]


@pytest.mark.parametrize("seed", range(1, 6))
def test_double_pendulum_equations_18_and_19(seed):
    """Two rods, two masses: omega1^2 = g/l1, lam = l1/l2, mu = 1 + m1/m2."""
    rng = np.random.default_rng(seed)
    m1, m2, l1, l2, g = rng.uniform(0.5, 2.0, 5)
    phi, rate = rng.uniform(-3, 3, 2), rng.uniform(-4, 4, 2)

    def lagrangian(q, v, t):
        square1 = (l1 * v[0]) ** 2
        square2 = square1 + (l2 * v[1]) ** 2 + 2 * l1 * l2 * v[0] * v[1] * mp.cos(q[0] - q[1])
        height1 = -l1 * mp.cos(q[0])
        height2 = height1 - l2 * mp.cos(q[1])
        return m1 * square1 / 2 + m2 * square2 / 2 - g * (m1 * height1 + m2 * height2)

    with mp.workdps(40):
        expected = accelerations(lagrangian, phi, rate)
    ours = values("double_pendulum", [*phi, *rate], [np.sqrt(g / l1), l1 / l2, 1 + m1 / m2])
    assert ours[:2] == list(rate)
    assert ours[2:] == pytest.approx([float(a) for a in expected], rel=1e-12)


def test_the_energy_of_the_double_pendulum_is_that_of_the_lagrangian():
    """(20) in units of m2 l1 l2."""
    m1, m2, l1, l2, g = 0.7, 1.3, 0.9, 1.6, 9.81
    phi1, phi2, rate1, rate2 = 0.4, -1.1, 2.0, -0.7
    kinetic = (m1 + m2) * (l1 * rate1) ** 2 / 2 + m2 * (l2 * rate2) ** 2 / 2
    kinetic += m2 * l1 * l2 * rate1 * rate2 * np.cos(phi1 - phi2)
    potential = -g * ((m1 + m2) * l1 * np.cos(phi1) + m2 * l2 * np.cos(phi2))
    made = find("double_pendulum")
    p = [np.sqrt(g / l1), l1 / l2, 1 + m1 / m2]
    ours = float(evaluate(made, [made.quantity("energy")], 0, [phi1, phi2, rate1, rate2], p)[0])
    assert ours == pytest.approx((kinetic + potential) / (m2 * l1 * l2), rel=1e-14)


@pytest.mark.parametrize("seed", range(1, 4))
def test_the_driven_pendulum_without_friction_is_a_pendulum_on_a_crank(seed):
    """The pivot is at amplitude (cos(wt) + sqrt(1 - eps^2 sin(wt)^2) / eps): its acceleration adds to g."""
    rng = np.random.default_rng(seed)
    mass, length, amplitude, eps, omega, g = rng.uniform(0.2, 0.9, 6)
    phi, rate, t = rng.uniform(-3, 3), rng.uniform(-4, 4), rng.uniform(0, 5)

    def pivot(t):
        return amplitude * (mp.cos(omega * t) + mp.sqrt(1 - (eps * mp.sin(omega * t)) ** 2) / eps)

    with mp.workdps(40):
        expected = -(g + mp.diff(pivot, t, 2)) / length * mp.sin(phi)
    ours = values("pendulum_driven", [phi, rate], [0, 0, 0, mass, length, amplitude, eps, omega, g], t)
    assert ours == pytest.approx([rate, float(expected)], rel=1e-12)


@pytest.mark.parametrize("rate", [-2.0, 3.0])
def test_the_friction_of_the_driven_pendulum(rate):
    """Coulomb, viscous and air friction against the motion, divided by m l^2."""
    k1, k2, k3, mass, length = 0.3, 0.2, 0.1, 0.5, 0.8
    ours = values("pendulum_driven", [0.0, rate], [k1, k2, k3, mass, length, 0.1, 0.2, 9.0, 9.81])
    drag = k1 * np.sign(rate) + k2 * rate + k3 * rate * abs(rate)
    assert ours[1] == pytest.approx(-drag / (mass * length**2), rel=1e-14)


def test_the_spring_pendulum_follows_from_its_lagrangian():
    b1, b2, b3 = 0.6, 2.0, 9.8
    stretch, angle, v1, v2 = 0.3, 0.8, -0.4, 1.7

    def lagrangian(q, v, t):
        length = b1 + q[0]
        return (v[0] ** 2 + (length * v[1]) ** 2 - b2 * q[0] ** 2) / 2 + b3 * length * mp.cos(q[1])

    with mp.workdps(40):
        expected = accelerations(lagrangian, [stretch, angle], [v1, v2])
    ours = values("spring_pendulum", [stretch, v1, angle, v2], [b1, b2, b3])
    assert ours == pytest.approx([v1, float(expected[0]), v2, float(expected[1])], rel=1e-12)
