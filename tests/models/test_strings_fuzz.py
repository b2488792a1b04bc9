"""Whatever string comes in: a symbol or an InputError, quickly, and without any effect."""

import os
import sys
import threading
import time

import numpy as np
import pytest

from hpcfit.models.graph import Graph, Symbol
from hpcfit.models.strings import parse
from hpcfit.records import InputError

TOKENS = """
x y t pi k sin cos exp log sqrt abs min max where sign tanh + - * / ** // % @ ( ) ( ) , , < > <= >= == !=
1 2.5 1e3 1e999 0x1F 1_0 .5 1j 'a' "b" f'{x}' b'c' [ ] { } : := = . ... ; lambda if else for in not and or is
None True False await yield import x.y __class__ __import__ eval exec open os ~ ^ & | << # ! $ ? `
""".split()  # noqa: SIM905
TOKENS += ["\\", "\n", "\t"]
VALID = (
    "sigma*(y - x)",
    "x*(r - z) - y",
    "where(x < 0, -x, sqrt(x + 1e-3))",
    "-k1*sign(y)/(m*l**2) - (g/l - a*cos(omega*t))*sin(x)",
    "min(max(x, 0.5), y**3) + abs(t)",
    "exp(-x**2/2)*tanh(log(1 + y*y))",
)
SNIPPETS = (
    "__import__('os').system('touch {canary}')",
    "open('{canary}', 'w')",
    "eval(\"open('{canary}', 'w')\")",
    "exec('import os')",
    "(lambda: open('{canary}', 'w'))()",
    "[c for c in ().__class__.__base__.__subclasses__()]",
    "().__class__.__mro__[1].__subclasses__()[0]",
    "x.__init__.__globals__['os'].system('touch {canary}')",
    "sin.__globals__",
    "sin(open('{canary}', 'w'))",
    "max(x, key=open)",
    "where(x < 0, open('{canary}', 'w'), 1)",
    "(y := open('{canary}', 'w'))",
    "f\"{{open('{canary}', 'w')}}\"",
    "9**9**9**9**9",
    "1e300**1e300",
    "2**-9**9",
    "-" * 500 + "x",
    "(" * 300 + "x" + ")" * 300,
    "[" * 300,
    "x" + "+x" * 4000,
    "x" + "**x" * 2000,
    "x" + "*(x" * 90 + ")" * 90,
    "0x" + "f" * 9000,
    "1" * 9999,
    "1_" * 3000,
    "sin(" * 3000,
    "x if " * 1500,
    "lambda:" * 1400,
    "not " * 2400,
    "x." * 4000 + "y",
    "x[" * 2000,
    "{" * 190,
    "'" * 9999,
    "f'" + "{x!r:{" * 100,
    "\\\n" * 4000,
    "#" * 9999,
    "\x00",
    "x\x0c+\x0b1",
    "𝐱 + ｓｉｎ(x)",
    "x\u202e + y",
    "x\ufeff",
    "\ud800\udfff",
)


def token_soup(rng):
    return "".join(str(rng.choice(TOKENS)) + " " * rng.integers(2) for _ in range(rng.integers(1, 30)))


def mutated(rng):
    letters = list(VALID[rng.integers(len(VALID))])
    for _ in range(rng.integers(1, 5)):
        place = rng.integers(len(letters))
        match rng.integers(4):
            case 0:
                letters[place] = chr(rng.integers(32, 127))
            case 1:
                letters.insert(place, str(rng.choice(TOKENS)))
            case 2:
                del letters[place : place + rng.integers(1, 4)]
            case 3:
                other = VALID[rng.integers(len(VALID))]
                letters[place:place] = other[: rng.integers(len(other))]
        letters = letters or ["x"]
    return "".join(letters)


def any_letters(rng):
    highest = (128, 256, 0x3000, 0x110000)[rng.integers(4)]
    return "".join(chr(c) for c in rng.integers(0, highest, rng.integers(0, 40)))


def any_bytes(rng):
    return rng.bytes(rng.integers(0, 40)).decode(
        ("latin-1", "utf-8")[rng.integers(2)], errors="surrogateescape"
    )


def names():
    graph = Graph()
    labels = ("x", "y", "z", "t", "pi", "k", "k1", "m", "l", "g", "a", "r", "omega", "sigma")
    return graph, {label: graph.leaf("state", i) for i, label in enumerate(labels)}


def outcome(source):
    """True if it was parsed, False if it was refused; anything else is an error of the parser."""
    graph, symbols = names()
    try:
        parsed = parse(source, symbols, graph)
    except InputError as refusal:
        message = str(refusal)
    else:
        assert isinstance(parsed, Symbol)
        return True
    assert len(message) < 1000, "a flood is no message"
    return False


@pytest.mark.parametrize(
    ("make", "count"), [(token_soup, 4000), (mutated, 4000), (any_letters, 2000), (any_bytes, 2000)]
)
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_random_strings_are_parsed_or_refused(make, count):
    rng = np.random.default_rng(1993)
    began = time.process_time()
    parsed = sum(outcome(make(rng)) for _ in range(count))
    assert parsed < count
    assert parsed > 0 or make in (any_letters, any_bytes), "a fuzz that is always refused tests little"
    assert time.process_time() - began < 5.0


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: ascii(snippet[:30]))
def test_hostile_strings_have_no_effect(snippet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loaded, threads, limit = set(sys.modules), threading.active_count(), sys.getrecursionlimit()
    began = time.process_time()
    outcome(snippet.replace("{canary}", str(tmp_path / "canary")))
    assert time.process_time() - began < 1.0
    assert os.listdir(tmp_path) == []
    assert set(sys.modules) == loaded
    assert (threading.active_count(), sys.getrecursionlimit()) == (threads, limit)


def test_the_parser_never_calls_a_function_of_the_process():
    """Audit events would show compiling, executing, importing or opening anything."""
    seen = []
    watching = [True]

    def hook(event, arguments):
        if watching[0] and event in ("exec", "import", "open", "os.system", "subprocess.Popen"):
            seen.append(event)

    graph, symbols = names()
    parse("x", symbols, graph)
    sys.addaudithook(hook)
    try:
        for snippet in ("sin(x) + y", "__import__('os')", "open('x')", "(lambda: 1)()", "x.y"):
            outcome(snippet)
    finally:
        watching[0] = False
    assert seen == []
