"""A server that answers as the Hugging Face Hub does for datasets, and the server that has its large files: two origins on 127.0.0.1.

`huggingface_hub` accepts it (with_hub.py). Files of more than 200 bytes lie at the second origin, behind URLs with a signature that is
valid for a number of requests. Both keep every byte that they were sent.
"""

import hashlib
import http.server
import json
import re
import ssl
import sys
import threading
import traceback
import urllib.parse

#: Longer files lie at the second origin.
SMALL = 200
#: Entries of a page of a listing.
PAGE = 3


class Origin(http.server.ThreadingHTTPServer):
    """A server that calls `answer(handler)`, and keeps the head of each request."""

    daemon_threads = True

    def __init__(self, answer, tls=None):
        self.received = []
        self.lock = threading.Lock()
        origin = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body in one packet, which is not delayed.
            wbufsize, disable_nagle_algorithm = -1, True

            def do_GET(self):
                with origin.lock:
                    origin.received.append(f"{self.requestline}\n{self.headers}")
                length = int(self.headers.get("content-length", 0))
                self.body = self.rfile.read(length)
                answer(self)

            do_HEAD = do_POST = do_GET

            def log_message(self, *_):
                pass

            def answer(self, status, body=b"", **headers):
                self.send_response(status)
                if isinstance(body, (dict, list)):
                    body, headers["content-type"] = json.dumps(body).encode(), "application/json"
                headers.setdefault("content-length", len(body))
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), str(value))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def bytes(self, data, **headers):
                found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("range", ""))
                if not found:
                    return self.answer(200, data, accept_ranges="bytes", **headers)
                start, end = int(found[1]), min(int(found[2] or len(data)), len(data) - 1)
                if start >= len(data):
                    return self.answer(416, content_range=f"bytes */{len(data)}")
                part = data[start : end + 1]
                return self.answer(206, part, content_range=f"bytes {start}-{end}/{len(data)}", **headers)

        super().__init__(("127.0.0.1", 0), Handler)
        self.scheme = "https" if tls else "http"
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.configure_cert(context)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    @property
    def url(self):
        host = "localhost" if self.scheme == "https" else "127.0.0.1"
        return f"{self.scheme}://{host}:{self.server_address[1]}"

    def handle_error(self, *_):
        """Clients end connections as they like."""
        if not isinstance(sys.exception(), ConnectionError | ssl.SSLError):
            traceback.print_exc()

    def close(self):
        self.shutdown()
        self.server_close()
        self.thread.join()


