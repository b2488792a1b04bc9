"""Equations as strings: what is accepted means what Python means; everything else is refused by name."""

import math

import numpy as np
import pytest

from hpcfit.models.catalogue import NAMES, find
from hpcfit.models.evaluate import Program, evaluate
from hpcfit.models.graph import Graph, text
from hpcfit.models.strings import DEEPEST, LONGEST, model_from_strings, number, parse
from hpcfit.records import InputError
from tests.models.random_expressions import N_PARAMETERS, N_STATES, random_expression


@pytest.fixture
def names():
    graph = Graph()
    return {name: graph.leaf("state", i) for i, name in enumerate(("x", "y", "long_name"))}


def read(source, names):
    return parse(source, names, names["x"].graph)


def value(symbol, *u):
    return float(Program(symbol.graph, [symbol])(0.0, u, [])[0])


ACCEPTED = {
    "x": 2.0,
    " x\n": 2.0,
    "-x + +y": 1.0,
    "x*y - x/y": 6 - 2 / 3,
    "x**y**2": 2.0**9,
    "-x**2": -4.0,
    "(-x)**2": 4.0,
    "2**-x": 0.25,
    "1e-3*x + .5 + 1_000 + 0x10": 2e-3 + 1016.5,
    "sin(x)*cos(y) + tan(x)": math.sin(2) * math.cos(3) + math.tan(2),
    "exp(log(x)) + sqrt(y)": math.exp(math.log(2)) + math.sqrt(3),
    "asin(x/4) + acos(y/4) + atan(x)": math.asin(0.5) + math.acos(0.75) + math.atan(2),
    "sinh(x) - cosh(y) + tanh(x)": math.sinh(2) - math.cosh(3) + math.tanh(2),
    "abs(x - y) + sign(x - y)": 0.0,
    "min(x, y) + 10*max(x, y)": 32.0,
    "where(x < y, 1, 2) + 10*where(x >= y, 1, 2)": 21.0,
    "where(x <= 2, x, y) + where(x > 2, x, y)": 5.0,
    "(x < y)*4": 4.0,
    "long_name": 5.0,
    "\n(x +\n y)": 5.0,
    "+".join(["x"] * 1000): 2000.0,
    "*".join(["x"] * 50): 2.0**50,
}


@pytest.mark.parametrize("source", ACCEPTED, ids=lambda source: source[:40])
def test_accepted_expressions_mean_what_they_mean_in_python(source, names):
    assert value(read(source, names), 2.0, 3.0, 5.0) == pytest.approx(ACCEPTED[source], rel=1e-15, abs=1e-15)


REFUSED = {
    "x.real": "'x.real' is not allowed",
    "x.__class__": "is not allowed",
    "().__class__.__bases__[0]": "is not allowed",
    "z": "unknown name 'z'",
    "long_nam": "unknown name 'long_nam'; did you mean 'long_name'",
    "__import__('os')": "unknown function '__import__'",
    "open('/etc/passwd')": "unknown function 'open'",
    "sine(x)": "unknown function 'sine'; did you mean 'sin'",
    "sin": r"'sin' is a function; call it as sin\(...\)",
    "power(x, y)": "unknown function 'power'",
    "x(y)": "unknown function 'x'",
    "(sin)(x)(y)": "is not allowed",
    "sin(x, y)": r"sin\(\) takes 1 argument, 2 given",
    "max(x)": r"max\(\) takes 2 arguments, 1 given",
    "sin()": r"sin\(\) takes 1 argument, 0 given",
    "lambda: x": "is not allowed",
    "[x for x in (1, 2)]": "is not allowed",
    "{x: y}": "is not allowed",
    "{x}": "is not allowed",
    "(x, y)": "is not allowed",
    "[x]": "is not allowed",
    "x[0]": "is not allowed",
    "'x'": "is not allowed",
    "b'x'": "is not allowed",
    "f'{x}'": "is not allowed",
    "...": "is not allowed",
    "None": "is not allowed",
    "True": "True is not a number",
    "1j": "is not allowed",
    "(x := 3)": "is not allowed",
    "max(x, y=1)": "is not allowed",
    "max(*x)": r"max\(\) takes 2 arguments",
    "max(x, *y)": "is not allowed",
    "max(x, **y)": "is not allowed",
    "x if y else 1": "is not allowed",
    "x and y": "is not allowed",
    "not x": "is not allowed",
    "~x": "is not allowed",
    "x % y": "is not allowed",
    "x // y": "is not allowed",
    "x @ y": "is not allowed",
    "x | y": "is not allowed",
    "x << 2": "is not allowed",
    "x == y": "is not allowed",
    "x != y": "is not allowed",
    "x < y < 3": "is not allowed",
    "x is y": "is not allowed",
    "x in y": "is not allowed",
    "await x": "is not allowed|not an expression",
    "yield x": "not an expression",
    "x = 1": "not an expression",
    "x; y": "not an expression",
    "import os": "not an expression",
    "": "not an expression",
    "   ": "not an expression",
    "# x": "not an expression",
    "x y": "not an expression",
    "x +": "not an expression",
    "(x": "not an expression",
    "x^2": r"'\^' in 'x\^2' is not a power; write \*\*",
    "x\0": "not an expression",
    "\ud800": "not an expression",
    "1e999": "is larger than 1e\\+300",
    "1e301": "is larger than 1e\\+300",
    "9" * 400: "is larger than 1e\\+300",
    "9" * 5000: "not an expression",
    "0x" + "f" * 5000: "is larger than 1e\\+300",
    "[0x" + "f" * 5000 + "]": "is not allowed",
    "not " * 2000 + "x": "is not allowed",
    "x" + ".a" * 4000: "too long or nested too deep|is not allowed",
    "-" * 9000 + "x": "too long or nested too deep|nested more than",
    "(" * 150 + "x" + ")" * 150 + "^": "not a power",
    "sin(" * (DEEPEST + 1) + "x" + ")" * (DEEPEST + 1): f"nested more than {DEEPEST} levels deep; split it",
    "2**" * (DEEPEST + 1) + "x": f"nested more than {DEEPEST} levels deep; split it",
    "x" + " " * LONGEST + "+y": f"{LONGEST + 3} characters; at most {LONGEST} are allowed",
}


