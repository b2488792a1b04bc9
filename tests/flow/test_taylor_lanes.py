"""The bits of a Taylor lane depend on that lane alone: any batch, place, neighbours, wild ones too."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcfit import math as m
from hpcfit.flow.propagate import propagate
from hpcfit.models.catalogue import find
from hpcfit.models.define import model

FIELDS = ("states", "by_start", "by_parameters", "steps")


@model(states="x v y", parameters="a b mu c1 c2 c3 c4 c5 c6 c7 c8")
def mixed(t, u, p):
    """Blows up (large y), leaves log's domain, sticks (mu > drive) or lives; many parameters: many blocks."""
    drive = p.c1 * m.sin(t) + p.c2 * m.cos(p.c3 * u.x) + p.c4 * m.tanh(u.x) - p.c5 * u.x
    grown = p.a * u.y**2 - p.c6 * u.y + p.c7 * m.exp(-p.c8 * u.x**2)
    return u.v, drive - p.mu * m.sign(u.v) - 0.1 * u.v, grown + p.b * m.log(u.y + 3) / 10


SYSTEMS = ("mixed", "lorenz", "quadratic", "pendulum_driven", "chua", "henon_heiles")
ORDINARY = np.array([0.1, 1.0, 0.05, 0.8, 0.6, 1.1, 0.3, 1.0, 0.9, 0.5, 0.7])


def batch(name, lanes, seed=1):
    """Different times, starts and parameters for each lane."""
    rng = np.random.default_rng(seed)
    if name == "mixed":
        made, start, values, end = mixed, np.array([0.4, 1.0, 0.3]), ORDINARY, 3.0
    else:
        made = find(name)
        example = made.examples[0]
        start, values = np.array(list(example.start.values())), np.array(list(example.parameters.values()))
        end = min(example.duration, 2.0)
    starts = start * (1 + 0.1 * rng.standard_normal((lanes, len(start))))
    parameters = values * (1 + 0.05 * rng.standard_normal((lanes, len(values))))
    times = np.sort(rng.uniform(0.01, end, (lanes, 5)), axis=1)
    times[:, 0] = 0.0
    return made, times, starts, parameters


def run(made, times, starts, parameters, lanes, sensitivities=True):
    lanes = np.asarray(lanes)
    return propagate(made, times[lanes], starts[lanes], parameters[lanes], sensitivities=sensitivities)


def same(one, other, where):
    """Whether lanes `where` of one are the lanes of the other, bit for bit."""
    return all(
        np.array_equal(getattr(one, field)[where], getattr(other, field), equal_nan=True) for field in FIELDS
    )


@pytest.mark.parametrize("name", SYSTEMS)
def test_batches_of_1_3_8_and_1000_and_permuted(name):
    system = batch(name, 1000)
    whole = run(*system, range(1000))
    for lane in (0, 1, 7, 500, 999):
        assert same(whole, run(*system, [lane]), [lane])
    for first in (0, 5, 992):
        assert same(whole, run(*system, range(first, first + 3)), slice(first, first + 3))
        assert same(whole, run(*system, range(first, first + 8)), slice(first, first + 8))
    shuffled = np.random.default_rng(2).permutation(1000)
    assert same(whole, run(*system, shuffled), shuffled)


@pytest.mark.parametrize("name", SYSTEMS)
def test_states_without_tangents_do_not_depend_on_the_batch(name):
    system = batch(name, 40)
    whole = run(*system, range(40), sensitivities=False)
    for some in ([3], [39, 0, 11], list(range(39, -1, -1))):
        part = run(*system, some, sensitivities=False)
        assert np.array_equal(whole.states[some], part.states, equal_nan=True)
        assert np.array_equal(whole.steps[some], part.steps)


def spoilt(starts, parameters, places):
    """Five kinds of neighbours that will not finish, and one that slides along a kink, at these places."""
    kinds = [
        (np.array([np.nan, 1.0, 0.3]), ORDINARY),
        (np.array([0.4, 1.0, 50.0]), ORDINARY),  # blows up
        (np.array([0.4, 1.0, -4.0]), ORDINARY),  # log(-1)
        (np.array([0.4, 0.01, 0.3]), np.where(np.arange(11) == 2, 50.0, ORDINARY)),  # slides
        (np.array([0.4, 1.0, 0.3]), np.where(np.arange(11) == 5, np.inf, ORDINARY)),
        (np.array([1e300, -1e300, 0.3]), ORDINARY),
    ]
    for k, place in enumerate(places):
        starts[place], parameters[place] = kinds[k % len(kinds)]


@pytest.mark.parametrize("place", range(12))
def test_in_every_place_among_lanes_that_fail(place):
    """Eleven neighbours: two slide, nine diverge or are not numbers; the lane has the bits of a run alone."""
    made, times, starts, parameters = batch("mixed", 12)
    own = batch("mixed", 1, seed=77)
    alone = run(*own, [0])
    spoilt(starts, parameters, [k for k in range(12) if k != place])
    for array, value in zip((times, starts, parameters), own[1:], strict=True):
        array[place] = value[0]
    among = run(made, times, starts, parameters, range(12))
    assert alone.failures == ()
    assert len(among.failures) == 9
    assert same(among, alone, [place])


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.integers(1, 10_000), st.integers(0, 8), st.sampled_from(SYSTEMS))
def test_any_neighbours(seed, place, name):
    """Neighbours far from the lane in start, parameters and times: other orders, other steps."""
    made, times, starts, parameters = batch(name, 9, seed)
    rng = np.random.default_rng(seed)
    starts *= 10.0 ** rng.uniform(-3, 2, (9, 1))
    parameters *= 10.0 ** rng.uniform(-1, 1, parameters.shape)
    times *= 10.0 ** rng.uniform(-4, 0, (9, 1))
    alone = propagate(
        made, times[place], starts[place], parameters[place], sensitivities=True, max_steps=2000
    )
    among = propagate(made, times, starts, parameters, sensitivities=True, max_steps=2000)
    assert same(among, alone, [place])


def test_the_same_run_after_other_runs_has_the_same_bits():
    """Nothing is left behind in the kernel by lanes that failed before."""
    system = batch("mixed", 9)
    first = run(*system, range(9))
    made, times, starts, parameters = batch("mixed", 12, seed=3)
    spoilt(starts, parameters, range(12))
    run(made, times, starts, parameters, range(12))
    assert same(first, run(*system, range(9)), slice(None))


def test_inputs_are_left_as_they_are():
    made, *arrays = batch("mixed", 5)
    copies = [array.copy() for array in arrays]
    propagate(made, *arrays, sensitivities=True)
    for array, copy in zip(arrays, copies, strict=True):
        assert np.array_equal(array, copy)
