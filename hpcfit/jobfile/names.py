"""The names that a job may use."""

from __future__ import annotations

from dataclasses import dataclass

from hpcfit.models.define import Model


@dataclass(frozen=True)
class ModelNames:
    """Of the model's parts; None where only running the user's Python file would tell."""

    name: str
    states: tuple[str, ...] | None
    parameters: tuple[str, ...] | None
    quantities: tuple[str, ...] | None

    @staticmethod
    def of(model: Model) -> ModelNames:
        return ModelNames(model.name, model.states, model.parameters, model.quantities)
