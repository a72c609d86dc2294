"""The process: handshake, certificates, standard streams, signals and the end."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any, Optional

import grpc

from guidon_plugin import _log, _stdout
from guidon_plugin._kinds import kind_services
from guidon_plugin._plugin import Plugin
from guidon_plugin._server import MAX_MESSAGE_BYTES, Server, plugin_service

_TERM_GRACE = 5.0  # for the host, to drain before a SIGTERM ends the process
_THREADS = 256  # created as calls need them; a call that hangs keeps its thread

_DEBUG = "GUIDON_PLUGIN_DEBUG"
_LISTEN = "GUIDON_PLUGIN_LISTEN"
_TLS = ("GUIDON_PLUGIN_TLS_CERT", "GUIDON_PLUGIN_TLS_KEY", "GUIDON_PLUGIN_TLS_CA")


def serve(plugin: Plugin) -> None:
    """Serve the plugin until the server stops it. It belongs at the end of the program.

    It ends the process, with a reason on standard error, when the server did not start
    it or when ``plugin`` has a mistake. With GUIDON_PLUGIN_DEBUG or GUIDON_PLUGIN_LISTEN
    in the environment it waits for a server that connects, until an interrupt or SIGTERM.
    """
    mistake = plugin.mistake()
    if mistake is not None:
        print(mistake, file=sys.stderr)
        sys.exit(2)
    if _stdout.started_by_host():
        _serve_host(plugin)
    elif os.environ.get(_DEBUG) or os.environ.get(_LISTEN):
        sys.exit(_serve_alone(plugin))
    else:
        print(
            f"{plugin.name} {plugin.version} is a Guidon plugin: it is started by the server, not by hand.\n"
            "Name it under plugins.instances in the server's config.\n"
            f"With {_DEBUG}=1 it waits for a server, for work with a debugger.",
            file=sys.stderr,
        )
        sys.exit(1)


def _grpc_server(server: Server) -> grpc.Server:
    out = grpc.server(
        ThreadPoolExecutor(_THREADS, "call"),
        options=[
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            ("grpc.http2.min_ping_interval_without_data_ms", 5000),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", 5000),
            ("grpc.keepalive_permit_without_calls", 1),
        ],
    )
    out.add_generic_rpc_handlers((plugin_service(server), _go_plugin(server), _stdio(), _health()))
    out.add_generic_rpc_handlers(tuple(kind_services(server)))
    return out


def _go_plugin(server: Server) -> grpc.GenericRpcHandler[Any, Any]:
    """plugin.GRPCController: ends the process."""

    def shutdown(request: bytes, context: grpc.ServicerContext) -> bytes:
        server.shut_down.set()
        return b""

    return grpc.method_handlers_generic_handler(
        "plugin.GRPCController", {"Shutdown": grpc.unary_unary_rpc_method_handler(shutdown)}
    )


def _stdio() -> grpc.GenericRpcHandler[Any, Any]:
    """plugin.GRPCStdio: stays silent, as everything goes to standard error."""

    def stream(request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        ended = threading.Event()
        if context.add_callback(ended.set):
            ended.wait()
        return iter(())

    return grpc.method_handlers_generic_handler(
        "plugin.GRPCStdio", {"StreamStdio": grpc.unary_stream_rpc_method_handler(stream)}
    )


def _health() -> grpc.GenericRpcHandler[Any, Any]:
    """grpc.health.v1.Health of the service "plugin", as bytes of its two small messages."""
    serving = b"\x08\x01"

    def check(request: bytes, context: grpc.ServicerContext) -> bytes:
        if request not in (b"", b"\x0a\x06plugin"):
            context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        return serving

    def watch(request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        ended = threading.Event()
        context.add_callback(ended.set)
        yield serving
        ended.wait()

    return grpc.method_handlers_generic_handler(
        "grpc.health.v1.Health",
        {
            "Check": grpc.unary_unary_rpc_method_handler(check),
            "Watch": grpc.unary_stream_rpc_method_handler(watch),
        },
    )


def _certificate() -> tuple[bytes, bytes, bytes]:
    """Return a new key and certificate for localhost, both PEM, and the DER of the certificate."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(timezone.utc)
    cert = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=30 * 365))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    key_pem = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key_pem, cert.public_bytes(pem), cert.public_bytes(serialization.Encoding.DER)


