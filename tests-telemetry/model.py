"""A model server with scripted replies, with the interface of OpenAI."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def call(tool, **arguments):
    """Returns a reply that calls a tool."""
    return {"name": tool, "arguments": json.dumps(arguments)}


class Model:
    """Selects the reply by the number of replies in a request, so that a repeated request gets the same one.

    A text is an answer, and a list is one of calls.
    """

    def __init__(self, replies):
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.reply("application/json", json.dumps({"object": "list", "data": [{"id": "small"}]}))

            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                chunks = [f"data: {json.dumps(chunk)}\n\n" for chunk in model.chunks(request)]
                self.reply("text/event-stream", "".join(chunks) + "data: [DONE]\n\n")

            def reply(self, kind, body):
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *args):
                pass

        self.replies = replies
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def chunks(self, request):
        reply = self.replies[sum(message["role"] == "assistant" for message in request["messages"])]

        def chunk(delta, reason=None):
            return {"id": "reply", "model": "small-1", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

        if isinstance(reply, str):
            yield chunk({"content": reply})
            yield chunk({}, "stop")
        else:
            for index, function in enumerate(reply):
                yield chunk({"tool_calls": [{"index": index, "id": f"call_{index}", "type": "function", "function": function}]})
            yield chunk({}, "tool_calls")
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        yield {"id": "reply", "model": "small-1", "choices": [], "usage": usage}
