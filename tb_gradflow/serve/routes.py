"""The routes of docs/http.md, for TensorBoard and for `tb-gradflow view`.

They only parse requests, query `History`, and assemble responses; expensive requests take turns.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import socket
import threading
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from werkzeug import wrappers

from tb_gradflow.errors import LogError
from tb_gradflow.record.codec import encode
from tb_gradflow.record.schema import FORMAT
from tb_gradflow.serve.reports.answers import NotThere, Runs, WrongRequest, overview
from tb_gradflow.serve.reports.divergence import divergence_of
from tb_gradflow.serve.reports.page import page
from tb_gradflow.serve.reports.report import Report
from tb_gradflow.serve.respond import respond
from tb_gradflow.serve.runs.finite import finite
from tb_gradflow.serve.runs.heat import QUANTITIES, heat
from tb_gradflow.serve.runs.history import Floats, History, NotRecorded
from tb_gradflow.serve.runs.term_series import term_series
from tb_gradflow.serve.turns import Answers, NotWanted, Pace, TooMany, always
from tb_gradflow.store.layout import PLUGIN
from tb_gradflow.store.source import Source

STATIC = Path(__file__).parent / "static"
SCRIPT = "index.js"

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

PARAMETERS = (
    "run", "with", "session", "trace", "chunk", "at", "row", "variable", "quantity", "target", "columns", "step",
)  # fmt: skip

MOST_KEPT = 32 * 2**20
"""Size limit in bytes of the cached responses, which never change, and the overhead of each."""
OF_EACH_KEPT = 2000

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Who = tuple[Any, str]
"""Who asks, in TensorBoard's terms: its context of the request, and the id of the experiment."""
Handler = Callable[[wrappers.Request], wrappers.Response]


@dataclass(frozen=True, slots=True)
class Packed:
    """The content of a response, which can be sent to many.

    Attributes:
        expires: Seconds for which a browser may keep it.
        encoding: How the content is compressed; None if it is not.
    """

    content: bytes
    content_type: str
    expires: int = 0
    encoding: str | None = "gzip"


