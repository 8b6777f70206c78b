// Drives the official TypeScript client 2.x. The rows are those of ways.py.
import { readFileSync, writeFileSync } from "node:fs";
import {
  Client,
  ClientCredentialsProvider,
  DpopSession,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from "@modelcontextprotocol/client";

const SECONDS = 30;
const REDIRECT = "http://localhost:8799/callback";
const task = JSON.parse(process.argv[2]);
const read = ["read_text_file", { path: task.file }];
const write = ["write_file", { path: task.file, content: "after\n" }];

function same(found, wanted) {
  if (found !== wanted) throw new Error(`${JSON.stringify(found)} is not ${JSON.stringify(wanted)}`);
}

/** What the user does to whom a login is shown. */
class Person {
  asked = 0;

  constructor(willing = true) {
    this.willing = willing;
  }

  /** Follows a login from its first page to the redirect, whose parameters it gives. */
  async open(url) {
    this.asked += 1;
    if (!this.willing) throw new Error("nobody is there");
    const cookies = new Map();
    for (;;) {
      const cookie = [...cookies].map((pair) => pair.join("=")).join("; ");
      const answer = await fetch(url, { redirect: "manual", headers: { cookie } });
      for (const line of answer.headers.getSetCookie()) {
        const [name, value] = line.split(";", 1)[0].split("=");
        cookies.set(name, value);
      }
      const location = answer.headers.get("location");
      if (location === null) throw new Error(`${answer.status} at ${url}: ${await answer.text()}`);
      url = new URL(location, url);
      if (url.pathname.endsWith("/callback")) return url.searchParams;
    }
  }
}

/** Keeps in memory what a login gives. */
class Provider {
  #client;
  #tokens;
  #verifier;
  redirectUrl = REDIRECT;
  clientMetadata = {
    client_name: "the official TypeScript client",
    redirect_uris: [REDIRECT],
    grant_types: ["authorization_code", "refresh_token"],
    token_endpoint_auth_method: "none",
  };

  constructor(login) {
    this.person = login.person;
    this.clientMetadataUrl = login.document;
    if (login.id) this.#client = { client_id: login.id };
    if (login.token) this.#tokens = { access_token: login.token, token_type: "Bearer" };
    if (login.bound) {
      const session = DpopSession.create();
      this.dpop = () => session;
    }
  }

  clientInformation = () => this.#client;
  saveClientInformation = (client) => void (this.#client = client);
  tokens = () => this.#tokens;
  saveTokens = (tokens) => void (this.#tokens = tokens);
  saveCodeVerifier = (verifier) => void (this.#verifier = verifier);
  codeVerifier = () => this.#verifier;

  async redirectToAuthorization(url) {
    this.came = await this.person.open(url);
  }

  age(expired) {
    this.#tokens = { ...this.#tokens, access_token: expired };
  }
}

/** A connected client. What the user brings back is handed to the SDK by its caller. */
class Connection {
  constructor(login) {
    this.login = { person: new Person(), ...login };
    this.provider = login.secret
      ? new ClientCredentialsProvider({ clientId: login.id, clientSecret: login.secret })
      : new Provider(this.login);
  }

  async call(name, args) {
    const result = await this.#authorized(async () => {
      if (!this.client) await this.#open();
      return this.client.callTool({ name, arguments: args });
    });
    if (result.isError) throw new Error(JSON.stringify(result.content));
    return result.content[0].text;
  }

  async #open() {
    const client = new Client({ name: "interop", version: "1.0" }, { versionNegotiation: { mode: "auto" } });
    this.transport = new StreamableHTTPClientTransport(new URL(this.login.url), { authProvider: this.provider });
    await client.connect(this.transport, { timeout: SECONDS * 1000 });
    this.client = client;
  }

  async #authorized(work) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof UnauthorizedError) || !this.provider.came) throw error;
      await this.transport.finishAuth(this.provider.came);
      return work();
    }
  }

  close = () => this.client?.close();
}

async function connected(login, work) {
  const connection = new Connection(login);
  try {
    await work(connection);
  } finally {
    await connection.close();
  }
  return connection;
}

async function logsIn(login, asked = 1) {
  const { login: done, provider } = await connected(login, async (one) => same(await one.call(...read), "before\n"));
  if (!provider.tokens()?.access_token) throw new Error("it came in without a token");
  if (login.bound) same(provider.tokens().token_type, "DPoP");
  same(done.person.asked, asked);
}

async function turnedAway(login, what = read) {
  let said;
  let failed;
  const { login: done } = await connected(login, async (one) => {
    try {
      said = await one.call(...what);
    } catch (error) {
      failed = error;
    }
  });
  if (!failed) throw new Error(`it was let in, and got ${JSON.stringify(said)}`);
  if (done.person.asked !== 1) throw new Error(`the user was asked ${done.person.asked} times: ${failed}`);
  same(readFileSync(task.file, "utf8"), "before\n");
}

const { url, document, secret, tokens } = task;
const refused = (token, what = read) => () =>
  turnedAway({ url, token: tokens[token], person: new Person(false) }, what);

const ROWS = {
  registers: () => logsIn({ url }),
  "has a document": () => logsIn({ url, document }),
  "is known": () => logsIn({ url, id: "desk" }),
  "is a program": () => logsIn({ url, id: "robot", secret }, 0),
  "is bound": () => logsIn({ url, id: "desk", bound: true }),
  "steps up": async () => {
    const { login } = await connected({ url, id: "desk" }, async (one) => {
      same(await one.call(...read), "before\n");
      await one.call(...write);
      same(await one.call(...read), "after\n");
    });
    same(login.person.asked, 2);
  },
  // This client does not know when its token expires: it hears so from the server.
  refreshes: async () => {
    const { login, provider } = await connected({ url, id: "desk" }, async (one) => {
      await one.call(...read);
      one.provider.age(tokens.ended);
      same(await one.call(...read), "before\n");
    });
    if (provider.tokens().access_token === tokens.ended) throw new Error("the token is the old one");
    same(login.person.asked, 1);
  },
  ended: refused("ended"),
  "other audience": refused("other audience"),
  "too narrow": refused("narrow", write),
  denied: () => turnedAway({ url, id: "unwelcome-desk" }),
};

const found = {};
for (const name of task.rows) {
  writeFileSync(task.file, "before\n");
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`took longer than ${SECONDS} seconds`)), SECONDS * 1000);
  });
  try {
    await Promise.race([ROWS[name](), late]);
    found[name] = "ok";
  } catch (error) {
    found[name] = `${error.name}: ${error.message}`;
  } finally {
    clearTimeout(timer);
  }
}
console.log(JSON.stringify(found));
process.exit();
