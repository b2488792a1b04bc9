"""hpcfit models [NAME]: the catalogue, or one model with a job that simulates it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from hpcfit.commands.verb import new_verb
from hpcfit.kernels.build import model_source
from hpcfit.kernels.compiler import needed_compiler
from hpcfit.models import catalogue
from hpcfit.models.define import Model
from hpcfit.records import InputError, Mistake


def add(verbs: Any) -> None:
    parser = new_verb(
        verbs,
        "models",
        "list the catalogue, or show one model",
        "hpcfit models",
        "hpcfit models rossler",
    )
    parser.add_argument("name", nargs="?", help="show this model")
    parser.add_argument("--size", type=int, help="number of states, for models that come in any size")
    parser.add_argument("--source", action="store_true", help="print the C source of its kernel")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.source:
        if not arguments.name:
            raise InputError(
                Mistake("models", "--source needs a model", "as in hpcfit models lorenz --source")
            )
        print(model_source(catalogue.find(arguments.name, arguments.size), needed_compiler()), end="")
        return 0
    if arguments.name:
        print(_page(catalogue.find(arguments.name, arguments.size), arguments.size))
        return 0
    for name in sorted(catalogue.NAMES):
        model = catalogue.find(name)
        size = f"{len(model.states)} states, {len(model.parameters)} parameters"
        print(f"{name:18} {model.kind:5} {size:24} {model.description.splitlines()[0]}")
    return 0


def _page(model: Model, size: int | None) -> str:
    """Equations, units, sources, and a job to begin with."""
    next_or_slope = "{0}_next" if model.kind == "map" else "{0}'"
    width = max(len(name) for name in model.states) + 5
    lines = [f"{model.name}: {model.description}", ""]
    for name, equation in zip(model.states, model.equations, strict=True):
        lines.append(f"  {next_or_slope.format(name):{width}} = {model.text(equation)}")
    lines += ["", f"  parameters: {' '.join(model.parameters) or 'none'}"]
    for name, expression in model.observables.items():
        lines.append(f"  observable {name} = {model.text(expression)}")
    for name, expression in model.switches.items():
        lines.append(f"  switch {name}: the sign of {model.text(expression)}")
    lines += [f"  jump {jump.name} {jump.text(model.text)}" for jump in model.jumps]
    if model.invariant is not None:
        lines.append(f"  invariant: {model.text(model.invariant)}")
    if model.units:
        lines.append(f"  units: {', '.join(f'{name} [{unit}]' for name, unit in model.units.items())}")
    lines += [f"  source: {example.source}" for example in model.examples]
    return "\n".join([*lines, "", "A job to begin with:", "", _job(model, size)])


def _job(model: Model, size: int | None) -> str:
    """A job file that simulates the model's first example."""
    example = model.examples[0]
    count = round(example.duration / example.spacing) + 1
    return "\n".join(
        [
            'kind = "simulate"',
            "[model]",
            f'name = "{model.name}"',
            *([f"size = {size}"] if size else []),
            "[truth]",
            f"start = {_inline(example.start)}",
            f"parameters = {_inline(example.parameters)}",
            f"times = {{start = 0.0, spacing = {example.spacing!r}, count = {count}}}",
        ]
    )


def _inline(values: Mapping[str, float]) -> str:
    return "{" + ", ".join(f"{name} = {float(value)!r}" for name, value in values.items()) + "}"
