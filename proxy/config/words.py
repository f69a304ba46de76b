"""Says what a setting may be, and what is wrong with the one given, in the words of the file."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from math import inf
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import AwareDatetime, BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from proxy.config.items import Item, Mistakes, find, listing, plain, quoted
from proxy.settings.events import Traits
from proxy.settings.parts import Allowed, Part, Unit, duration_text, size_text
from proxy.settings.queues import FORMS
from proxy.settings.secrets import Secret

P = TypeVar("P", bound=Part)

FILE_KEYS = {"priority": "class"}
"""Fields that the file calls otherwise, because the model could not use the word."""
_PROBLEMS = {
    "greater_than": "is out of range",
    "greater_than_equal": "is out of range",
    "less_than": "is out of range",
    "less_than_equal": "is out of range",
    "too_short": "holds too few",
    "too_long": "holds too many",
    "string_too_short": "is too short",
    "string_too_long": "is too long",
    "string_pattern_mismatch": "has another form than it must",
    "int_from_float": "is no whole number",
    "timezone_aware": "has no time zone",
}
_KINDS: dict[type, str] = {
    dict: "is a mapping",
    list: "is a list",
    NoneType: "is null",
    bool: "is true or false (quote a text)",
    int: "is a number (quote a text)",
    float: "is a number (quote a text)",
    str: "is a text of another form",
}
_SIMPLE: dict[object, str] = {
    bool: "true or false",
    Secret: "a text, ${NAME} or {file: PATH}",
    AwareDatetime: "a date and time with its zone, like 2026-01-31T12:00:00Z",
}
_INHERITED = " here, in the class's `events` and in `defaults`"
_DURATIONS: Mapping[str, float] = {"250ms": 0.25, "5s": 5, "10m": 600, "2h": 7_200, "7d": 604_800}
_SIZES: Mapping[str, float] = {"512B": 512, "64KiB": 64 * 1024, "4MiB": 4 * 1024**2, "2GiB": 2 * 1024**3}
"""Examples, one of them per order of magnitude."""
_NAMES_COMPARED = 500
_KEYS_TOLD = 4
"""Of the keys that a mapping may have; those that it must have are told first, and all of them."""


def validate(model: type[P], item: Item, mistakes: Mistakes) -> P | None:
    """Return the part that the item describes, or None with every mistake in it noted where it stands."""
    try:
        return model.model_validate(plain(item))
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            _note(model, item, detail, mistakes)
        known(model, item, mistakes)
        return None


def known(model: type[P], item: Item, mistakes: Mistakes) -> P:
    """Return the part as far as its settings can be used; the others it lacks, and asking for one is `AttributeError`.

    Notes what contradicts in it: pydantic asks no rule of a part while one setting is wrong, and none after the first
    that is broken. A rule can't be judged that needs a wrong setting, or one that an unknown key perhaps meant.
    """
    meant = (_nearest(key, model.model_fields) for key in item.mapping if key not in model.model_fields)
    values, wrong = {}, {name for name in meant if name is not None}
    for name, entry in item.mapping.items():
        if name in model.model_fields:
            try:
                values[name] = _adapter(model, name).validate_python(plain(entry))
            except ValidationError:
                core, _ = _flat(model.model_fields[name].annotation)
                if _is_part(core) and isinstance(entry.value, dict):
                    values[name] = known(core, entry, mistakes)  # so that what is right in it is judged by others
                    continue
                wrong.add(name)
            if mistakes.has(entry):
                wrong.add(name)
    part = model.model_construct({*values, *wrong}, **values)
    for name in wrong:
        part.__dict__.pop(name, None)
    if isinstance(item.value, dict):
        _judge(part, item, mistakes)
    return part


def _judge(part: Part, item: Item, mistakes: Mistakes) -> None:
    for rule in type(part).__pydantic_decorators__.model_validators.values():
        if rule.info.mode == "after":
            try:
                rule.func(part)
            except AttributeError:
                continue  # it asks for a setting that is wrong itself
            except ValueError as error:
                mistakes.add(item, str(error))


@cache
def _adapter(model: type[Part], name: str) -> TypeAdapter[Any]:
    form: Any = model.model_fields[name].annotation
    for mark in model.model_fields[name].metadata:
        form = Annotated[form, mark]
    return TypeAdapter(form)


def _note(model: type[Part], item: Item, detail: Any, mistakes: Mistakes) -> None:
    kind, path = detail["type"], _place(detail["loc"])
    place, left = find(item, path)
    annotation, metadata = _spot(model, path)
    if kind == "missing":
        keys = [FILE_KEYS.get(str(key), key) for key in left]
        where = _INHERITED if issubclass(model, Traits) and len(path) == 1 else ""
        mistakes.add(place, f"is missing{where}; allowed: {allowed(annotation, metadata)}", *keys)
    elif mistakes.has(place) or (kind == "too_short" and mistakes.has_within(place)):
        return
    elif kind == "extra_forbidden":
        holder, _ = _spot(model, path[:-1])
        mistakes.add(place, unknown_key(str(path[-1]), getattr(holder, "model_fields", ())))
    elif kind == "value_error" and _is_part(annotation):
        mistakes.add(place, str(detail["ctx"]["error"]))
    else:
        problem = str(detail["ctx"]["error"]) if kind == "value_error" else _problem(kind, place)
        mistakes.add(place, f"{problem}; allowed: {allowed(annotation, metadata)}")


def _place(path: Sequence[str | int]) -> tuple[str | int, ...]:
    """Return the path without the forms that entries of a list may have: they are at one place in the file."""
    return tuple(
        key for number, key in enumerate(path) if key not in FORMS or number == 0 or isinstance(path[number - 1], str)
    )


def _problem(kind: str, place: Item) -> str:
    if kind in {"literal_error", "enum"}:
        return f"{quoted(place.shown)} is unknown" if place.shown else "is unknown"
    return _PROBLEMS.get(kind) or _KINDS[type(place.value)]


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return what to say of a key that means nothing, with the nearest that does."""
    names = [FILE_KEYS.get(name, name) for name in known]
    return f"no such setting{nearest(key, names)} allowed: {listing(names, 40)}"


