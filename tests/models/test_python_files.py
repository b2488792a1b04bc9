"""Models in files of the user: `declarations` reads without running, `load` runs."""

import pickle

import pytest

from hpcfit.models.pythonfile import choose, declarations, load
from hpcfit.records import InputError

SOURCE = '''
from pathlib import Path
from hpcfit import model
Path(__file__).with_suffix(".ran").touch()
NAMES = "v w"

@model(states="x y", parameters=["k", "m"], observables={"energy": lambda t, u, p: u.x**2})
def spring(t, u, p):
    """A mass on a spring."""
    return u.y, -p.k / p.m * u.x

@model(states=NAMES)
def computed(t, u, p):
    return u.w, -u.v

@model(states="z", name="renamed")
def original(t, u, p):
    return -u.z

def no_model(t, u, p):
    return u
'''


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return path


def written(tmp_path, source, name="mine.py"):
    path = tmp_path / name
    path.write_text(source)
    return path


def test_declarations_do_not_run_the_file(file):
    found = declarations(file)
    assert not file.with_suffix(".ran").exists()
    assert [d.name for d in found] == ["spring", "computed", "renamed"]
    assert (found[0].states, found[0].parameters, found[0].observables) == (
        ("x", "y"),
        ("k", "m"),
        ("energy",),
    )
    assert (found[1].states, found[1].parameters) == (None, ()), "what is computed is not guessed"


def test_load_runs_the_file_and_returns_the_model(file):
    spring = load(file, "spring")
    assert file.with_suffix(".ran").exists()
    assert (spring.name, spring.states, spring.parameters) == ("spring", ("x", "y"), ("k", "m"))
    assert load(file, "renamed").states == ("z",)


def test_load_leaves_nothing_beside_the_file(file):
    load(file, "spring")
    assert sorted(path.name for path in file.parent.iterdir()) == ["mine.py", "mine.ran"]


def test_load_sees_an_edit_of_the_same_second(tmp_path):
    source = 'from hpcfit import model\n@model(states="x")\ndef decay(t, u, p):\n    return -{} * u.x\n'
    for rate in (1, 2, 3):
        made = load(written(tmp_path, source.format(rate)))
        assert made.text(made.equations[0]) == {1: "-x", 2: "x*-2", 3: "x*-3"}[rate]


def test_the_only_model_needs_no_name_and_imported_ones_do_not_count(tmp_path):
    path = written(
        tmp_path,
        "from hpcfit import model\nfrom hpcfit.models.catalogue.classics import lorenz, rossler\n"
        '@model(states="x")\ndef decay(t, u, p):\n    return -u.x\n',
    )
    assert load(path).name == "decay"
    assert load(path, "lorenz").name == "lorenz"


def test_a_file_may_use_dataclasses_and_encodings(tmp_path):
    path = tmp_path / "bom.py"
    path.write_bytes(
        b"\xef\xbb\xbffrom __future__ import annotations\nfrom dataclasses import dataclass\n"
        b"from hpcfit import model\n@dataclass\nclass Rate:\n    value: float = 2.0\n"
        b'@model(states="x")\ndef decay(t, u, p):\n    return -Rate().value * u.x\n'
    )
    assert [d.name for d in declarations(path)] == ["decay"]
    assert load(path).name == "decay"


def test_choose_asks_for_a_name_only_if_there_are_several(tmp_path):
    path = tmp_path / "m.py"
    assert choose(path, None, ["a"]) == "a"
    assert choose(path, "b", ["a", "b"]) == "b"
    with pytest.raises(InputError, match=r"m\.py: 2 models in this file; choose one by name: a b"):
        choose(path, None, ["a", "b"])
    with pytest.raises(InputError, match=r"m\.py: no model 'sprng' in this file; did you mean 'spring'\?"):
        choose(path, "sprng", ["spring", "decay"])
    with pytest.raises(InputError, match=r"m\.py: no model in this file; decorate a function with @model"):
        choose(path, None, [])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def broken(:\n", r"mine\.py: not Python \(line 1\)"),
        ("x = 1\0\n", r"mine\.py: not Python"),
    ],
)
def test_a_file_that_is_no_python_is_refused_by_both(tmp_path, source, message):
    path = written(tmp_path, source)
    with pytest.raises(InputError, match=message):
        declarations(path)
    with pytest.raises(InputError, match=message):
        load(path)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("1/0\n", r"mine\.py: running it failed. ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(0)\n", r"mine\.py: running it failed. SystemExit"),
        ("import no_such_module\n", r"mine\.py: running it failed. ModuleNotFoundError"),
        ("x = 1\n", r"mine\.py: no model in this file"),
        (
            'from hpcfit import model\n@model(states="x")\ndef m(t, u, p):\n    return u.y\n',
            r"mine\.py: m: no state 'y'; known: x",
        ),
    ],
)
def test_errors_of_running_a_file_name_the_file(tmp_path, source, message):
    with pytest.raises(InputError, match=message):
        load(written(tmp_path, source))


def test_missing_files_and_other_files_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"gone\.py: cannot be read: No such file"):
        declarations(tmp_path / "gone.py")
    with pytest.raises(InputError, match=r"not a Python file; it must exist and end in \.py"):
        load(tmp_path / "gone.py")
    with pytest.raises(InputError, match="not a Python file"):
        load(written(tmp_path, "x = 1\n", "model.txt"))
    with pytest.raises(InputError, match="not a Python file"):
        load(tmp_path)


def test_a_latin1_file_without_a_coding_line_is_refused_with_its_name(tmp_path):
    path = tmp_path / "latin.py"
    path.write_bytes(b"name = 'H\xe9non'\n")
    with pytest.raises(InputError, match=r"latin\.py: not Python"):
        declarations(path)


def test_an_input_error_survives_pickling(file):
    """Errors travel between ranks."""
    with pytest.raises(InputError) as refusal:
        load(file, "sprin")
    assert str(pickle.loads(pickle.dumps(refusal.value))) == str(refusal.value)
