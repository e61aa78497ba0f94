"""Debian's Chromium driven over its DevTools protocol: just what the tests of the pages need, in place of a large package.

The protocol is documented at https://chromedevtools.github.io/devtools-protocol/.
"""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

SECONDS = 60
"""How long an answer may take on a machine that does much else."""

KEYS = {"Tab": 9, "Enter": 13, "Home": 36, "End": 35, "ArrowLeft": 37, "ArrowRight": 39, " ": 32}
"""Virtual key codes."""

SHIFT = 8


def missing() -> str:
    """What these tests need and this machine lacks; empty where all is there."""
    if chromium() is None:
        return "Chromium is not installed (apt-get install chromium)"
    try:
        import websocket  # noqa: F401
    except ImportError:
        return "the Python package websocket-client is not installed"
    return "" if axe_script() else "axe-core is not installed (pip install --no-deps axe-playwright-python)"


def chromium() -> str | None:
    """The path of a Chromium, if there is one."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def axe_script() -> Path | None:
    """axe-core as one file, out of a wheel that carries it; nothing else of that wheel is used."""
    try:
        files = metadata.files("axe-playwright-python") or []
    except metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in files if file.name == "axe.min.js"), None)


class BrowserError(Exception):
    """The browser answered with an error, or not at all."""


class Browser:
    """One headless Chromium with one page; nothing that it is shown can reach a network."""

    def __init__(self) -> None:
        import websocket

        self.folder = tempfile.mkdtemp(prefix="gradekit-browser-")
        binary = chromium()
        assert binary is not None
        self.process = subprocess.Popen(
            [binary, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--mute-audio",
             "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-port=0", f"--user-data-dir={self.folder}",
             "--remote-allow-origins=*", "--hide-scrollbars", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | {"HOME": self.folder},
        )  # fmt: skip
        self.socket = websocket.create_connection(self._address(), timeout=SECONDS, max_size=None)
        self.number = 0
        self.session = ""
        self.events: list[dict[str, Any]] = []
        target = next(each for each in self.send("Target.getTargets")["targetInfos"] if each["type"] == "page")
        attached = self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def _address(self) -> str:
        file, end = Path(self.folder) / "DevToolsActivePort", time.monotonic() + SECONDS
        while not file.is_file() or "\n" not in file.read_text():
            if self.process.poll() is not None or time.monotonic() > end:
                raise BrowserError("Chromium did not start")
            time.sleep(0.05)
        port, path = file.read_text().split("\n")[:2]
        return f"ws://127.0.0.1:{port}{path}"

    def close(self) -> None:
        """End the browser."""
        self.socket.close()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer to a command; what happens meanwhile is added to `events`."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        self.socket.send(json.dumps(message | ({"sessionId": self.session} if self.session else {})))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") != self.number:
                self.events.append(answer)
            elif "error" in answer:
                raise BrowserError(f"{method}: {answer['error']}")
            else:
                result: dict[str, Any] = answer["result"]
                return result

    def look(self, width: int = 1280, *, dark: bool = False, media: str = "", script: bool = True) -> None:
        """How the next pages are seen."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.send("Emulation.setScriptExecutionDisabled", value=not script)

    def open(self, page: Path | str) -> None:
        """Show a page, given as a file or as its text, and wait until it is there."""
        self.events.clear()
        if isinstance(page, str):
            file = Path(self.folder) / "page.html"
            file.write_text(page, encoding="utf-8")
            page = file
        self.send("Page.navigate", url=page.resolve().as_uri())
        end = time.monotonic() + SECONDS
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            if time.monotonic() > end:
                raise BrowserError(f"{page} did not load")
            self.events.append(json.loads(self.socket.recv()))

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page; a promise is awaited."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise BrowserError(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press and release a key where the focus is."""
        known: Mapping[str, Any] = {"key": key, "modifiers": SHIFT * shift}
        known |= {"windowsVirtualKeyCode": KEYS.get(key, ord(key[0].upper()))}
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        self.send("Input.dispatchKeyEvent", type="keyDown", **known, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **known)

    def violations(self) -> list[str]:
        """What axe-core finds wrong with the page."""
        script = axe_script()
        assert script is not None
        self.send("Runtime.evaluate", expression=script.read_text(encoding="utf-8"))
        found = self.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [f"{each['id']}: {node['html'][:200]} {node.get('failureSummary', '')}" for each in found["violations"] for node in each["nodes"]]

    def requests(self) -> list[str]:
        """The addresses that the page asked for, but for its own file."""
        sent = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [url for url in sent[1:] if not url.startswith("data:")]

    def complaints(self) -> list[str]:
        """What stands in the console, refused by a policy or thrown by a script."""
        told = {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}
        return [json.dumps(event["params"])[:500] for event in self.events if event.get("method") in told]

    def screenshot(self, file: Path, height: int | None = None) -> None:
        """Write the page, or its first `height` pixels, as the file's name says: .png or .webp."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], height or 1 << 14), "scale": 1}
        form = {"format": "png"} if file.suffix == ".png" else {"format": "webp", "quality": 80}
        shot = self.send("Page.captureScreenshot", clip=clip, captureBeyondViewport=True, **form)
        file.write_bytes(base64.b64decode(shot["data"]))
