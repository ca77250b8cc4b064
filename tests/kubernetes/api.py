"""As much of a Kubernetes API server as Spark asks for, on loopback.

It checks each object by Kubernetes' schemas, lets a caller do what the Roles of its service account allow, and lists and watches. The token
of a caller is `<namespace>:<service account>`; one without a token may do everything. Pods are run by tests.kubernetes.nodes.
"""

from __future__ import annotations

import copy
import json
import re
import threading
import uuid
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.kubernetes.schemas import faults

_PATH = re.compile(r"/apis?/(?:[\w.]+/)?v1/namespaces/(?P<namespace>[\w-]+)/(?P<resource>[a-z]+)(?:/(?P<name>[\w.-]+))?")
_IN = re.compile(r"([\w./-]+) in \(([^)]*)\)|([\w./-]+)==?([\w./-]*)")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}

Object = dict[str, Any]


class Api:
    """The objects, and what was asked. started, deleted: called with each new pod, and with each one that was deleted."""

    def __init__(self, started: Callable[[Object], None], deleted: Callable[[Object], None]) -> None:
        self.asked: set[tuple[str, str, str]] = set()  # token, verb, resource
        self.refused: list[str] = []
        self._objects: dict[tuple[str, str, str], Object] = {}
        self._events: list[tuple[str, str, Object]] = []
        self._changed = threading.Condition(threading.RLock())
        self._started, self._deleted = started, deleted
        self._closed = False
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"api": self}))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stop serving."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()

    def create(self, made: Object) -> Object:
        """Add an object. Raises ValueError for one that Kubernetes would refuse."""
        if wrong := faults(made):
            raise ValueError("; ".join(wrong))
        made = copy.deepcopy(made)
        made["metadata"] |= {"uid": str(uuid.uuid4()), "creationTimestamp": "2026-01-05T10:00:00Z"}
        if made["kind"] == "Pod":
            made["status"] = {"phase": "Pending"}
        self._put("ADDED", made)
        if made["kind"] == "Pod":
            self._started(made)
        return made

    def update(self, pod: Object, **status: Any) -> None:
        """Set the status of a pod, unless it is gone."""
        with self._changed:
            if self.get(_resource(pod), *_place(pod)):
                self._put("MODIFIED", pod | {"status": pod["status"] | status})

    def remove(self, found: Object) -> None:
        """Delete an object, and then those that it owns."""
        with self._changed:
            self._objects.pop((_resource(found), *_place(found)), None)
            self._event("DELETED", found)
            owned = [o for o in self._objects.values() if found["metadata"]["uid"] in _owners(o)]
        if found["kind"] == "Pod":
            self._deleted(found)
        for one in owned:
            self.remove(one)

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        """An object by its place."""
        return self._objects.get((resource, namespace, name))

    def all(self, resource: str, namespace: str, selector: str = "", name: str = "") -> list[Object]:
        """Objects that have the labels that a selector names. name: or the one of this name."""
        with self._changed:
            found = [o for (kind, where, _), o in sorted(self._objects.items()) if (kind, where) == (resource, namespace)]
        return [o for o in found if selects(selector, o["metadata"].get("labels", {})) and name in ("", o["metadata"]["name"])]

    def allows(self, token: str, verb: str, resource: str) -> bool:
        """Whether a Role allows it to the caller."""
        if not token:
            return True
        namespace, _, account = token.partition(":")
        bound = [b for b in self.all("rolebindings", namespace) if account in {s["name"] for s in b["subjects"]}]
        rules = [rule for b in bound for r in self.all("roles", namespace, name=b["roleRef"]["name"]) for rule in r["rules"]]
        return any(resource in rule["resources"] and verb in rule["verbs"] for rule in rules)

    def changes(self, since: int) -> tuple[list[tuple[str, str, Object]], bool]:
        """Wait for events after the first so many; with them, whether the server closes."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._events) > since or self._closed, timeout=5)
            return self._events[since:], self._closed

    @property
    def version(self) -> int:
        """The number of events until now."""
        return len(self._events)

    def _put(self, event: str, found: Object) -> None:
        with self._changed:
            self._objects[(_resource(found), *_place(found))] = found
            self._event(event, found)

    def _event(self, event: str, found: Object) -> None:
        found["metadata"]["resourceVersion"] = str(len(self._events) + 1)
        self._events.append((event, _resource(found), copy.deepcopy(found)))
        self._changed.notify_all()


def selects(selector: str, labels: dict[str, str]) -> bool:
    """Whether a selector of labels (`a=b,c in (d,e)`) fits."""
    return all(labels.get(of or key) in (values.split(",") if of else [value]) for of, values, key, value in _IN.findall(selector))


class _Handler(BaseHTTPRequestHandler):
    api: Api
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        where = urlsplit(self.path)
        found = _PATH.fullmatch(where.path)
        if found is None:
            return self._status(404, f"no such path: {self.path}")
        query = {name: values[0] for name, values in parse_qs(where.query).items()}
        watch = query.get("watch") == "true"
        verb = _VERBS.get(self.command) or _read_verb(self.command, watch, found["name"])
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self.api.asked.add((token, verb, found["resource"]))
        if not self.api.allows(token, verb, found["resource"]):
            self.api.refused.append(f"{token} may not {verb} {found['resource']}")
            return self._status(403, self.api.refused[-1])
        if self.headers.get("Upgrade", "").lower() == "websocket":
            return self._status(503, "no websockets: watch by HTTP")
        name = query.get("fieldSelector", "").removeprefix("metadata.name=") if "metadata.name=" in query.get("fieldSelector", "") else ""
        chosen = (found["resource"], found["namespace"], query.get("labelSelector", ""), found["name"] or name)
        if watch:
            return self._watch(*chosen, since=int(query.get("resourceVersion") or self.api.version))
        return self._answer(verb, body, chosen)

    def _answer(self, verb: str, body: bytes, chosen: tuple[str, str, str, str]) -> None:
        found = self.api.all(*chosen)
        match verb:
            case "create":
                made = json.loads(body)
                made["metadata"].setdefault("namespace", chosen[1])
                try:
                    self._json(201, self.api.create(made))
                except ValueError as e:
                    self.api.refused.append(str(e))
                    self._status(422, str(e))
            case "list":
                self._json(
                    200, {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": str(self.api.version)}, "items": found}
                )
            case "deletecollection" | "delete":
                for one in found:
                    self.api.remove(one)
                self._status(200, "deleted")
            case _ if not found:
                self._status(404, "not found")
            case _:
                self._json(200, found[0])

    def _watch(self, resource: str, namespace: str, selector: str, name: str, *, since: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        closed = False
        while not closed:
            events, closed = self.api.changes(since)
            since += len(events)
            for event, kind, found in events:
                here = (kind, found["metadata"]["namespace"]) == (resource, namespace) and name in ("", found["metadata"]["name"])
                if here and selects(selector, found["metadata"].get("labels", {})):
                    line = json.dumps({"type": event, "object": found}).encode() + b"\n"
                    try:
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                        self.wfile.flush()
                    except OSError:
                        return
        self.close_connection = True

    def _json(self, code: int, content: Object) -> None:
        text = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _status(self, code: int, message: str) -> None:
        outcome = "Success" if code < 300 else "Failure"
        self._json(code, {"apiVersion": "v1", "kind": "Status", "status": outcome, "code": code, "message": message})


def _read_verb(method: str, watch: bool, name: str | None) -> str:
    if method == "DELETE":
        return "delete" if name else "deletecollection"
    return "watch" if watch else "get" if name else "list"


def _resource(found: Object) -> str:
    return f"{found['kind'].lower()}s"


def _place(found: Object) -> tuple[str, str]:
    return found["metadata"]["namespace"], found["metadata"]["name"]


def _owners(found: Object) -> set[str]:
    return {owner["uid"] for owner in found["metadata"].get("ownerReferences", [])}
