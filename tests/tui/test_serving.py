"""The screen in a browser: who may open it, and what it loads."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("textual_serve", reason="textual-serve (neurontools[web]) is not installed")

from aiohttp import WSServerHandshakeError
from aiohttp.test_utils import TestClient, TestServer

from neurontools.tui.serving import ScreenServer, is_loopback

Script = Callable[[Any, ScreenServer], Awaitable[None]]


def served(script: Script, host: str = "127.0.0.1") -> None:
    """Serve a command that ends at once on a free port of loopback, and run a script on a client of it."""

    async def whole() -> None:
        screen = ScreenServer(f"{sys.executable} -c pass", host, 0, "test")
        server = TestServer(await screen._make_app(), host="127.0.0.1")
        async with TestClient(server) as client:
            screen.public_url = f"http://127.0.0.1:{server.port}"
            await script(client, screen)

    asyncio.run(whole())


def test_nothing_is_served_without_the_token() -> None:
    async def script(client: Any, screen: ScreenServer) -> None:
        assert len(screen.token) >= 32
        assert (await client.get(f"/{screen.token}/")).status == 200
        for path in ("/", "/ws", "/static/js/textual.js", "/wrong/", f"/{screen.token[:-1]}/", "/%ff/", "/download/x"):
            assert (await client.get(path)).status == 403, path
        script_file = f"/{screen.token}/static/js/textual.js"
        assert (await client.get(script_file)).status == 200
        assert (await client.get(f"/{screen.token}/static/")).status in (403, 404)  # no listing of the folder

    served(script)


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "http://127.0.0.1:1", "https://HOST", "http://HOST.evil.example"]
)
def test_a_page_from_elsewhere_opens_no_websocket(origin: str | None) -> None:
    async def script(client: Any, screen: ScreenServer) -> None:
        host = f"127.0.0.1:{client.port}"
        headers = {} if origin is None else {"Origin": origin.replace("HOST", host)}
        with pytest.raises(WSServerHandshakeError) as refused:
            await client.ws_connect(f"/{screen.token}/ws", headers=headers)
        assert refused.value.status == 403

    served(script)


def test_the_page_itself_opens_its_websocket() -> None:
    async def script(client: Any, screen: ScreenServer) -> None:
        host = f"localhost:{client.port}"
        page = await (await client.get(f"/{screen.token}/", headers={"Host": host})).text()
        found = re.search(r'data-session-websocket-url="ws://localhost:\d+(/[^"]+)"', page)
        assert found is not None
        headers = {"Host": host, "Origin": f"http://{host}"}
        socket = await client.ws_connect(found[1], headers=headers)
        await asyncio.sleep(0.3)  # until the command has ended
        await socket.close()
        with pytest.raises(WSServerHandshakeError):
            await client.ws_connect("/ws", headers=headers)

    served(script)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "localhost.evil.example", "10.1.2.3"])
def test_a_name_that_was_made_to_point_here_is_refused(host: str) -> None:
    async def script(client: Any, screen: ScreenServer) -> None:
        assert (await client.get(f"/{screen.token}/", headers={"Host": host})).status == 403

    served(script)


def test_bound_elsewhere_addresses_are_served_and_foreign_names_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    async def script(client: Any, screen: ScreenServer) -> None:
        for host, status in (("10.1.2.3:8765", 200), ("[::1]:8765", 200), ("evil.example", 403)):
            assert (await client.get(f"/{screen.token}/", headers={"Host": host})).status == status, host

    served(script, "0.0.0.0")
    assert "warning: 0.0.0.0 can be reached from other machines" in capsys.readouterr().err
    served(_nothing)
    said = capsys.readouterr().err
    assert "warning" not in said and re.search(r"open http://127\.0\.0\.1:\d+/[\w-]{32}/", said)


async def _nothing(client: Any, screen: ScreenServer) -> None:
    pass


def test_the_page_loads_nothing_from_elsewhere() -> None:
    async def script(client: Any, screen: ScreenServer) -> None:
        answer = await client.get(f"/{screen.token}/")
        page = await answer.text()
        addresses = set(re.findall(r"""(?:https?:|wss?:)?//([\w.\[\]:-]+)""", page)) - {"www.w3.org"}
        assert addresses == {f"127.0.0.1:{client.port}"}
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'") and "frame-ancestors 'none'" in policy
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        for name in re.findall(rf"(/{screen.token}/static/[\w./-]+)", page):
            if "." in name:
                assert (await client.get(name)).status == 200, name

    served(script)


def test_loopback_is_told_from_other_addresses() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.9.1", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.com", "")))
