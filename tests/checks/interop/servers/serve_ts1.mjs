// The sample server on the official TypeScript SDK 1.x, as its documentation would have it written.
//
// node serve_ts1.mjs stdio | http PORT | sse PORT

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { completable } from "@modelcontextprotocol/sdk/server/completable.js";
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import {
  CreateMessageResultSchema,
  ElicitResultSchema,
  ListRootsResultSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";

const LONG = "ø".repeat(300_000);
const TONES = ["warm", "witty", "cool"];
const PLACE = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const FORM = { mode: "form", message: "Where were you born?", requestedSchema: PLACE };
const QUESTION = {
  messages: [{ role: "user", content: { type: "text", text: "What rhymes with snake?" } }],
  maxTokens: 10,
};

const text = (said) => ({ content: [{ type: "text", text: said }] });
let stop;
const stopped = new Promise((resolve) => {
  stop = resolve;
});

function make() {
  const server = new McpServer(
    { name: "sample", version: "1.0" },
    {
      instructions: "For tests only.",
      capabilities: { logging: {}, resources: { subscribe: true, listChanged: true }, tools: { listChanged: true } },
    },
  );

  const tool = (name, description, inputSchema, work) => server.registerTool(name, { description, inputSchema }, work);

  server.registerTool(
    "add",
    {
      description: "Add two numbers.",
      inputSchema: { a: z.number(), b: z.number() },
      outputSchema: { result: z.number() },
    },
    async ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { result: a + b } }),
  );
  tool("fail", "Fail.", {}, async () => {
    throw new Error("it broke");
  });
  tool("count", "Count, and report each step.", { to: z.number() }, async ({ to }, extra) => {
    for (let step = 1; step <= to; step += 1) await report(extra, step, to);
    return text("done");
  });
  tool("hold", "Report once, and wait to be cancelled.", {}, async (_arguments, extra) => {
    extra.signal.addEventListener("abort", stop);
    await report(extra, 1);
    return new Promise(() => {});
  });
  tool("when_stopped", "Wait until the other call has been cancelled.", {}, async () => {
    await stopped;
    return text("stopped");
  });
  tool("chatter", "Say something in the log.", {}, async (_arguments, extra) => {
    const params = { level: "warning", logger: "sample", data: "it rains" };
    await extra.sendNotification({ method: "notifications/message", params });
    return text("done");
  });
  tool("birthplace", "Ask for a town.", {}, async (_arguments, extra) => {
    const answer = await extra.sendRequest({ method: "elicitation/create", params: FORM }, ElicitResultSchema);
    return text(answer.content.city);
  });
  tool("rhyme", "Ask the model.", {}, async (_arguments, extra) => {
    const asked = { method: "sampling/createMessage", params: QUESTION };
    const answer = await extra.sendRequest(asked, CreateMessageResultSchema);
    return text(answer.content.text);
  });
  tool("whereabouts", "Ask for the roots.", {}, async (_arguments, extra) => {
    const answer = await extra.sendRequest({ method: "roots/list" }, ListRootsResultSchema);
    return text(answer.roots.map((root) => root.uri).join(", "));
  });
  tool("touch", "Tell that the memo and the list of tools have changed.", {}, async () => {
    await server.server.sendResourceUpdated({ uri: "memo://one" });
    server.sendToolListChanged();
    return text("done");
  });
  server.server.setRequestHandler(SubscribeRequestSchema, () => ({}));
  server.server.setRequestHandler(UnsubscribeRequestSchema, () => ({}));

  server.registerResource("one", "memo://one", { description: "A long text." }, async (uri) => ({
    contents: [{ uri: uri.href, text: LONG }],
  }));
  server.registerResource("some_bytes", "memo://bytes", { description: "A few bytes." }, async (uri) => ({
    contents: [{ uri: uri.href, blob: "AP8Q" }],
  }));
  server.registerResource(
    "about",
    new ResourceTemplate("memo://about/{name}", { list: undefined }),
    { description: "What is known of somebody." },
    async (uri, { name }) => ({ contents: [{ uri: uri.href, text: `all about ${name}` }] }),
  );
  server.registerPrompt(
    "greet",
    {
      description: "Greet somebody.",
      argsSchema: {
        name: z.string(),
        tone: completable(z.string(), (value) => TONES.filter((tone) => tone.startsWith(value))),
      },
    },
    ({ name, tone }) => ({
      messages: [{ role: "user", content: { type: "text", text: `Say hello to ${name}, in a ${tone} way.` } }],
    }),
  );
  return server;
}

async function report(extra, progress, total) {
  const progressToken = extra._meta?.progressToken;
  if (progressToken === undefined) return;
  await extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress, total } });
}

const sessions = new Map();

async function streamable(request, response) {
  let transport = sessions.get(request.headers["mcp-session-id"]);
  if (transport === undefined) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    await make().connect(transport);
  }
  await transport.handleRequest(request, response);
}

async function withEvents(request, response) {
  const url = new URL(request.url, "http://localhost");
  if (request.method === "GET" && url.pathname === "/sse") {
    const transport = new SSEServerTransport("/messages", response);
    sessions.set(transport.sessionId, transport);
    await make().connect(transport);
  } else if (request.method === "POST" && sessions.has(url.searchParams.get("sessionId"))) {
    await sessions.get(url.searchParams.get("sessionId")).handlePostMessage(request, response);
  } else {
    response.writeHead(404).end();
  }
}

const [transport, port] = process.argv.slice(2);
if (transport === "stdio") await make().connect(new StdioServerTransport());
else createServer(transport === "http" ? streamable : withEvents).listen(Number(port), "127.0.0.1");
