"""Bad input of jobs with many experiments and of HDF5 recordings: one clear message each, nothing written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from hpcfit.__main__ import main
from tests.commands.test_bad_fits import DATA, messages
from tests.conftest import GOOD_JOB

# The lines are numbered in the messages: the first is the one with `kind`.
DECAY = """kind = "fit"
[model]
states = ["x", "v"]
parameters = ["k", "c"]
equations = {x = "v", v = "-k*x - c*v"}
[guess]
k = 1.0
c = 0.1
[fit]
local = ["k"]
"""
TWO = DECAY + '[[data]]\nfile = "d.csv"\nsigma = 0.1\n[[data]]\nfile = "e.csv"\n'
ONE = DECAY + '[data]\nfile = "d.csv"\nexperiment = "run"\n'
TRUTHS = DECAY + (
    "[[truth]]\nstart = {x = 1.0, v = 0.0}\nparameters = {k = 1.0, c = 0.1}\n"
    "times = {spacing = 1.0, count = 9}\nnoise = {sd = 0.1}\n"
    "[[truth]]\nparameters = {k = 2.0}\n"
)
RUNS = "t,x,v,run\n0,1,0,4\n1,0.5,-0.8,4\n2,-0.4,-0.9,4\n0,1,0,2\n1,0.5,-0.8,2\n2,-0.4,-0.9,2\n"
EARLY, LATE = RUNS.replace("2,-0.4,-0.9,2", "1,-0.4,-0.9,2"), DATA.replace("4,-0.6", "3,-0.6")


def change(text: str, *pairs: str) -> str:
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


# job, files, what the message must say: found by `check`, and by `run` in the same words
CHECKED: dict[str, tuple[str, dict[str, str], list[str]]] = {
    # several files
    "second file missing": (TWO, {"d.csv": DATA}, ["job.toml:15: data[2].file", "e.csv: no such file"]),
    "column missing in the second": (
        TWO + 'columns = {x = "x", v = "vv"}\n',
        {"d.csv": DATA, "e.csv": DATA},
        ["job.toml:16: data[2].columns", "e.csv has no column 'vv'", "did you mean 'v'"],
    ),
    "times in the second": (
        TWO,
        {"d.csv": DATA, "e.csv": LATE},
        ["data[2].time", "e.csv: times must increase: 3 (row 5) after 3", "sort the rows"],
    ),
    "time column of the second": (
        TWO + 'time = "tt"\n',
        {"d.csv": DATA, "e.csv": DATA},
        ["job.toml:16: data[2].time", "e.csv has no column 'tt'"],
    ),
    "one time in the second": (
        TWO,
        {"d.csv": DATA, "e.csv": "t,x,v\n0,1,0\n"},
        ["job.toml:14: data[2]", "experiment 2: only one time", "two times at least"],
    ),
    "unknown key in the second": (
        TWO + 'colums = {x = "x"}\n',
        {},
        ["job.toml:16: data[2].colums", "unknown key", "did you mean 'columns'"],
    ),
    "unknown quantity in the second": (
        TWO + 'columns = {xx = "x"}\n',
        {},
        ["job.toml:16: data[2].columns.xx", "no state or observable 'xx'", "did you mean 'x'"],
    ),
    "the same file twice": (
        change(TWO, "e.csv", "d.csv"),
        {"d.csv": DATA},
        ["job.toml:15: data[2].file", "the same data as data[1]", "another file"],
    ),
    "sigma in the second only": (
        change(TWO, "sigma = 0.1\n", "") + "sigma = 0.1\n",
        {"d.csv": DATA, "e.csv": DATA},
        ["job.toml:15: data[2].sigma", "data[1] has no sigma", "to all experiments, or to none"],
    ),
    "sigma of the second negative": (
        TWO + "sigma = -1.0\n",
        {},
        ["job.toml:16: data[2].sigma = -1.0", "must be positive"],
    ),
    "nothing observed in the second": (
        change(TWO, 'local = ["k"]', 'local = ["k"]\nobserve = ["x"]') + 'columns = {v = "v"}\n',
        {"d.csv": DATA, "e.csv": DATA},
        ["job.toml:17: data[2].columns", "nothing of x is there"],
    ),
    "observed in no experiment": (
        change(TWO, 'local = ["k"]', 'local = ["k"]\nobserve = ["x", "v"]'),
        {"d.csv": DATA.replace("v,s", "w,s"), "e.csv": DATA.replace("v,s", "w,s")},
        ["job.toml:11: fit.observe", "no experiment has values of v", "do not observe it"],
    ),
    "no values in the second": (
        TWO,
        {"d.csv": DATA, "e.csv": "t,x,v\n0,,\n1,,\n"},
        ["job.toml:15: data[2].file", "e.csv holds no value of x, v"],
    ),
    "not tables": (
        DECAY.replace("[model]", "data = [1, 2]\n[model]"),
        {},
        ["data[1] = 1", "must be a table"],
    ),
    "empty array": (
        DECAY.replace("[model]", "data = []\n[model]"),
        {},
        ["job.toml:2: data", "is empty", "write [[data]]"],
    ),
    "fewer truths than files": (
        TWO
        + "[[truth]]\nstart = {x = 1.0, v = 0.0}\nparameters = {k = 1.0, c = 0.1}\n[[truth]]\n[[truth]]\n",
        {"d.csv": DATA, "e.csv": DATA},
        ["job.toml:20: truth[3]", "3 tables [[truth]] for 2 of [data]", "one to each"],
    ),
    # one file
    "experiment column missing": (
        ONE,
        {"d.csv": DATA},
        ["job.toml:13: data.experiment", "d.csv has no column 'run'", "known: t x v s"],
    ),
    "row without experiment": (
        ONE,
        {"d.csv": RUNS.replace("1,0.5,-0.8,2", "1,0.5,-0.8,")},
        ["job.toml:13: data.experiment", "row 5 belongs to no experiment", "fill it"],
    ),
    "times within an experiment": (
        ONE,
        {"d.csv": EARLY},
        ["data.time", "d.csv: run = 2: times must increase: 1 (row 6) after 1", "sort the rows"],
    ),
    "time missing within an experiment": (
        ONE,
        {"d.csv": RUNS.replace("\n1,0.5,-0.8,2", "\n,0.5,-0.8,2")},
        ["data.time", "d.csv: run = 2: row 5 has no time", "fill it"],
    ),
    "an experiment without values": (
        ONE,
        {"d.csv": RUNS + "0,,,9\n1,,,9\n"},
        ["job.toml:12: data.file", "run = 9 holds no value of x, v", "fill the columns"],
    ),
    "an experiment with one time": (
        ONE,
        {"d.csv": RUNS + "0,1,0,9\n"},
        ["job.toml:11: data", "experiment 3: only one time"],
    ),
    "too few values for so many unknowns": (
        change(ONE, '["k"]', '["k", "c"]'),
        {"d.csv": "t,x,v,run\n0,1,0,1\n1,0,1,1\n0,1,0,2\n1,0,1,2\n0,1,,3\n1,0,,3\n"},
        ["job.toml:11: data", "10 values with weight for 12 unknowns", "more data"],
    ),
    "experiment in several files": (
        TWO + 'experiment = "run"\n',
        {},
        ["job.toml:16: data[2].experiment", "only one file may hold several experiments", "keep one [data]"],
    ),
    "truths of grouped data": (
        ONE
        + "[[truth]]\nstart = {x = 1.0, v = 0.0}\nparameters = {k = 1.0, c = 0.1}\n[[truth]]\n[[truth]]\n",
        {"d.csv": RUNS},
        ["job.toml:18: truth[3]", "3 tables [[truth]] for 2 experiments", "one in all"],
    ),
    # simulated
    "start of the second": (
        TRUTHS + "start = {x = 1.0}\n",
        {},
        ["job.toml:18: truth[2].start", "no value for the state v"],
    ),
    "parameter of the second unknown": (
        change(TRUTHS, "{k = 2.0}", "{kk = 2.0}"),
        {},
        ["job.toml:17: truth[2].parameters.kk = 2.0", "no parameter 'kk'", "did you mean 'k'"],
    ),
    "parameter of the second not a number": (
        change(TRUTHS, "{k = 2.0}", '{k = "two"}'),
        {},
        ['job.toml:17: truth[2].parameters.k = "two"', "unknown name 'two'"],
    ),
    "truth of a shared parameter differs": (
        change(TRUTHS, "{k = 2.0}", "{c = 0.2}"),
        {},
        ["job.toml:17: truth[2].parameters.c = 0.2", "differs from 0.1 of truth[1]", 'add "c" to fit.local'],
    ),
    "noise of the second": (
        TRUTHS + "noise = {sd = 0.0}\n",
        {},
        ["job.toml:18: truth[2].noise.sd = 0.0", "no weight in the fit"],
    ),
    "noise of what the second does not observe": (
        TRUTHS + 'observe = ["x"]\nnoise = {sd = {x = 0.1, v = 0.1}}\n',
        {},
        ["job.toml:19: truth[2].noise.sd.v = 0.1", "no observed quantity 'v'"],
    ),
    "noise in the second only": (
        change(TRUTHS, "noise = {sd = 0.1}\n", "") + "noise = {sd = 0.1}\n",
        {},
        ["job.toml:17: truth[2].noise", "truth[1] has no noise", "to all experiments, or to none"],
    ),
    "the second observes what there is not": (
        TRUTHS + 'observe = ["y"]\n',
        {},
        ["job.toml:18: truth[2].observe", "no observed quantity 'y'", "known: x v"],
    ),
    "the second observes more than the fit": (
        change(TRUTHS, 'local = ["k"]', 'local = ["k"]\nobserve = ["x"]') + 'observe = ["v"]\n',
        {},
        ["job.toml:19: truth[2].observe", "no observed quantity 'v'", "known: x"],
    ),
    "times of the second": (
        TRUTHS + "times = [0.0, 2.0, 1.0]\n",
        {},
        ["job.toml:18: truth[2].times", "must increase: 1 comes after 2"],
    ),
    "one time of the second": (
        TRUTHS + "times = [0.0]\n",
        {},
        ["job.toml:18: truth[2].times", "experiment 2: only one time"],
    ),
    "no times at all": (
        change(TRUTHS, "times = {spacing = 1.0, count = 9}\n", ""),
        {},
        ["job.toml:11: truth[1].times", "is missing", "as in times"],
    ),
    "nodes do not cover the second": (
        change(TRUTHS, 'local = ["k"]', 'local = ["k"]\nnodes = [0.0, 8.0]')
        + "times = {spacing = 1.0, count = 10}\n",
        {},
        ["job.toml:11: fit.nodes", "experiment 2: the nodes cover 0 to 8", "the data go from 0 to 9"],
    ),
    # local parameters
    "local is no parameter": (
        change(TRUTHS, '["k"]', '["k", "kk"]'),
        {},
        ['job.toml:10: fit.local = ["k", "kk"]', "no parameter 'kk'", "did you mean 'k'"],
    ),
    "local twice": (change(TRUTHS, '["k"]', '["k", "k"]'), {}, ["job.toml:10: fit.local", "names 'k' twice"]),
    "local not names": (change(TRUTHS, '["k"]', "3"), {}, ["job.toml:10: fit.local = 3", "list of names"]),
    "local and fixed": (
        change(
            TRUTHS, "k = 1.0\nc = 0.1\n", "c = 0.1\n", 'local = ["k"]', 'local = ["k"]\nfixed = {k = 1.0}'
        ),
        {},
        ["job.toml:9: fit.local", "the parameter k is fixed", "here or in fit.fixed"],
    ),
    "local without guess": (
        change(TRUTHS, "k = 1.0\nc = 0.1\n", "c = 0.1\n"),
        {},
        ["job.toml:6: guess", "no value for the parameter k"],
    ),
    # other kinds
    "simulation of several": (
        GOOD_JOB.lstrip() + "[[data]]\nfile = 'd.csv'\n[[data]]\nfile = 'e.csv'\n",
        {},
        ["job.toml:14: data[2]", "kind 'simulate' has one experiment", "keep one [data]"],
    ),
    "simulation observes in its truth": (
        GOOD_JOB.lstrip().replace("noise", 'observe = ["x"]\nnoise'),
        {},
        ["job.toml:9: truth.observe", "use simulate.observe"],
    ),
}


@pytest.mark.parametrize("name", CHECKED)
def test_check_and_run_refuse(name: str, job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, files, fragments = CHECKED[name]
    job.write_text(text)
    for file, table in files.items():
        (job.parent / file).write_text(table)
    found = messages(["check", "job.toml"], fragments, capsys, job.parent)
    if name not in ("not tables", "simulation of several"):
        assert len(found) == 1, found
    assert messages(["run", "job.toml"], fragments, capsys, job.parent) == found


H5 = DECAY + '[data]\nfile = "d.h5"\n'
T, X, V = np.arange(6.0), np.cos(np.arange(6.0)), -np.sin(np.arange(6.0))


def columns(**named: object) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with h5py.File(path, "w") as file:
            for name, values in named.items():
                file[name] = values

    return write


def cut(path: Path) -> None:
    columns(t=np.arange(1e4), x=np.zeros(10_000))(path)
    path.write_bytes(path.read_bytes()[:50_000])


RECORDINGS: dict[str, tuple[str, Callable[[Path], object], list[str]]] = {
    "no such file": (H5, lambda path: None, ["job.toml:12: data.file", "d.h5: no such file"]),
    "not HDF5": (H5, lambda path: path.write_text(DATA), ["job.toml:12: data.file", "not an HDF5 file"]),
    "cut off": (H5, cut, ["job.toml:12: data.file", "not an HDF5 file, or cut off"]),
    "no times": (H5, columns(x=X, v=V), ["data.time", "d.h5 has no column 't'", "known: v x"]),
    "dataset missing": (
        H5 + 'columns = {x = "x", v = "w"}\n',
        columns(t=T, x=X, v=V),
        ["job.toml:13: data.columns", "d.h5 has no column 'w'", "known: t v x"],
    ),
    "nothing of the model": (H5, columns(t=T, q=X), ["data.columns", "no column is named like a state"]),
    "different lengths": (
        H5,
        columns(t=T, x=X, v=V[:-1]),
        ["data.columns", "v has 5 rows, but t has 6", "the same length"],
    ),
    "sigma of another length": (
        H5 + 'sigma = "s"\n',
        columns(t=T, x=X, v=V, s=np.ones(2)),
        ["job.toml:13: data.sigma", "s has 2 rows, but t has 6"],
    ),
    "experiment of another length": (
        H5 + 'experiment = "run"\n',
        columns(t=T, x=X, v=V, run=np.ones(2)),
        ["job.toml:13: data.experiment", "run has 2 rows, but t has 6"],
    ),
    "NaN as a time": (
        H5,
        columns(t=np.where(T == 2.0, np.nan, T), x=X, v=V),
        ["data.time", "d.h5: row 3 has no time", "fill it or remove the row"],
    ),
    "times fall": (H5, columns(t=T[::-1], x=X, v=V), ["data.time", "times must increase: 4 (row 2) after 5"]),
    "infinite value": (
        H5,
        columns(t=T, x=np.where(T == 2.0, np.inf, X), v=V),
        ["job.toml:12: data.file", "row 3: x is infinite"],
    ),
    "text as values": (H5, columns(t=T, x=["a"] * 6, v=["b"] * 6), ["data.columns", "named like a state"]),
    "columns without names": (
        H5,
        columns(a=np.stack([T, X, V], axis=1)),
        ["job.toml:12: data.file", "the columns of a have no names", "attribute names"],
    ),
    "sigma zero": (
        H5 + 'sigma = "s"\n',
        columns(t=T, x=X, v=V, s=np.where(T == 1.0, 0.0, 0.1)),
        ["job.toml:13: data.sigma", "row 2: the standard deviation of x is 0"],
    ),
}


@pytest.mark.parametrize("name", RECORDINGS)
def test_bad_recordings(name: str, job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, write, fragments = RECORDINGS[name]
    job.write_text(text)
    write(job.parent / "d.h5")
    found = messages(["check", "job.toml"], fragments, capsys, job.parent)
    assert len(found) == 1, found
    assert messages(["run", "job.toml"], fragments, capsys, job.parent) == found


def test_mistakes_of_all_files_at_once(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job.write_text(TWO)
    assert main(["check", "job.toml"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert ["data[1].file" in lines[0], "data[2].file" in lines[1]] == [True, True]


def test_a_truth_of_many_that_blows_up_is_named(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = change(TRUTHS, 'v = "-k*x - c*v"', 'v = "k*v**2"', "{k = 2.0}", "{k = 1e6}")
    job.write_text(text + "start = {x = 0.0, v = 1.0}\n")
    messages(["run", "job.toml"], ["job.toml:16: truth[2]", "cannot be integrated"], capsys, job.parent)


def test_a_guess_that_blows_up_names_the_experiment(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = change(TWO, 'v = "-k*x - c*v"', 'v = "k*v**2 - c*v"', "k = 1.0", "k = 1e6")
    job.write_text(text)
    (job.parent / "d.csv").write_text("t,x,v\n0,1,-1\n1,1,-1\n2,1,-1\n3,1,-1\n")
    (job.parent / "e.csv").write_text("t,x,v\n0,1,1\n1,1,1\n2,1,1\n3,1,1\n")
    fragments = ["job.toml:6: guess", "in experiment 2 from the node at t = 0", "another guess"]
    messages(["run", "job.toml"], fragments, capsys, job.parent)
