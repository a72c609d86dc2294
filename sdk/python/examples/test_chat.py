"""Tests the notifier without a server: a local webhook stands for the service."""

from __future__ import annotations

import http.server
import json
import threading
import unittest
from datetime import timedelta

import chat as plugin

import guidon_plugin as guidon
from guidon_plugin import testing


class Webhook(http.server.BaseHTTPRequestHandler):
    status = 200
    posts: list[tuple[str, str]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.posts.append((self.headers["Idempotency-Key"], body["text"]))
        self.send_response(self.status)
        self.send_header("Retry-After", "7")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


class ChatTest(unittest.TestCase):
    def setUp(self) -> None:
        Webhook.status, Webhook.posts = 200, []
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.config = {"url": f"http://127.0.0.1:{server.server_address[1]}/"}

    def test_posts_the_message_with_its_id(self) -> None:
        message = testing.notification(
            guidon.Segment(guidon.SegmentKind.BOLD, "ada"),
            guidon.Segment(guidon.SegmentKind.TEXT, " signed up"),
            suppressed=2,
        )
        with testing.opened(plugin.Chat, self.config) as notifier:
            self.assertEqual(notifier.notify(message).outcome, guidon.NotifyOutcome.DELIVERED)
        self.assertEqual(Webhook.posts, [(message.id, "*ada* signed up (and 2 more)")])

    def test_data_of_events_is_no_markup(self) -> None:
        message = testing.notification(guidon.Segment(guidon.SegmentKind.TEXT, "<!channel> & <@U1>"))
        with testing.opened(plugin.Chat, self.config) as notifier:
            rendered = json.loads(notifier.preview(message).rendered)
        self.assertEqual(rendered["text"], "&lt;!channel&gt; &amp; &lt;@U1&gt;")

    def test_failures_have_a_class(self) -> None:
        with testing.opened(plugin.Chat, self.config) as notifier:
            for status, want in (
                (429, guidon.Throttled),
                (404, guidon.ConfigError),
                (400, guidon.Permanent),
                (503, guidon.Transient),
            ):
                Webhook.status = status
                with self.subTest(status), self.assertRaises(want) as raised:
                    notifier.notify(testing.notification(text="hello"))
                if status == 429:
                    self.assertEqual(raised.exception.retry_after, timedelta(seconds=7))

    def test_refuses_another_scheme(self) -> None:
        with self.assertRaises(guidon.ConfigError) as raised:
            testing.configured(plugin.Chat, {"url": "ftp://example.com/"})
        self.assertEqual(raised.exception.pointer, "/url")


if __name__ == "__main__":
    unittest.main()
