#!/usr/bin/env python3
"""Serve the engine of the package chdb-core as ClickHouse over HTTP, for tests.

Usage: chdb_server.py PORT DIRECTORY
Then set GUIDON_TEST_CLICKHOUSE=http://127.0.0.1:PORT. With port 0 it chooses one and prints it.
One statement runs at a time. Users are ignored, and of the settings of a request all but the
token by which an insertion is known again.
"""

import os
import re
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from chdb.session import Session

port, directory = int(sys.argv[1]), sys.argv[2]
session, lock = Session(directory), threading.Lock()
current = None


def run(database, statement, data, token):
    """Return the answer of a statement; data are the rows of an INSERT."""
    global current
    if database != current:
        session.query("USE `%s`" % database)
        current = database
    form = "TabSeparated"
    if data is None:
        found = re.search(r"\sFORMAT (\w+)\s*$", statement)
        if found:
            form, statement = found.group(1), statement[: found.start()]
        return session.query(statement, form).bytes()
    found = re.match(r"(INSERT INTO (\S+) \((.*)\)) FORMAT (\w+)$", statement)
    names = [name.strip(" `") for name in found.group(3).split(",")]
    table = found.group(2)
    kinds = dict(
        line.split("\t")
        for line in session.query("SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = '%s'" % table, "TabSeparated").bytes().decode().splitlines()
    )
    structure = ", ".join("`%s` %s" % (name, kinds[name]) for name in names)
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        file.write(data)
        file.flush()
        settings = "max_partitions_per_insert_block = 0"
        if token:
            settings += ", insert_deduplication_token = '%s'" % token
        return session.query("%s SELECT * FROM file('%s', '%s', '%s') SETTINGS %s" % (found.group(1), file.name, found.group(4), structure, settings)).bytes()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(200, b"Ok.\n")

    def do_POST(self):
        query = parse_qs(urlsplit(self.path).query)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        statement = query["query"][0] if "query" in query else body.decode()
        data = body if "query" in query else None
        try:
            with lock:
                start = time.monotonic()
                answer = run(query.get("database", ["default"])[0], statement, data, query.get("insert_deduplication_token", [""])[0]) or b""
                if "CHDB_LOG" in os.environ:
                    print("%.1f ms %s" % (1000 * (time.monotonic() - start), statement[:300]), file=sys.stderr)
            self.answer(200, answer)
        except Exception as err:  # the engine's errors have no type of their own
            text = str(err)
            found = re.search(r"Code: (\d+)", text)
            self.answer(500, text.encode(), found.group(1) if found else "1")

    def answer(self, status, body, code=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if code:
            self.send_header("X-ClickHouse-Exception-Code", code)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
print("serving %s on port %d" % (str(session.query("SELECT version()")).strip(), server.server_port), flush=True)
server.serve_forever()
