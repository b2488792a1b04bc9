"""How coefficient k of a series comes from the series of its arguments: one rule per operation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hpcfit.kernels.text import plain
from hpcfit.models.graph import Node

if TYPE_CHECKING:
    from hpcfit.kernels.series import Tape

CONSTANT, UNIFORM, SERIES = "constant", "uniform", "series"
PARTNERS = {"sin": "cos", "cos": "sin", "sinh": "cosh", "cosh": "sinh"}


@dataclass
class Recurrence:
    """How one series is computed, as C: coefficient 0, convolutions, coefficient k."""

    name: str
    comment: str
    zero: str
    convolutions: list[tuple[str, str]] = field(default_factory=list)
    finish: str = ""  # with {c[0]}, {c[1]} for the convolutions
    arrays: list[str] = field(default_factory=list)  # further series that it fills


def recurrence(tape: Tape, name: str, node: Node) -> Recurrence:
    """The recurrence of one operation with at least one series among its arguments."""
    a, b = (*node.arguments, *node.arguments)[:2]
    series = [tape.role[argument] == SERIES for argument in node.arguments]
    a0, b0, ak, bk = tape.at(a, "0"), tape.at(b, "0"), tape.at(a, "k"), tape.at(b, "k")
    A, B, w = tape.names.get(a, ""), tape.names.get(b, ""), name
    r = Recurrence(name, node.operation, plain(node.operation, [tape.at(arg, "0") for arg in node.arguments]))
    match node.operation, series:
        case "add" | "subtract", _:
            sign = "+" if node.operation == "add" else "-"
            r.finish = (
                f"{w}[k] = {ak} {sign} {bk};"
                if all(series)
                else f"{w}[k] = {ak if series[0] else sign + bk};"
            )
        case "negative", _:
            r.finish = f"{w}[k] = -{ak};"
        case "multiply", [True, True] if a == b:
            r.convolutions = [(A, A)]
            r.finish = f"{w}[k] = FMA(2 * {a0}, {ak}, {{c[0]}});"
        case "multiply", [True, True]:
            r.convolutions = [(A, B)]
            r.finish = f"{w}[k] = FMA({a0}, {bk}, FMA({ak}, {b0}, {{c[0]}}));"
        case "multiply", _:
            r.finish = f"{w}[k] = {ak if series[0] else a0} * {bk if series[1] else b0};"
        case "divide", [True, False]:
            r.finish = f"{w}[k] = {ak} / {b0};"
        case "divide", _:
            r.convolutions = [(B, w)]
            numerator = f"{ak} - " if series[0] else "-"
            r.finish = f"{w}[k] = ({numerator}FMA({bk}, {w}[0], {{c[0]}})) / {b0};"
        case "power", _:
            r = _power(r, A, b0)
        case "less" | "less_equal", _:
            r.zero, r.finish = tape.truth(node), f"{w}[k] = all(0);"
        case "sign", _:
            r.zero, r.finish = tape.mode(node), f"{w}[k] = all(0);"
        case "where", _:
            r = _choice(tape, r, node)
        case _:
            r = _function(r, node.operation, A)
    return r


def _choice(tape: Tape, r: Recurrence, node: Node) -> Recurrence:
    """One of two series, by the mode of the condition."""
    condition, yes, no = node.arguments
    comparison = tape.graph.nodes[condition]
    if comparison.operation == "slide":
        mode = f"mode[KINKS + {int(comparison.value)}]"
    elif tape.role[condition] == SERIES and comparison.operation in ("less", "less_equal"):
        mode = tape.mode(comparison)
    else:
        mode = f"({tape.at(condition, '0')} * {tape.at(condition, '0')})"  # anything but zero is true
    for attribute, k in (("zero", "0"), ("finish", "k")):
        setattr(r, attribute, f"pick({mode}, {tape.at(yes, k)}, {tape.at(no, k)})")
    r.finish = f"{r.name}[k] = {r.finish};"
    return r


def _power(r: Recurrence, A: str, exponent: str) -> Recurrence:
    """w = a^b: k a0 w_k = b sum i a_i w_(k-i) - sum a_i (k-i) w_(k-i)."""
    w, a_slope, w_slope = r.name, f"{r.name}_a", f"{r.name}_w"
    r.arrays = [a_slope, w_slope]
    r.convolutions = [(a_slope, w), (A, w_slope)]
    r.finish = (
        f"{a_slope}[k] = {A}[k] * (real)k; "
        f"{w}[k] = ({exponent} * FMA({a_slope}[k], {w}[0], {{c[0]}}) - {{c[1]}}) / ({A}[0] * (real)k); "
        f"{w_slope}[k] = {w}[k] * (real)k;"
    )
    return r


def _function(r: Recurrence, operation: str, A: str) -> Recurrence:
    """Functions of one series; *_a holds k a_k, so that w' = F a' becomes a convolution."""
    w = r.name
    slope = f"{w}_a"
    scaled = f"{slope}[k] = {A}[k] * (real)k; "
    match operation:
        case "exp":
            r.arrays, r.convolutions = [slope], [(slope, w)]
            r.finish = scaled + f"{w}[k] = FMA({slope}[k], {w}[0], {{c[0]}}) * inverse[k];"
        case "log":
            w_slope = f"{w}_w"
            r.arrays, r.convolutions = [w_slope], [(w_slope, A)]
            r.finish = f"{w}[k] = ({A}[k] - {{c[0]}} * inverse[k]) / {A}[0]; {w_slope}[k] = {w}[k] * (real)k;"
        case "sqrt":
            r.convolutions = [(w, w)]
            r.finish = f"{w}[k] = ({A}[k] - {{c[0]}}) / (2 * {w}[0]);"
        case "sin" | "cos" | "sinh" | "cosh":
            r = _circular(r, operation, A)
        case "tan" | "tanh":
            square, sign = f"{w}_q", "" if operation == "tan" else "-"
            r.arrays, r.convolutions = [slope, square], [(slope, square), (w, w)]
            r.zero = f"{r.zero}; {square}[0] = 1 {sign or '+'} {w}[0] * {w}[0]"
            r.finish = (
                f"{scaled}{w}[k] = FMA({slope}[k], {square}[0], {{c[0]}}) * inverse[k]; "
                f"{square}[k] = {sign}FMA(2 * {w}[0], {w}[k], {{c[1]}});"
            )
        case "asin" | "acos" | "atan":
            r = _arc(r, operation, A)
        case _:
            raise NotImplementedError(f"no recurrence for {operation}")
    return r


def _circular(r: Recurrence, operation: str, A: str) -> Recurrence:
    """sin with cos, sinh with cosh: each needs the other as its partner *_q."""
    w, slope, partner = r.name, f"{r.name}_a", f"{r.name}_q"
    w_sign = "-" if operation == "cos" else ""
    partner_sign = "-" if operation == "sin" else ""
    r.arrays, r.convolutions = [slope, partner], [(slope, partner), (slope, w)]
    r.zero = f"{r.zero}; {partner}[0] = v_{PARTNERS[operation]}({A}[0])"
    r.finish = (
        f"{slope}[k] = {A}[k] * (real)k; "
        f"{w}[k] = {w_sign}FMA({slope}[k], {partner}[0], {{c[0]}}) * inverse[k]; "
        f"{partner}[k] = {partner_sign}FMA({slope}[k], {w}[0], {{c[1]}}) * inverse[k];"
    )
    return r


def _arc(r: Recurrence, operation: str, A: str) -> Recurrence:
    """w' = +-a' / q with q = sqrt(1 - a^2) (asin, acos) or 1 + a^2 (atan)."""
    w, w_slope, q = r.name, f"{r.name}_w", f"{r.name}_q"
    sign = "-" if operation == "acos" else ""
    r.arrays, r.convolutions = [w_slope, q], [(w_slope, q), (A, A)]
    square = f"FMA(2 * {A}[0], {A}[k], {{c[1]}})"
    if operation == "atan":
        r.zero = f"{r.zero}; {q}[0] = 1 + {A}[0] * {A}[0]"
        next_q = f"{q}[k] = {square};"
    else:
        r.convolutions.append((q, q))
        r.zero = f"{r.zero}; {q}[0] = v_sqrt(1 - {A}[0] * {A}[0])"
        next_q = f"{q}[k] = (-{square} - {{c[2]}}) / (2 * {q}[0]);"
    r.finish = (
        f"{w_slope}[k] = ({sign}{A}[k] * (real)k - {{c[0]}}) / {q}[0]; "
        f"{w}[k] = {w_slope}[k] * inverse[k]; {next_q}"
    )
    return r
