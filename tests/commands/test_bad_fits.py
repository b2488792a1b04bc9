"""Bad input of fits and ensembles: place, key, value and remedy, exit status 2, nothing written, no hang."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hpcfit.__main__ import main
from tests.commands.test_bad_input import listing, refused
from tests.conftest import GOOD_JOB, Mpirun

# The lines are numbered in the messages: the first is the one with `kind`.
FIT = """kind = "fit"
[model]
states = ["x", "v"]
parameters = ["k", "c"]
equations = {x = "v", v = "-k*x - c*v"}
observables = {energy = "v**2/2"}
[data]
file = "d.csv"
sigma = 0.1
[guess]
k = 1.0
c = 0.1
[fit]
observe = ["x", "v"]
"""
DATA = "t,x,v,s\n0,1,0,0.1\n1,0.5,-0.8,0.1\n2,-0.4,-0.9,0.1\n3,-1,-0.1,0.1\n4,-0.6,0.7,0.1\n"
LORENZ = """kind = "fit"
[model]
name = "lorenz"
[truth]
start = {x = 1.0, y = 2.0, z = 20.0}
parameters = {sigma = 10.0, r = 28.0, b = "8/3"}
times = {spacing = 0.1, count = 11}
noise = {sd = 0.5}
[guess]
sigma = 9.0
r = 27.0
b = 3.0
[fit]
nodes = "data"
"""
ENSEMBLE = LORENZ.replace('"fit"', '"ensemble"') + "[ensemble]\nof = 'fit'\nmembers = 3\n"
MODEL = 'states = ["x", "v"]\nparameters = ["k", "c"]\nequations = {x = "v", v = "-k*x - c*v"}\n'
OBSERVABLES = 'observables = {energy = "v**2/2"}\n'
HUGE = LORENZ.replace("sigma = 9.0", "sigma = -1e40").replace("r = 27.0", "r = 1e40")
BLOW_UP = FIT.replace('v = "-k*x - c*v"', 'v = "k*v**2 + c"').replace("k = 1.0", "k = 1e6")
NODES_SHORT = FIT + "nodes = [1.0, 4.0]\n"
MAP = """kind = "fit"
[model]
name = "henon_map"
[data]
file = "d.csv"
[guess]
a = 1.4
b = 0.3
"""


def fit(old: str, new: str, text: str = FIT) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


def simulated(old: str, new: str) -> str:
    return fit(old, new, LORENZ)


def ensemble(old: str, new: str) -> str:
    return fit(old, new, ENSEMBLE)


def data(old: str, new: str) -> str:
    assert old in DATA
    return DATA.replace(old, new)


# job, data, what the message must say: found by `check`, and by `run` in the same words
CHECKED: dict[str, tuple[str, str | None, list[str]]] = {
    "ensemble of spectra": (
        ensemble("of = 'fit'", "of = 'lyapunov'"),
        None,
        ['job.toml:16: ensemble.of = "lyapunov"', "spectra of an ensemble are those of a grid"],
    ),
    # the data file
    "data file missing": (FIT, None, ["job.toml:8: data.file", "d.csv: no such file", "relative to the job"]),
    "data empty": (FIT, "", ["job.toml:8: data.file", "empty", "must name the columns"]),
    "semicolons": (FIT, DATA.replace(",", ";"), ["data.file", "separated by ';'", "with commas"]),
    "tabs": (FIT, DATA.replace(",", "\t"), ["data.file", "separated by tabs", "with commas"]),
    "text in a cell": (FIT, data("-0.9", "low"), ["data.file", "line 4, column v", "'low'", "empty"]),
    "infinite value": (FIT, data("-0.9", "inf"), ["data.file", "row 3: v is infinite", "empty"]),
    "value without square": (
        FIT,
        data("-0.9", "1e300"),
        ["job.toml:7: data", "value of v is 1e+300 at t = 2", "choose units"],
    ),
    "times unsorted": (FIT, data("\n3,", "\n1.5,"), ["data.time", "1.5 (row 4) after 2", "sort the rows"]),
    "times equal": (FIT, data("\n3,", "\n2,"), ["data.time", "2 (row 4) after 2", "remove repeated"]),
    "time missing": (FIT, data("\n3,", "\nnan,"), ["data.time", "row 4 has no time", "remove the row"]),
    "time column missing": (
        fit('"d.csv"', '"d.csv"\ntime = "tme"'),
        DATA,
        ["job.toml:9: data.time", "no column 'tme'", "known: t x v s"],
    ),
    "all values missing": (FIT, "t,x,v\n0,,\n1,,\n2,nan,\n", ["data.file", "no value of x, v", "fill"]),
    "observed column all missing": (
        fit('["x", "v"]\n', '["x"]\n', FIT.replace('states = ["x", "v"]', 'states = "x v"')),
        "t,x,v\n0,,1\n1,,1\n2,,1\n3,,1\n4,,1\n",
        ["data.file", "no value of x", "fill"],
    ),
    "weighted column all missing": (
        FIT + "weights = {v = 0}\n",
        "t,x,v\n0,,1\n1,,1\n2,,1\n3,,1\n4,,1\n",
        ["job.toml:7: data", "0 values with weight for 4 unknowns", "give more data"],
    ),
    "one time": (FIT, "t,x,v\n0,1,0\n", ["job.toml:7: data", "only one time", "two times"]),
    "fewer values than unknowns": (
        FIT,
        "t,x,v\n0,1,0\n1,0.5,\n",
        ["job.toml:7: data", "3 values with weight for 4 unknowns", "fix parameters in fit.fixed"],
    ),
    "column of [data] missing": (
        fit("sigma = 0.1", 'columns = {x = "pos", v = "v"}'),
        DATA,
        ["job.toml:9: data.columns", "no column 'pos'", "known: t x v s"],
    ),
    "column of an unknown quantity": (
        fit("sigma = 0.1", 'columns = {xx = "x"}\n', FIT.replace('observe = ["x", "v"]\n', "")),
        DATA,
        ["job.toml:9: data.columns.xx", "no state or observable 'xx'", "did you mean 'x'?"],
    ),
    "map at broken times": (
        MAP,
        "t,x,y\n0,0,0\n0.5,1,0\n1,1,1\n",
        ["data.time", "map", "not 0.5", "0, 1, 2"],
    ),
    # standard deviations
    "sigma zero": (fit("sigma = 0.1", "sigma = 0.0"), DATA, ["job.toml:9: data.sigma = 0.0", "positive"]),
    "sigma negative by name": (
        fit("sigma = 0.1", "sigma = {x = 0.1, v = -1}"),
        DATA,
        ["job.toml:9: data.sigma.v = -1", "positive"],
    ),
    "sigma negative in a column": (
        fit("sigma = 0.1", 'sigma = "s"'),
        data("-1,-0.1,0.1", "-1,-0.1,-2"),
        ['job.toml:9: data.sigma = "s"', "row 4", "is -2", "must be positive"],
    ),
    "sigma missing in a column": (
        fit("sigma = 0.1", 'sigma = {x = 0.1, v = "s"}'),
        data("-1,-0.1,0.1", "-1,-0.1,"),
        ['job.toml:9: data.sigma = "s"', "row 4", "of v is nan", "must be positive"],
    ),
    "sigma of no column": (
        fit("sigma = 0.1", 'sigma = "ss"'),
        DATA,
        ["job.toml:9: data.sigma", "no column 'ss'", "did you mean 's'?"],
    ),
    "sigma lacks a quantity": (
        fit("sigma = 0.1", "sigma = {x = 0.1}"),
        DATA,
        ["job.toml:9: data.sigma = {x = 0.1}", "no standard deviation for v", "give one to each"],
    ),
    "sigma of an unknown quantity": (
        fit("sigma = 0.1", "sigma = {x = 0.1, v = 0.1, w = 0.1}"),
        DATA,
        ["job.toml:9: data.sigma.w = 0.1", "no state or observable 'w'", "known: x v energy"],
    ),
    "sigma almost zero": (
        fit("sigma = 0.1", "sigma = {x = 0.1, v = 1e-200}"),
        DATA,
        ["job.toml:7: data", "sigma of v is 1e-200 at t = 0", "choose units"],
    ),
    # what is observed
    "unknown observable": (
        fit('["x", "v"]\n', '["x", "enrgy"]\n', FIT.replace('states = ["x", "v"]', 'states = "x v"')),
        DATA,
        ["job.toml:14: fit.observe", "no state or observable 'enrgy'", "did you mean 'energy'?"],
    ),
    "observed without column": (
        fit('["x", "v"]\n', '["x", "energy"]\n', FIT.replace('states = ["x", "v"]', 'states = "x v"')),
        DATA,
        ["job.toml:14: fit.observe", "d.csv has no column 'energy'", "give data.columns", "x, v"],
    ),
    "observed without given column": (
        fit("sigma = 0.1", 'columns = {x = "x"}'),
        DATA,
        ["job.toml:14: fit.observe", "no column for 'v'", "known: x"],
    ),
    "weight negative": (
        FIT + "weights = {x = -1}\n",
        DATA,
        ["job.toml:15: fit.weights.x = -1", "must not be negative"],
    ),
    "weights all zero": (
        FIT + "weights = {x = 0, v = 0}\n",
        DATA,
        ["job.toml:15: fit.weights = {x = 0.0, v = 0.0}", "all weights are 0", "at least one"],
    ),
    "weight of an unknown name": (
        FIT + "weights = {vv = 1}\n",
        DATA,
        ["job.toml:15: fit.weights.vv = 1.0", "not observed", "did you mean 'v'?"],
    ),
    "weight without column": (
        fit('observe = ["x", "v"]', "weights = {energy = 2}"),
        DATA,
        ["job.toml:14: fit.weights.energy = 2.0", "not observed", "known: x v"],
    ),
    # parameters
    "guess missing for one": (fit("c = 0.1\n", ""), DATA, ["job.toml:10: guess", "parameter c", "fit.fixed"]),
    "guess missing for all": (
        fit("[guess]\nk = 1.0\nc = 0.1\n", ""),
        DATA,
        ["job.toml: guess", "no value for the parameter k, c", "give each a guess"],
    ),
    "guess of a fixed parameter": (
        FIT + "fixed = {c = 0.2}\n",
        DATA,
        ["job.toml:12: guess.c = 0.1", "fixed as well", "remove it here or in fit.fixed"],
    ),
    "guess of an unknown name": (
        fit("k = 1.0\n", "k = 1.0\nkk = 2.0\n"),
        DATA,
        ["job.toml:12: guess.kk = 2.0", "no parameter 'kk'", "did you mean 'k'?"],
    ),
    "guess of a state": (
        fit("k = 1.0\n", "k = 1.0\nv = 2.0\n"),
        DATA,
        ["job.toml:12: guess.v = 2.0", "no parameter 'v'", "known: k c"],
    ),
    "guess infinite": (fit("k = 1.0", "k = inf"), DATA, ["job.toml:11: guess.k = inf", "must be finite"]),
    "guess not a number": (fit("k = 1.0", "k = nan"), DATA, ["job.toml:11: guess.k = nan", "must be finite"]),
    "guess without square": (
        fit("k = 1.0", "k = 1e200"),
        DATA,
        ["job.toml:11: guess.k = 1e+200", "too large", "below 1e+50"],
    ),
    "guess text": (fit("k = 1.0", 'k = "one"'), DATA, ['guess.k = "one"', "unknown name 'one'", "known: pi"]),
    "guess a list": (fit("k = 1.0", "k = [1, 2]"), DATA, ["job.toml:11: guess.k = [1, 2]", "not a number"]),
    "fixed unknown": (
        FIT + "fixed = {d = 0.2}\n",
        DATA,
        ["job.toml:15: fit.fixed.d = 0.2", "no parameter 'd'", "known: k c"],
    ),
    # nodes
    "nodes equal": (
        FIT + "nodes = [0, 1, 1, 4]\n",
        DATA,
        ["job.toml:15: fit.nodes", "1 comes after 1", "remove repeated"],
    ),
    "nodes unsorted": (
        FIT + "nodes = [0, 3, 1, 4]\n",
        DATA,
        ["fit.nodes = [0, 3, 1, 4]", "1 comes after 3", "sort them"],
    ),
    "one node": (
        FIT + "nodes = [0]\n",
        DATA,
        ["job.toml:15: fit.nodes = [0]", "fewer than two", "last time"],
    ),
    "nodes begin late": (
        NODES_SHORT,
        DATA,
        ["job.toml:15: fit.nodes = [1.0, 4.0]", "cover 1 to 4", "data go from 0 to 4", "add nodes"],
    ),
    "nodes end early": (FIT + "nodes = [0, 3]\n", DATA, ["fit.nodes = [0.0, 3.0]", "0 to 3", "add nodes"]),
    "nodes 0": (FIT + "nodes = 0\n", DATA, ["job.toml:15: fit.nodes = 0", "between 1", "every k-th time"]),
    "nodes negative": (FIT + "nodes = -2\n", DATA, ["fit.nodes = -2", "between 1", "every k-th time"]),
    "nodes broken": (FIT + "nodes = 2.5\n", DATA, ["fit.nodes = 2.5", "whole number", '"data"']),
    "nodes a word": (
        FIT + 'nodes = "every"\n',
        DATA,
        ['fit.nodes = "every"', "no choice", '"data"', "list of times"],
    ),
    "nodes of an unknown state": (
        FIT + "[nodes]\nvv = 1\n",
        DATA,
        ["job.toml:16: nodes.vv = 1", "no state 'vv'", "did you mean 'v'?"],
    ),
    "nodes of a mistyped expression": (
        FIT + '[nodes]\nv = "sinn(t)"\n',
        DATA,
        ['job.toml:16: nodes.v = "sinn(t)"', "unknown function 'sinn'", "did you mean 'sin'?"],
    ),
    "nodes in terms of a parameter": (
        FIT + '[nodes]\nv = "k*t"\n',
        DATA,
        ['job.toml:16: nodes.v = "k*t"', "unknown name 'k'", "known: t pi"],
    ),
    "nodes not finite": (
        FIT + '[nodes]\nv = "1/(t - 2)"\n',
        DATA,
        ['job.toml:16: nodes.v = "1/(t - 2)"', "not finite at t = 2", "change the expression"],
    ),
    "nodes infinite": (FIT + "[nodes]\nv = inf\n", DATA, ["job.toml:16: nodes.v = inf", "must be finite"]),
    # derived quantities
    "derived of an unknown name": (
        FIT + 'derived = {E = "v**2 + q"}\n',
        DATA,
        ['job.toml:15: fit.derived.E = "v**2 + q"', "unknown name 'q'", "known: t pi x v k c"],
    ),
    "derived named like a state": (
        FIT + 'derived = {v = "x"}\n',
        DATA,
        ['job.toml:15: fit.derived.v = "x"', "name of an unknown", "choose another name"],
    ),
    "derived not an expression": (
        FIT + 'derived = {E = "v**2 +"}\n',
        DATA,
        ['job.toml:15: fit.derived.E = "v**2 +"', "not an expression", "check its operators"],
    ),
    "derived a number": (FIT + "derived = {E = 3}\n", DATA, ["fit.derived.E = 3", "text in quotes"]),
    # options
    "level unknown": (
        FIT + 'level = "naturel"\n',
        DATA,
        ['job.toml:15: fit.level = "naturel"', "did you mean 'natural'?"],
    ),
    "phases unknown": (FIT + 'phases = "week"\n', DATA, ['fit.phases = "week"', "did you mean 'weak'?"]),
    "solver unknown": (FIT + 'solver = "petc"\n', DATA, ['fit.solver = "petc"', "did you mean 'petsc'?"]),
    "method unknown": (
        FIT + 'method = "tailor"\n',
        DATA,
        ['fit.method = "tailor"', "did you mean 'taylor'?"],
    ),
    "tolerance 0": (
        FIT + "tolerance = 0\n",
        DATA,
        ["job.toml:15: fit.tolerance = 0", "between 1e-14 and 0.01"],
    ),
    "tolerance 1": (
        FIT + "tolerance = 1\n",
        DATA,
        ["job.toml:15: fit.tolerance = 1", "between 1e-14 and 0.01"],
    ),
    "no iterations": (FIT + "max_iterations = 0\n", DATA, ["fit.max_iterations = 0", "between 1 and 10000"]),
    "unknown key": (FIT + "tolerence = 1e-8\n", DATA, ["fit.tolerence = 1e-08", "did you mean 'tolerance'?"]),
    "key of another table": (FIT + "sigma = 1\n", DATA, ["job.toml:15: fit.sigma = 1", "belongs to [data]"]),
    "fit in a simulation": (GOOD_JOB + "[fit]\nnodes = 2\n", None, ["fit:", "kind 'simulate'", "remove it"]),
    # where the data come from
    "data and simulated times": (
        FIT + "[truth]\nstart = {x = 1, v = 0}\nparameters = {k = 1, c = 0}\ntimes = [0, 1]\n",
        DATA,
        ["job.toml:18: truth.times", "data come from [data]", "remove truth.times, or the table [data]"],
    ),
    "neither data nor truth": (
        fit('[data]\nfile = "d.csv"\nsigma = 0.1\n', ""),
        None,
        ["job.toml: data", "there are no data", "give [data] with a file, or [truth]"],
    ),
    "truth without times": (
        simulated("times = {spacing = 0.1, count = 11}\n", ""),
        None,
        ["job.toml:4: truth.times", "is missing", "as in times ="],
    ),
    "too few simulated times": (
        simulated("count = 11", "count = 1"),
        None,
        ["job.toml:7: truth.times", "only one time", "data at two times"],
    ),
    "too few simulated values": (
        simulated("count = 11", "count = 5").replace("[fit]\n", '[fit]\nobserve = ["x"]\n'),
        None,
        ["job.toml:7: truth.times", "5 values with weight for 6 unknowns", "give more data"],
    ),
    "nodes beyond simulated data": (
        simulated('"data"', "[0.0, 0.5]"),
        None,
        ["job.toml:14: fit.nodes = [0.0, 0.5]", "data go from 0 to 1", "add nodes"],
    ),
    "noise zero": (
        simulated("0.5", "0.0"),
        None,
        ["job.toml:8: truth.noise.sd = 0.0", "no weight", "exact data"],
    ),
    "negative error of times": (
        simulated("sd = 0.5", "sd = 0.5, sd_t = -1"),
        None,
        ["job.toml:8: truth.noise.sd_t = -1", "negative"],
    ),
    "times of a map": (
        "kind = 'fit'\n[model]\nname = 'henon_map'\n[truth]\nstart = {x = 0, y = 0}\n"
        "parameters = {a = 1.4, b = 0.3}\ntimes = {count = 20, spacing = 1}\nnoise = {sd = 0.1, sd_t = 0.1}\n"
        "[guess]\na = 1.3\nb = 0.2\n",
        None,
        ["job.toml:8: truth.noise.sd_t", "a map has no times between its iterations", "remove it"],
    ),
    "error of a time negative": (
        fit("sigma = 0.1\n", 'sigma = 0.1\nsigma_t = "s"\n'),
        DATA.replace("0.1\n2", "-0.1\n2"),
        ["job.toml:10: data.sigma_t", "row 2: the standard deviation of the time is -0.1", "0 where a time"],
    ),
    "column of errors of times missing": (
        fit("sigma = 0.1\n", 'sigma = 0.1\nsigma_t = "off"\n'),
        DATA,
        ["job.toml:10: data.sigma_t", "no column 'off'", "known: t x v s"],
    ),
    "times neither measured nor exact": (
        FIT + 'times = "exactly"\n',
        DATA,
        ['job.toml:15: fit.times = "exactly"', "did you mean 'exact'?"],
    ),
    "noise lacks a quantity": (
        simulated("0.5", "{x = 1, y = 1}"),
        None,
        ["job.toml:8: truth.noise.sd", "no noise for z", "every observed quantity"],
    ),
    "noise of what is not observed": (
        simulated("0.5", "{x = 1, y = 1}").replace("[fit]\n", '[fit]\nobserve = ["x"]\n'),
        None,
        ["job.toml:8: truth.noise.sd.y = 1.0", "no observed quantity 'y'", "known: x"],
    ),
    # ensembles
    "ensemble without noise": (
        ensemble("noise = {sd = 0.5}\n", ""),
        None,
        ["job.toml:4: truth.noise", "is missing", "as in noise = {sd = 0.1}"],
    ),
    "ensemble of a recording": (
        FIT.replace('"fit"', '"ensemble"') + "[ensemble]\nof = 'fit'\nmembers = 3\n",
        DATA,
        ["job.toml:7: data", "simulated noise", "give [truth] instead"],
    ),
    "ensemble of nothing": (
        "kind = 'ensemble'\n[model]\nname = 'lorenz'\n[guess]\nsigma = 1\nr = 1\nb = 1\n"
        "[ensemble]\nof = 'fit'\nmembers = 3\n",
        None,
        ["job.toml: truth", "this table is missing", "simulates the data"],
    ),
    "ensemble without members": (
        ensemble("members = 3\n", ""),
        None,
        ["job.toml:15: ensemble.members", "is missing", "how many"],
    ),
    "ensemble of 0 members": (
        ensemble("members = 3", "members = 0"),
        None,
        ["job.toml:17: ensemble.members = 0", "between 1 and", "how many"],
    ),
    "ensemble of fts": (
        ensemble("of = 'fit'", "of = 'fts'"),
        None,
        ['job.toml:16: ensemble.of = "fts"', "did you mean 'fit'?"],
    ),
    "ensemble without guess": (
        ensemble("r = 27.0\n", ""),
        None,
        ["job.toml:9: guess", "parameter r", "fit.fixed"],
    ),
    "ensemble in a fit": (LORENZ + "[ensemble]\nof = 'fit'\nmembers = 3\n", None, ["ensemble", "remove it"]),
}


def put(folder: Path, text: str, table: str | None) -> None:
    (folder / "job.toml").write_text(text)
    if table is not None:
        (folder / "d.csv").write_text(table)


def messages(
    arguments: list[str], fragments: list[str], capsys: pytest.CaptureFixture[str], folder: Path
) -> list[str]:
    err = refused(arguments, fragments, capsys, folder)
    return [line for line in err.splitlines() if line.startswith("hpcfit: ")]


@pytest.mark.parametrize("name", CHECKED)
def test_check_and_run_refuse(name: str, job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, table, fragments = CHECKED[name]
    put(job.parent, text, table)
    found = messages(["check", "job.toml"], fragments, capsys, job.parent)
    assert len(found) == 1, found
    assert messages(["run", "job.toml"], fragments, capsys, job.parent) == found


# what only shows when the work begins: `check` neither integrates nor runs the user's code
RUN: dict[str, tuple[str, str | None, list[str]]] = {
    "guess blows up": (
        BLOW_UP,
        DATA,
        ["job.toml:10: guess", "cannot be integrated from the node at t = 0", "blows up", "another guess"],
    ),
    "guess far too large": (
        HUGE,
        None,
        ["job.toml:9: guess", "cannot be integrated from the node at t = 0", "another guess"],
    ),
    "ensemble whose guess blows up": (
        HUGE.replace('"fit"', '"ensemble"') + "[ensemble]\nof = 'fit'\nmembers = 3\n",
        None,
        ["job.toml:9: guess", "cannot be integrated from the node at t = 0", "another guess"],
    ),
    "equations without value at the data": (
        fit('"-k*x - c*v"', '"-k*x - c*sqrt(v)"'),
        DATA,
        ["job.toml:10: guess", "cannot be integrated from the node at t = 0", "start of the nodes"],
    ),
    "truth that blows up": (
        "kind = 'fit'\n[model]\nstates = 'x'\nparameters = 'k'\nequations = {x = 'k*x**2'}\n"
        "[truth]\nstart = {x = 1}\nparameters = {k = 1}\ntimes = {spacing = 0.5, count = 9}\n"
        "[guess]\nk = 1\n",
        None,
        ["job.toml:6: truth", "cannot be integrated", "t = 0.99999", "change its start, parameters or times"],
    ),
    "ensemble whose truth blows up": (
        "kind = 'ensemble'\n[model]\nstates = 'x'\nparameters = 'k'\nequations = {x = 'k*x**2'}\n"
        "[truth]\nstart = {x = 1}\nparameters = {k = 1}\ntimes = {spacing = 0.5, count = 9}\n"
        "noise = {sd = 0.1}\n[guess]\nk = 1\n[ensemble]\nof = 'fit'\nmembers = 2\n",
        None,
        ["job.toml:6: truth", "cannot be integrated", "t = 0.99999", "change its start, parameters or times"],
    ),
    "noise in proportion to zero": (
        simulated("sd = 0.5", "proportional = 0.1").replace("x = 1.0", "x = 0.0"),
        None,
        ["job.toml:8: truth.noise", "sigma of x is 0 at t = 0", "must be positive"],
    ),
    "ensemble with noise in proportion to zero": (
        ensemble("sd = 0.5", "proportional = 0.1").replace("x = 1.0", "x = 0.0"),
        None,
        ["job.toml:8: truth.noise", "sigma of x is 0 at t = 0", "must be positive"],
    ),
}


@pytest.mark.parametrize("name", RUN)
def test_run_refuses(name: str, job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, table, fragments = RUN[name]
    put(job.parent, text, table)
    assert main(["check", "job.toml"]) == 0
    capsys.readouterr()
    assert len(messages(["run", "job.toml"], fragments, capsys, job.parent)) == 1


OPAQUE = """
from hpcfit import model
@model(states="x v", parameters="k c", opaque=True)
def spring(t, u, p):
    return u.v, -p.k * u.x - p.c * u.v
