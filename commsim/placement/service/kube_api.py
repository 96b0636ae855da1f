"""The API server of Kubernetes, as far as a binder needs it: a pod is read, and bound to a node."""

from __future__ import annotations

import http.client
import json
import ssl
from typing import Any
from urllib.parse import quote, urlsplit

from commsim.core.errors import InputError, shorten

from .guard import Refusal

SECONDS = 10.0  # for an answer
_MOST = 8 * 2**20  # bytes of an answer


class KubeApi:
    """Asks the API server; each request has its own connection.

    Parameters
    ----------
    url : str
        Such as ``http://127.0.0.1:8001`` of ``kubectl proxy``, or ``https://10.0.0.1:6443``.
    token : str, optional
        Token of a service account that may read pods and create bindings.
    ca : path, optional
        Certificates that the server's is signed by.

    Raises
    ------
    InputError
        If the URL is none, or a token would be sent in the clear to another machine.
    """

    def __init__(self, url: str, token: str | None = None, ca: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"--kube-api is a URL such as http://127.0.0.1:8001, got {url!r}")
        if token and parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise InputError("--kube-token is sent over https only, or to this machine")
        self._host, self._port = parts.hostname, parts.port
        self._path, self._token = parts.path.rstrip("/"), token
        try:
            self._tls = ssl.create_default_context(cafile=ca) if parts.scheme == "https" else None
        except (OSError, ssl.SSLError) as error:
            raise InputError(f"{ca}: not readable certificates: {error}") from None

    def pod(self, namespace: str, name: str) -> dict[str, Any]:
        """Return a pod.

        Raises
        ------
        Refusal
            If the server does not answer, or has none.
        """
        return self._ask("GET", f"/api/v1/namespaces/{quote(namespace, '')}/pods/{quote(name, '')}")

    def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        """Bind a pod to a node.

        Raises
        ------
        Refusal
            If the server does not answer, or refuses.
        """
        binding = {
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }  # fmt: skip
        self._ask("POST", f"/api/v1/namespaces/{quote(namespace, '')}/pods/{quote(name, '')}/binding", binding)

    def _ask(self, method: str, path: str, tree: object = None) -> dict[str, Any]:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if self._tls is not None:
            asked: http.client.HTTPConnection = http.client.HTTPSConnection(
                self._host, self._port, timeout=SECONDS, context=self._tls
            )
        else:
            asked = http.client.HTTPConnection(self._host, self._port, timeout=SECONDS)
        try:
            asked.request(method, self._path + path, None if tree is None else json.dumps(tree), headers)
            answer = asked.getresponse()
            read = json.loads(answer.read(_MOST) or b"{}")
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            raise Refusal(503, f"the API server does not answer: {error}") from None
        finally:
            asked.close()
        said = read.get("message") if isinstance(read, dict) else None
        if answer.status >= 300 or not isinstance(read, dict):
            raise Refusal(502, f"the API server refuses ({answer.status}): {shorten(str(said or answer.reason))}")
        return read
