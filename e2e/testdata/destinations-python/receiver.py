"""Receives signed requests, verifies them with standardwebhooks and appends them to a file.

The task on the command line is JSON: port, secret, file. Each line of the file has the id
of a request, its decoded body and whether it was compressed. A request that cannot be
verified is appended with the reason and answered with 400. One that is not complete is
left out.
"""

import gzip
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

from standardwebhooks import Webhook, WebhookVerificationError

task = json.loads(sys.argv[1])
webhook = Webhook(task["secret"])
lock = Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:  # the client was killed
            self.close_connection = True
            return
        compressed = self.headers.get("Content-Encoding") == "gzip"
        if compressed:
            body = gzip.decompress(body)
        line = {"id": self.headers["Webhook-Id"], "compressed": compressed, "body": body.decode()}
        try:
            webhook.verify(body, dict(self.headers.items()), json_parse=False)
        except WebhookVerificationError as error:
            line["error"] = str(error)
        with lock, open(task["file"], "a") as file:
            file.write(json.dumps(line) + "\n")
        self.send_response(400 if "error" in line else 204)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


ThreadingHTTPServer(("127.0.0.1", task["port"]), Handler).serve_forever()