"""
COMPUTED = OPAQUE.replace('"x v"', '["x", *"v"]').replace('"k c"', '"k" + " c"').replace(", opaque=True", "")
FROM_FILE = fit(MODEL + OBSERVABLES, 'file = "m.py"\n')

# job, the model's file, what the message must say, whether `check` knows it as well
MODEL_FILES: dict[str, tuple[str, str, list[str], bool]] = {
    "observable of an opaque model": (
        fit('["x", "v"]', '["x", "energy"]', FROM_FILE),
        OPAQUE,
        ["job.toml:11: fit.observe", "no state or observable 'energy'", "known: x v"],
        True,
    ),
    "expression of an opaque model": (
        FROM_FILE + 'derived = {E = "v**2"}\n',
        OPAQUE,
        ['job.toml:12: fit.derived.E = "v**2"', "opaque model has no expressions", "remove it"],
        False,
    ),
    "compiled method of an opaque model": (
        FROM_FILE + 'method = "taylor"\n',
        OPAQUE,
        ['job.toml:12: fit.method = "taylor"', "opaque model cannot be compiled", 'use "extrapolation"'],
        False,
    ),
    "weights of a model that is not run": (
        fit('["x", "v"]', '["x"]', FROM_FILE) + "weights = {x = 0.0}\n",
        OPAQUE,
        ["job.toml:12: fit.weights = {x = 0.0}", "all weights are 0", "at least one"],
        True,
    ),
    "nodes of a model that is not run": (
        FROM_FILE + "nodes = [0, 2]\n",
        OPAQUE,
        ["job.toml:12: fit.nodes = [0.0, 2.0]", "data go from 0 to 4", "add nodes"],
        True,
    ),
    "guess of a computed name": (
        fit("c = 0.1", "d = 0.1", FROM_FILE),
        COMPUTED,
        ["job.toml:9: guess.d = 0.1", "no parameter 'd'", "job.toml:7: guess: no value for the parameter c"],
        False,
    ),
    "observe a computed name": (
        fit("sigma = 0.1", "columns = {x = 'x', w = 'v'}", FROM_FILE).replace('observe = ["x", "v"]\n', ""),
        COMPUTED,
        ["job.toml:6: data.columns.w", "no state or observable 'w'", "known: x v"],
        False,
    ),
    "a file that fails": (
        FROM_FILE,
        OPAQUE + "1/0\n",
        ["job.toml:3: model.file", "m.py", "ZeroDivision"],
        False,
    ),
}


@pytest.mark.parametrize("name", MODEL_FILES)
def test_bad_fit_of_a_model_file(name: str, job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, source, fragments, checked = MODEL_FILES[name]
    put(job.parent, text, DATA)
    (job.parent / "m.py").write_text(source)
    if checked:
        refused(["check", "job.toml"], fragments, capsys, job.parent)
    else:
        assert main(["check", "job.toml"]) == 0
        capsys.readouterr()
    refused(["run", "job.toml"], fragments, capsys, job.parent)


def result(folder: Path) -> None:
    assert main(["-q", "run", "job.toml", "-o", "good.h5"]) == 0


def cut(folder: Path) -> None:
    result(folder)
    (folder / "cut.h5").write_bytes((folder / "good.h5").read_bytes()[:-1000])


def damaged(folder: Path) -> None:
    import h5py

    result(folder)
    with h5py.File(folder / "good.h5", "r+") as file:
        del file["nodes"]


def many(folder: Path) -> None:
    (folder / "job.toml").write_text(ENSEMBLE)


def simulation(folder: Path) -> None:
    result(folder)
    (folder / "job.toml").write_text(GOOD_JOB)


COMMANDS: dict[str, tuple[Callable[[Path], None], list[str], list[str]]] = {
    "member negative": (
        many,
        ["run", "job.toml", "--member", "-1"],
        ["--member", "-1 is negative", "from 0"],
    ),
    "no member of an ensemble": (
        many,
        ["run", "job.toml", "--member", "4"],
        ["--member", "no member 4", "1 to 3", "none for all"],
    ),
    "nodes by option": (
        lambda _: None,
        ["run", "job.toml", "--set", "fit.nodes=0"],
        ["--set: fit.nodes = 0", "between 1 and", "every k-th time"],
    ),
    "nodes by option, too short": (
        lambda _: None,
        ["check", "job.toml", "--set", "fit.nodes=[0.0, 0.5]"],
        ["--set: fit.nodes = [0.0, 0.5]", "data go from 0 to 1", "add nodes"],
    ),
    "show a cut fit": (cut, ["show", "cut.h5"], ["cut.h5", "cut off", "; "]),
    "show a damaged fit": (damaged, ["show", "good.h5"], ["good.h5", "damaged result", "nodes"]),
    "report of a cut fit": (cut, ["report", "cut.h5", "-o", "page.html"], ["cut.h5", "cut off"]),
    "output is cut": (
        cut,
        ["run", "job.toml", "-o", "cut.h5"],
        ["cut.h5", "-o", "not a complete result", "move"],
    ),
    "output is damaged": (
        damaged,
        ["run", "job.toml", "-o", "good.h5"],
        ["good.h5", "-o", "not a complete result", "--overwrite"],
    ),
    "output is another fit's": (
        result,
        ["run", "job.toml", "-o", "good.h5", "--set", "guess.r=26.0"],
        ["good.h5", "-o", "another job", "--overwrite"],
    ),
    "output is another member's": (
        result,
        ["run", "job.toml", "-o", "good.h5", "--member", "1"],
        ["good.h5", "-o", "another job", "--overwrite"],
    ),
    "output is another kind's": (
        simulation,
        ["run", "job.toml", "-o", "good.h5"],
        ["good.h5", "-o", "another job", "--overwrite"],
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_bad_command(name: str, job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prepare, arguments, fragments = COMMANDS[name]
    job.write_text(LORENZ)
    prepare(job.parent)
    capsys.readouterr()
    assert len(messages(arguments, fragments, capsys, job.parent)) == 1


def test_all_mistakes_of_a_fit_at_once_in_the_order_of_the_file(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = FIT.replace("sigma = 0.1", "sigma = -1").replace("k = 1.0", "kk = 1.0")
    put(job.parent, text + 'nodes = 0\nlevel = "t3"\nderived = {E = "q"}\n[nodes]\ny = 1\n', DATA)
    assert main(["check", "job.toml"]) == 2
    found = [line.split(": ")[1:3] for line in capsys.readouterr().err.splitlines()]
    assert [(place.split(":")[1], key.split(" ")[0]) for place, key in found] == [
        ("9", "data.sigma"),
        ("10", "guess"),
        ("11", "guess.kk"),
        ("15", "fit.nodes"),
        ("16", "fit.level"),
        ("17", "fit.derived.E"),
        ("19", "nodes.y"),
    ]


# job, data, further arguments, what the one message of two ranks must say
PARALLEL: dict[str, tuple[str, str | None, list[str], list[str]]] = {
    "guess blows up": (*RUN["guess blows up"][:2], [], RUN["guess blows up"][2]),
    "ensemble": (
        *RUN["ensemble whose guess blows up"][:2],
        [],
        ["job.toml:9: guess", "cannot be integrated"],
    ),
    "nodes": (NODES_SHORT, DATA, [], ["job.toml:15: fit.nodes", "data go from 0 to 4", "add nodes"]),
    "too few data": (FIT, "t,x,v\n0,1,0\n1,0.5,\n", [], ["job.toml:7: data", "3 values", "4 unknowns"]),
    "noise": (*RUN["noise in proportion to zero"][:2], [], RUN["noise in proportion to zero"][2]),
    "member": (ENSEMBLE, None, ["--member", "0"], ["--member", "no member 0", "1 to 3"]),
    "several mistakes": (
        FIT + "nodes = 0\n",
        None,
        ["--set", "fit.level=t3"],
        ["fit.nodes = 0", "fit.level"],
    ),
}


@pytest.mark.parametrize("name", PARALLEL)
def test_two_ranks_refuse_with_one_voice(name: str, job: Path, mpirun: Mpirun) -> None:
    text, table, further, fragments = PARALLEL[name]
    put(job.parent, text, table)
    before = listing(job.parent)
    done = mpirun(2, "-m", "hpcfit", "run", "job.toml", *further, cwd=job.parent, seconds=60)
    assert done.returncode == 2, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("hpcfit: ")]
    assert len(said) == len(set(said)) == 1 + (name == "several mistakes"), done.stderr
    for fragment in fragments:
        assert fragment in done.stderr, f"{fragment!r} not in:\n{done.stderr}"
    assert "Traceback" not in done.stderr
    assert "MPI_ABORT" not in done.stderr
    assert listing(job.parent) == before, "something was written"