@contextlib.contextmanager
def _socket_dir() -> Iterator[str]:
    path = tempfile.mkdtemp(prefix="p", dir=os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or None)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _serve_host(plugin: Plugin) -> None:
    _log.set_up()
    server = Server(plugin)
    # os._exit: a call that hangs, or a library that waits for its threads, must not
    # keep the process alive.
    code = 1
    try:
        code = _run(server)
    except Exception:
        _log.logger.exception("serve failed")
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(code)


def _run(server: Server) -> int:
    ended = threading.Event()
    code = [0]

    def end(grace: float, status: int) -> None:
        if not ended.is_set():
            code[0] = status
            server.close_all(grace)
            ended.set()

    _watch(server, end)
    host = os.environ.get("PLUGIN_CLIENT_CERT", "")
    g = _grpc_server(server)
    with _socket_dir() as path:
        address, encoded = os.path.join(path, "s"), ""
        if host:
            key, cert, der = _certificate()
            credentials = grpc.ssl_server_credentials([(key, cert)], host.encode(), require_client_auth=True)
            g.add_secure_port("unix:" + address, credentials)
            encoded = base64.b64encode(der).decode().rstrip("=")
        else:
            g.add_insecure_port("unix:" + address)
        g.start()
        _stdout.handshake(f"1|1|unix|{address}|grpc|{encoded}")
        ended.wait()
        g.stop(0.2).wait(1)
    return code[0]


def _watch(server: Server, end: Any) -> None:
    """End the process on Shutdown, on SIGTERM, and when the host is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is meant for the host
    term = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: term.set())
    parent = os.getppid()

    def on_shutdown() -> None:
        server.shut_down.wait()
        end(_TERM_GRACE, 0)

    def on_term() -> None:
        # A service manager signals the host and its plugins at once: the host is given
        # time to drain.
        term.wait()
        server.drained.wait(_TERM_GRACE)
        end(_TERM_GRACE, 0)

    def on_orphan() -> None:
        while os.getppid() == parent:
            threading.Event().wait(1)
        end(1.0, 3)

    def on_stdin() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        end(1.0, 3)

    watchers = [on_shutdown, on_term, on_orphan]
    if os.environ.get("GUIDON_PLUGIN_WATCH") == "stdin":
        watchers.append(on_stdin)
    for watcher in watchers:
        threading.Thread(target=watcher, daemon=True, name=watcher.__name__).start()


def _serve_alone(plugin: Plugin) -> int:
    """Serve a host that connects instead of starting the process."""
    _log.set_up()
    server = Server(plugin)
    g = _grpc_server(server)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: ended.set())
    with _socket_dir() as path:
        problem = _listen(plugin, g, path)
        if problem:
            print(problem, file=sys.stderr)
            return 1
        g.start()
        while not ended.wait(1):
            pass
        g.stop(_TERM_GRACE).wait(_TERM_GRACE + 1)
        server.close_all(_TERM_GRACE)
    return 0


def _listen(plugin: Plugin, g: grpc.Server, path: str) -> Optional[str]:
    address = os.environ.get(_LISTEN)
    if not address:
        socket = os.path.join(path, "plugin.sock")
        g.add_insecure_port("unix:" + socket)
        print(
            f"{plugin.name} {plugin.version} waits for a server. Under plugins.instances, beside name and kind:\n\n"
            f"use: {plugin.name}\nreattach: {{socket: {socket!r}, pid: {os.getpid()}}}",
            flush=True,
        )
        return None
    names = [os.environ.get(key, "") for key in _TLS]
    if not all(names):
        return f"with {_LISTEN}, set {', '.join(_TLS)} too: who may connect is told by certificates"
    try:
        cert, key, ca = (open(name, "rb").read() for name in names)  # noqa: SIM115
    except OSError as error:
        return str(error)
    port = g.add_secure_port(address, grpc.ssl_server_credentials([(key, cert)], ca, require_client_auth=True))
    if not port:
        return f"cannot listen at {address}"
    print(
        f"{plugin.name} {plugin.version} waits for a server. Under plugins.instances, beside name and kind:\n\n"
        f"use: {plugin.name}\nremote: {{address: {address.rpartition(':')[0]}:{port}, ca: …, cert: …, key: …}}",
        flush=True,
    )
    return None
