"""Runs whose receiver of spans is unavailable."""

import unittest

import phoenix
import spans
from helix import FAILED, Helix, stored

NOTICE = "could not be exported; `helix telemetry export` exports a session again"


class Receiver(unittest.TestCase):
    """Phoenix is stopped and killed here, so these tests come last. It is started again in between."""

    @classmethod
    def setUpClass(cls):
        cls.phoenix = phoenix.shared()
        helix = Helix()
        cls.expected = result(helix.run("demo", "--scripted", "--pace", "0", "--json"))

    def test_receiver_stops_during_a_run(self):
        helix = Helix(self.phoenix.url)
        running = helix.start("demo", "--scripted", "--pace", "40")
        session = running.session()
        self.phoenix.pause()
        paused = running.end()
        self.assertEqual(paused.code, 0, paused)
        self.assertIn(NOTICE, paused.stderr)
        silent = helix.run("demo", "--scripted", "--pace", "0", "--json")
        self.assertEqual(result(silent), self.expected)
        self.phoenix.kill()

        # Nothing listens on the port.
        gone = helix.run("demo", "--scripted", "--pace", "0", "--json")
        self.assertEqual(result(gone), self.expected)
        shown = helix.run("demo", "--scripted", "--pace", "0")
        self.assertIn(NOTICE, shown.stderr)
        failed = helix.run("telemetry", "export", session, "--to", self.phoenix.url, code=FAILED)
        self.assertIn("the receiver did not accept the export", failed.stderr)

        self.phoenix.start()
        sessions = [session, silent.json()["session"], gone.json()["session"]]
        recorded = {}
        for exported in sessions:
            found = helix.spans(exported)
            self.assertEqual(helix.export(exported, self.phoenix.url), len(found))
            recorded |= found
        received = stored(self.phoenix, recorded.keys())
        for id, span in recorded.items():
            self.assertEqual(spans.shared(received[id]), spans.shared(span))
        of_session = lambda span: span["attributes"][spans.SESSION] in sessions
        self.assertEqual({id for id, span in received.items() if of_session(span)}, recorded.keys())


def result(done):
    """Returns the part of a demo's result that is the same each time."""
    return {name: done.json()[name] for name in ("status", "output", "runs", "steps", "tool_calls", "usage") if name in done.json()}


if __name__ == "__main__":
    unittest.main()
