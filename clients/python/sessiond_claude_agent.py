"""A SessionStore of the Claude Agent SDK for Python in sessiond. Tried without the SDK.

    options = ClaudeAgentOptions(session_store=SessiondStore())
"""

from datetime import datetime

from sessiond_http import Client, SessiondError

PROGRAM = "/v1/sources/claude-code"


class SessiondStore:
    """Keeps the entries as they are. Keys are dicts {project_key, session_id, subpath?}, as the SDK makes them."""

    def __init__(self, client=None):
        self.client = client or Client()

    async def append(self, key, entries):
        if entries:
            await self.client.call("POST", PROGRAM + "/lines", _query(key), {"lines": list(entries)})

    async def load(self, key):
        try:
            return await self.client.list(PROGRAM + "/lines", _query(key))
        except SessiondError as error:
            if error.status == 404:
                return None
            raise

    async def list_sessions(self, project_key):
        found = await self.client.list(PROGRAM + "/sessions", {"project": project_key})
        return [{"session_id": one["session"], "mtime": _milliseconds(one["stored_at"])} for one in found]

    async def delete(self, key):
        await self.client.call("DELETE", PROGRAM + "/lines", _query(key))

    async def list_subkeys(self, key):
        query = {"project": key["project_key"], "session": key["session_id"]}
        return await self.client.list(PROGRAM + "/subpaths", query)


def _query(key):
    query = {"project": key["project_key"], "session": key["session_id"]}
    if key.get("subpath") is not None:
        query["subpath"] = key["subpath"]
    return query


def _milliseconds(time):
    return round(datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp() * 1000)
