"""The TensorBoard plugin: the routes of docs/http.md.

It only parses requests, queries `History`, and assembles responses. All data comes through the DataProvider, so it
works with both of TensorBoard's loaders and with any other provider.
"""

from __future__ import annotations

import functools
import gzip
import json
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tensorboard import plugin_util
from tensorboard.backend import http_util
from tensorboard.plugins import base_plugin
from werkzeug import wrappers

from tb_gradflow.errors import LogError
from tb_gradflow.record.codec import encode
from tb_gradflow.record.schema import FORMAT
from tb_gradflow.serve.answers import NotThere, Runs, WrongRequest, overview
from tb_gradflow.serve.finite import finite
from tb_gradflow.serve.heat import QUANTITIES, heat
from tb_gradflow.serve.history import Floats, NotRecorded
from tb_gradflow.serve.page import page
from tb_gradflow.serve.report import Report
from tb_gradflow.serve.term_series import term_series
from tb_gradflow.store.layout import PLUGIN

STATIC = Path(__file__).parent / "static"

# Listed explicitly, because on Windows the registry decides what `mimetypes` returns, and TensorBoard sends `nosniff`.
MIME_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".map": "application/json",
    ".mjs": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".woff2": "font/woff2",
}

A_DAY = 24 * 60 * 60

AT_ONCE = 3
"""Requests that are answered at the same time; others wait. TensorBoard answers each in a thread of its own, and Python
runs one of them at a time: of fifty that all have work to do, the requests of other tabs would be one in fifty-one."""

# These wait for what others work out.
_WAITING = ("/runs", "/standings")

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Handler = Callable[[wrappers.Request], wrappers.Response]


class GradFlowPlugin(base_plugin.TBPlugin):  # type: ignore[misc]  # TensorBoard has no types
    """The tab "Gradient flow"."""

    plugin_name = PLUGIN

    def __init__(self, context: base_plugin.TBContext, static: Path = STATIC) -> None:
        self._runs = Runs(context.data_provider, context.logdir or "")
        self._turns = threading.BoundedSemaphore(AT_ONCE)
        # A fixed list of files, so that no path in a request can lead anywhere else.
        self._static = {
            path.relative_to(static).as_posix(): path
            for path in static.rglob("*")
            if path.is_file() and path.suffix in MIME_TYPES
        }

    def is_active(self) -> bool:
        # TensorBoard asks the DataProvider whether there is data of this plugin, and shows the tab if so.
        return False

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        return base_plugin.FrontendMetadata(es_module_path="/static/index.js", tab_name="Gradient flow")

    def get_plugin_apps(self) -> dict[str, Application]:
        routes: dict[str, Handler] = {
            "/runs": self._serve_runs,
            "/standings": self._serve_standings,
            "/overview": self._serve_overview,
            "/trace": self._serve_trace,
            "/report": self._serve_report,
            "/gradients": self._serve_gradients,
            "/variables": self._serve_variables,
            "/series": self._serve_series,
            "/weights": self._serve_weights,
            "/heat": self._serve_heat,
            "/terms": self._serve_terms,
            "/course": self._serve_course,
            "/page": self._serve_page,
            "/static/*": self._serve_static,
        }
        in_turn = {route: each if route in _WAITING else self._in_turn(each) for route, each in routes.items()}
        return {route: wrappers.Request.application(_guarded(handler)) for route, handler in in_turn.items()}

    def _in_turn(self, handler: Handler) -> Handler:
        def answer(request: wrappers.Request) -> wrappers.Response:
            with self._turns:
                return handler(request)

        return functools.wraps(handler)(answer)

    def _serve_runs(self, request: wrappers.Request) -> wrappers.Response:
        return _json(request, {"format": FORMAT, "runs": self._runs.entries(*_who(request))})

    def _serve_standings(self, request: wrappers.Request) -> wrappers.Response:
        return _json(request, self._runs.standings(*_who(request)))

    def _serve_overview(self, request: wrappers.Request) -> wrappers.Response:
        run = _text(request, "run")
        history = self._runs.history(*_who(request), run)
        return _json(request, overview(run, self._runs.name(*_who(request), run), history))

    def _serve_trace(self, request: wrappers.Request) -> wrappers.Response:
        history = self._runs.history(*_who(request), _text(request, "run"))
        blob = history.trace_json(_text(request, "session"), _number(request, "trace"))
        return _respond(request, blob, "application/json", expires=A_DAY, content_encoding="gzip")

    def _serve_report(self, request: wrappers.Request) -> wrappers.Response:
        history = self._runs.history(*_who(request), _text(request, "run"))
        step = _number(request, "step", least=-1) if "step" in request.args else None
        return _json(request, finite(encode(history.diagnose(step))))

    def _serve_gradients(self, request: wrappers.Request) -> wrappers.Response:
        history = self._runs.history(*_who(request), _text(request, "run"))
        numbers = history.gradients(_text(request, "session"), _number(request, "chunk"))
        return _numbers(request, _steps_asked(request, numbers), expires=A_DAY)

    def _serve_variables(self, request: wrappers.Request) -> wrappers.Response:
        history = self._runs.history(*_who(request), _text(request, "run"))
        numbers = history.variables(_text(request, "session"), _number(request, "chunk"))
        return _numbers(request, _steps_asked(request, numbers), expires=A_DAY)

    def _serve_series(self, request: wrappers.Request) -> wrappers.Response:
        history = self._runs.history(*_who(request), _text(request, "run"))
        return _numbers(request, history.series(_number(request, "row")))

    def _serve_weights(self, request: wrappers.Request) -> wrappers.Response:
        history = self._runs.history(*_who(request), _text(request, "run"))
        return _numbers(request, history.weights(_number(request, "variable")))

    def _serve_heat(self, request: wrappers.Request) -> wrappers.Response:
        history = self._runs.history(*_who(request), _text(request, "run"))
        quantity = _text(request, "quantity")
        if quantity not in QUANTITIES:
            raise WrongRequest(f"the parameter `quantity` must be one of {', '.join(QUANTITIES)}, got {quantity!r}")
        trace, target = _number(request, "trace"), _number(request, "target")
        columns = _number(request, "columns", least=1)
        return _numbers(request, heat(history, trace, target, quantity, columns))

    def _serve_terms(self, request: wrappers.Request) -> wrappers.Response:
        history = self._runs.history(*_who(request), _text(request, "run"))
        columns = _number(request, "columns", least=1)
        return _numbers(request, term_series(history, _number(request, "trace"), columns))

    def _serve_course(self, request: wrappers.Request) -> wrappers.Response:
        return _json(request, self._runs.course(*_who(request), _text(request, "run")))

    def _serve_page(self, request: wrappers.Request) -> wrappers.Response:
        run = _text(request, "run")
        history = self._runs.history(*_who(request), run)
        name = self._runs.name(*_who(request), run)
        step = _number(request, "step", least=-1) if "step" in request.args else None
        text = Report(history.diagnose(step), name).text_in_page
        # For saving, not for display: the page's policy forbids what TensorBoard's own allows, and the other way round.
        return _respond(request, page({name: history}, text, step), "application/octet-stream")

    def _serve_static(self, request: wrappers.Request) -> wrappers.Response:
        name = request.path.rpartition(f"/plugin/{PLUGIN}/static/")[2]
        path = self._static.get(name)
        if path is None:
            built = "" if self._static else ": the page was not built, install the package with `pip install -e .`"
            raise NotThere(f"no file {name!r} in this plugin{built}")
        return _respond(request, path.read_bytes(), MIME_TYPES[path.suffix])


