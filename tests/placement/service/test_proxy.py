"""The proxy of docs/schedulers.md before the service: TLS, and slow clients that the service does not cut off."""

import contextlib
import http.client
import re
import shutil
import socket
import ssl
import stat
import subprocess
import time
from pathlib import Path

import pytest
from place_service import LIMIT_S, read_all, running
from ports import free_ports

from commsim.core.errors import InputError
from commsim.placement.service.http_server import bound

DOCUMENT = Path(__file__).parents[3] / "docs" / "schedulers.md"
TOKEN = "a-token-of-some-length"
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}


def certificate(folder):
    """Make a certificate of localhost with its key, signed by itself."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", folder / "own.key",
         "-out", folder / "own.pem"],
        check=True, capture_output=True,
    )  # fmt: skip


def configuration(folder, port):
    """Return that of the document, with other paths and times; every one of them has to be there."""
    text = re.search(r"```nginx\n(.*?)```", DOCUMENT.read_text(), re.S)[1]
    for wanted, other in {
        "/run/commsim/": f"{folder}/", "/etc/commsim/": f"{folder}/", "listen 8443": f"listen 127.0.0.1:{port}",
        "header_timeout 5s": "header_timeout 1s", "body_timeout 10s": "body_timeout 1s",
        "send_timeout 10s": "send_timeout 1s", "size 8m": "size 64k",
    }.items():  # fmt: skip
        assert wanted in text
        text = text.replace(wanted, other)
    places = "".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/log; events {{}}\n" + (
        f"http {{ access_log off; {places} {text} }}"
    )


@pytest.fixture(scope="module")
def proxy(tmp_path_factory):
    """Run both; give the port of the proxy and how to trust it."""
    if shutil.which("nginx") is None:
        pytest.skip("nginx is not installed")
    folder, port = tmp_path_factory.mktemp("proxy"), free_ports(1)[0]
    certificate(folder)
    folder.chmod(0o755)
    (folder / "nginx.conf").write_text("user root;" + configuration(folder, port))
    command = ["nginx", "-p", folder, "-c", folder / "nginx.conf"]
    with running(host=f"unix:{folder}/place.sock", token=TOKEN) as service, subprocess.Popen(command) as nginx:
        try:
            until = time.monotonic() + LIMIT_S
            while time.monotonic() < until:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                    break
                time.sleep(0.05)
            yield port, ssl.create_default_context(cafile=folder / "own.pem"), service.service
        finally:
            nginx.terminate()
            nginx.wait(LIMIT_S)


@contextlib.contextmanager
def connected(proxy):
    with (
        socket.create_connection(("127.0.0.1", proxy[0]), timeout=LIMIT_S) as plain,
        proxy[1].wrap_socket(plain, server_hostname="localhost") as listener,
    ):
        yield listener


def asked(proxy, method, path, body=None, headers=HEADERS):
    connection = http.client.HTTPSConnection("localhost", proxy[0], timeout=LIMIT_S, context=proxy[1])
    with contextlib.closing(connection):
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()


def test_it_speaks_tls_and_hands_requests_on(proxy):
    assert asked(proxy, "GET", "/healthz", headers={}) == (200, b'{"ok":true}')
    assert asked(proxy, "GET", "/jobs", headers={})[0] == 401
    assert asked(proxy, "GET", "/jobs")[0] == 200
    with socket.create_connection(("127.0.0.1", proxy[0]), timeout=LIMIT_S) as plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" not in read_all(plain)


@pytest.mark.parametrize("drops", [False, True])
def test_a_slow_head_is_cut_off(proxy, drops):
    with connected(proxy) as listener, contextlib.suppress(ConnectionError, ssl.SSLError):
        listener.sendall(b"POST /prior")
        for _ in range(1000 * drops):  # a head of a kilobyte is not too large
            listener.sendall(b"G")
            time.sleep(0.05)
        assert not drops
        assert b" 200 " not in read_all(listener)  # which raises TimeoutError if nobody ends it


def test_a_body_that_is_slow_or_too_large_is_cut_off_before_the_service(proxy):
    head = b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    with connected(proxy) as listener:
        listener.sendall(head % 100 + b"{")
        assert b" 200 " not in read_all(listener)
    assert asked(proxy, "POST", "/jobs", b"x" * 70_000)[0] == 413


def test_slow_clients_keep_nobody_out(proxy):
    with contextlib.ExitStack() as stack:
        for _ in range(24):
            stack.enter_context(connected(proxy)).sendall(b"GET /jobs HTTP/1.1\r\nHo")
        assert asked(proxy, "GET", "/jobs")[0] == 200
        assert proxy[2].state.jobs == {}


def test_the_socket_is_for_its_user_and_group_and_goes_with_the_service(tmp_path):
    path = tmp_path / "place.sock"
    for _ in range(2):
        with bound(f"unix:{path}", 0):
            assert stat.S_IMODE(path.stat().st_mode) == 0o660
        assert not path.exists()
    path.write_text("mine")
    with (
        pytest.raises(InputError, match=r"cannot listen on .*place\.sock: Address already in use"),
        bound(f"unix:{path}", 0),
    ):
        pass
    assert path.read_text() == "mine"
