// A server with one tool, made of vscode-jsonrpc: it reads and writes a header before each message, and no lines.

import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node";

const connection = createMessageConnection(new StreamMessageReader(process.stdin), new StreamMessageWriter(process.stdout));
connection.onRequest("initialize", ({ protocolVersion }) => ({
  protocolVersion,
  capabilities: { tools: {} },
  serverInfo: { name: "headers", version: "1" },
}));
connection.onRequest("tools/call", ({ arguments: { text } }) => ({ content: [{ type: "text", text }] }));
connection.onClose(() => process.exit(0));
connection.listen();
