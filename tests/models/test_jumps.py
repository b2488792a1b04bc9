"""Declaring switches and jumps in Python and in strings, as a person reads them; what cannot be meant."""

from __future__ import annotations

import pytest

from hpcfit import Jump
from hpcfit.models.catalogue import find
from hpcfit.models.define import model
from hpcfit.models.promote import with_states
from hpcfit.models.strings import model_from_strings
from hpcfit.records import InputError


def ball(jump):
    """A ball with one jump, given as a function."""
    return model(states="y v", parameters="e", jumps={"bounce": jump}, name="ball")(
        lambda t, u, p: (u.v, -9.81)
    )


BALL = {
    "states": ["y", "v"],
    "parameters": ["e"],
    "equations": {"y": "v", "v": "-9.81"},
}


def test_python_and_strings_declare_the_same():
    traced = ball(lambda t, u, p: Jump(falls=u.y, to={"v": -p.e * u.v}))
    written = model_from_strings("ball", **BALL, jumps={"bounce": {"falls": "y", "to": {"v": "-e*v"}}})
    texts = [each.jumps[0].text(each.text) for each in (traced, written)]
    assert texts == ["where y falls through zero: v+ = -e*v"] * 2
    assert not traced.smooth


def test_the_name_of_a_switch_is_its_sign():
    equations = {"x": "v", "v": "-x - mu*slip"}
    common = {"states": ["x", "v"], "parameters": ["mu", "belt"]}
    written = model_from_strings("block", **common, switches={"slip": "v - belt"}, equations=equations)
    traced = model(
        states="x v", parameters="mu belt", switches={"slip": lambda t, u, p: u.v - p.belt}, name="block"
    )(lambda t, u, p, s: (u.v, -u.x - p.mu * s.slip))
    assert written.text(written.equations[1]) == traced.text(traced.equations[1]) == "-x - mu*sign(v - belt)"


def test_rhythms_read_like_sentences():
    dosing = find("dosing")
    (intake,) = dosing.jumps
    assert intake.text(dosing.text) == "at t = lag and every interval, for ever: gut+ = gut + dose"
    local = with_states(dosing, ["lag"])
    assert local.jumps[0].text(local.text) == intake.text(dosing.text)


REFUSED = {
    "no place": (lambda t, u, p: Jump(to={"v": 0.0}), "has no place; give one of falls, rises, crosses, at"),
    "two places": (lambda t, u, p: Jump(falls=u.y, at=1.0, to={"v": 0.0}), "has falls and at; give one of"),
    "no change": (lambda t, u, p: Jump(falls=u.y, to={}), "changes nothing; say what a state becomes"),
    "no such state": (
        lambda t, u, p: Jump(falls=u.y, to={"w": 0.0}),
        "sets 'w', which is no state; known: y v",
    ),
    "zero for ever": (lambda t, u, p: Jump(falls=u.y - u.y, to={"v": 0.0}), "falls is identically zero"),
    "never zero": (
        lambda t, u, p: Jump(falls=2.0, to={"v": 0.0}),
        "falls is 2 everywhere: it never changes sign",
    ),
    "parameters alone": (
        lambda t, u, p: Jump(falls=p.e, to={"v": 0.0}),
        "falls never changes along the path",
    ),
    "a time that moves": (
        lambda t, u, p: Jump(at=u.y, to={"v": 0.0}),
        "at changes along the path; write the root",
    ),
    "no rhythm": (
        lambda t, u, p: Jump(at=1.0, every=-2.0, to={"v": 0.0}),
        "every is -2; give a positive time",
    ),
    "every without at": (lambda t, u, p: Jump(falls=u.y, every=2.0, to={"v": 0.0}), "every without at"),
    "count without every": (lambda t, u, p: Jump(at=1.0, count=2, to={"v": 0.0}), "count without every"),
    "no jump": (lambda t, u, p: u.y, "is Symbol; write Jump"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_meant_is_said_with_its_place_and_remedy(case):
    jump, message = REFUSED[case]
    with pytest.raises(InputError) as error:
        ball(jump)
    assert str(error.value).startswith("ball: jump bounce: ")
    assert message in str(error.value)


def test_a_switch_that_cannot_switch():
    with pytest.raises(
        InputError, match="block: switch slip: it is identically zero: it has no sign; write an"
    ):
        model(states="x", switches={"slip": lambda t, u, p: u.x - u.x}, name="block")(
            lambda t, u, p, s: s.slip
        )


def test_maps_and_opaque_models_have_none():
    with pytest.raises(InputError, match=r"iterated: a map has no switches and jumps; write where\(...\)"):
        model(states="x", kind="map", switches={"up": lambda t, u, p: u.x}, name="iterated")(
            lambda t, u, p, s: s.up
        )
    with pytest.raises(InputError, match="need a model that can be traced"):
        model(states="x", opaque=True, switches={"up": lambda t, u, p: u.x}, name="closed")(
            lambda t, u, p: 0.0
        )
