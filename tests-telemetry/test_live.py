"""Spans that arrive while agents run, and the export of the same sessions afterwards."""

import unittest

import phoenix
import spans
from helix import COMPLETED, SUSPENDED, Helix, stored
from model import Model, call

WRITER = """
name = "writer"
prompt = "You write."
[tools.files]
root = "data"
write = true
requires_approval = true
"""

# The steps of the scripted demo, and its tool calls. The report of the last step is not a call of a tool.
DEMO_STEPS, DEMO_CALLS = 5, 7

# The kinds of OTLP.
INTERNAL, CLIENT = 1, 3


class Live(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.phoenix = phoenix.shared()

    def received(self, helix, session):
        """Returns the spans of a session from its log, after it has checked those in Phoenix."""
        recorded = helix.spans(session)
        everything = stored(self.phoenix, recorded.keys())
        traces = {span["trace"] for span in recorded.values()}
        received = {id: span for id, span in everything.items() if span["trace"] in traces}
        self.assertEqual(received.keys(), recorded.keys())
        for id, span in recorded.items():
            self.assertEqual(spans.shared(received[id]), spans.shared(span))
        spans.check_tree(self, received)
        spans.check_names(self, received)
        self.assertEqual(spans.tokens(received), helix.usage(session))
        return recorded

    def assert_second_export_adds_nothing(self, helix, session):
        recorded = helix.spans(session)
        before = stored(self.phoenix, recorded.keys())
        self.assertEqual(helix.export(session, self.phoenix.url), len(recorded))
        self.assertEqual(stored(self.phoenix, recorded.keys()), before)

    def test_demo(self):
        helix = Helix(self.phoenix.url)
        session = helix.demo()
        found = self.received(helix, session)
        count = lambda name: sum(span["attributes"][spans.OPERATION] == name for span in found.values())
        self.assertEqual(
            (count("invoke_agent"), count("chat"), count("execute_tool"), count("wait")), (1, DEMO_STEPS, DEMO_CALLS, 0)
        )
        self.assertEqual(len({span["trace"] for span in found.values()}), 1)
        [root] = [span for span in found.values() if span["parent"] is None]
        self.assertEqual(root["name"], "invoke_agent researcher")
        for span in found.values():
            is_model = span["attributes"][spans.OPERATION] == "chat"
            self.assertEqual(span["kind"], CLIENT if is_model else INTERNAL)
            self.assertFalse(span["error"])
            self.assertTrue(root["start"] <= span["start"] and span["end"] <= root["end"], span)
        self.assert_second_export_adds_nothing(helix, session)

    def test_turn_of_several_processes(self):
        model = Model([[call("write_file", path="a.txt", text="one")], [call("write_file", path="b.txt", text="two")], "Done."])
        self.addCleanup(model.stop)
        helix = Helix(self.phoenix.url, model.url)
        helix.write("agent.toml", WRITER)
        helix.write("data/there.txt", "")
        session = helix.run("run", "agent.toml", "Write.", "--json", code=SUSPENDED).json()["session"]
        self.received(helix, session)
        helix.run("approvals", "approve", f"{session}#1.0")
        helix.run("resume", session, code=SUSPENDED)
        self.received(helix, session)
        helix.run("approvals", "deny", f"{session}#2.0", "--reason", "not there")
        helix.run("resume", session, code=COMPLETED)

        found = self.received(helix, session)
        self.assertEqual(len({span["trace"] for span in found.values()}), 1)
        of = lambda name: sorted(
            (span for span in found.values() if span["attributes"][spans.OPERATION] == name), key=lambda span: span["start"]
        )
        runs, waits = of("invoke_agent"), of("wait")
        self.assertEqual(
            [run["attributes"]["helix.status"] for run in runs],
            ["suspended_client_tool", "suspended_client_tool", "completed"],
        )
        self.assertEqual(
            [[event["name"] for event in run["events"]] for run in runs],
            [["helix.suspended"], ["helix.resumed", "helix.suspended"], ["helix.resumed"]],
        )
        for before, run in zip(runs, runs[1:]):
            self.assertEqual(run["links"], [(before["trace"], before["id"], "resumed_from")])
        self.assertEqual([wait["attributes"]["helix.wait.outcome"] for wait in waits], ["approved", "denied"])
        for before, wait, run in zip(runs, waits, runs[1:]):
            self.assertTrue(before["start"] <= wait["start"] <= wait["end"] <= run["start"])
        # A denied call is not executed.
        self.assertEqual([tool["attributes"]["gen_ai.tool.call.id"] for tool in of("execute_tool")], ["1.0"])
        self.assertEqual([span["name"] for span in found.values() if span["error"]], [])
        # Three replies of the model.
        self.assertEqual(spans.tokens(found), (30, 15))
        self.assert_second_export_adds_nothing(helix, session)


if __name__ == "__main__":
    unittest.main()
