"""The course: where members are, and how a place is given to another."""

from __future__ import annotations

import numpy as np
import pytest

from hpcfit.leastsq.course import Course, linearised
from hpcfit.linear.chain import Unknowns
from hpcfit.mpi.serial import SERIAL
from hpcfit.records import Iteration, Outcome
from tests.leastsq.toy_problems import Curve, noisy_lines


def begun(members: int = 4) -> Course:
    """A course of which everything is known, as if all members had come to their ends."""
    course = Course.begin(Curve(noisy_lines(members)).begin(0.5))
    course.newcomers()
    course.end(np.arange(members), Outcome.CONVERGED)
    course.iterations[:], course.linearisations[:] = 3, 5
    for values in vars(course.spread).values():
        values[:] = 1.0
    return course


def test_a_course_begins_with_everybody_and_leaves_the_start_as_it_is() -> None:
    start = Curve(noisy_lines()).begin(0.5)
    course = Course.begin(start)
    assert course.newcomers().tolist() == [0, 1, 2]
    assert course.newcomers().tolist() == []
    assert course.outcomes == [Outcome.UNFINISHED] * 3
    assert not course.iterations.any()
    assert course.history == [[], [], []]
    course.z.nodes[:] = course.z.parameters[:] = 7.0
    assert not (start.nodes == 7.0).any()
    assert not (start.parameters == 7.0).any()


def test_a_new_member_inherits_nothing_and_the_others_stay() -> None:
    course = begun()
    before = Unknowns(course.z.nodes.copy(), course.z.parameters.copy())
    places, rest = np.array([1, 3]), np.array([0, 2])
    new = Unknowns(np.full((2, 8, 1), 9.0), np.full((2, 1), -1.0))
    course.enter(places, new)
    assert course.newcomers().tolist() == [1, 3]
    assert [course.outcomes[k] for k in places] == [Outcome.UNFINISHED] * 2
    assert [course.outcomes[k] for k in rest] == [Outcome.CONVERGED] * 2
    assert course.iterations.tolist() == [3, 0, 3, 0]
    assert course.linearisations.tolist() == [5, 0, 5, 0]
    np.testing.assert_array_equal(course.z.nodes[places], new.nodes)
    np.testing.assert_array_equal(course.z.parameters[places], new.parameters)
    np.testing.assert_array_equal(course.z.nodes[rest], before.nodes[rest])
    for values in vars(course.spread).values():
        assert np.isnan(values[places]).all()
        assert (values[rest] == 1.0).all()


def test_of_members_that_cannot_be_linearised_nothing_is_known_any_more() -> None:
    """They may have come to an end before, in another attempt."""
    problem, course = Curve(noisy_lines(4)), begun()
    course.z.parameters[[0, 2]] = np.nan
    members, part, z, chain = linearised(SERIAL, problem, course, np.array([0, 1, 2]))
    assert members.tolist() == [1]
    assert course.linearisations.tolist() == [6, 6, 6, 5]
    converged, lost = Outcome.CONVERGED, Outcome.NOT_INTEGRABLE
    assert course.outcomes == [lost, converged, lost, converged]
    for values in vars(course.spread).values():
        assert np.isnan(values[[0, 2]]).all()
        assert (values[[1, 3]] == 1.0).all()
    np.testing.assert_array_equal(part.residuals(SERIAL, z).rows, chain.residuals.rows)
    np.testing.assert_array_equal(z.nodes[0], course.z.nodes[1])


@pytest.mark.parametrize("remembers", [True, False])
def test_iterations_are_told_and_kept_by_member_where_somebody_wants_them(remembers: bool) -> None:
    told: list[Iteration] = []
    course = Course.begin(Curve(noisy_lines()).begin(0.5), told.append, remembers=remembers)
    columns = [np.array([1.0, 2.0]) * k for k in range(1, 5)]
    course.note("exact", np.array([0, 2]), [*columns, np.array([2, 1])])
    expected = [Iteration("exact", 1.0, 2.0, 3.0, 4.0, 2), Iteration("exact", 2.0, 4.0, 6.0, 8.0, 1)]
    if remembers:
        assert course.history == [[expected[0]], [], [expected[1]]]
        assert told == expected
    else:
        assert course.history is None
