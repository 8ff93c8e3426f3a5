#!/usr/bin/env python3
"""Serves Google's storage-testbench as the XML API of Google Cloud Storage, on a free port of 127.0.0.1.

    gcs_testbench.py CHECKOUT BUCKET

CHECKOUT is a clone of github.com/googleapis/storage-testbench. Prints the URL of the server once it listens. The testbench
keeps the objects with their generations and checks preconditions, ranges and checksums. Of the XML API it lacks lists,
removals, uploads in parts and the headers with ETag, generation and time: these are made here from its JSON API, as
cloud.google.com/storage/docs/xml-api/reference-methods describes them.
"""

from __future__ import annotations

import base64
import email.utils
import hashlib
import itertools
import json
import sys
import threading
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, quote, unquote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

#: The smallest part of an upload, except the last one.
MIN_PART = 5 << 20


class XmlApi:
    """A WSGI application in front of the testbench's."""

    def __init__(self, testbench: Any):
        from werkzeug.test import Client

        self.client = Client(testbench)
        #: Of each upload: the object, and its parts by number with their ETags.
        self.uploads: dict[str, tuple[str, dict[int, tuple[str, bytes]]]] = {}
        self.numbers = itertools.count(1)
        #: What is written, and the generation that it got, belong together.
        self.writing = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        from werkzeug.wrappers import Request

        request = Request(environ)
        status, headers, body = self.answer(request)
        headers["Content-Length"] = headers.get("Content-Length", str(len(body)))
        start_response(f"{status} -", list(headers.items()))
        return [] if request.method == "HEAD" else [body]

    def answer(self, request: Any) -> tuple[int, dict[str, str], bytes]:
        raw = request.environ.get("REQUEST_URI") or request.path
        bucket, _, name = raw.split("?")[0].lstrip("/").partition("/")
        name, query = unquote(name), {key: values[0] for key, values in self.query(request).items()}
        if not name:
            return self.list(bucket, query)
        if "uploads" in query or "uploadId" in query:
            return self.part(request, bucket, name, query)
        if request.method == "PUT":
            return self.put(bucket, name, request.get_data(), request.headers)
        if request.method == "DELETE":
            removed = self.json("DELETE", f"b/{bucket}/o/{quote(name, safe='')}")
            return (204 if removed[0] == 200 else removed[0]), {}, b""
        return self.get(request, bucket, name)

    @staticmethod
    def query(request: Any) -> dict[str, list[str]]:
        return parse_qs(request.query_string.decode(), keep_blank_values=True)

    def json(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        response = self.client.open(f"/storage/v1/{path}", method=method, **options)
        return response.status_code, json.loads(response.data or b"{}") if response.status_code == 200 else None

    def headers(self, bucket: str, name: str) -> dict[str, str] | None:
        """The headers of an object that the testbench's XML API lacks."""
        status, found = self.json("GET", f"b/{bucket}/o/{quote(name, safe='')}")
        if status != 200:
            return None
        updated = datetime.fromisoformat(found["updated"].replace("Z", "+00:00"))
        return {
            "ETag": f'"{base64.b64decode(found["md5Hash"]).hex()}"',
            "x-goog-generation": str(found["generation"]),
            "Last-Modified": email.utils.format_datetime(updated, usegmt=True),
            "x-goog-hash": f"crc32c={found['crc32c']}",
        }

    def get(self, request: Any, bucket: str, name: str) -> tuple[int, dict[str, str], bytes]:
        sent = {key: value for key, value in request.headers if key.lower() == "range" or key.lower().startswith("x-goog-")}
        response = self.client.open(f"/{bucket}/{quote(name)}", method="GET", headers=sent)
        added = self.headers(bucket, name)
        if response.status_code >= 300 or added is None:
            return response.status_code if response.status_code >= 300 else 404, {}, response.data
        if request.headers.get("If-Match", added["ETag"]) != added["ETag"]:
            return 412, {}, b""
        headers = {key: response.headers[key] for key in ("Content-Range", "Content-Type") if key in response.headers}
        return response.status_code, {**headers, **added, "Content-Length": str(len(response.data))}, response.data

    def put(self, bucket: str, name: str, body: bytes, headers: Any) -> tuple[int, dict[str, str], bytes]:
        sent = {key: value for key, value in headers if key.lower().startswith("x-goog-if-")}
        with self.writing:
            response = self.client.open(f"/{bucket}/{quote(name)}", method="PUT", headers=sent, data=body)
            added = (self.headers(bucket, name) or {}) if response.status_code == 200 else {}
        return response.status_code, added, b""

    def list(self, bucket: str, query: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        after = query.get("start-after", "")
        names = {"prefix": "prefix", "delimiter": "delimiter", "continuation-token": "pageToken", "max-keys": "maxResults"}
        sent = {names[key]: value for key, value in query.items() if key in names}
        if after:
            sent["startOffset"] = after
        status, found = self.json("GET", f"b/{bucket}/o", query_string=sent)
        if status != 200:
            return status, {}, b""
        parts = [
            f"<Contents><Key>{escape(item['name'])}</Key><Size>{item['size']}</Size><ETag>{base64.b64decode(item['md5Hash']).hex()}</ETag>"
            f"<LastModified>{item['updated']}</LastModified></Contents>"
            for item in found.get("items", [])
            if item["name"] > after
        ]
        parts += [f"<CommonPrefixes><Prefix>{escape(prefix)}</Prefix></CommonPrefixes>" for prefix in found.get("prefixes", [])]
        if token := found.get("nextPageToken"):
            parts.append(f"<NextContinuationToken>{escape(token)}</NextContinuationToken>")
        return 200, {}, f"<ListBucketResult>{''.join(parts)}</ListBucketResult>".encode()

    def part(self, request: Any, bucket: str, name: str, query: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        """Begins an upload, or takes one of its parts, or completes or ends it."""
        if "uploads" in query:
            upload = f"upload-{next(self.numbers)}"
            self.uploads[upload] = (f"{bucket}/{name}", {})
            body = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            return 200, {}, body.encode()
        target, parts = self.uploads.get(query["uploadId"], ("", {}))
        if target != f"{bucket}/{name}":
            return 404, {}, b"<Error><Code>NoSuchUpload</Code></Error>"
        body = request.get_data()
        if request.method == "PUT":
            tag = f'"{hashlib.md5(body).hexdigest()}"'
            parts[int(query["partNumber"])] = (tag, body)
            return 200, {"ETag": tag}, b""
        if request.method == "DELETE":
            del self.uploads[query["uploadId"]]
            return 204, {}, b""
        chosen = []
        for part in ElementTree.fromstring(body).iter("Part"):
            tag, content = parts.get(int(part.findtext("PartNumber") or 0), ("", b""))
            if tag != part.findtext("ETag") or (chosen and len(chosen[-1]) < MIN_PART):
                return 400, {}, b"<Error><Code>InvalidPart</Code></Error>"
            chosen.append(content)
        status, headers, _ = self.put(bucket, name, b"".join(chosen), ())
        if status == 200:
            del self.uploads[query["uploadId"]]
        tag = headers.get("ETag", "")
        return status, headers, f"<CompleteMultipartUploadResult><ETag>{escape(tag)}</ETag></CompleteMultipartUploadResult>".encode()


def main() -> None:
    checkout, bucket = sys.argv[1:]
    sys.path.insert(0, checkout)
    import testbench
    import waitress

    api = XmlApi(testbench.run())
    status, _ = api.json("POST", "b?project=test", json={"name": bucket})
    assert status == 200, f"the testbench does not make a bucket: {status}"
    server = waitress.create_server(api, host="127.0.0.1", port=0, threads=16, max_request_body_size=1 << 30)
    print(f"http://127.0.0.1:{server.effective_port}", flush=True)
    server.run()


if __name__ == "__main__":
    main()
