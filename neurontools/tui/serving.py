"""The screen in a browser: textual-serve behind a secret address, for pages of this server only."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

import aiohttp_jinja2
import jinja2
from aiohttp import web
from textual_serve.server import Server

from formats.errors import FormatError
from formats.numerals import parse_decimal
from neurontools.command.output import note

__all__ = ["ScreenServer", "is_loopback"]

_FONT_ELSEWHERE = 'href="https://fonts.googleapis.com/css?family=Roboto%20Mono"'
_FONT_HERE = 'href="data:text/css,"'
_FONT_FACE = """<style>
      @font-face {
        font-family: "Roboto Mono";
        src: url("{{ config.static.url }}fonts/RobotoMono-VariableFont_wght.ttf");
      }"""
# 'unsafe-inline' is for the page's own script and the style attributes of the terminal; nothing comes from elsewhere.
_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline' data:; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self' ws://{host} wss://{host}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def is_loopback(host: str) -> bool:
    """Return whether a name or an address is that of this machine for itself."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class ScreenServer(Server):
    """Serves one command's screen below `/TOKEN/`; whoever does not know the token sees nothing.

    A request has to name this machine as its Host, and a page that opens the websocket has to come from here: so
    neither a page from elsewhere nor a name that is made to point here can drive a session.
    """

    def __init__(self, command: str, host: str, port: int, title: str) -> None:
        shown = f"[{host}]" if ":" in host else host
        super().__init__(command, host=host, port=port, title=title, public_url=f"http://{shown}:{port}")
        self.token = secrets.token_urlsafe(24)

    @property
    def url(self) -> str:
        """Return the address to open, with the token."""
        return f"{self.public_url}/{self.token}/"

    async def _make_app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        template = (self.templates_path / "app_index.html").read_text(encoding="utf-8")
        template = template.replace(_FONT_ELSEWHERE, _FONT_HERE).replace("<style>", _FONT_FACE, 1)
        aiohttp_jinja2.setup(app, loader=jinja2.DictLoader({"app_index.html": template}))
        below = f"/{self.token}"
        app.add_routes([
            web.get(f"{below}/", self.handle_index, name="index"),
            web.get(f"{below}/ws", self.handle_websocket, name="websocket"),
            web.get(f"{below}/download/{{key}}", self.handle_download, name="download"),
            web.static(f"{below}/static", self.statics_path, name="static"),
        ])  # fmt: skip
        app.on_startup.append(self.on_startup)
        app.on_shutdown.append(self.on_shutdown)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Refuse what does not come from a page of this server; see the class."""
        if not self._is_here(request.host):
            raise web.HTTPForbidden(text="this host name is not served here")
        origin = request.headers.get("Origin")
        if origin is None and request.path.endswith("/ws"):
            raise web.HTTPForbidden(text="a websocket needs an Origin")
        if origin is not None and origin not in (f"http://{request.host}", self.public_url):
            raise web.HTTPForbidden(text="pages from elsewhere are not served")
        given = request.path.split("/")[1].encode("utf-8", "replace")
        if not hmac.compare_digest(given, self.token.encode()):
            raise web.HTTPForbidden(text="open the address that was printed, with its token")
        response = await handler(request)
        if not response.prepared:
            response.headers["Content-Security-Policy"] = _POLICY.format(host=request.host)
            response.headers["Referrer-Policy"] = "no-referrer"
            response.headers["X-Content-Type-Options"] = "nosniff"
            response.headers["Cache-Control"] = "no-store"
        return response

    def _is_here(self, host: str) -> bool:
        """Return whether a Host names this machine; an address elsewhere cannot be made to point here, a name can."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if is_loopback(name):
            return True
        if is_loopback(self.host):
            return False
        if name in (self.host, socket.gethostname().lower()):
            return True
        try:
            return bool(ipaddress.ip_address(name))
        except ValueError:
            return False

    @aiohttp_jinja2.template("app_index.html")
    async def handle_index(self, request: web.Request) -> dict[str, Any]:
        """Return what the page is made from: addresses of the host that it was asked from."""
        router, here = request.app.router, f"//{request.host}"
        size = request.query.get("fontsize", "")
        return {
            "font_size": parse_decimal(size, 3) or 16,
            "app_websocket_url": f"ws:{here}{router['websocket'].url_for()}",
            "config": {"static": {"url": f"{here}{router['static'].url_for(filename='/')}".rstrip("/") + "/"}},
            "application": {"name": self.title},
        }

    async def on_startup(self, app: web.Application) -> None:
        """Say where the screen is."""
        note(f"neurontools debug, by textual-serve {version('textual-serve')}: open {self.url}")
        if not is_loopback(self.host):
            note(f"warning: {self.host} can be reached from other machines, and the connection is not encrypted: "
                 "who sees the address can run this session")  # fmt: skip
        note("Ctrl-C ends it.")

    def serve(self, debug: bool = False) -> None:
        """Serve until interrupted; FormatError where the address cannot be had."""
        try:
            super().serve(debug)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise FormatError(f"{self.public_url} cannot be served ({reason})") from None
