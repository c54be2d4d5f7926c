"""The page, file by file, and the description of the API as plain HTML.

Files are read when the service starts, and looked up by name in a table: no path that a client sends
reaches the file system.

Why not Starlette's StaticFiles: it looks for the path on disk, takes file types from the machine's
tables (a wrong one for a script, and the page stays blank, since browsers may not guess) and makes tags
from a file's time, which differs between machines with the same files.
"""

from __future__ import annotations

import hashlib
import json
import re
from html import escape
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from boltzhash.server.refusals import error_response

_FOLDER = Path(__file__).parent / "page"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FILES = {path.name: path.read_bytes() for path in _FOLDER.iterdir() if path.suffix in _TYPES}

pages = APIRouter(include_in_schema=False)


@pages.get("/")
async def page(request: Request) -> Response:
    return _file(request, "index.html")


@pages.get("/page/{name}")
async def page_file(request: Request, name: str) -> Response:
    if name not in _FILES:
        return error_response(404, "the page has no such file")
    return _file(request, name)


@pages.get("/favicon.ico")
async def icon(request: Request) -> Response:
    return _file(request, "icon.svg")


@pages.get("/docs")
async def api_page(request: Request) -> Response:
    return Response(_api_page(request.app.openapi()), media_type=_TYPES[".html"])


def _file(request: Request, name: str) -> Response:
    """With its digest, so a browser asks again but does not download again."""
    contents = _FILES[name]
    tag = f'"{hashlib.sha256(contents).hexdigest()[:16]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    if tag in request.headers.get("if-none-match", ""):  # in a list, or weakened by a proxy
        return Response(status_code=304, headers=headers)
    return Response(contents, media_type=_TYPES[Path(name).suffix], headers=headers)


def _api_page(description: dict[str, Any]) -> str:
    schemas = description["components"]["schemas"]
    sections = [
        _operation(path, method, operation, schemas)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>boltzhash: API</title>
<link rel="icon" href="page/icon.svg">
<link rel="stylesheet" href="page/style.css">
</head>
<body class="reference">
<main>
<h1>The API of this service</h1>
<p>{_prose(description["info"]["description"])}</p>
<p>For programs: <a href="openapi.json">openapi.json</a>. <a href="./">Back to the page</a>.</p>
{"".join(sections)}
</main>
</body>
</html>
"""


def _operation(path: str, method: str, operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    parts = [f"<h2><code>{method.upper()} {escape(path)}</code></h2>"]
    parts.append(f"<p>{_prose(operation.get('description', ''))}</p>")
    if "security" in operation:
        parts.append("<p>Needs the key: <code>Authorization: Bearer KEY</code>.</p>")
    rows = [
        (f"{p['name']} ({p['in']})", p["schema"], p.get("required", False))
        for p in operation.get("parameters", [])
    ]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    rows += _properties(body.get("schema"), schemas)
    if rows:
        parts.append(_table("You send", rows))
    answer = operation["responses"].get("200", {}).get("content", {}).get("application/json", {})
    rows = _properties(answer.get("schema"), schemas)
    if rows:
        parts.append(_table("You get", rows))
    return f"<section>{''.join(parts)}</section>"


def _properties(
    schema: dict[str, Any] | None, schemas: dict[str, Any], prefix: str = ""
) -> list[tuple[str, dict[str, Any], bool]]:
    """The fields of a model, each followed by those of the model that it or its items are."""
    if schema is None or "$ref" not in schema:
        return []
    model = schemas[schema["$ref"].rpartition("/")[2]]
    required = model.get("required", [])
    rows: list[tuple[str, dict[str, Any], bool]] = []
    for name, field in model.get("properties", {}).items():
        rows.append((prefix + name, field, name in required))
        of_model = [part for part in field.get("anyOf", [field]) if part.get("type") != "null"]
        if len(of_model) == 1:
            (whole,) = of_model
            rows += _properties(whole, schemas, f"{prefix}{name}.")
            rows += _properties(whole.get("items"), schemas, f"{prefix}{name}[].")
            by_name = whole.get("additionalProperties")  # true if they may be anything
            if isinstance(by_name, dict):
                rows += _properties(by_name, schemas, f"{prefix}{name}.*.")
    return rows


def _table(title: str, rows: list[tuple[str, dict[str, Any], bool]]) -> str:
    lines = [
        f"<tr><th scope=row><code>{escape(name)}</code></th>"
        f"<td>{escape(_kind(schema))}{_default(schema, required)}</td>"
        f"<td>{_prose(schema.get('description', ''))}</td></tr>"
        for name, schema, required in rows
    ]
    return f"<table><caption>{title}</caption><tbody>{''.join(lines)}</tbody></table>"


def _prose(text: str) -> str:
    """
    >>> _prose("`k` < 100")
    '<code>k</code> &lt; 100'
    """
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _kind(schema: dict[str, Any]) -> str:
    """
    >>> _kind({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]})
    'integer from 1, or null'
    >>> _kind({"enum": ["both", "words", "codes"], "type": "string"})
    'both, words or codes'
    """
    if "enum" in schema:
        *first, last = [str(value) for value in schema["enum"] if value is not None]
        return f"{', '.join(first)} or {last}"
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return ", or ".join(_kind(part) for part in schema[choice])
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    kind = str(schema.get("type", "anything"))
    if kind == "array":
        kind = f"list of {_kind(schema.get('items', {}))}"
    limits = {
        "minimum": "from {}",
        "maximum": "to {}",
        "maxLength": "at most {} characters",
        "maxItems": "at most {}",
        "maxProperties": "at most {} conditions",
    }
    said = [text.format(schema[name]) for name, text in limits.items() if name in schema]
    return " ".join([kind, *said])


def _default(schema: dict[str, Any], required: bool) -> str:
    if required or "default" not in schema:
        return ""
    return f", else <code>{escape(json.dumps(schema['default']))}</code>"
