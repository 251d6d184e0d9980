"""HTTP requests to sessiond with the standard library alone."""

import asyncio
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid


class SessiondError(Exception):
    """An answer of the daemon that is an error; status 0: no daemon answered."""

    def __init__(self, request, status, problem):
        super().__init__(f"{request}: {problem.get('detail') or problem.get('title') or status}")
        self.status, self.code, self.problem = status, problem.get("code", ""), problem


class Client:
    """A daemon, by default at 127.0.0.1:7433 with the token file in sessiond's data folder."""

    def __init__(self, url="http://127.0.0.1:7433", token=None, retries=4):
        if token is None:
            home = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
            with open(os.path.join(home, "sessiond", "token"), encoding="ascii") as file:
                token = file.read().strip()
        self.url, self.token, self.retries = url, token, retries

    async def call(self, method, path, query=None, body=None, key=None):
        """Sends a request and returns the answer. It is repeated with the same Idempotency-Key while none comes."""
        return await asyncio.to_thread(self._call, method, path, query or {}, body, key or str(uuid.uuid4()))

    def _call(self, method, path, query, body, key):
        target = path + ("?" + urllib.parse.urlencode(query) if query else "")
        headers = {"Authorization": "Bearer " + self.token, "Content-Type": "application/json"}
        if method != "GET":
            headers["Idempotency-Key"] = key
        data = None if body is None else json.dumps(body).encode()
        for attempt in range(self.retries + 1):
            request = urllib.request.Request(self.url + target, data=data, method=method, headers=headers)
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.loads(answer.read() or b"null")
            except urllib.error.HTTPError as error:
                if error.code != 503 or attempt == self.retries:
                    raise SessiondError(f"{method} {target}", error.code, _problem(error.read())) from error
            except OSError as error:
                if attempt == self.retries:
                    problem = {"code": "unreachable", "detail": f"no sessiond answers at {self.url}: {error}"}
                    raise SessiondError(f"{method} {target}", 0, problem) from error
            time.sleep(min(0.1 * 2**attempt, 5))

    async def list(self, path, query):
        """Reads a list to its end."""
        found, query = [], dict(query)
        while True:
            page = await self.call("GET", path, query)
            found += page["data"]
            if not page["next_cursor"]:
                return found
            query["cursor"] = page["next_cursor"]


def _problem(text):
    try:
        return json.loads(text)
    except ValueError:
        return {"detail": text[:200].decode(errors="replace")}