class Routes:
    """The routes over the runs of a source.

    Args:
        logdir: Their directory; empty if unknown.
        who: Who asks, from the environment of a request. Without TensorBoard it does not matter.
    """

    def __init__(
        self,
        source: Source,
        logdir: str,
        static: Path = STATIC,
        who: Callable[[dict[str, Any]], Who] = lambda environ: (None, ""),
    ) -> None:
        self._who_asks = who
        self._runs = Runs(source, logdir)
        self._answers: Answers[Packed] = Answers(MOST_KEPT, cost=lambda packed: len(packed.content) + OF_EACH_KEPT)
        self._pace = Pace()
        # A fixed list of files, so that no path in a request can lead anywhere else.
        self._static = {
            path.relative_to(static).as_posix(): path
            for path in static.rglob("*")
            if path.is_file() and path.suffix in MIME_TYPES
        }

    def apps(self) -> dict[str, Application]:
        """By the path below the plugin's address."""
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
            "/divergence": self._serve_divergence,
            "/page": self._serve_page,
        }
        return {
            "/static/*": wrappers.Request.application(_guarded(self._serve_static)),
            **{route: wrappers.Request.application(_guarded(self._paced(each))) for route, each in routes.items()},
        }

    def _paced(self, handler: Handler) -> Handler:
        def answer(request: wrappers.Request) -> wrappers.Response:
            self._pace.keep()
            return handler(request)

        return functools.wraps(handler)(answer)

    def _serve_runs(self, request: wrappers.Request) -> wrappers.Response:
        return self._once(request, lambda: self._listed(request))

    def _listed(self, request: wrappers.Request) -> dict[str, Any]:
        return {"format": FORMAT, "runs": self._runs.entries(*self._who(request))}

    def _expect_page(self, request: wrappers.Request) -> None:
        """Starts to answer `runs`: a page that loads its script requests that next, and then gets the same answer."""
        path = request.path.rpartition("/static/")[0] + "/runs"
        question = (path, *self._question(request)[1:])

        def answer() -> None:
            # The page gets the error when it requests the runs.
            with contextlib.suppress(Exception):
                self._answers.without_turn(question, lambda: _json(self._listed(request)))

        threading.Thread(target=answer, daemon=True).start()

    def _serve_standings(self, request: wrappers.Request) -> wrappers.Response:
        return self._once(request, lambda: self._runs.standings(*self._who(request)))

    def _serve_overview(self, request: wrappers.Request) -> wrappers.Response:
        run, who = _text(request, "run"), self._who(request)
        history = self._runs.history(*who, run)
        return self._now(request, lambda: _json(overview(run, self._runs.name(*who, run), history)))

    def _serve_trace(self, request: wrappers.Request) -> wrappers.Response:
        history = self._history(request)
        place = _text(request, "session"), _number(request, "trace")
        return self._kept(request, lambda: Packed(history.trace_json(*place), "application/json", expires=A_DAY))

    def _serve_report(self, request: wrappers.Request) -> wrappers.Response:
        history = self._history(request)
        if "step" not in request.args:
            return self._now(request, lambda: _json(finite(encode(history.diagnose()))))
        step = _number(request, "step", least=-1)
        return self._kept(request, lambda: _json(finite(encode(history.diagnose(step)))), history.state)

    def _serve_gradients(self, request: wrappers.Request) -> wrappers.Response:
        return self._chunk(request, self._history(request).gradients)

    def _serve_variables(self, request: wrappers.Request) -> wrappers.Response:
        return self._chunk(request, self._history(request).variables)

    def _chunk(self, request: wrappers.Request, read: Callable[[str, int], Floats]) -> wrappers.Response:
        place = _text(request, "session"), _number(request, "chunk")
        at = _number(request, "at") if "at" in request.args else None
        return self._kept(request, lambda: _numbers(_steps_asked(read(*place), at), expires=A_DAY))

    def _serve_series(self, request: wrappers.Request) -> wrappers.Response:
        history, row = self._history(request), _number(request, "row")
        return self._kept(request, lambda: _numbers(history.series(row)), history.state)

    def _serve_weights(self, request: wrappers.Request) -> wrappers.Response:
        history, variable = self._history(request), _number(request, "variable")
        return self._kept(request, lambda: _numbers(history.weights(variable)), history.state)

    def _serve_heat(self, request: wrappers.Request) -> wrappers.Response:
        history = self._history(request)
        quantity = _text(request, "quantity")
        if quantity not in QUANTITIES:
            raise WrongRequest(f"the parameter `quantity` must be one of {', '.join(QUANTITIES)}, got {quantity!r}")
        place = _number(request, "trace"), _number(request, "target")
        columns = _number(request, "columns", least=1)
        return self._kept(request, lambda: _numbers(heat(history, *place, quantity, columns)), history.state)

    def _serve_terms(self, request: wrappers.Request) -> wrappers.Response:
        history, trace = self._history(request), _number(request, "trace")
        columns = _number(request, "columns", least=1)
        return self._kept(request, lambda: _numbers(term_series(history, trace, columns)), history.state)

    def _serve_course(self, request: wrappers.Request) -> wrappers.Response:
        run, who = _text(request, "run"), self._who(request)
        return self._now(request, lambda: _json(self._runs.course(*who, run)))

    def _serve_divergence(self, request: wrappers.Request) -> wrappers.Response:
        runs, who = (_text(request, "run"), _text(request, "with")), self._who(request)
        one, other = (self._runs.history(*who, run) for run in runs)
        names = self._runs.name(*who, runs[0]), self._runs.name(*who, runs[1])
        return self._now(request, lambda: _json(divergence_of(names, (one, other)).to_dict()))

    def _serve_page(self, request: wrappers.Request) -> wrappers.Response:
        run, who = _text(request, "run"), self._who(request)
        history, name = self._runs.history(*who, run), self._runs.name(*who, run)
        step = _number(request, "step", least=-1) if "step" in request.args else None

        def saved() -> Packed:
            text = Report(history.diagnose(step), name).text_in_page
            # For saving, not for display: the page's policy forbids things that TensorBoard's own policy allows, and
            # vice versa.
            return Packed(page({name: history}, text, step).encode(), "application/octet-stream", encoding=None)

        return self._now(request, saved)

    def _who(self, request: wrappers.Request) -> Who:
        return self._who_asks(request.environ)

    def _question(self, request: wrappers.Request) -> tuple[Hashable, ...]:
        """The key by which two requests are the same."""
        asked = tuple(request.args.get(name) for name in PARAMETERS)
        return request.path, self._who(request)[1], asked

    def _history(self, request: wrappers.Request) -> History:
        return self._runs.history(*self._who(request), _text(request, "run"))

    def _kept(self, request: wrappers.Request, make: Callable[[], Packed], state: Hashable = None) -> wrappers.Response:
        """A response that stays the same while `state` does."""
        return _sent(request, self._answers.kept((*self._question(request), state), make, _client(request)))

    def _now(self, request: wrappers.Request, make: Callable[[], Packed]) -> wrappers.Response:
        """A response that may differ the next time."""
        return _sent(request, self._answers.made(self._question(request), make, _client(request)))

    def _once(self, request: wrappers.Request, make: Callable[[], dict[str, Any]]) -> wrappers.Response:
        """The same without a turn, for responses that wait for work done elsewhere."""
        return _sent(
            request, self._answers.without_turn(self._question(request), lambda: _json(make()), _client(request))
        )

    def _serve_static(self, request: wrappers.Request) -> wrappers.Response:
        name = request.path.rpartition(f"/plugin/{PLUGIN}/static/")[2]
        path = self._static.get(name)
        if path is None:
            built = "" if self._static else ": the page was not built. Install the package with `pip install -e .`"
            raise NotThere(f"no file {name!r} in this plugin{built}")
        if name == SCRIPT:
            self._expect_page(request)
        return respond(request, path.read_bytes(), MIME_TYPES[path.suffix])


