// An authorization server for tests: oidc-provider over https on a free port of this machine. People log in and consent
// without being asked, so that a program that follows redirects and keeps cookies is a person.
//
// node authority.mjs '{"cert": FILE, "key": FILE}'
//
// Its first line is `listening on ISSUER`. A client whose id has one of these words gets what the word says:
// "unwelcome"  a person who refuses
// "expired"    access tokens that ended an hour ago
// Tokens are JWTs, but for the resources that /opaque?resource= has been told of: theirs have to be introspected.
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { Provider } from "oidc-provider";

const { cert, key } = JSON.parse(process.argv[2]);
const SCOPES = ["filesystem:read", "filesystem:write", "sqlite:read", "sqlite:write"];
const HOUR = 3600;
const DOCUMENT = "/clients/document.json";

const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) });
await new Promise((resolve) => server.listen(0, "localhost", resolve));
const issuer = `https://localhost:${server.address().port}`;

const opaque = new Set();
const is = (client, word) => client.clientId.includes(word);
const REDIRECTS = ["http://127.0.0.1/callback", "http://localhost/callback"];
const person = {
  redirect_uris: REDIRECTS,
  application_type: "native",
  grant_types: ["authorization_code", "refresh_token"],
  token_endpoint_auth_method: "none",
};
const machine = {
  client_secret: "a-secret-for-tests-which-is-long-enough",
  redirect_uris: [],
  response_types: [],
  grant_types: ["client_credentials"],
};

const provider = new Provider(issuer, {
  clients: [
    { client_id: "desk", ...person },
    { client_id: "unwelcome-desk", ...person },
    { client_id: "robot", ...machine },
    { client_id: "expired-robot", ...machine },
    { client_id: "resource-server", ...machine },
  ],
  // Of the clients that register themselves.
  clientDefaults: { grant_types: ["authorization_code", "refresh_token"], id_token_signed_response_alg: "ES256" },
  scopes: ["openid", "offline_access", ...SCOPES],
  routes: { authorization: "/authorize", token: "/token", registration: "/register" },
  cookies: { keys: ["for tests only"] },
  jwks: { keys: [await signingKey()] },
  pkce: { required: () => true },
  findAccount: (_ctx, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
  issueRefreshToken: (_ctx, client) => client.grantTypeAllowed("refresh_token"),
  expiresWithSession: () => false,
  rotateRefreshToken: true,
  interactions: { url: (_ctx, interaction) => `/people/${interaction.uid}` },
  // Documents of clients are on this machine, where the server's own rule would not look for them.
  fetch: (url, { dispatcher, ...options }) => fetch(url, options),
  ttl: { Session: HOUR, Grant: HOUR, Interaction: HOUR, RefreshToken: HOUR },
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    revocation: { enabled: true },
    introspection: { enabled: true, allowedPolicy: () => true },
    clientCredentials: { enabled: true },
    dPoP: { enabled: true, nonceSecret: Buffer.alloc(32, 1), requireNonce: () => true },
    clientIdMetadataDocument: { enabled: true, ack: "draft-02" },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_ctx, resource) => ({
        scope: SCOPES.join(" "),
        audience: resource,
        accessTokenTTL: HOUR,
        accessTokenFormat: opaque.has(resource) ? "opaque" : "jwt",
      }),
    },
  },
  formats: {
    customizers: {
      jwt: (ctx, _token, { payload }) => {
        if (is(ctx.oidc.client, "expired")) {
          payload.iat -= 2 * HOUR;
          payload.exp -= 2 * HOUR;
        }
      },
    },
  },
});

async function signingKey() {
  const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign"]);
  const { kty, crv, x, y, d } = await crypto.subtle.exportKey("jwk", pair.privateKey);
  return { kty, crv, x, y, d, use: "sig", alg: "ES256" };
}

/** What the person of this interaction does. */
async function decide(request, response) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
  const client = await provider.Client.find(params.client_id);
  if (is(client, "unwelcome")) return { error: "access_denied", error_description: "the person refused" };
  if (prompt.name === "login") return { login: { accountId: "alice" } };
  const known = grantId && (await provider.Grant.find(grantId));
  const grant = known || new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(`openid offline_access ${params.scope ?? ""}`);
  for (const resource of [params.resource ?? []].flat()) grant.addResourceScope(resource, params.scope ?? "");
  return { consent: { grantId: await grant.save() } };
}

const document = {
  client_id: issuer + DOCUMENT,
  client_name: "a client with a document",
  redirect_uris: REDIRECTS,
  application_type: "native",
  grant_types: ["authorization_code", "refresh_token"],
  response_types: ["code"],
  token_endpoint_auth_method: "none",
};

const own = {
  [DOCUMENT]: () => document,
  "/opaque": (query) => opaque.add(query.get("resource")).size,
};

provider.on("server_error", (_ctx, error) => console.error(error));

const answer = provider.callback();
server.on("request", async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, issuer);
  if (pathname.startsWith("/people/")) {
    await provider.interactionFinished(request, response, await decide(request, response), {
      mergeWithLastSubmission: true,
    });
  } else if (pathname in own) {
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify(own[pathname](searchParams)));
  } else await answer(request, response);
});
console.log(`listening on ${issuer}`);
