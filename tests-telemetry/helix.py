"""The command `helix` in a folder of its own."""

import atexit
import json
import os
import subprocess
import tempfile
import threading
from pathlib import Path

import spans
from polling import until

BINARY = os.environ.get("HELIX_BINARY")

# The URL of a PostgreSQL server, if the sessions are stored there.
POSTGRES = os.environ.get("HELIX_TELEMETRY_POSTGRES")

# The schema with the tables of the sessions.
SCHEMA = "helix_telemetry"

# The time that a command may take.
SECONDS = 120

COMPLETED, FAILED, SUSPENDED = 0, 1, 3


# The folders of all tests.
_folders = tempfile.TemporaryDirectory(prefix="helix-telemetry-")
atexit.register(_folders.cleanup)


# Sessions that show what Phoenix has stored.
_markers = set()


def stored(phoenix, ids):
    """Returns all spans, once Phoenix has those with these ids and everything else that it has received.

    Phoenix stores spans in the order in which they arrive, so the spans of another session are stored after all others.
    """
    phoenix.wait_for(ids)
    marker = Helix(phoenix.url)
    session = marker.demo()
    _markers.add(session)
    everything = phoenix.wait_for(marker.spans(session).keys())
    return {id: span for id, span in everything.items() if span["attributes"].get(spans.SESSION) not in _markers}


class Done:
    """The exit code and the output of a command."""

    def __init__(self, code, stdout, stderr):
        self.code, self.stdout, self.stderr = code, stdout, stderr

    def __repr__(self):
        return f"exit code {self.code}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"

    def json(self):
        return json.loads(self.stdout)


class Running:
    """A running command. Its output is read all the time, so that it is never blocked."""

    def __init__(self, command, **options):
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
        )
        self.lines, self.errors = [], []
        outputs = [(self.process.stdout, self.lines), (self.process.stderr, self.errors)]
        self.readers = [threading.Thread(target=lambda o=o, to=to: to.extend(o), daemon=True) for o, to in outputs]
        for reader in self.readers:
            reader.start()

    def is_running(self):
        return self.process.poll() is None

    def session(self):
        """Returns the session, once the command has printed it."""
        def found():
            return next((line.split()[1] for line in self.lines.copy() if line.startswith("session ")), None)
        until("the session is printed", lambda: found() or not self.is_running())
        assert found(), f"the command has ended without a session: {self.end()}"
        return found()

    def kill(self):
        self.process.kill()
        return self.end()

    def end(self):
        """Waits until the command has ended."""
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        for reader in self.readers:
            reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return Done(self.process.returncode, "".join(self.lines), "".join(self.errors))


class Helix:
    """A folder in which commands run."""

    def __init__(self, receiver=None, model=None):
        self.folder = Path(tempfile.mkdtemp(dir=_folders.name))
        self.configure(receiver, model)

    def configure(self, receiver=None, model=None):
        """Writes helix.toml with the URL of a receiver of spans, and with that of a model server."""
        text = ""
        if model:
            text += f'[providers.scripted]\nbase_url = "{model}"\nmodel = "small"\n'
        if receiver:
            text += f'[telemetry]\nendpoint = "{receiver}"\n'
        self.write("helix.toml", text)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def start(self, *args):
        """Starts a command. It sees no variables that would configure it."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        if POSTGRES:
            environment["HELIX_DB"] = f"{POSTGRES}{'&' if '?' in POSTGRES else '?'}schema={SCHEMA}"
        return Running([BINARY, *args], cwd=self.folder, env=environment)

    def run(self, *args, code=COMPLETED):
        """Runs a command, and checks its exit code."""
        done = self.start(*args).end()
        assert done.code == code, f"helix {' '.join(args)}: {done}"
        return done

    def demo(self, *args):
        """Runs the scripted demo without delays, and returns its session."""
        return self.run("demo", "--scripted", "--pace", "0", "--json", *args).json()["session"]

    def log(self, session):
        """Returns the events of a session."""
        lines = self.run("sessions", "log", session, "--json").stdout.splitlines()
        return [json.loads(line) for line in lines]

    def spans(self, session):
        """Returns the spans of a session, and of the sessions below it, from their logs."""
        return spans.of_otlp(self.run("telemetry", "export", session, "--json").json())

    def export(self, session, url):
        """Exports a session again, and returns the number of spans that the command reports."""
        return self.run("telemetry", "export", session, "--to", url, "--json").json()["spans"]

    def usage(self, session):
        """Returns the input and output tokens of a session, and of the sessions below it."""
        used = self.run("usage", session, "--json").json()["tokens"]
        return used["input_tokens"], used["output_tokens"]
