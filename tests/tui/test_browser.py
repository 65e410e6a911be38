"""The screen in a real browser: it follows the source, takes keys, writes nothing and loads nothing from elsewhere."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from socket import socket
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("textual_serve", reason="textual-serve (neurontools[web]) is not installed")

from aiohttp import ClientSession, WSMsgType

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
_PATIENCE = 60.0  # seconds: many times what it takes, for a machine that does much else
_ESCAPE = re.compile(r"\x1b\[[0-9;?<>=]*[a-zA-Z]|\x1b[()][A-B]|\x1b\][^\x07]*\x07")


class Browser:
    """One page of a headless Chromium: what it asks for, what its websocket brings, and keys pressed in it."""

    def __init__(self, wire: Any) -> None:
        self.socket = wire
        self.asked: list[str] = []
        self.shown = ""
        self.errors: list[str] = []
        self._numbers = itertools.count(1)

    async def send(self, method: str, **parameters: Any) -> None:
        """Ask the browser for something."""
        await self.socket.send_json({"id": next(self._numbers), "method": method, "params": parameters})

    async def until(self, wanted: Callable[[], bool]) -> None:
        """Take in what happens until something is so."""
        end = time.monotonic() + _PATIENCE
        while not wanted():
            assert time.monotonic() < end, (self.shown[-2000:], self.asked, self.errors)
            try:
                message = await self.socket.receive(timeout=1)
            except TimeoutError:
                continue
            if message.type is not WSMsgType.TEXT:
                continue
            event = json.loads(message.data)
            method, found = event.get("method"), event.get("params", {})
            if method == "Network.requestWillBeSent":
                self.asked.append(found["request"]["url"])
            elif method == "Network.webSocketCreated":
                self.asked.append(found["url"])
            elif method == "Network.webSocketFrameReceived":
                self._take(found["response"])
            elif method == "Log.entryAdded" and found["entry"]["level"] == "error":
                self.errors.append(found["entry"]["text"])

    def _take(self, frame: Any) -> None:
        data = frame["payloadData"]
        text = base64.b64decode(data).decode("utf-8", "replace") if frame["opcode"] == 2 else data
        self.shown += _ESCAPE.sub("", text)

    async def click(self) -> None:
        """Click into the page, so that keys go there."""
        for kind in ("mousePressed", "mouseReleased"):
            await self.send("Input.dispatchMouseEvent", type=kind, x=300, y=60, button="left", clickCount=1)

    async def press(self, key: str) -> None:
        """Press a key that is a letter."""
        number = ord(key.upper())
        parts = {"key": key, "code": f"Key{key.upper()}", "windowsVirtualKeyCode": number}
        await self.send("Input.dispatchKeyEvent", type="keyDown", text=key, **parts)
        await self.send("Input.dispatchKeyEvent", type="keyUp", **parts)


def _serve(folder: Path, root: Path, *options: str) -> tuple[subprocess.Popen[str], str]:
    """Serve the example with the deadlock; return the server and its address."""
    environment = {**os.environ, "XDG_STATE_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "PYTHONPATH": str(root)}
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    program = str(root / "examples" / "deadlock.s")
    command = [sys.executable, "-m", "neurontools", "debug", program, "--serve", "--port", port]
    server = subprocess.Popen([*command, *options], cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    for line in server.stderr:
        found = re.search(r"open (http://\S+)", line)
        if found is not None:
            return server, found[1]
    raise AssertionError(f"no address, status {server.wait()}")


async def _visit(folder: Path, address: str, script: Callable[[Browser], Any]) -> Browser:
    profile = folder / "profile"
    chromium = subprocess.Popen(
        [str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
         "--window-size=1800,1100", "--disable-background-networking", f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        end = time.monotonic() + _PATIENCE
        while not (profile / "DevToolsActivePort").exists():
            assert time.monotonic() < end and chromium.poll() is None, "Chromium does not start"
            await asyncio.sleep(0.1)
        port = (profile / "DevToolsActivePort").read_text().split()[0]
        async with ClientSession() as session:
            pages = await (await session.get(f"http://127.0.0.1:{port}/json/list")).json()
            page = next(page for page in pages if page["type"] == "page")
            async with session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as wire:
                browser = Browser(wire)
                for domain in ("Network", "Page", "Log"):
                    await browser.send(f"{domain}.enable")
                await browser.send("Page.navigate", url=address)
                await script(browser)
                return browser
    finally:
        chromium.terminate()
        chromium.wait(30)


def test_a_page_shows_follows_and_asks_nobody_else(tmp_path: Path, root: Path) -> None:
    server, address = _serve(tmp_path, root, "--read-only")
    try:

        async def script(browser: Browser) -> None:
            await browser.until(lambda: "SOURCE deadlock.s" in browser.shown and "ENGINES" in browser.shown)
            assert "PSEUDO_DMA_TRIGGER" in browser.shown, "the text of the source"
            await browser.click()
            browser.shown = ""
            await browser.press("c")
            await browser.until(lambda: "hang" in browser.shown and "cycle: nc0 Activation" in browser.shown)
            assert "POOL▶" in browser.shown, "SOURCE has followed"
            browser.shown = ""
            await browser.press("e")
            await browser.until(lambda: "read-only" in browser.shown or "read only" in browser.shown)

        browser = asyncio.run(_visit(tmp_path, address, script))
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)
    here = urlsplit(address).netloc
    assert len(browser.asked) > 3
    assert {urlsplit(url).netloc for url in browser.asked if not url.startswith(("data:", "blob:", "about:"))} == {here}
    assert not [text for text in browser.errors if "Content Security Policy" in text]
    assert not list(tmp_path.glob("neurontools-*")), "nothing was written"
