"""A Session of OpenAI's Agents SDK for Python in sessiond. Tried without the SDK.

    await Runner.run(agent, "How high is the water?", session=SessiondSession("tides/today"))

An item is a message of sessiond, which searches and counts its text. pop_item and clear_session move the head back and
delete nothing.
"""

import hashlib
import json

from sessiond_http import Client

FIELD = "openai_agents_session"


class SessiondSession:
    session_settings = None

    def __init__(self, session_id, client=None):
        self.session_id, self.client, self._path = session_id, client or Client(), None

    async def get_items(self, limit=None):
        if limit is not None and limit <= 0:
            return []
        path = await self._session() + "/messages"
        if limit is None:
            return [_item(m) for m in await self.client.list(path, {"limit": 500})]
        items, query = [], {"order": "desc", "limit": min(limit, 500)}
        while len(items) < limit:
            page = await self.client.call("GET", path, query)
            items += [_item(m) for m in page["data"]]
            query["cursor"] = page["next_cursor"]
            if not page["next_cursor"]:
                break
        return items[:limit][::-1]

    async def add_items(self, items):
        if items:
            body = {"dialect": "native", "messages": [_message(item) for item in items]}
            await self.client.call("POST", await self._session() + "/messages", body=body)

    async def pop_item(self):
        popped = await self.client.call("POST", await self._session() + "/messages/pop", body={})
        return _item(popped["message"]) if popped["message"] else None

    async def clear_session(self):
        await self.client.call("PUT", await self._session() + "/head", body={"seq": None})

    async def _session(self):
        """Finds or makes the session. Two processes at once get the same one: they use the same key."""
        if self._path is None:
            query = {f"metadata[{FIELD}]": self.session_id}
            found = (await self.client.call("GET", "/v1/sessions", query))["data"]
            if not found:
                key = FIELD + "-" + hashlib.sha256(self.session_id.encode()).hexdigest()
                body = {"metadata": {FIELD: self.session_id}}
                found = [await self.client.call("POST", "/v1/sessions", body=body, key=key)]
            self._path = "/v1/sessions/" + found[0]["id"]
        return self._path


def _message(item):
    """The message of an item: what sessiond understands of it, and the item itself in metadata."""
    role, parts = _described(item)
    if not parts:
        return {"kind": "unknown", "role": "", "parts": [], "metadata": {"item": item}}
    return {"role": role, "parts": parts, "metadata": {"item": item}}


def _item(message):
    item = (message.get("metadata") or {}).get("item")
    return {"role": message["role"] or "assistant", "content": message["content"]} if item is None else item


def _described(item):
    kind, call = item.get("type", "message"), item.get("call_id")
    if kind == "message" and item.get("role") in ("system", "developer", "user", "assistant"):
        role = "system" if item["role"] == "developer" else item["role"]
        return role, [{"kind": "text", "text": text} for text in _texts(item.get("content"))]
    if kind == "reasoning":
        return "assistant", [{"kind": "reasoning", "text": text} for text in _texts(item.get("summary"))]
    if kind == "function_call" and call:
        part = {"kind": "tool_call", "tool_name": item["name"], "call_id": call, "arguments": item["arguments"]}
        return "assistant", [part]
    if kind == "function_call_output" and call:
        output = item.get("output")
        text = output if isinstance(output, str) else json.dumps(output)
        return "tool", [{"kind": "tool_result", "call_id": call, "text": text}]
    return "", []


def _texts(content):
    elements = content if isinstance(content, list) else [content]
    texts = [e if isinstance(e, str) else (e or {}).get("text") for e in elements]
    return [text for text in texts if isinstance(text, str) and "\0" not in text]
