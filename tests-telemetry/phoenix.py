"""Arize Phoenix as a receiver of spans."""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import spans
from polling import until

# Phoenix starts within 20 seconds, unless the machine is busy.
START_SECONDS = 300

# The number of spans that Phoenix returns at once, at most.
PAGE = 1000


class Phoenix:
    """A server with a database of its own. It keeps its port and its spans when it is started again."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="helix-phoenix-")
        atexit.register(self.close)
        self.port, self.grpc_port = free_port(), free_port()
        self.process = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        """Returns when the server accepts requests."""
        folder = self.folder.name
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "PHOENIX_WORKING_DIR": folder,
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(self.port),
            "PHOENIX_GRPC_PORT": str(self.grpc_port),
            "PHOENIX_TELEMETRY_ENABLED": "false",
        }
        program = Path(sys.executable).with_name("phoenix")
        with open(Path(folder) / "phoenix.log", "ab") as log:
            self.process = subprocess.Popen(
                [program, "serve"],
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # An interrupt of the terminal does not reach it before the tests have ended.
                start_new_session=True,
            )
        until("Phoenix accepts requests", self.accepts, START_SECONDS)

    def accepts(self):
        """Returns whether the server accepts requests."""
        if self.process.poll() is not None:
            raise AssertionError(f"Phoenix has ended:\n{self.log()}")
        try:
            return self.get("/v1/projects") is not None
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    def pause(self):
        """Stops the process, which keeps its port."""
        self.process.send_signal(signal.SIGSTOP)

    def kill(self):
        """Ends the process at once."""
        self.end(signal.SIGKILL)

    def stop(self):
        """Ends the process."""
        self.end(signal.SIGTERM)

    def close(self):
        """Ends the process, and removes the spans."""
        self.stop()
        self.folder.cleanup()

    def end(self, number):
        if self.process is None:
            return
        self.process.send_signal(number)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def log(self):
        """Returns the end of the log."""
        text = (Path(self.folder.name) / "phoenix.log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-20:])

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=30) as response:
            return json.load(response)

    def spans(self):
        """Returns all spans by their ids. Two spans with one id are an error."""
        found, cursor = [], None
        while True:
            query = {"limit": PAGE} | ({"cursor": cursor} if cursor else {})
            try:
                page = self.get(f"/v1/projects/default/spans?{urllib.parse.urlencode(query)}")
            except urllib.error.HTTPError as error:
                # The project is created with its first span.
                if error.code == 404:
                    return {}
                raise
            found += page["data"]
            cursor = page.get("next_cursor")
            if not cursor:
                return spans.of_phoenix(found)

    def wait_for(self, ids):
        """Returns all spans, once those with these ids have arrived."""
        received = {}

        def arrived():
            nonlocal received
            received = self.spans()
            return ids <= received.keys()

        until(f"Phoenix has {len(ids)} spans", arrived, explain=lambda: ids - received.keys())
        return received


def free_port():
    """Returns a free port of the loopback interface."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


_shared = None


def shared():
    """Returns the server that all tests share, because each start takes long."""
    global _shared
    if _shared is None:
        _shared = Phoenix()
        _shared.start()
    return _shared