def _guarded(handler: Handler) -> Handler:
    """Turns errors that a user can act on into responses; anything else is a bug, which the server logs."""

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
        except TooMany as error:
            return _error(request, 503, error)
        except NotWanted:
            return _error(request, 503, NotWanted("the client closed its connection while the request waited"))

    return answer


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


def _client(request: wrappers.Request) -> Callable[[], bool]:
    """Whether the client of a request is still connected; always true if the server does not expose its connection."""
    connection = request.environ.get("werkzeug.socket")
    at_once = getattr(socket, "MSG_DONTWAIT", None)
    if not isinstance(connection, socket.socket) or at_once is None or connection.gettimeout() is not None:
        return always

    def is_there() -> bool:
        try:
            return connection.recv(1, socket.MSG_PEEK | at_once) != b""
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False

    return is_there


def _steps_asked(numbers: Floats, at: int | None) -> Floats:
    """All steps of a chunk, or the one at the requested position: the first picture then needs only one."""
    if at is None:
        return numbers
    if at >= len(numbers):
        raise NotRecorded(f"this chunk has {len(numbers)} steps, numbered from 0: it has no step {at}")
    return numbers[at : at + 1]


def _sent(request: wrappers.Request, packed: Packed, code: int = 200) -> wrappers.Response:
    return respond(
        request,
        packed.content,
        packed.content_type,
        code=code,
        expires=packed.expires,
        encoding=packed.encoding,
    )


def _json(body: dict[str, Any]) -> Packed:
    # Passing a dict to `Respond` would write NaN as a string, and traverse all of it once more.
    text = json.dumps(body, separators=(",", ":"), allow_nan=False)
    return Packed(gzip.compress(text.encode(), compresslevel=3, mtime=0), "application/json")


def _error(request: wrappers.Request, code: int, error: Exception) -> wrappers.Response:
    return _sent(request, _json({"error": str(error)}), code)


def _numbers(numbers: Floats, expires: int = 0) -> Packed:
    # Level 1: such floats shrink by a fifth at any level, and higher levels take ten times as long.
    packed = gzip.compress(numbers.astype("<f4", copy=False).tobytes(), compresslevel=1, mtime=0)
    return Packed(packed, "application/octet-stream", expires=expires)