class Hub:
    """Datasets by `OWNER/NAME`: commits with their files, branches, and whether a token is needed."""

    def __init__(self, token=None, tls=None):
        self.commits, self.branches, self.token = {}, {}, token
        self.storage = Origin(self.stored)
        self.hub = Origin(self.hub_answers, tls)
        #: Where large files lie; another URL sends readers there.
        self.sends_to = self.storage.url
        #: Requests for which a signature is valid.
        self.uses = 10**9
        #: Whether pages of listings link to the second origin.
        self.wrong_next = False
        #: Changes the entries of a page of a listing.
        self.lists = lambda entries: entries
        #: Answers of status 503 before each good one.
        self.busy = 0
        self.signatures, self.contents, self.failures = {}, {}, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hub.close()
        self.storage.close()

    @property
    def url(self):
        return self.hub.url

    def push(self, repo, files, branch="main"):
        """Makes a commit of these files; returns its name."""
        digest = hashlib.sha1(json.dumps(sorted((n, hashlib.sha1(d).hexdigest()) for n, d in files.items())).encode())
        commit = digest.hexdigest()
        self.commits[repo, commit] = files
        self.branches[repo, branch] = commit
        return commit

    def stored(self, request):
        """Answers at the second origin."""
        url = urllib.parse.urlsplit(request.path)
        signature = urllib.parse.parse_qs(url.query).get("Signature", [""])[0]
        with self.storage.lock:
            left = self.signatures.get(signature, 0)
            self.signatures[signature] = left - 1
        if left <= 0:
            return request.answer(403, b"<Error><Code>AccessDenied</Code></Error>")
        return request.bytes(self.contents[url.path], etag=f'"{url.path[1:]}"')

    def hub_answers(self, request):
        path = urllib.parse.unquote(request.path.split("?")[0])
        with self.hub.lock:
            failed = self.failures.get(request.path, 0)
            self.failures[request.path] = failed + 1 if failed < self.busy else 0
        if failed < self.busy:
            return request.answer(503)
        if "/" in request.path.partition("/revision/")[2]:
            # A revision is one segment: its slashes are encoded.
            return request.answer(404)
        found = re.fullmatch(r"/(?:api/)?datasets/([^/]+/[^/]+)(?:/(revision|tree|resolve|paths-info)/(.+))?", path)
        if not found:
            return request.answer(404)
        repo, verb, rest = found.groups()
        known = any(repo == name for name, _ in self.commits)
        if self.token and request.headers.get("authorization") != f"Bearer {self.token}":
            return request.answer(401, x_error_code="RepoNotFound", x_error_message="Repository not found")
        if not known:
            return request.answer(404, x_error_code="RepoNotFound", x_error_message="Repository not found")
        revision, rest = self.revision(repo, rest or "main")
        files = self.commits.get((repo, revision))
        if files is None:
            return request.answer(404, x_error_code="RevisionNotFound", x_error_message="Invalid rev id")
        if verb in (None, "revision"):
            siblings = [{"rfilename": name} for name in sorted(files)]
            body = {"_id": "1", "id": repo, "sha": revision, "siblings": siblings, "private": bool(self.token), "tags": []}
            return request.answer(200, body | {"disabled": False, "gated": False, "downloads": 0, "likes": 0})
        if verb == "tree":
            return self.tree(request, repo, files, rest)
        if verb == "paths-info":
            form = urllib.parse.parse_qs(request.body.decode())
            paths = json.loads(request.body)["paths"] if request.body[:1] == b"{" else form["paths"]
            return request.answer(200, [self.entry(name, files[name]) for name in paths if name in files])
        if rest not in files:
            return request.answer(404, x_error_code="EntryNotFound", x_error_message="Entry not found")
        data = files[rest]
        name = hashlib.sha256(data).hexdigest()
        headers = {"x_repo_commit": revision, "etag": f'"{name}"'}
        if len(data) <= SMALL:
            return request.bytes(data, **headers)
        self.contents[f"/{name}"] = data
        with self.storage.lock:
            signature = f"signature-{len(self.signatures)}"
            self.signatures[signature] = self.uses
        location = f"{self.sends_to}/{name}?Expires=1&Signature={signature}"
        return request.answer(302, location=location, x_linked_size=len(data), x_linked_etag=f'"{name}"', **headers)

    def revision(self, repo, rest):
        """Splits a revision, which may have slashes, from the path after it."""
        for branch in sorted((branch for name, branch in self.branches if name == repo), key=len, reverse=True):
            if rest == branch or rest.startswith(f"{branch}/"):
                return self.branches[repo, branch], rest[len(branch) + 1 :]
        return (rest.split("/", 1) + [""])[:2]

    def entry(self, name, data):
        entry = {"type": "file", "oid": hashlib.sha1(data).hexdigest(), "size": len(data), "path": name}
        if len(data) > SMALL:
            entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
        return entry

    def tree(self, request, repo, files, folder):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(request.path).query)
        below = f"{folder.strip('/')}/" if folder.strip("/") else ""
        names = [name for name in files if name.startswith(below)]
        entries = [self.entry(name, files[name]) for name in names if "/" not in name[len(below) :]]
        folders = {below + name[len(below) :].split("/")[0] for name in names if "/" in name[len(below) :]}
        if query.get("recursive", ["false"])[0].lower() in ("true", "1"):
            entries = [self.entry(name, files[name]) for name in names]
        entries += [{"type": "directory", "oid": "0" * 40, "size": 0, "path": path} for path in folders]
        entries.sort(key=lambda entry: entry["path"])
        if not entries and below:
            return request.answer(404, x_error_code="EntryNotFound", x_error_message="Entry not found")
        start = int(query.get("cursor", ["0"])[0])
        headers = {}
        if start + PAGE < len(entries):
            query = {name: values[0] for name, values in query.items()} | {"cursor": start + PAGE}
            base = self.storage.url if self.wrong_next else self.url
            page = f"{base}{request.path.split('?')[0]}?{urllib.parse.urlencode(query)}"
            headers["link"] = f'<{page}>; rel="next"'
        return request.answer(200, self.lists(entries[start : start + PAGE]), **headers)
