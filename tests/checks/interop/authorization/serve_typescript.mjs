// A protected server on the official TypeScript SDK 2.x, as its documentation would have it written. Writing takes a
// scope more than reading.
//
// node serve_typescript.mjs PORT ISSUER

import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import {
  createMcpHandler,
  getOAuthProtectedResourceMetadataUrl,
  McpServer,
  oauthMetadataResponse,
  OAuthError,
  OAuthErrorCode,
  requireBearerAuth,
} from "@modelcontextprotocol/server";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { z } from "zod";

const [port, issuer] = process.argv.slice(2);
const resource = new URL(`http://127.0.0.1:${port}/mcp`);
const metadata = await (await fetch(`${issuer}/.well-known/oauth-authorization-server`)).json();
const keys = createRemoteJWKSet(new URL(metadata.jwks_uri));

const verifier = {
  async verifyAccessToken(token) {
    const { payload } = await jwtVerify(token, keys, { issuer }).catch((error) => {
      throw new OAuthError(OAuthErrorCode.InvalidToken, error.message);
    });
    return {
      token,
      clientId: payload.client_id,
      scopes: (payload.scope ?? "").split(" "),
      expiresAt: payload.exp,
      resource: new URL(payload.aud),
    };
  },
};
const gate = (...requiredScopes) =>
  requireBearerAuth({
    verifier,
    requiredScopes,
    expectedResource: resource,
    resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resource),
  });
const reading = gate("filesystem:read");
const writing = gate("filesystem:read", "filesystem:write");

const text = (said) => ({ content: [{ type: "text", text: said }] });
const handler = createMcpHandler(() => {
  const server = new McpServer({ name: "sample", version: "1.0" });
  const path = z.string();
  server.registerTool("read_text_file", { inputSchema: z.object({ path }) }, async (given) =>
    text(readFileSync(given.path, "utf8")),
  );
  const written = { inputSchema: z.object({ path, content: z.string() }) };
  server.registerTool("write_file", written, async (given) => {
    writeFileSync(given.path, given.content);
    return text("done");
  });
  return server;
});

const wellKnown = {
  oauthMetadata: metadata,
  resourceServerUrl: resource,
  scopesSupported: ["filesystem:read", "filesystem:write"],
};
const fetchHandler = async (request) => {
  const told = oauthMetadataResponse(request, wellKnown);
  if (told) return told;
  const body = request.method === "POST" ? await request.clone().json() : undefined;
  const info = await (body?.params?.name === "write_file" ? writing : reading)(request);
  return info instanceof Response ? info : handler.fetch(request, { authInfo: info, parsedBody: body });
};
createServer(toNodeHandler({ fetch: fetchHandler })).listen(Number(port), "127.0.0.1");
