"""Responses as TensorBoard makes them: compressed if the client accepts it, kept by no one unless that is said, and
pages that load nothing from elsewhere. TensorBoard does not have to be installed.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Collection

from werkzeug import wrappers
from werkzeug.http import http_date

_TEXT = ("text/", "application/json", "image/svg+xml")


def respond(
    request: wrappers.Request,
    content: bytes,
    content_type: str,
    *,
    code: int = 200,
    expires: int = 0,
    encoding: str | None = None,
    scripts: Collection[str] = (),
) -> wrappers.Response:
    """The response to a request.

    Args:
        expires: Seconds for which a browser may keep it.
        encoding: "gzip" if the content is already compressed.
        scripts: For a page, the base64 of the SHA-256 of each script in it that may run.
    """
    accepts = request.accept_encodings.quality("gzip") > 0
    if encoding == "gzip" and not accepts:
        content, encoding = gzip.decompress(content), None
    elif encoding is None and accepts and content_type.startswith(_TEXT):
        content, encoding = gzip.compress(content, compresslevel=3, mtime=0), "gzip"
    if content_type.startswith("text/"):
        content_type += "; charset=utf-8"
    response = wrappers.Response(content, status=code, content_type=content_type)
    response.headers["X-Content-Type-Options"] = "nosniff"
    if encoding is not None:
        response.headers["Content-Encoding"] = encoding
    if expires > 0:
        response.headers["Cache-Control"] = f"private, max-age={expires}"
        response.headers["Expires"] = http_date(time.time() + expires)
    else:
        response.headers["Cache-Control"] = "no-cache, must-revalidate"
        response.headers["Expires"] = "0"
    if content_type.startswith("text/html"):
        response.headers["Content-Security-Policy"] = ";".join(
            [
                "default-src 'self'",
                "img-src 'self' data: blob:",
                "object-src 'none'",
                "style-src 'self' 'unsafe-inline'",
                " ".join(["script-src 'self'", *(f"'sha256-{each}'" for each in scripts)]),
            ]
        )
    return response