def _guarded(handler: Handler) -> Handler:
    """Turns errors that a user can act on into responses; anything else is a bug, which TensorBoard logs."""

    @functools.wraps(handler)
    def answer(request: wrappers.Request) -> wrappers.Response:
        try:
            return handler(request)
        except WrongRequest as error:
            return _error(request, 400, error)
        except (NotThere, NotRecorded) as error:
            return _error(request, 404, error)
        except LogError as error:
            return _error(request, 422, error)

    return answer


def _who(request: wrappers.Request) -> tuple[Any, str]:
    return plugin_util.context(request.environ), plugin_util.experiment_id(request.environ)


def _text(request: wrappers.Request, name: str) -> str:
    value: str | None = request.args.get(name)
    if not value:
        raise WrongRequest(f"the parameter `{name}` is missing")
    return value


def _number(request: wrappers.Request, name: str, least: int = 0) -> int:
    text = _text(request, name)
    digits = text[1:] if text.startswith("-") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 15) or int(text) < least:
        begin = "one" if least == 1 else "zero"
        raise WrongRequest(f"the parameter `{name}` must be a number from {begin}, got {text!r}")
    return int(text)


def _steps_asked(request: wrappers.Request, numbers: Floats) -> Floats:
    """All steps of a chunk, or the one at the requested position: the first picture then needs only one."""
    if "at" not in request.args:
        return numbers
    at = _number(request, "at")
    if at >= len(numbers):
        raise NotRecorded(f"this chunk has {len(numbers)} steps, numbered from 0: it has no step {at}")
    return numbers[at : at + 1]


def _respond(request: wrappers.Request, *arguments: Any, **options: Any) -> wrappers.Response:
    response: wrappers.Response = http_util.Respond(request, *arguments, **options)
    return response


def _json(request: wrappers.Request, body: dict[str, Any], code: int = 200) -> wrappers.Response:
    # Passing a dict to `Respond` would write NaN as a string, and traverse all of it once more.
    text = json.dumps(body, separators=(",", ":"), allow_nan=False)
    return _respond(request, text, "application/json", code=code)


def _error(request: wrappers.Request, code: int, error: Exception) -> wrappers.Response:
    return _json(request, {"error": str(error)}, code)


def _numbers(request: wrappers.Request, numbers: Floats, expires: int = 0) -> wrappers.Response:
    # Level 1: such floats shrink by a fifth at any level, and higher levels take ten times as long.
    packed = gzip.compress(numbers.astype("<f4", copy=False).tobytes(), compresslevel=1, mtime=0)
    return _respond(request, packed, "application/octet-stream", expires=expires, content_encoding="gzip")
