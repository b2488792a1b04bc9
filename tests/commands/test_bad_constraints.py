"""Constraints that mean nothing or cannot be met: `check` and `run` say so in the same words."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcfit.__main__ import main
from tests.commands.test_bad_fits import DATA, FIT, LORENZ, MAP
from tests.commands.test_bad_input import refused

GROUPS = "t,x,v,who\n" + "".join(f"{t},1,0,{who}\n" for who in (1, 2) for t in range(5))
SEVERAL = FIT.replace("sigma = 0.1", 'sigma = 0.1\nexperiment = "who"')


def asking(*lines: str, text: str = FIT) -> str:
    return text + f"constraints = [{', '.join(repr(line) for line in lines)}]\n"


# job, data, what the message must say
CHECKED: dict[str, tuple[str, str | None, list[str]]] = {
    "state without a time": (
        asking("x = 0"),
        DATA,
        ["job.toml:15: fit.constraints", "x@start, x@end or x@12.5"],
    ),
    "unknown name": (asking("kk >= 0"), DATA, ["unknown name 'kk'", "did you mean 'k'?"]),
    "unknown quantity": (
        asking("enrgy@end >= 0"),
        DATA,
        ["no state or observable 'enrgy'", "did you mean 'energy'?"],
    ),
    "no sign": (asking("k"), DATA, ["is no equality or inequality", "write one with =, <= or >="]),
    "strict": (asking("k > 0"), DATA, ["'>' leaves no nearest point", "write >="]),
    "no unknown": (asking("1 <= 2"), DATA, ["contains nothing that the fit can change"]),
    "no function": (asking("open('f') = k"), DATA, ["unknown function 'open'"]),
    "no time": (asking("x@soon >= 0"), DATA, ["'soon' is no time", "write start, end or a number"]),
    "beyond the path": (
        asking("x@5 >= 0"),
        DATA,
        ["t = 5: the path goes from 0 to 4", "choose a time inside"],
    ),
    "fixed": (
        asking("k >= 0").replace("k = 1.0\n", "") + "fixed = {k = 1.0}\n",
        DATA,
        ["all that it names is fixed", "let a parameter free"],
    ),
    "contradictory": (
        asking("k >= 2", "k + c <= 1", "c >= 0"),
        DATA,
        ['"k >= 2" and "k + c <= 1" and "c >= 0" contradict'],
    ),
    "two values of a state": (asking("x@2 = 1", "x@2.0 = 2"), DATA, ['"x@2 = 1" and "x@2 = 2" contradict']),
    "no list": (FIT + "constraints = 3\n", DATA, ["must be a list of texts"]),
    "no text": (FIT + "constraints = [3]\n", DATA, ["must be a text in quotes"]),
    "simulated": (asking("x@9 >= 0", text=LORENZ), None, ["job.toml:15", "t = 9: the path goes from 0 to 1"]),
    "which experiment": (asking("x@2 >= 0", text=SEVERAL), GROUPS, ["of which of 2 experiments", "x@1:2"]),
    "no such experiment": (
        asking("x@3:end >= 0", text=SEVERAL),
        GROUPS,
        ["there is no experiment 3", "give 1 to 2"],
    ),
    "local in time": (
        asking("k@end >= 0", text=SEVERAL) + 'local = ["k"]\n',
        GROUPS,
        ["k is a local parameter", "write k@2"],
    ),
}


@pytest.mark.parametrize("name", CHECKED)
@pytest.mark.parametrize("verb", ["check", "run"])
def test_check_and_run_refuse(verb: str, name: str, job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, data, fragments = CHECKED[name]
    job.write_text(text)
    if data is not None:
        (job.parent / "d.csv").write_text(data)
    refused([verb, "job.toml"], ["fit.constraints", *fragments], capsys, job.parent)


def test_all_mistakes_are_told_at_once(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job.write_text(asking("x = 0", "kk >= 0", "k >= 0", "c < 1"))
    (job.parent / "d.csv").write_text(DATA)
    told = refused(
        ["check", "job.toml"], ["x changes in time", "'kk'", "leaves no nearest point"], capsys, job.parent
    )
    assert told.count("fit.constraints") == 3


def test_a_model_in_a_file_is_checked_by_its_names(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (job.parent / "d.csv").write_text(DATA)
    (job.parent / "mine.py").write_text(
        "from hpcfit import model\n"
        '@model(states="x v", parameters="k c", observables={"energy": lambda t, u, p: u.v**2})\n'
        "def spring(t, u, p):\n    return u.v, -p.k * u.x - p.c * u.v\n"
    )
    inline = FIT[FIT.index("states") : FIT.index("[data]")]
    text = FIT.replace(inline, 'file = "mine.py"\n')
    good = ["energy@start = 1", "x@start = 0", "v@start = 0", "c >= 0"]
    job.write_text(asking(*good, text=text))
    assert main(["check", "job.toml"]) == 0
    assert "ok: fit" in capsys.readouterr().out
    job.write_text(asking("energie@start = 1", text=text))
    refused(["check", "job.toml"], ["fit.constraints", "did you mean 'energy'?"], capsys, job.parent)


def test_times_of_a_map_are_whole(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (job.parent / "d.csv").write_text("t,x,y\n0,0,0\n1,1,0\n2,-0.4,0.3\n3,1.1,-0.1\n")
    job.write_text(asking("x@1.5 >= 0", text=MAP + "[fit]\n"))
    refused(
        ["check", "job.toml"], ["fit.constraints", "t = 1.5", "a map has whole numbers"], capsys, job.parent
    )
