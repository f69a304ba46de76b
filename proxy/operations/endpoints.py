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
    SHELL = "shell"
    """To everybody likewise: a page without a figure, which has to ask for what it shows like anybody else."""
    FIGURES = "figures"
    """To everybody where nothing is set by which anyone could prove who they are: they were always read so."""
    GUARDED = "guarded"
    """On a loopback address to everybody, unless a proof is set; elsewhere to those with a proof only."""
    CHANGES = "changes"
    """Likewise; and no page of another origin may ask in the name of whoever's browser shows it."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A part of the query, or of the path; those of the query are optional."""

    name: str
    meaning: str
    is_list: bool = False
    """It may come several times."""
    place: str = "query"
    """Or `path`."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is answered under one status; `schema` is JSON Schema, None for what is no JSON."""

    meaning: str
    schema: Schema | None
    content: str = JSON


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Endpoint:
    """One path that is asked by one method."""

    path: str
    method: str = "GET"
    name: str
    """Of the operation, as programs that are made from the document call it."""
    summary: str
    openness: Openness
    parameters: tuple[Parameter, ...] = ()
    body: Schema | None = None
    """Of the question, JSON; None: it has none."""
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
STREAM = Endpoint(
    path="/stream",
    name="stream",
    summary="Everything that the page shows, once a second, as server-sent events.",
    openness=Openness.GUARDED,
    told={
        200: Told("Events `state`: everything first, then what has changed.", None, "text/event-stream"),
        503: Told("Too many look already.", answers.ERROR),
    },
)
PAGE = Endpoint(
    path="/",
    name="page",
    summary="A page for people that shows what /stream tells.",
    openness=Openness.SHELL,
    told={200: Told("The page.", None, "text/html")},
)
OPENAPI = Endpoint(
    path="/openapi.json",
    name="openapi",
    summary="This document.",
    openness=Openness.GUARDED,
    told={200: Told("OpenAPI 3.1.", answers.OBJECT)},
)
_BUSY = Told("Too many ask at once; again in a moment.", answers.ERROR)
_BAD = Told("Something in the question is wrong; nothing was changed.", answers.ERROR)
_NO_BOARD = Told("Kafka does not answer, or refuses; what was changed is said.", answers.ERROR)
LIST = Endpoint(
    path="/interventions",
    name="listInterventions",
    summary="What people have asked of the group and holds now, and which replicas have answered.",
    openness=Openness.GUARDED,
    told={200: Told("The one asked for last at the end.", answers.INTERVENTIONS), 429: _BUSY, 503: _NO_BOARD},
)
BEGIN = Endpoint(
    path="/interventions",
    method="POST",
    name="beginIntervention",
    summary="Asks something of all replicas of the group for a time; answers when they have, after 10 s in any case.",
    openness=Openness.CHANGES,
    body=answers.ASKED,
    told={
        201: Told("It is pinned: it holds for every replica as soon as it reads it.", answers.INTERVENTION),
        400: _BAD,
        408: Told("The question did not arrive in time.", answers.ERROR),
        409: Told("There is nothing to take back, or too much holds already; nothing was changed.", answers.ERROR),
        413: Told("The question is longer than 64 KiB.", answers.ERROR),
        415: Told("The question is not of type application/json.", answers.ERROR),
        429: _BUSY,
        503: _NO_BOARD,
    },
)
END = Endpoint(
    path="/interventions/{id}",
    method="DELETE",
    name="endIntervention",
    summary="Ends one before its time, on all replicas; answers when they have, after 10 s in any case.",
    openness=Openness.CHANGES,
    parameters=(
        Parameter("id", "Of the intervention.", place="path"),
        Parameter("why", "In words, for the records."),
        Parameter("who", "Who asks; what is proved stands before it."),
    ),
    told={
        200: Told(
            "It is ended for every replica as soon as it reads that; again changes nothing.", answers.INTERVENTION
        ),
        400: _BAD,
        404: Told("None of this id holds.", answers.ERROR),
        429: _BUSY,
        503: _NO_BOARD,
    },
)
RELOAD = Endpoint(
    path="/reload",
    method="POST",
    name="reload",
    summary="Has this process read its settings again, and go by them if they can be used.",
    openness=Openness.CHANGES,
    told={
        200: Told("What came into force, or that nothing differs.", answers.RELOADED),
        409: Told("They can't be used: they are wrong, or need a restart. Nothing was changed.", answers.NOT_RELOADED),
        429: Told("They are being read already; again in a moment.", answers.ERROR),
    },
)
ENDPOINTS = (HEALTH, READY, METRICS, SCALING, STATE, LIST, BEGIN, END, RELOAD, STREAM, PAGE, OPENAPI)
_OPENNESS = {(one.method, one.path): one.openness for one in ENDPOINTS}


def openness(method: str, path: str) -> Openness:
    """Return to whom is answered who asks so; `path` with its parameters as they are declared."""
    return _OPENNESS.get(("GET" if method == "HEAD" else method, path), Openness.GUARDED)


def document(version: str) -> dict[str, Any]:
    """Return the OpenAPI document of all endpoints."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tidegate's admin API",
            "version": version,
            "description": "docs/admin-api.md says what each figure means.",
        },
        "paths": {
            path: {one.method.lower(): _operation(one) for one in ENDPOINTS if one.path == path}
            for path in dict.fromkeys(one.path for one in ENDPOINTS)
        },
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "`admin.token`."},
                "certificate": {"type": "mutualTLS", "description": "Signed by `admin.tls.client_ca_file`."},
            }
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    is_probe = endpoint.openness in {Openness.PROBE, Openness.SHELL}
    told = {**endpoint.told, **({} if is_probe else REFUSED)}
    body = {} if endpoint.body is None else {"requestBody": {"required": True, "content": _content(endpoint.body)}}
    return {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        # {}: nothing, where the address is left open.
        "security": [{}] if is_probe else [{"token": []}, {"certificate": []}, {}],
        "parameters": [_parameter(one) for one in endpoint.parameters],
        **body,
        "responses": {str(status): _response(told[status]) for status in sorted(told)},
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    text = {"type": "string"}
    schema = {"type": "array", "items": text} if parameter.is_list else text
    required = {"required": True} if parameter.place == "path" else {}
    return {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.meaning,
        "schema": schema,
        **required,
    }


def _response(told: Told) -> dict[str, Any]:
    schema = {"type": "string"} if told.schema is None else told.schema
    return {"description": told.meaning, "content": _content(schema, told.content)}


def _content(schema: Schema, kind: str = JSON) -> dict[str, Any]:
    return {kind: {"schema": schema}}


if __name__ == "__main__":
    print(json.dumps(document(__version__), indent=1))
