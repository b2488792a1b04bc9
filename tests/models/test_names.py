"""A mistyped name is named in the message, with the nearest one that exists."""

import numpy as np
import pytest

from hpcfit import InputError, model
from hpcfit.models.catalogue import find
from hpcfit.models.names import Named, nearest


def make(body=lambda t, u, p: (u.x, u.y), states="x y", parameters="sigma rho", **more):
    return model(states=states, parameters=parameters, name="made", **more)(body)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda t, u, p: (p.sigm * u.x, 0), r"made: no parameter 'sigm'; did you mean 'sigma'\?"),
        (lambda t, u, p: (p.Sigma * u.x, 0), r"made: no parameter 'Sigma'; did you mean 'sigma'\?"),
        (lambda t, u, p: (u.z, 0), "made: no state 'z'; known: x y"),
        (lambda t, u, p: (u.sigma, 0), "made: no state 'sigma'; known: x y"),
    ],
)
def test_a_mistyped_state_or_parameter(body, message):
    with pytest.raises(InputError, match=message):
        make(body)


def test_a_parameter_of_a_model_without_parameters():
    with pytest.raises(InputError, match="made: no parameter 'k'; there are none"):
        make(lambda t, u, p: (p.k, 0), parameters="")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"states": "x x"}, "made: the name 'x' is used twice"),
        ({"parameters": "x k"}, "made: the name 'x' is used twice"),
        ({"observables": {"sigma": lambda t, u, p: u.x}}, "made: the name 'sigma' is used twice"),
        ({"states": "x lambda"}, "made: state 'lambda' is a word of Python; call it 'lambda_'"),
        ({"parameters": "in"}, "made: parameter 'in' is a word of Python; call it 'in_'"),
        ({"states": "x sin"}, "made: state 'sin' is the name of a function or constant"),
        ({"parameters": "t"}, "made: parameter 't' is the name of a function or constant"),
        ({"parameters": "pi"}, "made: parameter 'pi' is the name of a function or constant"),
        ({"states": "x 2y"}, "made: state '2y' is not a name"),
        ({"states": "x y-z"}, "made: state 'y-z' is not a name"),
        ({"states": ["x", "a b"]}, "made: state 'a b' is not a name"),
        ({"states": ["x", 3]}, "made: state 3 is not a name"),
        ({"states": "x ω"}, "made: state 'ω' is not a name; use letters, digits and _"),
        ({"states": "x _y"}, "made: state '_y' is not a name"),
        ({"states": ""}, "made: no states"),
        ({"units": {"xx": "m"}}, "made: unit given for 'xx'; did you mean 'x'"),
        ({"kind": "flov"}, "made: kind 'flov' is unknown; did you mean 'flow'"),
    ],
)
def test_names_that_cannot_be_used(words, message):
    with pytest.raises(InputError, match=message):
        make(**words)


@pytest.mark.parametrize("name", ["power", "negative", "add", "less", "sum", "shape", "T", "ndim", "e"])
def test_names_that_only_look_reserved_can_be_used(name):
    made = make(lambda t, u, p: (p[0] * u.x, u.y), parameters=[name])
    assert made.text(made.equations[0]) == f"x*{name}"


def test_names_may_be_separated_by_commas_or_listed():
    assert make(states="x, y").states == make(states=["x", "y"]).states == ("x", "y")


def test_a_mistyped_quantity():
    made = make(observables={"energy": lambda t, u, p: u.x**2})
    with pytest.raises(InputError, match=r"made: no state or observable 'enrgy'; did you mean 'energy'\?"):
        made.quantity("enrgy")


def test_a_mistyped_catalogue_model():
    with pytest.raises(InputError, match=r"no model 'lorentz' in the catalogue; did you mean 'lorenz'\?"):
        find("lorentz")
    with pytest.raises(InputError, match=r"lorenz: has 3 states and takes no size; remove size = 5"):
        find("lorenz", 5)
    with pytest.raises(InputError, match=r"lorenz96: size 3 is outside 4\.\.10000"):
        find("lorenz96", 3)


def test_nearest_ignores_case_and_lists_at_most_twelve():
    assert nearest("SIGMA", ["sigma", "r"]) == "did you mean 'sigma'?"
    assert nearest("q", [f"name{i}" for i in range(30)]).endswith("name11 ...")


def test_named_numbers_are_read_by_name_number_loop_and_as_a_vector():
    u = Named("made", "state", ("x", "y"), [1.0, 4.0])
    assert (u.x, u[1], list(u), len(u)) == (1.0, 4.0, [1.0, 4.0], 2)
    assert np.sqrt(u).tolist() == [1.0, 2.0]
    assert np.sum(u) == 5.0
    assert not hasattr(u, "z")
