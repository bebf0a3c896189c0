"""Runs whose process is killed, and which another process resumes."""

import unittest
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import phoenix
import spans
from helix import Helix, stored
from polling import until

# The delay between chunks of the script, in milliseconds. A run takes some seconds, so that a part of its spans is
# exported before a kill.
PACE = "40"

# The number of kills, spread over the events of a run.
KILLS = 8

# The number of runs at the same time.
PARALLEL = 3


def facts(log):
    """Returns the operations that a log has recorded, as (operation, key)."""
    for recorded in log:
        [(kind, event)] = recorded["event"].items() if isinstance(recorded["event"], dict) else [(recorded["event"], None)]
        if kind == "run_started":
            yield "invoke_agent", recorded["run"]
        elif kind == "model_replied":
            yield "chat", event["step"]
        elif kind == "tool_finished" and event.get("attempts", 0) > 0:
            yield "execute_tool", event["call"]


class Kills(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.phoenix = phoenix.shared()
        helix = Helix()
        cls.events = len(helix.log(helix.demo()))

    def killed_at(self, helix, running, session, events):
        """Kills a command once the log has a number of events, and returns whether it was running until then."""
        until(f"{events} events", lambda: not running.is_running() or len(helix.log(session)) >= events)
        was_running = running.is_running()
        running.kill()
        return was_running and not ended(helix, session)

    def story(self, kills):
        """Kills a run when its log has these numbers of events, resumes it each time, and returns its session."""
        helix = Helix(self.phoenix.url)
        running = helix.start("demo", "--scripted", "--pace", PACE)
        session = running.session()
        for events in kills:
            self.assertTrue(self.killed_at(helix, running, session, events), f"the run ended before {events} events")
            running = helix.start("resume", session)
        done = running.end()
        self.assertEqual(done.code, 0, done)
        return helix, session

    def check(self, helix, session, kills):
        """Checks that Phoenix has one span for each operation in the log."""
        recorded = helix.spans(session)
        received = stored(self.phoenix, recorded.keys())
        received = {id: span for id, span in received.items() if span["attributes"][spans.SESSION] == session}
        self.assertEqual(received.keys(), recorded.keys())
        for id, span in recorded.items():
            self.assertEqual(spans.shared(received[id]), spans.shared(span))
        keys = Counter(
            (operation, span["attributes"][spans.KEY[operation]])
            for span in received.values()
            for operation in [span["attributes"][spans.OPERATION]]
        )
        self.assertEqual(keys, Counter(facts(helix.log(session))))
        spans.check_tree(self, received)
        spans.check_names(self, received)
        self.assertEqual(spans.tokens(received), helix.usage(session))
        lost = [span for span in received.values() if span["error"]]
        self.assertEqual([span["attributes"]["error.type"] for span in lost], ["lost"] * kills)
        self.assertEqual(len({span["trace"] for span in received.values()}), 1)

    def test_kills_anywhere(self):
        points = [1 + (self.events - 2) * kill // KILLS for kill in range(KILLS)]
        with ThreadPoolExecutor(PARALLEL) as pool:
            stories = {events: pool.submit(self.story, [events]) for events in points}
        for events, story in stories.items():
            with self.subTest(events=events):
                self.check(*story.result(), kills=1)

    def test_two_kills(self):
        self.check(*self.story([self.events // 3, self.events * 2 // 3]), kills=2)


def ended(helix, session):
    """Returns whether the last run of a session has ended."""
    kinds = [kind for recorded in helix.log(session) for kind in recorded["event"]]
    return kinds[-1] == "run_ended"


if __name__ == "__main__":
    unittest.main()
