"""All tables and keys of a job file, with their readers, defaults and meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hpcfit.flow.propagate import LARGEST_TOLERANCE, METHODS
from hpcfit.jobfile import values
from hpcfit.jobfile.grids import grid
from hpcfit.jobfile.values import Reader
from hpcfit.leastsq.gauss_newton import MAX_ITERATIONS, TOLERANCE
from hpcfit.leastsq.levels import LEVELS
from hpcfit.leastsq.strategy import PHASES
from hpcfit.linear.solvers import SOLVERS
from hpcfit.records import TIMES

KINDS = ("simulate", "fit", "lyapunov", "ensemble")
RUNNABLE = ("simulate", "fit", "lyapunov", "ensemble")


@dataclass(frozen=True)
class Key:
    """One key: how it is read, what it means, and what holds when it is absent."""

    read: Reader
    meaning: str
    default: Any = None
    required: bool = False


_EXPRESSIONS = values.table_of(values.text)
_NUMBERS = values.table_of(values.number)
_TOLERANCE = values.between(1e-36, LARGEST_TOLERANCE)

SCHEMA: dict[str, dict[str, Key]] = {
    "": {
        "kind": Key(values.choice(*KINDS), f"what to do: {', '.join(KINDS)}", required=True),
        "seed": Key(values.whole(0, 2**63 - 1), "of all random numbers", 0),
    },
    "model": {
        "name": Key(values.text, "of a catalogue model, or of a model in `file`"),
        "size": Key(values.whole(1, 10_000), "number of states of a model that comes in any size"),
        "file": Key(values.text, "a Python file with @model functions; it is run"),
        "kind": Key(values.choice("flow", "map"), "differential equation or map", "flow"),
        "states": Key(values.names, "names of the states of an inline model"),
        "parameters": Key(values.names, "names of the parameters of an inline model", ()),
        "equations": Key(_EXPRESSIONS, 'right-hand sides, as in {x = "sigma*(y - x)", ...}'),
        "observables": Key(_EXPRESSIONS, "further quantities that can be observed", {}),
        "invariant": Key(values.text, "an expression that stays constant along a path"),
        "switches": Key(
            _EXPRESSIONS,
            'functions whose signs select the equations, as in {slip = "v - belt"}: `slip` is the sign',
            {},
        ),
        "jumps": Key(
            values.table_of(values.jump),
            'where the state jumps, as in {bounce = {falls = "y", to = {v = "-e*v"}}, dose = {at = "lag", '
            'every = 24, count = 7, to = {gut = "gut + 1"}}}; falls, rises or crosses zero, or at times',
            {},
        ),
        "units": Key(_EXPRESSIONS, 'of states, parameters, observables and t, as in {phi = "rad"}', {}),
    },
    "truth": {
        "start": Key(_NUMBERS, 'states at the first time; numbers or "sqrt(0.1275)"', required=True),
        "parameters": Key(_NUMBERS, "values of all parameters", {}),
        "times": Key(values.times, "{start, spacing, count}, {start, end, count}, a list, or {file, column}"),
        "method": Key(values.choice(*METHODS), "integrator of the simulated data; absent: the usual one"),
        "noise": Key(
            values.noise,
            "{sd | fraction | proportional, beyond_3_sigma = keep | redraw | discard, sd_t of the times}",
        ),
        "observe": Key(values.names, "what this experiment of a fit sees; absent: as in `fit.observe`"),
    },
    "data": {
        "file": Key(values.text, "CSV (also .gz) or HDF5, relative to the job file", required=True),
        "time": Key(values.text, "the column of times", "t"),
        "columns": Key(
            values.table_of(values.text), "{quantity = column}; absent: columns named like it", {}
        ),
        "sigma": Key(
            values.one_or_table(values.positive_or_column),
            "standard deviation: one number, or by quantity a number or the name of a column",
        ),
        "sigma_t": Key(
            values.not_negative_or_column,
            "standard deviation of the times: a number, or the name of a column; 0 or absent: they are exact",
        ),
        "experiment": Key(
            values.text,
            "a column whose value tells the experiment of a row; absent: a file is one experiment",
        ),
    },
    "simulate": {
        "observe": Key(values.names, "states and observables that are recorded; absent: all states"),
        "sensitivities": Key(values.boolean, "also derivatives by start and parameters", False),
        "tolerance": Key(_TOLERANCE, "relative local error; absent: the method's own"),
        "method": Key(values.choice(*METHODS), "integrator; absent: compiled where the model allows it"),
        "max_steps": Key(
            values.whole(1, 10**12), "steps before the path is given up; absent: the method's own"
        ),
    },
    "guess": {"*": Key(values.number, "a free parameter: where the fit begins")},
    "nodes": {
        "*": Key(
            values.number_or_expression,
            "a state: where its nodes begin, a number or an expression in t; absent: at the data, or at zero",
        )
    },
    "fit": {
        "observe": Key(values.names, "states and observables that are fitted; absent: all that are there"),
        "weights": Key(
            values.table_of(values.not_negative), "by observed quantity; 0: not considered in the sum", {}
        ),
        "fixed": Key(_NUMBERS, "parameters that are known, with their values", {}),
        "local": Key(
            values.names, "parameters of which every experiment has its own value, k@1, k@2, ...", ()
        ),
        "constraints": Key(
            values.text_or_texts,
            'equalities and inequalities, as in ["x@end = x@start", "x@2:0.5 >= 0", "a + b <= 1"]: states at '
            "start, end or a time, of one experiment or of each, and parameters",
            (),
        ),
        "unknown_sigma": Key(
            values.names,
            "observed quantities whose noise level is estimated, each for itself: sigma, or a factor of it",
            (),
        ),
        "times": Key(
            values.choice(*TIMES),
            "measured: as well as sigma_t says; exact: sigma_t is not considered",
            "measured",
        ),
        "nodes": Key(
            values.nodes, '"data", a whole number k for every k-th time, or a list of times', "data"
        ),
        "derived": Key(
            _EXPRESSIONS, "expressions of initial state and parameters to estimate; absent: the invariant", {}
        ),
        "tolerance": Key(
            values.between(1e-14, 1e-2), "scaled increment at which the iteration ends", TOLERANCE
        ),
        "max_iterations": Key(values.whole(1, 10_000), "of the exact phase", MAX_ITERATIONS),
        "level": Key(values.choice(*LEVELS), "function that decides on damping", "natural"),
        "phases": Key(
            values.choice(*PHASES),
            "before the exact method: as needed, none, presolve, weak continuity",
            "auto",
        ),
        "solver": Key(values.choice(*SOLVERS), "of the condensed system; absent: PETSc from 50,000 nodes on"),
        "method": Key(values.choice(*METHODS), "integrator; absent: compiled where the model allows it"),
    },
    "lyapunov": {
        "duration": Key(
            values.positive, "time units (of a map: iterations) of each trajectory", required=True
        ),
        "trajectories": Key(values.whole(1, 10**6), "how many; absent: 1, or as many as there are `starts`"),
        "exponents": Key(values.whole(1, 10_000), "how many, the largest ones; absent: all"),
        "transient": Key(values.not_negative, "time that is discarded; absent: a twentieth of the duration"),
        "interval": Key(
            values.positive, "time between two orthonormalisations; absent: as fast as tangents diverge"
        ),
        "block": Key(values.positive, "time of a finite-time exponent; absent: about a thousandth of it all"),
        "error": Key(values.positive, "end when all standard errors are below it; absent: at the duration"),
        "begin": Key(values.number, "time at the start, for systems that depend on it", 0.0),
        "starts": Key(
            values.list_of(_NUMBERS),
            "further starts, one table each; absent: points far apart on the orbit of the first",
        ),
        "spacing": Key(
            values.positive,
            "time between such points; absent: the transient, or duration / trajectories if that is longer",
        ),
        "invariant": Key(values.number, "energy that every start must have; others are refused"),
        "section": Key(values.section, "{surface, direction = 1 | -1 | 0, axes, points}: a Poincaré section"),
        "symplectic": Key(
            values.boolean, "conjugate tangents in pairs; absent: where the system is Hamiltonian"
        ),
        "method": Key(values.choice(*METHODS), "integrator; absent: compiled where the model allows it"),
        "tolerance": Key(_TOLERANCE, "relative local error; absent: the method's own"),
        "from": Key(values.text, "the result of a fit, whose estimates take the place of [truth]"),
        "draws": Key(
            values.whole(1, 10**6), "further parameters and starts, drawn from the covariance of the fit", 0
        ),
    },
    "ensemble": {
        "of": Key(values.choice("fit", "lyapunov"), "what each member does", required=True),
        "members": Key(values.whole(1, 10**9), "how many; with a grid: of each cell, then 1 unless given"),
        "grid": Key(
            grid,
            'values of keys of the job, as in {"guess.a" = [1, 2, 5], "truth.noise.sd" = {from, to, count, '
            "log = true}}; a plain name is a variable for quoted expressions; all combinations are cells",
            {},
        ),
    },
    "cluster": {
        "partition": Key(values.text, "SLURM partition"),
        "account": Key(values.text, "SLURM account"),
        "time": Key(values.text, "limit per task, as in 01:00:00"),
        "memory": Key(values.text, "per rank, as in 2G"),
        "ranks": Key(values.whole(1, 10**6), "MPI ranks per task"),
        "qos": Key(values.text, "SLURM quality of service"),
        "max_tasks": Key(values.whole(1, 10**6), "of the campaign"),
        "max_running": Key(values.whole(1, 10**6), "tasks at once"),
        "options": Key(values.texts, 'further resources, as in ["--constraint=rome"]'),
    },
}

ARRAYS = ("truth", "data")  # of tables, [[truth]] and [[data]]: one for each experiment of a fit

REQUIRED_TABLES = {
    "simulate": ("model", "truth"),
    "fit": ("model",),
    "lyapunov": ("model", "lyapunov"),
    "ensemble": ("model", "ensemble"),
}
ALLOWED_TABLES = {
    "simulate": ("model", "truth", "data", "simulate", "cluster"),
    "fit": ("model", "truth", "data", "guess", "nodes", "fit", "cluster"),
    "lyapunov": ("model", "truth", "lyapunov", "cluster"),
    "ensemble": ("model", "truth", "data", "guess", "nodes", "fit", "lyapunov", "ensemble", "cluster"),
}


def reference() -> str:
    """The schema as a table in Markdown, for the README."""
    lines = ["| key | meaning | default |", "|---|---|---|"]
    for table, keys in SCHEMA.items():
        for name, key in keys.items():
            full = f"{table}.{name}" if table else name
            shown = (
                "required"
                if key.required
                else ""
                if key.default in (None, (), {})
                else f"`{_toml(key.default)}`"
            )
            lines.append(f"| `{full}` | {key.meaning.replace('|', chr(92) + '|')} | {shown} |")
    return "\n".join(lines)


def _toml(value: Any) -> str:
    return (
        str(value).lower()
        if isinstance(value, bool)
        else f'"{value}"'
        if isinstance(value, str)
        else f"{value}"
    )
