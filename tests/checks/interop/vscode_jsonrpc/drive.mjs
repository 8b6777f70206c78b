// A client of ours made of vscode-jsonrpc: `node drive.mjs COMMAND...` starts a server, speaks to it with a header
// before each message, and prints what it got as JSON.

import { spawn } from "node:child_process";
import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node";

const [command, ...options] = process.argv.slice(2);
const server = spawn(command, options, { stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise((resolve) => server.on("close", resolve));
const connection = createMessageConnection(new StreamMessageReader(server.stdout), new StreamMessageWriter(server.stdin));

const progress = [];
connection.onError(([error]) => console.error(error));
connection.onNotification("notifications/progress", (params) => progress.push(params.progress));
connection.onRequest("sampling/createMessage", () => ({
  role: "assistant",
  content: { type: "text", text: "grün\n" },
  model: "none",
}));
connection.listen();

const call = (name, args, meta = {}) => connection.sendRequest("tools/call", { name, arguments: args, _meta: meta });
const opened = await connection.sendRequest("initialize", {
  protocolVersion: "2025-11-25",
  capabilities: { sampling: {} },
  clientInfo: { name: "vscode-jsonrpc", version: "10" },
});
await connection.sendNotification("notifications/initialized", {});
const [listed, echoed] = await Promise.all([
  connection.sendRequest("tools/list", {}),
  call("echo", { text: "é".repeat(100_000) }),
]);
await call("test_tool_with_progress", {}, { progressToken: "p" });
const sampled = await call("test_sampling", { prompt: "Which colour?" });
const refused = await connection.sendRequest("no/such", {}).catch((error) => error.code);
server.stdin.end();

console.log(
  JSON.stringify({
    version: opened.protocolVersion,
    tools: listed.tools.length,
    echoed: echoed.content[0].text.length,
    progress,
    sampled: sampled.content[0].text,
    refused,
    exit: await ended,
  }),
);
connection.dispose();
