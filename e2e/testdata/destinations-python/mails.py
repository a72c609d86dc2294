"""Prints the mails in a Maildir, one JSON object a line."""

import email
import email.policy
import json
import mailbox
import sys

for mail in mailbox.Maildir(sys.argv[1], factory=None, create=False):
    message = email.message_from_bytes(mail.as_bytes(), policy=email.policy.default)
    parts = {kind: message.get_body((kind,)) for kind in ("plain", "html")}
    print(
        json.dumps(
            {
                "id": message["Message-ID"],
                "subject": message["Subject"],
                "recipients": mail["X-RcptTo"],
                "text": parts["plain"].get_content() if parts["plain"] else "",
                "html": parts["html"].get_content() if parts["html"] else "",
            }
        )
    )
