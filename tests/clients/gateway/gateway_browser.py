"""A real browser, driven over the W3C WebDriver protocol: Debian's chromium and its chromedriver, nothing to install.

`script`, `find`, `type`, `press` and `screenshot` are all that the tests need.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--use-fake-ui-for-media-stream",
    "--use-fake-device-for-media-stream",
)


def missing() -> str:
    """What a machine lacks for these tests, "" if nothing."""
    absent = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"needs {' and '.join(absent)} (Debian: chromium chromium-driver)" if absent else ""


class Browser:
    """One window."""

    def __init__(self, folder: Path, microphone: Path, *, dark: bool = False) -> None:
        chromedriver = shutil.which("chromedriver") or "chromedriver"
        self._driver = subprocess.Popen(
            [chromedriver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._base = f"http://127.0.0.1:{self._port()}"
        flags = [*FLAGS, f"--user-data-dir={folder}", f"--use-file-for-fake-audio-capture={microphone}"]
        if dark:
            flags.append("--force-dark-mode")
        options = {"args": flags, "binary": shutil.which("chromium")}
        wanted = {"alwaysMatch": {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}
        self._session = self._ask("POST", "/session", {"capabilities": wanted})["sessionId"]

    def _port(self) -> int:
        for line in self._driver.stdout or ():
            if "started successfully on port" in line:
                return int(line.rstrip(".\n").rpartition(" ")[2])
        raise RuntimeError("chromedriver did not start")

    def close(self) -> None:
        try:
            self.do("DELETE", "")
        finally:
            self._driver.terminate()
            self._driver.wait(10)
            if self._driver.stdout:
                self._driver.stdout.close()

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {json.load(error)['value']['message']}") from error

    def do(self, method: str, path: str, body: Any = None) -> Any:
        return self._ask(method, f"/session/{self._session}{path}", body)

    def open(self, url: str) -> None:
        self.do("POST", "/url", {"url": url})

    def resize(self, width: int, height: int) -> None:
        """Sets the page's own size: a headless window has no least width, unlike a real one."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.devtools("Emulation.setDeviceMetricsOverride", metrics)

    def devtools(self, command: str, parameters: dict[str, Any]) -> Any:
        return self.do("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def script(self, text: str, *arguments: Any) -> Any:
        return self.do("POST", "/execute/sync", {"script": text, "args": list(arguments)})

    def find(self, selector: str) -> dict[str, str]:
        found: dict[str, str] = self.do("POST", "/element", {"using": "css selector", "value": selector})
        return found

    def type(self, selector: str, text: str) -> None:
        """Types into an element; into a file input, the path of a file."""
        self.do("POST", f"/element/{self.find(selector)[ELEMENT]}/value", {"text": text})

    def press(self, *keys: str) -> None:
        """Presses keys one after the other, wherever the focus is."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.do("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def text(self, selector: str) -> str:
        return str(self.script("return document.querySelector(arguments[0]).textContent", selector))

    def is_shown(self, selector: str) -> bool:
        return bool(self.script("return document.querySelector(arguments[0]).offsetParent !== null", selector))

    def wait(self, is_so: Callable[[], Any], otherwise: str, limit_s: float = 30) -> None:
        end = time.monotonic() + limit_s
        while not is_so():
            assert time.monotonic() < end, f"{otherwise}; the page says: {self.text('main')}"
            time.sleep(0.05)

    def screenshot(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self.do("GET", "/screenshot")))

    def complaints(self) -> list[str]:
        """What the browser's console holds since the last call: errors of scripts, what the policy blocked."""
        return [str(line["message"]) for line in self.do("POST", "/se/log", {"type": "browser"})]