def nearest(word: str, names: Iterable[str]) -> str:
    """Return `; did you mean "x"?`, or a mere semicolon if no name is near; upper and lower case are alike."""
    near = _nearest(word, names)
    return ";" if near is None else f"; did you mean {quoted(near)}?"


def _nearest(word: str, names: Iterable[str]) -> str | None:
    lower = {name.lower(): name for name in reversed(list(names)[:_NAMES_COMPARED])}
    found = difflib.get_close_matches(word[:64].lower(), lower, 1)
    return lower[found[0]] if found else None


def allowed_in(field: FieldInfo) -> str:
    """Return what a field of the settings may be."""
    return allowed(field.annotation, tuple(field.metadata))


def allowed(annotation: Any, metadata: Sequence[object] = ()) -> str:
    """Return what a value of this type may be, bounds included."""
    core, metadata = _flat(annotation, metadata)
    marked = [mark.words for mark in metadata if isinstance(mark, Allowed)]
    if marked:
        return marked[0]
    if core in {int, float, str}:
        return _quantity(core, metadata)
    if get_origin(core) in {list, tuple, dict}:
        holder = "a mapping" if get_origin(core) is dict else "a list"
        each = allowed(get_args(core)[1 if get_origin(core) is dict else 0])
        return f"{holder} of {bounds_text(core, metadata) or 'any number'}, each {each}"
    if get_origin(core) is Literal:
        return listing(str(choice).lower() if choice is True else str(choice) for choice in get_args(core))
    if _is_part(core):
        required = [name for name, field in core.model_fields.items() if field.is_required()]
        names = dict.fromkeys([*required, *core.model_fields])
        return (
            f"a mapping with {listing((FILE_KEYS.get(name, name) for name in names), max(_KEYS_TOLD, len(required)))}"
        )
    return listing(str(choice.value) for choice in core) if issubclass(core, Enum) else _SIMPLE[core]


def _quantity(core: object, metadata: Sequence[object]) -> str:
    bounds = bounds_text(core, metadata)
    if Unit.SECONDS in metadata:
        return f"a duration, {bounds}{_like(_DURATIONS, metadata)}"
    if Unit.BYTES in metadata:
        return f"a size, {bounds}{_like(_SIZES, metadata)}"
    if core is str:
        return f"a text of {bounds} characters" if bounds else "a text"
    return f"a {'whole ' if core is int else ''}number, {bounds}"


def _like(examples: Mapping[str, float], metadata: Sequence[object]) -> str:
    """Return the examples that lie within the bounds."""
    low, high = _bounds(metadata)
    fit = [text for text, amount in examples.items() if low <= amount <= high]
    return f", like {listing(fit)}" if fit else ""


def bounds_text(annotation: Any, metadata: Sequence[object] = ()) -> str:
    """Return the range of a number, the length of a text or list: `1s to 5m`; empty if it has none."""
    _, metadata = _flat(annotation, metadata)
    least, most = _bounds(metadata)
    low, high = _amount(max(least, 0), metadata), _amount(most, metadata) if most < inf else ""
    return f"{low} to {high}" if high else f"at least {low}" if least > -inf else ""


def _bounds(metadata: Sequence[object]) -> tuple[float, float]:
    """Return the range of a number or a length; infinite where there is no bound."""
    least = [getattr(mark, name) for mark in metadata for name in ("ge", "min_length") if hasattr(mark, name)]
    most = [getattr(mark, name) for mark in metadata for name in ("le", "max_length") if hasattr(mark, name)]
    return max(least, default=-inf), min(most, default=inf)


def _amount(value: float, metadata: Sequence[object]) -> str:
    if Unit.SECONDS in metadata:
        return duration_text(value)
    return size_text(int(value)) if Unit.BYTES in metadata else f"{value:.10g}"


def _flat(annotation: Any, metadata: Sequence[object] = ()) -> tuple[Any, Sequence[object]]:
    """Strip `Annotated` and `| None`; return the type itself with all that annotates it."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation, *more = get_args(annotation)
            metadata = (*more, *metadata)
        elif get_origin(annotation) in {Union, UnionType}:
            annotation = next(choice for choice in get_args(annotation) if choice is not NoneType)
        else:
            flat = (entry for mark in metadata for entry in (mark.metadata if isinstance(mark, FieldInfo) else [mark]))
            return annotation, tuple(flat)


def _is_part(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _spot(model: Any, path: Sequence[str | int]) -> tuple[Any, Sequence[object]]:
    """Return the type that stands at a path of the settings."""
    core: Any = model
    metadata: Sequence[object] = ()
    for key in path:
        if _is_part(core) and key in core.model_fields:
            field = core.model_fields[key]
            core, metadata = _flat(field.annotation, tuple(field.metadata))
        elif isinstance(key, int) and get_origin(core) in {list, tuple}:
            core, metadata = _flat(get_args(core)[0])
        elif get_origin(core) is dict:
            core, metadata = _flat(get_args(core)[1])
        else:
            break
    return core, metadata
