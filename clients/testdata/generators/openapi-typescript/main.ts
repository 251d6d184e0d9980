// Takes a turn with the types that openapi-typescript generates from docs/openapi.json.
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const client = createClient<paths>({
  baseUrl: process.env.DAEMON ?? "",
  headers: { authorization: `Bearer ${process.env.TOKEN}` },
});
const made = await client.POST("/v1/sessions", { body: { title: "openapi-typescript", metadata: { user: "u_7" } } });
const path = { id: made.data!.id };
const turn = await client.POST("/v1/sessions/{id}/turns", {
  params: { path },
  body: { dialect: "openai.chat", messages: [{ role: "user", content: "How high is the water?" }] },
});
console.log(JSON.stringify(turn.data!.context!.request!.messages));
const listed = await client.GET("/v1/sessions/{id}/messages", { params: { path } });
console.log(JSON.stringify(listed.data!.data[0]!.content), listed.data!.next_cursor === null);
const found = await client.GET("/v1/sessions", { params: { query: { metadata: { user: "u_7" } } } });
console.log(found.data!.data.length);
const popped = await client.POST("/v1/sessions/{id}/messages/pop", { params: { path }, body: { expect_head: "1" } });
if (popped.error) throw new Error(popped.error.detail);
const states = await client.PUT("/v1/sessions/{id}/states", {
  params: { path },
  body: { states: [{ name: "todos", value: ["a"], if_revision: 0 }] },
});
if (states.error) throw new Error(states.error.detail);
const missing = await client.GET("/v1/sessions/{id}", { params: { path: { id: "20200101_001" } } });
console.log(missing.error!.code);
