"""Bad input gets one clear message with place, key, value and remedy, exit status 2, and changes nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hpcfit.__main__ import main
from tests.conftest import GOOD_JOB

INLINE = """
kind = "simulate"
[model]
states = ["x", "v"]
parameters = ["k"]
equations = {x = "v", v = "-k*x"}
[truth]
start = {x = 1.0, v = 0.0}
parameters = {k = 4.0}
times = {start = 0.0, spacing = 0.1, count = 5}
"""
FROM_FILE = INLINE.replace(
    'states = ["x", "v"]\nparameters = ["k"]\nequations = {x = "v", v = "-k*x"}', 'file = "m.py"'
)
WITH_DATA = INLINE.replace("times = {start = 0.0, spacing = 0.1, count = 5}\n", '[data]\nfile = "d.csv"\n')
SPRING = """
from hpcfit import model
@model(states="x v", parameters="k")
def spring(t, u, p):
    return u.v, -p.k * u.x
"""


def lorenz(old: str, new: str) -> str:
    assert old in GOOD_JOB
    return GOOD_JOB.replace(old, new)


def inline(old: str, new: str) -> str:
    assert old in INLINE
    return INLINE.replace(old, new)


JOBS: dict[str, tuple[str, list[str]]] = {
    # the document
    "empty": ("", ["kind", "is missing"]),
    "not toml": ("kind = simulate\n", ["job.toml", "not valid TOML"]),
    "repeated key": (lorenz("seed = 7", "seed = 7\nseed = 8"), ["not valid TOML"]),
    "unknown kind": (
        lorenz('"simulate"', '"simulte"'),
        ["job.toml:2", 'kind = "simulte"', "did you mean 'simulate'"],
    ),
    "kind not text": (lorenz('"simulate"', "3"), ["kind = 3", "is not one of"]),
    "unknown top key": (lorenz("seed", "sead"), ["job.toml:3", "sead = 7", "did you mean 'seed'"]),
    "unknown table": (GOOD_JOB + "[sim]\na = 1\n", ["sim", "unknown table"]),
    "table as value": (
        "kind = 'simulate'\nmodel = 3\n[truth]\nstart = {}\n",
        ["model = 3", "must be a table"],
    ),
    "key in wrong table": (GOOD_JOB + "seed = 4\n", ["simulate.seed", "unknown key"]),
    "key of another table": (GOOD_JOB + "noise = 4\n", ["simulate.noise = 4", "belongs to [truth]"]),
    "table of another kind": (GOOD_JOB + "[guess]\nr = 1.0\n", ["guess", "no meaning", "remove it"]),
    "missing table": ('kind = "simulate"\n[model]\nname = "lorenz"\n', ["truth", "missing", "needs [truth]"]),
    "negative seed": (lorenz("seed = 7", "seed = -1"), ["seed = -1", "between 0 and"]),
    "seed not whole": (lorenz("seed = 7", "seed = 1.5"), ["seed = 1.5", "whole number"]),
    # the model
    "unknown model": (lorenz('"lorenz"', '"lorentz"'), ["job.toml:5", "lorentz", "did you mean 'lorenz'"]),
    "no model given": (lorenz('name = "lorenz"', ""), ["model", "give a model in one way"]),
    "two models": (inline("states =", 'file = "m.py"\nstates ='), ["model", "one way"]),
    "size of a fixed model": (lorenz('"lorenz"', '"lorenz"\nsize = 5'), ["takes no size", "size = 5"]),
    "size too small": (lorenz('"lorenz"', '"lorenz96"\nsize = 2'), ["size 2", "outside 4"]),
    "states of a catalogue model": (
        lorenz('"lorenz"', '"lorenz"\nstates = ["x"]'),
        ["model.states", "inline"],
    ),
    "mistyped state in equation": (
        inline('x = "v"', 'x = "vv"'),
        ["'vv'", "did you mean 'v'"],
    ),
    "unknown function": (inline('"-k*x"', '"-k*sinn(x)"'), ["'sinn'", "did you mean 'sin'"]),
    "wrong arity": (inline('"-k*x"', '"sin(x, k)"'), ["sin()", "takes 1 argument, 2 given", "sin(x)"]),
    "missing equation": (inline(', v = "-k*x"', ""), ["no equation for the state 'v'"]),
    "extra equation": (inline('v = "-k*x"', 'v = "-k*x", w = "1"'), ["equation for 'w'", "no state"]),
    "equation not text": (inline('"-k*x"', "3"), ["model.equations.v = 3", "text in quotes"]),
    "equation not an expression": (inline('"-k*x"', '"-k*"'), ["'-k*' is not an expression"]),
    "caret as power": (inline('"-k*x"', '"-k*x^2"'), ["write **"]),
    "attribute access": (inline('"-k*x"', '"x.__class__"'), ["not allowed"]),
    "import": (inline('"-k*x"', "\"__import__('os')\""), ["unknown function '__import__'"]),
    "name used twice": (inline('["k"]', '["x"]'), ["'x' is used twice"]),
    "name is a word of python": (inline('["k"]', '["lambda"]'), ["'lambda'", "lambda_"]),
    "name is a function": (inline('["k"]', '["sin"]'), ["'sin' is the name of a function"]),
    "no states": (inline('states = ["x", "v"]\n', ""), ["equations without states"]),
    "unit of nothing": (inline("[truth]", 'units = {y = "m"}\n[truth]'), ["unit given for 'y'"]),
    "model kind": (inline("[truth]", 'kind = "flux"\n[truth]'), ['model.kind = "flux"', "flow"]),
    # the truth
    "start lacks a state": (lorenz("y = 2.0, ", ""), ["truth.start", "no value for the state y"]),
    "start of an unknown state": (lorenz("y = 2.0", "yy = 2.0"), ["no state 'yy'", "did you mean 'y'"]),
    "start not a number": (lorenz("y = 2.0", 'y = "two"'), ['truth.start.y = "two"', "unknown name 'two'"]),
    "start without value": (lorenz("y = 2.0", 'y = "sqrt(-1)"'), ["truth.start.y", "no finite value"]),
    "start infinite": (lorenz("y = 2.0", "y = inf"), ["truth.start.y = inf", "finite"]),
    "start true": (lorenz("y = 2.0", "y = true"), ["truth.start.y = true", "not a number"]),
    "start a list": (
        lorenz("{x = 1.0, y = 2.0, z = 20.0}", "[1.0, 2.0]"),
        ["truth.start = [1.0, 2.0]", "table"],
    ),
    "parameter missing": (lorenz("r = 28.0, ", ""), ["truth.parameters", "no value for the parameter r"]),
    "parameter nan": (lorenz("r = 28.0", "r = nan"), ["truth.parameters.r = nan", "finite"]),
    "times missing": (
        lorenz("times = {start = 0.0, spacing = 0.1, count = 11}\n", ""),
        ["truth.times", "missing"],
    ),
    "spacing negative": (lorenz("0.1", "-0.1"), ["truth.times.spacing = -0.1", "positive"]),
    "count zero": (lorenz("count = 11", "count = 0"), ["truth.times.count = 0", "between 1"]),
    "count missing": (lorenz(", count = 11", ""), ["truth.times", "lacks count"]),
    "times mistyped": (lorenz("count", "cnt"), ["truth.times.cnt = 11", "did you mean 'count'"]),
    "times fall": (lorenz("{start = 0.0, spacing = 0.1, count = 11}", "[0.0, 2.0, 1.0]"), ["must increase"]),
    "times empty": (lorenz("{start = 0.0, spacing = 0.1, count = 11}", "[]"), ["truth.times = []", "empty"]),
    "times end before start": (lorenz("spacing = 0.1", "end = -1.0"), ["ends at -1"]),
    "times file missing": (
        lorenz("{start = 0.0, spacing = 0.1, count = 11}", '{file = "no.csv"}'),
        ["no.csv", "no such file"],
    ),
    "map with broken times": (
        'kind = "simulate"\n[model]\nname = "henon_map"\n[truth]\nstart = {x = 0.0, y = 0.0}\n'
        "parameters = {a = 1.4, b = 0.3}\ntimes = {spacing = 0.5, count = 3}\n",
        ["truth.times", "map", "whole"],
    ),
    "noise without size": (lorenz("{sd = 0.5}", '{beyond_3_sigma = "keep"}'), ["truth.noise", "exactly one"]),
    "noise with two sizes": (
        lorenz("sd = 0.5", "sd = 0.5, fraction = 0.1"),
        ["exactly one", "sd and fraction"],
    ),
    "noise negative": (lorenz("sd = 0.5", "sd = -0.5"), ["truth.noise.sd = -0.5", "negative"]),
    "noise strip": (lorenz("sd = 0.5", 'sd = 0.5, beyond_3_sigma = "drop"'), ["beyond_3_sigma", "discard"]),
    "noise of an unknown quantity": (lorenz("sd = 0.5", "sd = {q = 0.5}"), ["truth.noise.sd", "'q'"]),
    # the options
    "observe unknown": (lorenz('"z"]', '"zz"]'), ["simulate.observe", "'zz'"]),
    "observe twice": (lorenz('"z"]', '"x"]'), ["simulate.observe", "twice"]),
    "tolerance too small": (
        GOOD_JOB + "tolerance = 1e-20\n",
        ["simulate.tolerance = 1e-20", "1e-18 at least"],
    ),
    "method unknown": (GOOD_JOB + 'method = "euler"\n', ['simulate.method = "euler"', "extrapolation"]),
    "sensitivities not boolean": (
        GOOD_JOB + 'sensitivities = "yes"\n',
        ["simulate.sensitivities", "true or false"],
    ),
    "budget zero": (GOOD_JOB + "max_steps = 0\n", ["simulate.max_steps = 0"]),
    # data and model files
    "data missing": (WITH_DATA, ["d.csv", "no such file"]),
    "data and times": (INLINE + '[data]\nfile = "d.csv"\n', ["truth.times", "come from [data]"]),
    "model file missing": (FROM_FILE, ["m.py", "cannot be read"]),
}


@pytest.mark.parametrize("name", JOBS)
def test_bad_job(name: str, job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, fragments = JOBS[name]
    job.write_text(text)
    refused(["run", "job.toml"], fragments, capsys, job.parent)


DATA: dict[str, tuple[bytes, list[str]]] = {
    "empty": (b"", ["d.csv", "empty"]),
    "only comments": (b"# nothing\n", ["d.csv", "empty"]),
    "only a header": (b"t,x\n", ["no rows"]),
    "no header": (b"0,1\n1,2\n", ["first line holds numbers"]),
    "not a number": (b"t,x\n0,1\n1,one\n", ["line 3", "column x", "'one'"]),
    "short line": (b"t,x\n0,1\n1\n", ["line 3", "1 fields", "2"]),
    "no time column": (b"time,x\n0,1\n1,2\n", ["data.time", "no column 't'", "time"]),
    "no known column": (b"t,y\n0,1\n1,2\n", ["data.columns", "named like"]),
    "times fall": (b"t,x\n0,1\n2,2\n1,3\n", ["times must increase", "row 3"]),
    "time missing": (b"t,x\n0,1\n,2\n", ["row 2 has no time"]),
    "column twice": (b"t,x,x\n0,1,1\n", ["two columns", "'x'"]),
    "column unnamed": (b"t,x,\n0,1,1\n", ["column 3 has no name"]),
    "binary": (bytes(range(256)), ["not readable as text"]),
    "all missing": (b"t,x\n0,\n1,\n", ["holds no value"]),
}


@pytest.mark.parametrize("name", DATA)
def test_bad_data_file(name: str, job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, fragments = DATA[name]
    job.write_text(WITH_DATA)
    (job.parent / "d.csv").write_bytes(content)
    refused(["run", "job.toml"], fragments, capsys, job.parent)


MODEL_FILES: dict[str, tuple[str, list[str]]] = {
    "not python": ("def (", ["m.py", "not Python", "line 1"]),
    "no model": ("x = 1\n", ["m.py", "no model in this file"]),
    "two models": (SPRING + SPRING.replace("spring", "other"), ["2 models", "spring other"]),
    "fails when run": (SPRING + "1/0\n", ["m.py", "ZeroDivisionError"]),
    "mistyped state": (SPRING.replace("u.v", "u.vel"), ["m.py", "no state 'vel'"]),
    "wrong number of equations": (SPRING.replace("u.v, ", ""), ["2 states (x v)", "1 equations"]),
    "branch on a symbol": (
        SPRING.replace("    return", "    if u.x > 0: return 1, 2\n    return"),
        ["where(", "opaque"],
    ),
    "names that change": (
        SPRING.replace('"x v"', '"x" + " v"').replace("u.v, -p.k * u.x", "u.v, u.w"),
        ["'w'"],
    ),
}


@pytest.mark.parametrize("name", MODEL_FILES)
def test_bad_model_file(name: str, job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, fragments = MODEL_FILES[name]
    job.write_text(FROM_FILE)
    (job.parent / "m.py").write_text(source)
    refused(["run", "job.toml"], fragments, capsys, job.parent)


def make_result(folder: Path) -> None:
    (folder / "good.toml").write_text(GOOD_JOB)
    assert main(["-q", "run", "good.toml", "-o", "good.h5"]) == 0


def cut(folder: Path) -> None:
    make_result(folder)
    (folder / "cut.h5").write_bytes((folder / "good.h5").read_bytes()[:3000])


def foreign(folder: Path) -> None:
    import h5py

    with h5py.File(folder / "foreign.h5", "w") as file:
        file["x"] = 1.0


def damaged(folder: Path) -> None:
    import h5py

    make_result(folder)
    shutil.copy(folder / "good.h5", folder / "damaged.h5")
    with h5py.File(folder / "damaged.h5", "r+") as file:
        del file["states"]


def newer(folder: Path) -> None:
    import h5py

    make_result(folder)
    with h5py.File(folder / "good.h5", "r+") as file:
        file.attrs["format_version"] = 99


def note(folder: Path) -> None:
    (folder / "note.h5").write_text("my notes\n")


def nothing(folder: Path) -> None:
    pass


COMMANDS: dict[str, tuple[Callable[[Path], None], list[str], list[str]]] = {
    "job not there": (nothing, ["run", "no.toml"], ["no.toml", "no such file"]),
    "job is a folder": (nothing, ["run", "."], ["folder"]),
    "set without value": (nothing, ["run", "job.toml", "--set", "seed"], ["--set", "KEY=VALUE"]),
    "set unknown key": (
        nothing,
        ["run", "job.toml", "--set", "simulate.tol=1"],
        ["--set", "simulate.tol = 1", "tolerance"],
    ),
    "set bad value": (nothing, ["run", "job.toml", "--set", "seed=-3"], ["--set", "seed = -3"]),
    "set through a value": (nothing, ["run", "job.toml", "--set", "seed.x=3"], ["--set", "not a table"]),
    "member negative": (nothing, ["run", "job.toml", "--member", "-2"], ["--member", "-2"]),
    "no output folder": (nothing, ["run", "job.toml", "-o", "no/out.h5"], ["no/out.h5", "mkdir -p no"]),
    "output is another job's": (
        make_result,
        ["run", "job.toml", "--set", "seed=8", "-o", "good.h5"],
        ["another job", "--overwrite"],
    ),
    "output is no result": (note, ["run", "job.toml", "-o", "note.h5"], ["note.h5", "move it away"]),
    "overwrite spares other files": (
        note,
        ["run", "job.toml", "-o", "note.h5", "--overwrite"],
        ["move it away"],
    ),
    "output is damaged": (damaged, ["run", "job.toml", "-o", "damaged.h5"], ["damaged.h5", "--overwrite"]),
    "output is a folder": (nothing, ["run", "job.toml", "-o", "."], ["move it away"]),
    "show missing": (nothing, ["show", "no.h5"], ["no.h5", "no such file"]),
    "show a text": (nothing, ["show", "job.toml"], ["job.toml", "not an HDF5 file"]),
    "show a folder": (nothing, ["show", "."], ["folder"]),
    "show a cut file": (cut, ["show", "cut.h5"], ["cut.h5", "cut off"]),
    "show a foreign file": (foreign, ["show", "foreign.h5"], ["not a result of hpcfit"]),
    "show a damaged file": (damaged, ["show", "damaged.h5"], ["damaged result", "states"]),
    "show a newer file": (newer, ["show", "good.h5"], ["99", "upgrade"]),
    "show three": (make_result, ["show", "good.h5", "good.h5", "good.h5"], ["3 results"]),
    "compare as json": (make_result, ["show", "good.h5", "good.h5", "--json"], ["--json"]),
    "report without result": (nothing, ["report", "no.h5"], ["no.h5"]),
    "report of unknown form": (make_result, ["report", "good.h5", "-o", "page.doc"], [".doc", ".html"]),
    "report into no folder": (
        make_result,
        ["report", "good.h5", "-o", "no/page.html"],
        ["no/page.html", "cannot write"],
    ),
    "unknown model": (nothing, ["models", "lorens"], ["'lorens'", "did you mean 'lorenz'"]),
    "model size": (nothing, ["models", "lorenz96", "--size", "1"], ["size 1"]),
    "source of no model": (nothing, ["models", "--source"], ["--source needs a model"]),
    "check several": (nothing, ["check", "job.toml", "no.toml", "none.toml"], ["no.toml", "none.toml"]),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_bad_command(name: str, job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prepare, arguments, fragments = COMMANDS[name]
    prepare(job.parent)
    capsys.readouterr()
    refused(arguments, fragments, capsys, job.parent)


@pytest.mark.parametrize(
    "arguments", [[], ["fly"], ["run"], ["run", "job.toml", "--fast"], ["run", "job.toml", "--member", "x"]]
)
def test_bad_arguments_show_usage(
    arguments: list[str], job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage: hpcfit" in capsys.readouterr().err


def test_all_mistakes_are_reported_at_once_in_the_order_of_the_file(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job.write_text(lorenz("seed", "sead").replace("r = 28.0", "r = nan").replace("sd = 0.5", "sd = -1"))
    assert main(["check", "job.toml"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[2] for line in lines] == ["3", "8", "10"]


def refused(
    arguments: list[str], fragments: list[str], capsys: pytest.CaptureFixture[str], folder: Path
) -> str:
    before = listing(folder)
    status = main(arguments)
    err = capsys.readouterr().err
    assert status == 2, err
    assert "Traceback" not in err
    for fragment in fragments:
        assert fragment in err, f"{fragment!r} not in:\n{err}"
    assert all(
        line.startswith("hpcfit: ") for line in err.splitlines() if "running the model file" not in line
    ), err
    assert "; " in err, f"no remedy in:\n{err}"
    assert listing(folder) == before, "something was written"
    return err


def listing(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path): path.read_bytes() for path in files}
