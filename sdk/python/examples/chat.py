"""A notifier that posts messages to a chat by an incoming webhook."""

from __future__ import annotations

import html
import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from datetime import timedelta

import guidon_plugin as guidon


@dataclass
class Config:
    url: str = guidon.option(doc="The address of the webhook.", secret=True)
    timeout: timedelta = guidon.option(
        timedelta(seconds=10), doc="How long one post may take.", min=timedelta(seconds=1)
    )


class Chat(guidon.Notifier):
    config: Config

    def validate(self) -> None:
        if not self.config.url.startswith(("http://", "https://")):
            raise guidon.ConfigError("must be an http or https address", pointer="/url")

    def open(self, request: guidon.OpenRequest) -> guidon.NotifierProperties:
        return guidon.NotifierProperties(max_in_flight=4, per_second=1, burst=5)

    def notify(self, notification: guidon.Notification) -> guidon.NotifyResult:
        body = json.dumps({"text": self._text(notification)}).encode()
        # The service gets the id, so that a repetition after a crash posts nothing.
        headers = {"Content-Type": "application/json", "Idempotency-Key": notification.id}
        request = urllib.request.Request(self.config.url, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=self.config.timeout.total_seconds()):
                return guidon.NotifyResult.delivered()
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 429:
                wait = timedelta(seconds=min(int(error.headers.get("Retry-After") or 1), 3600))
                raise guidon.Throttled("429 Too Many Requests", retry_after=wait) from None
            if error.code in (401, 403, 404, 410):
                raise guidon.ConfigError(f"the webhook answers {error.code}", pointer="/url") from None
            kind = guidon.Permanent if error.code < 500 else guidon.Transient
            raise kind(f"the webhook answers {error.code}") from None

    def preview(self, notification: guidon.Notification) -> guidon.Preview:
        return guidon.Preview(json.dumps({"text": self._text(notification)}).encode(), "application/json")

    @staticmethod
    def _text(notification: guidon.Notification) -> str:
        def escape(segment: guidon.Segment) -> str:
            # Data of events must not mention people or act as markup.
            text = html.escape(segment.value, quote=False)
            if segment.href:
                return f"<{html.escape(segment.href)}|{text}>"
            return f"*{text}*" if segment.kind == guidon.SegmentKind.BOLD else text

        text = notification.render(escape)
        if notification.suppressed:
            text += f" (and {notification.suppressed} more)"
        return text


plugin = guidon.Plugin(name="example/chat", version="0.1.0", summary="Posts messages to a webhook.", notifier=Chat)


def main() -> None:
    guidon.serve(plugin)


if __name__ == "__main__":
    main()