@pytest.mark.parametrize("source", REFUSED, ids=lambda source: ascii(source[:30]))
def test_everything_else_is_refused_by_name(source, names):
    with pytest.raises(InputError, match=REFUSED[source]) as refusal:
        read(source, names)
    assert len(str(refusal.value)) < 400
    str(refusal.value).encode("utf-8")  # the message can be printed


@pytest.mark.parametrize("source", [b"x", 1.0, None, ["x"]])
def test_only_strings_are_parsed(source, names):
    with pytest.raises(InputError, match="must be a string"):
        read(source, names)


@pytest.mark.parametrize("seed", range(1, 101))
def test_text_and_parse_are_inverse_on_random_expressions(seed):
    """Parsed into the same graph, the text of an expression is the very same node."""
    graph, leaves, output = random_expression(seed, size=7)
    labels = ["t"] + [f"s{i}" for i in range(N_STATES)] + [f"q{i}" for i in range(N_PARAMETERS)]
    names = dict(zip(labels, leaves, strict=True))
    by_index = {leaf.index: label for label, leaf in names.items()}

    def naming(node):
        return by_index[graph.leaf(node.operation, node.value).index]

    written = text(output, naming)
    if len(written) > LONGEST:
        pytest.fail(f"seed {seed}: choose smaller expressions")
    assert parse(written, names, graph).index == output.index


@pytest.mark.parametrize("name", NAMES)
def test_the_catalogue_survives_its_own_text(name):
    """Model.text of each equation, read again as strings, gives the same numbers, bit for bit."""
    made = find(name, 7) if name == "lorenz96" else find(name)
    again = model_from_strings(
        name,
        states=made.states,
        parameters=made.parameters,
        kind=made.kind,
        equations={s: made.text(e) for s, e in zip(made.states, made.equations, strict=True)},
        observables={key: made.text(e) for key, e in made.observables.items()},
        invariant=made.text(made.invariant) if made.invariant is not None else None,
    )
    rng = np.random.default_rng(1)
    u, p = rng.uniform(0.1, 1, len(made.states)), rng.uniform(0.1, 1, len(made.parameters))
    ours = evaluate(made, [*made.equations, *made.observables.values()], 0.3, u, p)
    theirs = evaluate(again, [*again.equations, *again.observables.values()], 0.3, u, p)
    assert [float(value) for value in ours] == [float(value) for value in theirs]


@pytest.mark.parametrize(
    ("written", "meant"),
    [(3, 3.0), (2.5, 2.5), ("8/3", 8 / 3), ("sqrt(0.1275)", math.sqrt(0.1275)), ("-pi/2", -math.pi / 2)],
)
def test_numbers_may_be_constant_expressions(written, meant):
    assert number(written) == meant
    assert isinstance(number(written), float)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (True, "True is not a number"),
        (None, "None is not a number"),
        ("x", "unknown name 'x'"),
        ("log(-1)", "has no finite value"),
        ("1/0", "has no finite value"),
        ("1e200*1e200", "has no finite value"),
        (10**400, "larger than"),
        ("", "not an expression"),
    ],
)
def test_what_is_no_number_is_refused(written, message):
    with pytest.raises(InputError, match=message):
        number(written)


def lorenz(**changes):
    words = {
        "states": ["x", "y", "z"],
        "parameters": ["sigma", "r", "b"],
        "equations": {"x": "sigma*(y - x)", "y": "x*(r - z) - y", "z": "x*y - b*z"},
    }
    return model_from_strings("inline", **(words | changes))


def test_a_model_of_strings_equals_the_catalogue():
    ours, theirs = lorenz(), find("lorenz")
    u, p = [1.0, 2.0, 3.0], [10.0, 28.0, 8 / 3]
    assert evaluate(ours, ours.equations, 0, u, p) == evaluate(theirs, theirs.equations, 0, u, p)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"equations": {"x": "1", "y": "1"}}, "inline: no equation for the state 'z'"),
        (
            {"equations": {"x": "1", "y": "1", "z": "1", "sigm": "1"}},
            "inline: equation for 'sigm', which is no state; known: x y z",
        ),
        (
            {"equations": {"x": "sigm*(y - x)", "y": "1", "z": "1"}},
            "inline: equation of x: unknown name 'sigm'; did you mean 'sigma'",
        ),
        ({"observables": {"e": "x + w"}}, "inline: observable e: unknown name 'w'"),
        ({"invariant": "x +"}, "inline: invariant: 'x \\+' is not an expression"),
        ({"kind": "mapp"}, "inline: kind 'mapp' is unknown; did you mean 'map'"),
        ({"states": ["x", "y", "x"]}, "inline: the name 'x' is used twice"),
    ],
)
def test_mistakes_in_a_model_of_strings_are_named(changes, message):
    with pytest.raises(InputError, match=message):
        lorenz(**changes)
