"""What the admin address answers: the one declaration from which it is served and described."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from proxy import __version__
from proxy.operations import answers
from proxy.operations.answers import Schema

JSON = "application/json"


class Openness(StrEnum):
    """To whom an endpoint answers."""

    PROBE = "probe"
    """To everybody."""
    FIGURES = "figures"
    """To everybody where nothing is set by which anyone could prove who they are: they were always read so."""
    GUARDED = "guarded"
    """On a loopback address to everybody, unless a proof is set; elsewhere to those with a proof only."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A part of the query; all are optional."""

    name: str
    meaning: str
    is_list: bool = False
    """It may come several times."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is answered under one status; `schema` is JSON Schema, None for what is no JSON."""

    meaning: str
    schema: Schema | None
    content: str = JSON


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Endpoint:
    """One path that is asked by GET."""

    path: str
    name: str
    """Of the operation, as programs that are made from the document call it."""
    summary: str
    openness: Openness
    parameters: tuple[Parameter, ...] = ()
    told: Mapping[int, Told]
    """By status; for what is refused before see `REFUSED`."""


REFUSED: Mapping[int, Told] = {
    401: Told("No proof, or a wrong one: the token of `admin.token`, or a certificate, is needed.", answers.ERROR),
    403: Told("Nothing is set that could prove who asks, or a page of another origin asks.", answers.ERROR),
}
"""Of everything but probes."""

HEALTH = Endpoint(
    path="/health",
    name="health",
    summary="Whether the process is alive, or stuck by a fault of its own that a restart mends.",
    openness=Openness.PROBE,
    told={200: Told("It is.", answers.ALIVE), 503: Told("It is stuck.", answers.STUCK)},
)
READY = Endpoint(
    path="/ready",
    name="ready",
    summary="Whether every route is connected and some event type is read.",
    openness=Openness.PROBE,
    told={200: Told("It is ready.", answers.READY), 503: Told("It is not.", answers.READY)},
)
METRICS = Endpoint(
    path="/metrics",
    name="metrics",
    summary="Metrics of now, in Prometheus' text format.",
    openness=Openness.FIGURES,
    told={200: Told("The metrics.", None, "text/plain")},
)
SCALING = Endpoint(
    path="/scaling",
    name="scaling",
    summary="How many consumers are wanted.",
    openness=Openness.FIGURES,
    parameters=(
        Parameter("route", "Only what is told of this route ..."),
        Parameter("queue", "... and of this queue of it."),
    ),
    told={
        200: Told("All routes, one route or one queue.", answers.OBJECT),
        404: Told("Nothing is told of it.", answers.ERROR),
    },
)
STATE = Endpoint(
    path="/state",
    name="state",
    summary="Routes, classes and event types as they are now, and the last decisions with their reasons.",
    openness=Openness.GUARDED,
    parameters=(
        Parameter("after", "Tell of event types that come after this name; `next` of the answer before."),
        Parameter("type", "Tell of these event types only.", is_list=True),
    ),
    told={
        200: Told("All but event types, of which 1,000 at most.", answers.STATE),
        400: Told("An unknown parameter.", answers.ERROR),
        404: Told("An unknown event type.", answers.ERROR),
    },
)
OPENAPI = Endpoint(
    path="/openapi.json",
    name="openapi",
    summary="This document.",
    openness=Openness.GUARDED,
    told={200: Told("OpenAPI 3.1.", answers.OBJECT)},
)
ENDPOINTS = (HEALTH, READY, METRICS, SCALING, STATE, OPENAPI)
BY_PATH = {one.path: one for one in ENDPOINTS}


def document(version: str) -> dict[str, Any]:
    """Return the OpenAPI document of all endpoints."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tidegate's admin API",
            "version": version,
            "description": "docs/admin-api.md says what each figure means.",
        },
        "paths": {one.path: {"get": _operation(one)} for one in ENDPOINTS},
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "`admin.token`."},
                "certificate": {"type": "mutualTLS", "description": "Signed by `admin.tls.client_ca_file`."},
            }
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    is_probe = endpoint.openness is Openness.PROBE
    told = {**endpoint.told, **({} if is_probe else REFUSED)}
    return {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        # {}: nothing, where the address is left open.
        "security": [{}] if is_probe else [{"token": []}, {"certificate": []}, {}],
        "parameters": [_parameter(one) for one in endpoint.parameters],
        "responses": {str(status): _response(told[status]) for status in sorted(told)},
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    text = {"type": "string"}
    schema = {"type": "array", "items": text} if parameter.is_list else text
    return {"name": parameter.name, "in": "query", "description": parameter.meaning, "schema": schema}


def _response(told: Told) -> dict[str, Any]:
    schema = {"type": "string"} if told.schema is None else told.schema
    return {"description": told.meaning, "content": {told.content: {"schema": schema}}}


if __name__ == "__main__":
    print(json.dumps(document(__version__), indent=1))
