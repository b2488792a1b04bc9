"""Conditions as people write them: what they mean, and what is said of those that mean nothing."""

from __future__ import annotations

import pytest

from hpcfit.models.catalogue import find
from hpcfit.models.conditions import Names, Point, Reference, relations, written
from hpcfit.models.evaluate import Program
from hpcfit.models.promote import with_states
from hpcfit.records import InputError

ONE = Names(("x", "v"), ("energy",), ("a", "b"), (), 1)
THREE = Names(("x", "v"), ("energy",), ("a", "b"), ("k",), 3)


def texts(source: str, names: Names = ONE) -> list[str]:
    return [str(relation) for relation in relations(source, names)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x@end = x@start", ["x@end = x@start"]),
        ("x@end==x@start", ["x@end = x@start"]),
        ("x @ end >= 2 * energy@12.50", ["x@end >= 2 * energy@12.5"]),
        ("v@-1e-3 <= a", ["v@-0.001 <= a"]),
        ("0 <= a <= 1", ["0 <= a", "a <= 1"]),
        ("a = b = 1", ["a = b", "b = 1"]),
        ("where(a < b, a, b) >= 0", ["where(a < b, a, b) >= 0"]),
        ("x@1:end - x@1:2 >= 0", ["x@1:end - x@1:2 >= 0"]),
        ("x@start-3 >= -a*pi", ["x@start-3 >= -a*pi"]),
    ],
)
def test_a_line_is_one_condition_for_each_sign(source: str, expected: list[str]) -> None:
    assert texts(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x@end = 0", ["x@1:end = 0", "x@2:end = 0", "x@3:end = 0"]),
        ("x@2:start = x@1:end", ["x@2:start = x@1:end"]),
        ("a >= 0", ["a >= 0"]),
        ("k >= 0", ["k@1 >= 0", "k@2 >= 0", "k@3 >= 0"]),
        ("k@3 >= k@1 + a", ["k@3 >= k@1 + a"]),
        ("k = x@start", ["k@1 = x@1:start", "k@2 = x@2:start", "k@3 = x@3:start"]),
        ("x@2:0.5 >= k@2", ["x@2:0.5 >= k@2"]),
    ],
)
def test_without_a_number_it_holds_in_each_experiment(source: str, expected: list[str]) -> None:
    assert texts(source, THREE) == expected


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("x = 0", "x changes in time; say when: x@start, x@end or x@12.5"),
        ("energy >= 0", "energy changes in time"),
        ("q >= 0", "unknown name 'q'; known: a b k x v energy pi"),
        ("aa >= 0", "unknown name 'aa'; did you mean 'a'?"),
        ("y@start >= 0", "there is no state or observable 'y'"),
        ("a@start >= 0", "a is a parameter, which does not change in time; write a"),
        ("k@2:end >= 0", "k is a local parameter; write k@2 for that of experiment 2"),
        ("k@start >= 0", "k is a local parameter; write k@2"),
        ("x@middle = 0", "'middle' is no time; write start, end or a number"),
        ("x@ = 0", "'' is no time"),
        ("x@inf = 0", "'inf' is no time"),
        ("x@2 = 0", "of which of 3 experiments; write x@1:2, or x@start or x@end for each of them"),
        ("x@4:end = 0", "there is no experiment 4; give 1 to 3"),
        ("x@0:end = 0", "there is no experiment 0"),
        ("x@one:end = 0", "there is no experiment one"),
        ("k@4 = 0", "there is no experiment 4"),
        ("a", "is no equality or inequality; write one with =, <= or >="),
        ("a >=", "is no equality or inequality"),
        ("a > 0", "'>' leaves no nearest point; write >="),
        ("1 <= 2", "contains nothing that the fit can change"),
        ("a - a = 0", "contains nothing that the fit can change"),
        ("x@1:end + = 1", "'x@1:end +' is not an expression"),
        ("sin(x@1:end, a) = 0", "sin() takes 1 argument, 2 given"),
        ("__import__('os') = a", "unknown function '__import__'"),
        ("x@1:end.real = 0", "is no time"),
    ],
)
def test_what_means_nothing_is_told(source: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        relations(source, THREE)
    assert problem in str(caught.value)
    assert "_ref" not in str(caught.value)


def test_expressions_are_turned_so_that_they_are_not_negative_where_they_are_met() -> None:
    model = with_states(find("henon_heiles"), ["c"])
    names = Names(model.states[:4], tuple(model.observables), ("a", "b"), ("c",), 2)
    lines = ["x1@2:end <= a", "energy@1:0.5 >= 2*b", "c@2 = x2@1:start"]
    found = [relation for line in lines for relation in relations(line, names)]
    times = {Point(1, "end"): 3.0, Point(0, 0.5): 0.5, Point(1, "start"): 0.0, Point(0, "start"): 0.0}
    stated = written(found, model, times)
    assert stated.points == tuple(times)
    states = [0.1 * k for k in range(20)]  # five of each point
    x1, (y1, y2, y3, y4, c) = states[0], states[5:10]
    values = Program(stated.graph, stated.values)(0.0, states, [2.0, 3.0])
    energy = (y3**2 + y4**2) / 2 + (2.0 * y1**2 + 3.0 * y2**2) / 2 + y1**2 * y2 + c * y2**3 / 3
    assert values == pytest.approx([2.0 - x1, energy - 6.0, states[14] - states[16]], rel=1e-14)
    assert found[0].references["_ref0_"] == Reference("x1", 1, "end")
