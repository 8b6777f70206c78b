// The sample server on the official TypeScript SDK 2.x, as its documentation would have it written.
//
// node serve_ts2.mjs stdio | http PORT

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from "@modelcontextprotocol/node";
import {
  completable,
  createMcpHandler,
  inputRequired,
  isLegacyRequest,
  McpServer,
  ResourceTemplate,
} from "@modelcontextprotocol/server";
import { memorySkillFiles, SkillsExtension } from "@modelcontextprotocol/server/ext/skills";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const LONG = "ø".repeat(300_000);
const TONES = ["warm", "witty", "cool"];
const PLACE = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const FORM = { mode: "form", message: "Where were you born?", requestedSchema: PLACE };
const QUESTION = {
  messages: [{ role: "user", content: { type: "text", text: "What rhymes with snake?" } }],
  maxTokens: 10,
};

const REVIEW = "---\nname: review\ndescription: Read changes.\nmetadata:\n  version: \"1.0\"\n---\n# Review\n";
const skills = await SkillsExtension.load(
  memorySkillFiles({ "review/SKILL.md": REVIEW, "review/refs/a b.md": "ø\n" }),
);

const text = (said) => ({ content: [{ type: "text", text: said }] });
let stop;
const stopped = new Promise((resolve) => {
  stop = resolve;
});
let handler; // over HTTP: it knows who listens to changes at 2026-07-28

const make = ({ era }) => {
  const server = new McpServer(
    { name: "sample", version: "1.0" },
    {
      instructions: "For tests only.",
      capabilities: { logging: {}, resources: { subscribe: true, listChanged: true }, tools: { listChanged: true } },
    },
  );

  const tool = (name, description, inputSchema, work) => server.registerTool(name, { description, inputSchema }, work);

  // A question: sent at once to a client of a handshake, and as a result to one without.
  const asking = (ask, question, answerOf) => async (_arguments, ctx) => {
    if (era === "legacy") return text(answerOf(await ask(ctx)));
    const answer = ctx.mcpReq.inputResponses?.question;
    return answer === undefined ? inputRequired({ inputRequests: { question } }) : text(answerOf(answer));
  };

  server.registerTool(
    "add",
    {
      description: "Add two numbers.",
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      outputSchema: z.object({ result: z.number() }),
    },
    async ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { result: a + b } }),
  );
  tool("fail", "Fail.", z.object({}), async () => {
    throw new Error("it broke");
  });
  tool("count", "Count, and report each step.", z.object({ to: z.number() }), async ({ to }, ctx) => {
    for (let step = 1; step <= to; step += 1) await report(ctx, step, to);
    return text("done");
  });
  tool("hold", "Report once, and wait to be cancelled.", z.object({}), async (_arguments, ctx) => {
    ctx.mcpReq.signal.addEventListener("abort", stop);
    await report(ctx, 1);
    return new Promise(() => {});
  });
  tool("when_stopped", "Wait until the other call has been cancelled.", z.object({}), async () => {
    await stopped;
    return text("stopped");
  });
  tool("chatter", "Say something in the log.", z.object({}), async (_arguments, ctx) => {
    await ctx.mcpReq.log("warning", "it rains", "sample");
    return text("done");
  });
  tool(
    "birthplace",
    "Ask for a town.",
    z.object({}),
    asking((ctx) => ctx.mcpReq.elicitInput(FORM), inputRequired.elicit(FORM), (answer) => answer.content.city),
  );
  tool(
    "rhyme",
    "Ask the model.",
    z.object({}),
    asking(
      (ctx) => ctx.mcpReq.requestSampling(QUESTION),
      inputRequired.createMessage(QUESTION),
      (answer) => answer.content.text,
    ),
  );
  tool(
    "whereabouts",
    "Ask for the roots.",
    z.object({}),
    asking(
      (ctx) => ctx.mcpReq.send({ method: "roots/list" }),
      inputRequired.listRoots(),
      (answer) => answer.roots.map((root) => root.uri).join(", "),
    ),
  );
  tool("touch", "Tell that the memo and the list of tools have changed.", z.object({}), async () => {
    if (era === "modern" && handler !== undefined) {
      handler.notify.resourceUpdated("memo://one");
      handler.notify.toolsChanged();
    } else {
      await server.server.sendResourceUpdated({ uri: "memo://one" });
      server.sendToolListChanged();
    }
    return text("done");
  });
  if (era === "legacy") {
    server.server.setRequestHandler("resources/subscribe", () => ({}));
    server.server.setRequestHandler("resources/unsubscribe", () => ({}));
  }

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
      argsSchema: z.object({
        name: z.string(),
        tone: completable(z.string(), (value) => TONES.filter((tone) => tone.startsWith(value))),
      }),
    },
    ({ name, tone }) => ({
      messages: [{ role: "user", content: { type: "text", text: `Say hello to ${name}, in a ${tone} way.` } }],
    }),
  );
  skills.attach(server);
  return server;
};

async function report(ctx, progress, total) {
  const progressToken = ctx.mcpReq._meta?.progressToken;
  if (progressToken === undefined) return;
  await ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total } });
}

function serveHttp(port) {
  handler = createMcpHandler(make, { legacy: "reject" });
  const modern = toNodeHandler(handler);
  const sessions = new Map();

  // Sessions of the handshake, each with a server of its own.
  const sessionOf = async (request) => {
    const known = sessions.get(request.headers["mcp-session-id"]);
    if (known !== undefined) return known;
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    await make({ era: "legacy" }).connect(transport);
    return transport;
  };

  createServer(async (request, response) => {
    const chunks = await request.toArray();
    const body = chunks.length ? JSON.parse(Buffer.concat(chunks)) : undefined;
    if (await isLegacyRequest(await toWebRequest(request, body), body)) {
      await (await sessionOf(request)).handleRequest(request, response, body);
    } else {
      await modern(request, response, body);
    }
  }).listen(port, "127.0.0.1");
}

const [transport, port] = process.argv.slice(2);
if (transport === "stdio") serveStdio(make);
else serveHttp(Number(port));
