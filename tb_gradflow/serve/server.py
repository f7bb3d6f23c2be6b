"""A small server for `tb-gradflow view`: the routes of the plugin at the addresses that they have in TensorBoard.

TensorBoard does not have to be installed.
"""

from __future__ import annotations

import base64
import hashlib
import os
import socket
from collections.abc import Callable, Iterable
from typing import Any

from werkzeug import wrappers
from werkzeug.sansio.utils import host_is_trusted
from werkzeug.serving import BaseWSGIServer, ThreadedWSGIServer, WSGIRequestHandler
from werkzeug.utils import redirect

from tb_gradflow.errors import SetupError
from tb_gradflow.serve.respond import respond
from tb_gradflow.serve.routes import SCRIPT, Routes
from tb_gradflow.store.directory import DirectorySource, find_runs
from tb_gradflow.store.layout import PLUGIN

LOOPBACK = "127.0.0.1"
OUR_NAMES = (LOOPBACK, "localhost")

PREFIX = f"/data/plugin/{PLUGIN}"
PAGE = f"{PREFIX}/"
"""The script requests everything relative to the address of its page."""

SCALARS = "/data/plugin/timeseries/tags"
"""The page asks TensorBoard for them, to link them. Here are none, and that is no error."""

_START = f'import("./static/{SCRIPT}").then((page) => void page.render());'

_PAGE = f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<link rel="icon" href="data:,">
<title>Gradient flow</title>
</head>
<body><script type="module">{_START}</script></body>
</html>
"""


class Viewer:
    """The WSGI application. Raises LogError if there is no run at or below `logdir`."""

    def __init__(self, logdir: str) -> None:
        find_runs(logdir)
        routes = Routes(DirectorySource(logdir), logdir).apps()
        self._apps = {
            "/": _lead_to_page,
            PAGE: _serve_page,
            SCALARS: _serve_no_scalars,
            **{f"{PREFIX}{path}": app for path, app in routes.items()},
        }

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        static = f"{PREFIX}/static/"
        app = self._apps.get(f"{static}*" if path.startswith(static) else path, _find_nothing)
        # A foreign page whose name was made to lead here (DNS rebinding) could read the answers.
        if not host_is_trusted(environ.get("HTTP_HOST", ""), OUR_NAMES):
            app = _refuse
        return app(environ, start_response)


@wrappers.Request.application
def _serve_page(request: wrappers.Request) -> wrappers.Response:
    allowed = base64.b64encode(hashlib.sha256(_START.encode()).digest()).decode()
    return respond(request, _PAGE.encode(), "text/html", scripts=[allowed])


@wrappers.Request.application
def _serve_no_scalars(request: wrappers.Request) -> wrappers.Response:
    return respond(request, b"{}", "application/json")


@wrappers.Request.application
def _lead_to_page(request: wrappers.Request) -> wrappers.Response:
    return redirect(PAGE, Response=wrappers.Response)


@wrappers.Request.application
def _find_nothing(request: wrappers.Request) -> wrappers.Response:
    return wrappers.Response("There is nothing at this address; the page is at /.\n", status=404)


@wrappers.Request.application
def _refuse(request: wrappers.Request) -> wrappers.Response:
    return wrappers.Response(f"This server answers only to the names {' and '.join(OUR_NAMES)}.\n", status=403)


class _Quiet(WSGIRequestHandler):
    def log_request(self, *arguments: object) -> None:
        """Does not print a line for each request."""


class _Server(ThreadedWSGIServer):
    def __init__(self, app: Viewer, port: int, listening: socket.socket) -> None:
        super().__init__(LOOPBACK, port, app, _Quiet, fd=listening.fileno())
        self._has_ended = False  # werkzeug closes another socket while it begins

    def server_close(self) -> None:
        self._has_ended = True
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A request that the end of the process interrupts is no error."""
        if not self._has_ended:
            super().handle_error(request, client_address)


def server(logdir: str, port: int) -> BaseWSGIServer:
    """A server on the loopback address that has not begun to answer; a port of zero stands for any free one.

    Raises LogError if there is nothing to show, and SetupError if the port cannot be taken.
    """
    app = Viewer(logdir)
    try:
        # Werkzeug itself would end the process.
        listening = socket.create_server((LOOPBACK, port))
    except (OSError, OverflowError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise SetupError(f"port {port} cannot be used ({reason}): give another one, or 0 for any free one") from error
    with listening:
        return _Server(app, port, listening)
