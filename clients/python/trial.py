"""Tries the stores on a daemon: trial.py URL TOKEN. It prints "all is well" at the end."""

import asyncio
import copy
import random
import sys

from sessiond_claude_agent import SessiondStore
from sessiond_http import Client, SessiondError
from sessiond_openai_agents import SessiondSession


async def try_claude_agent(client):
    """Random operations answer as a dict does."""
    rng, store, kept = random.Random(7), SessiondStore(client), {}
    keys = [
        {"project_key": project, "session_id": session} | ({"subpath": subpath} if subpath else {})
        for project in ("-home-me", "a/b")
        for session in ("s1", "s1/x")
        for subpath in (None, "subagents/agent-a", "//")
    ]
    for step in range(400):
        key = rng.choice(keys)
        name = (key["project_key"], key["session_id"], key.get("subpath"))
        match rng.randrange(8):
            case 0 | 1 | 2:
                deep = [1.5, None, {"é": "\0"}]
                entries = [{"type": "user", "uuid": f"{step}.{n}", "deep": deep} for n in range(rng.randrange(3))]
                await store.append(key, entries)
                if entries:
                    kept.setdefault(name, []).extend(copy.deepcopy(entries))
            case 3:
                await store.delete(key)
                for other in [o for o in kept if o == name or (name[2] is None and o[:2] == name[:2])]:
                    del kept[other]
            case 4:
                want = sorted(o[1] for o in kept if o[0] == name[0] and o[2] is None)
                assert sorted(s["session_id"] for s in await store.list_sessions(name[0])) == want
            case 5:
                want = sorted(o[2] for o in kept if o[:2] == name[:2] and o[2] is not None)
                assert sorted(await store.list_subkeys(key)) == want
            case _:
                assert await store.load(key) == kept.get(name), name


async def try_openai_agents(client):
    """Random operations answer as a list does."""
    rng, kept = random.Random(11), {"a/b é": [], "two": []}
    for step in range(400):
        name = rng.choice(list(kept))
        session, items = SessiondSession(name, client), kept[name]
        match rng.randrange(8):
            case 0 | 1 | 2:
                added = [rng.choice([
                    {"role": "user", "content": f"said {step}"},
                    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": f"{step}"}]},
                    {"type": "function_call", "call_id": f"c{step}", "name": "tide", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": f"c{step}", "output": "low"},
                    {"type": "of_next_year", "fields": [None, {"x": 1.5}]},
                ]) for _ in range(rng.randrange(3))]
                await session.add_items(added)
                items += added
            case 3 | 4:
                assert await session.pop_item() == (items.pop() if items else None)
            case 5 if rng.randrange(6) == 0:
                await session.clear_session()
                items.clear()
            case 6:
                limit = rng.randrange(4)
                assert await session.get_items(limit) == (items[-limit:] if limit else [])
            case _:
                assert await session.get_items() == items


async def main():
    url, token = sys.argv[1:]
    await try_claude_agent(Client(url, token))
    await try_openai_agents(Client(url, token))
    for client, status in (Client("http://127.0.0.1:9", "x", retries=1), 0), (Client(url, "revoked"), 401):
        store, session = SessiondStore(client), SessiondSession("x", client)
        for call in store.load({"project_key": "p", "session_id": "s"}), session.get_items():
            try:
                await call
                raise AssertionError("it is accepted")
            except SessiondError as error:
                assert error.status == status, error
    print("all is well")


asyncio.run(main())
