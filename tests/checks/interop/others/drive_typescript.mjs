// Drives the official TypeScript clients: "ts1" is @modelcontextprotocol/sdk 1.x, which begins every connection with
// `initialize`; "ts2" is @modelcontextprotocol/client, the 2.x, which picks the era by its `versionNegotiation` and
// begins with `initialize` unless told otherwise. The rows are those of rows.py.
import { openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { pathToFileURL } from "node:url";

const SECONDS = 60;
const STEPS = 20;
const FIELDS = {
  city: "Oslo",
  nights: 3,
  season: "winter",
  name: "Ada",
  age: 36,
  color: "green",
  score: 1.5,
  status: "inactive",
  verified: false,
  untitledSingle: "option2",
  titledSingle: "value2",
  legacyEnum: "opt2",
  untitledMulti: ["option1", "option3"],
  titledMulti: ["value1", "value3"],
  confirm: true,
};
const SAMPLE = {
  role: "assistant",
  model: "parrot",
  content: { type: "text", text: "lake" },
};
const ROOTS = {
  roots: [
    { uri: "file:///home", name: "home" },
    { uri: "file:///tmp", name: "tmp" },
  ],
};
const LETTERS = {
  tools: "notifications/tools/list_changed",
  prompts: "notifications/prompts/list_changed",
  resources: "notifications/resources/list_changed",
  uri: "notifications/resources/updated",
};
const INFO = { name: "interop", version: "1.0" };
const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
/** What ts1 has besides: it runs forms as tasks where it is asked to. */
const TASKS = { tasks: { cancel: {}, requests: { elicitation: { create: {} } } } };

const which = process.argv[2];
const task = JSON.parse(process.argv[3]);
const modern = ["auto", "2026-07-28"].includes(task.era);
const file = join(task.folder, `${task.key}.txt`);
const uri = pathToFileURL(file).href;

function same(found, wanted) {
  if (!isDeepStrictEqual(found, wanted))
    throw new Error(`${JSON.stringify(found)?.slice(0, 500)} is not ${JSON.stringify(wanted)?.slice(0, 500)}`);
}

function holds(found, what) {
  if (!found) throw new Error(what);
}

function text(result) {
  holds(!result.isError, `an error: ${JSON.stringify(result)}`);
  return result.content[0].text;
}

function fillIn(params) {
  if (params.mode === "url") return { action: "accept" };
  const names = Object.keys(params.requestedSchema.properties);
  return { action: "accept", content: Object.fromEntries(names.map((name) => [name, FIELDS[name]])) };
}

/** What hears of changes: letters that came, and those who wait for one. */
class Ears {
  logs = [];
  #letters = [];
  #waiting = [];

  put(letter) {
    const found = this.#waiting.findIndex((one) => one.method === letter.method);
    if (found < 0) this.#letters.push(letter);
    else this.#waiting.splice(found, 1)[0].resolve(letter.params ?? {});
  }

  forget() {
    this.#letters = [];
  }

  next(method) {
    const found = this.#letters.findIndex((letter) => letter.method === method);
    if (found >= 0) return Promise.resolve(this.#letters.splice(found, 1)[0].params ?? {});
    return new Promise((resolve) => this.#waiting.push({ method, resolve }));
  }
}

/** What is different in the two packages. */
async function load(name) {
  if (name === "ts1") {
    const [{ Client }, types, { StdioClientTransport }, { StreamableHTTPClientTransport }, ...older] =
      await Promise.all([
        import("@modelcontextprotocol/sdk/client/index.js"),
        import("@modelcontextprotocol/sdk/types.js"),
        import("@modelcontextprotocol/sdk/client/stdio.js"),
        import("@modelcontextprotocol/sdk/client/streamableHttp.js"),
        import("@modelcontextprotocol/sdk/client/sse.js"),
        import("@modelcontextprotocol/sdk/client/websocket.js"),
        import("@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js"),
      ]);
    const [{ SSEClientTransport }, { WebSocketClientTransport }, { InMemoryTaskStore }] = older;
    const requests = {
      "elicitation/create": types.ElicitRequestSchema,
      "sampling/createMessage": types.CreateMessageRequestSchema,
      "roots/list": types.ListRootsRequestSchema,
    };
    const notifications = {
      "notifications/message": types.LoggingMessageNotificationSchema,
      "notifications/tools/list_changed": types.ToolListChangedNotificationSchema,
      "notifications/prompts/list_changed": types.PromptListChangedNotificationSchema,
      "notifications/resources/list_changed": types.ResourceListChangedNotificationSchema,
      "notifications/resources/updated": types.ResourceUpdatedNotificationSchema,
    };
    return {
      StdioClientTransport,
      StreamableHTTPClientTransport,
      SSEClientTransport,
      WebSocketClientTransport,
      client: () =>
        new Client(INFO, {
          capabilities: { ...CAPABILITIES, ...TASKS },
          taskStore: new InMemoryTaskStore(),
          defaultTaskPollInterval: 50,
        }),
      answer: (client, method, handler) =>
        client.setRequestHandler(requests[method], async (request, extra) => {
          if (request.params?.task === undefined) return handler(request);
          const made = await extra.taskStore.createTask({ ttl: null, pollInterval: 50 });
          await extra.taskStore.storeTaskResult(made.taskId, "completed", await handler(request));
          return { task: made };
        }),
      results: types.CallToolResultSchema,
      hear: (client, method, handler) => client.setNotificationHandler(notifications[method], handler),
      call: (client, params, options) => client.callTool(params, undefined, options),
      version: (connection) => connection.settled,
    };
  }
  const [{ Client, StreamableHTTPClientTransport, SSEClientTransport }, { StdioClientTransport }] = await Promise.all([
    import("@modelcontextprotocol/client"),
    import("@modelcontextprotocol/client/stdio"),
  ]);
  const modes = { auto: "auto", "2026-07-28": { pin: "2026-07-28" } };
  const options = { capabilities: CAPABILITIES, versionNegotiation: { mode: modes[task.era] ?? "legacy" } };
  if (!modern) options.supportedProtocolVersions = [task.version];
  return {
    StdioClientTransport,
    SSEClientTransport,
    StreamableHTTPClientTransport,
    client: () => new Client(INFO, options),
    answer: (client, method, handler) => client.setRequestHandler(method, handler),
    hear: (client, method, handler) => client.setNotificationHandler(method, handler),
    call: (client, params, options) => client.callTool(params, options),
    version: ({ client }) => client.getNegotiatedProtocolVersion(),
  };
}

const sdk = await load(which);

class Connection {
  ears = new Ears();
  #level;

  static async open(name, token) {
    const self = new Connection();
    self.client = sdk.client();
    sdk.answer(self.client, "elicitation/create", async ({ params }) => fillIn(params));
    sdk.answer(self.client, "sampling/createMessage", async () => SAMPLE);
    sdk.answer(self.client, "roots/list", async () => ROOTS);
    sdk.hear(self.client, "notifications/message", ({ params }) => void self.ears.logs.push(params));
    for (const method of Object.values(LETTERS))
      sdk.hear(self.client, method, (letter) => void self.ears.put(letter));
    self.transport = transportTo(task.servers[name], token);
    const settling = self.transport.setProtocolVersion?.bind(self.transport);
    self.transport.setProtocolVersion = (version) => {
      self.settled = version;
      settling?.(version);
    };
    await self.client.connect(self.transport, { timeout: SECONDS * 1000 });
    return self;
  }

  get version() {
    return sdk.version(this);
  }

  async all(kind) {
    const listing = {
      tools: "listTools",
      prompts: "listPrompts",
      resources: "listResources",
      resourceTemplates: "listResourceTemplates",
    }[kind];
    const found = [];
    let page;
    do {
      page = await this.client[listing](page && { cursor: page.nextCursor });
      found.push(...page[kind]);
    } while (page.nextCursor !== undefined);
    return found;
  }

  call(name, args = {}, options = {}) {
    const params = { name, arguments: args };
    if (this.#level && modern) params._meta = { "io.modelcontextprotocol/logLevel": this.#level };
    return sdk.call(this.client, params, options);
  }

  async level(level) {
    this.#level = level;
    if (!modern) await this.client.setLoggingLevel(level);
  }

  /** Does `work` while letters about one thing come; it gets a function that waits for the next one. */
  async listening(wanted, work) {
    const [kind] = Object.keys(wanted);
    this.ears.forget();
    const heard = () => this.ears.next(LETTERS[kind]);
    if (modern) {
      const filter = kind === "uri" ? { resourceSubscriptions: [wanted.uri] } : { [`${kind}ListChanged`]: true };
      const stream = await this.client.listen(filter);
      same(stream.honoredFilter, filter);
      await work(heard);
      await stream.close();
      return;
    }
    if (kind === "uri") await this.client.subscribeResource({ uri: wanted.uri });
    await work(heard);
    if (kind === "uri") await this.client.unsubscribeResource({ uri: wanted.uri });
  }

  async close() {
    if (!modern) await this.transport.terminateSession?.();
    await this.client.close();
  }
}

function transportTo(server, token) {
  if (server.command) {
    const [command, ...args] = server.command;
    return new sdk.StdioClientTransport({ command, args, cwd: server.cwd, stderr: openSync(task.errors, "a") });
  }
  if (task.transport === "websocket") return new sdk.WebSocketClientTransport(new URL(server.url));
  const headers = { Authorization: `Bearer ${token ?? server.token}` };
  const Transport = task.transport === "sse+token" ? sdk.SSEClientTransport : sdk.StreamableHTTPClientTransport;
  return new Transport(new URL(server.url), { requestInit: { headers } });
}

const found = {};

async function row(name, work) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`took longer than ${SECONDS} seconds`)), SECONDS * 1000);
  });
  try {
    await Promise.race([work(), late]);
    found[name] = "ok";
  } catch (error) {
    found[name] = `${error.name}: ${error.message}`;
  } finally {
    clearTimeout(timer);
  }
}

async function connected(server, work) {
  if (!(server in task.servers)) return;
  const client = await Connection.open(server);
  try {
    await work(client);
  } finally {
    await client.close();
  }
}

async function reported(client, tool, args) {
  const seen = [];
  text(await client.call(tool, args, { onprogress: ({ progress, total }) => void seen.push([progress, total]) }));
  return seen;
}

async function allRows() {
  await connected("filesystem", async (client) => {
    await row("opens", async () => {
      same(client.version, task.version);
      same(client.client.getServerVersion().name, "filesystem");
    });
    await row("lists tools", async () => {
      const listed = Object.fromEntries((await client.all("tools")).map((tool) => [tool.name, tool]));
      same(listed.read_text_file.inputSchema.required, ["path"]);
      holds(listed.list_directory.description, "no description");
    });
    await row("text result", async () => same(text(await client.call("read_text_file", { path: file })), "before\n"));
    await row("data result", async () => {
      const result = await client.call("get_file_info", { path: file });
      same(result.structuredContent.size, "before\n".length);
    });
    await row("failure is a result", async () => {
      const result = await client.call("read_text_file", { path: join(task.folder, "missing") });
      same(result.isError, true);
      holds(result.content[0].text.startsWith("not_found: "), JSON.stringify(result));
    });
    await row("lists resources", async () => {
      const uris = (await client.all("resources")).map((one) => one.uri);
      holds(uris.includes(uri), "the file is not listed");
    });
    await row("lists templates", async () => {
      const templates = (await client.all("resourceTemplates")).map((one) => one.uriTemplate);
      same(templates, ["file:///{+path}{?offset,length}"]);
    });
    await row("reads a file", async () => {
      const { contents } = await client.client.readResource({ uri });
      same([contents.length, contents[0].uri, contents[0].text], [1, uri, "before\n"]);
    });
    await row("changed file is heard of", async () => {
      await client.listening({ uri }, async (heard) => {
        writeFileSync(file, "after\n");
        same((await heard()).uri, uri);
      });
      same((await client.client.readResource({ uri })).contents[0].text, "after\n");
    });
    await row("list of resources changes", async () => {
      const path = join(task.folder, `${task.key}.new`);
      await client.all("resources");
      await client.listening({ resources: true }, async (heard) => {
        writeFileSync(path, "new\n");
        await heard();
      });
      const uris = (await client.all("resources")).map((one) => one.uri);
      holds(uris.includes(pathToFileURL(path).href), "the new file is not listed");
    });
    if (!modern) await row("ping", () => client.client.ping());
  });

  await connected("sqlite", async (client) => {
    await row("asks a database", async () => {
      holds((await client.all("tools")).some((tool) => tool.name === "read_query"), "there is no such tool");
      const said = text(await client.call("read_query", { query: "SELECT Name FROM Genre WHERE GenreId = 2" }));
      holds(said.includes("Jazz"), said);
    });
    await row("reads a row", async () => {
      const { contents } = await client.client.readResource({ uri: "sqlite:///chinook/Genre/2" });
      same(JSON.parse(contents[0].text).row, { GenreId: 2, Name: "Jazz" });
    });
    await row("changed table is heard of", async () => {
      const uri = "sqlite:///chinook/Genre";
      await client.listening({ uri }, async (heard) => {
        const change = { query: "INSERT INTO Genre (Name) VALUES (?)", parameters: [task.key] };
        text(await client.call("write_query", change));
        same((await heard()).uri, uri);
      });
    });
  });

  await connected("bench", async (client) => {
    const says = (name, tool, args, wanted) =>
      row(name, async () => same(text(await client.call(tool, args)), wanted));
    const changes = (name, kind, tool, added) =>
      row(name, async () => {
        await client.all(kind);
        await client.listening({ [kind]: true }, async (heard) => {
          same(text(await client.call(tool, { name: added })), added);
          await heard();
        });
        holds((await client.all(kind)).some((one) => one.name === added), `${added} is not listed`);
      });
    const completes = (name, ref, argument, wanted) =>
      row(name, async () => same((await client.client.complete({ ref, argument })).completion.values, wanted));

    await row("long result", async () =>
      same(text(await client.call("long", { characters: 440_000 })), "ø".repeat(440_000)),
    );
    await row("data that is no object", async () => {
      const result = await client.call("total", { numbers: [1, 2, 39] });
      same([text(result), result.structuredContent], ["the total is 42", modern ? 42 : undefined]);
    });
    await row("argument in a header", async () => {
      await client.all("tools");
      same(text(await client.call("weather", { city: "Tromsø", days: 3 })), "3 days of rain in Tromsø");
    });
    await row("unknown tool is an error", async () => {
      const error = await client.call("nothing").then(
        (result) => new Error(`no error: ${JSON.stringify(result)}`),
        (reason) => reason,
      );
      holds(error.message.includes("unknown tool: nothing"), error.message);
    });
    await row("reads bytes", async () =>
      same((await client.client.readResource({ uri: "bench://bytes" })).contents[0].blob, "AP8Q"),
    );
    await row("reads by a template", async () =>
      same((await client.client.readResource({ uri: "bench://city/Oslo" })).contents[0].text, "the city of Oslo"),
    );
    await row("long list in pages", async () => {
      const uris = (await client.all("resources")).map((one) => one.uri);
      same(uris.length, new Set(uris).size);
      const wanted = Array.from({ length: 250 }, (_, number) => `bench://page/${number}`);
      same(wanted.filter((one) => !uris.includes(one)), []);
    });
    const steps = Array.from({ length: STEPS }, (_, step) => [step + 1, STEPS]);
    await row("burst of progress", async () => same(await reported(client, "count", { steps: STEPS }), steps));
    await row("cancelled call is stopped", async () => {
      const abort = new AbortController();
      const call = client.call("hold", { key: task.key }, { signal: abort.signal, onprogress: () => abort.abort() });
      const error = await call.then(
        (result) => new Error(`no error: ${JSON.stringify(result)}`),
        (reason) => reason,
      );
      holds(abort.signal.aborted, String(error));
      same(text(await client.call("when_stopped", { key: task.key })), "stopped");
    });
    await row("log messages", async () => {
      await client.level("warning");
      client.ears.logs.length = 0;
      await client.call("chatter");
      const wanted = ["warning", "error"].map((level) => ({ level, logger: "bench", data: { said: level } }));
      same(
        client.ears.logs.map(({ level, logger, data }) => ({ level, logger, data })),
        wanted,
      );
    });
    await changes("list of tools changes", "tools", "add_tool", `${task.key}-tool`);
    await changes("list of prompts changes", "prompts", "add_prompt", `${task.key}-prompt`);
    await says("form is filled in", "book", {}, "Oslo, 3 nights in winter");
    await says("two forms in a row", "introduce", {}, "Ada, 36");
    await says("two forms at once", "survey", {}, "Ada, 36");
    await says("page is visited", "sign_in", {}, "accept");
    await says("model is asked", "rhyme", { word: "snake" }, "parrot: lake");
    await says("roots are asked for", "whereabouts", {}, "home=file:///home, tmp=file:///tmp");
    await row("lists prompts", async () => {
      const greet = (await client.all("prompts")).find((prompt) => prompt.name === "greet");
      same(greet.arguments.map((one) => one.name), ["name", "tone"]);
    });
    await row("renders a prompt", async () => {
      const { messages } = await client.client.getPrompt({ name: "greet", arguments: { name: "Ada", tone: "cool" } });
      same(messages.map((message) => message.role), ["user", "assistant"]);
      same(messages[0].content.text, "Say hello to Ada, in a cool way.");
    });
    await row("prompt asks first", async () => {
      const { messages } = await client.client.getPrompt({ name: "ask_first" });
      same(messages.map((message) => message.content.text), ["I am Ada."]);
    });
    const greet = { type: "ref/prompt", name: "greet" };
    await completes("completes a prompt", greet, { name: "tone", value: "w" }, ["warm", "witty"]);
    const city = { type: "ref/resource", uri: "bench://city/{name}" };
    const towns = ["Bergen", "Berlin", "Bern"];
    await completes("completes a template", city, { name: "name", value: "ber" }, towns);
  });

  /** Tasks of 2025-11-25, which the 1.x alone has: all that its client says of one, and its end. */
  async function tasksOf(client) {
    const { tasks } = client.experimental;
    const ended = async (name, args = {}) => {
      const said = [];
      const options = { task: { ttl: 60_000 } };
      const params = { name, arguments: args };
      for await (const one of tasks.callToolStream(params, sdk.results, options)) said.push(one);
      same([said[0].type, said[0].task.status, said[0].task.ttl], ["taskCreated", "working", 60_000]);
      return said.at(-1);
    };
    const begun = async (name, args) => {
      const options = { task: { ttl: 60_000 } };
      const params = { name, arguments: args };
      for await (const one of tasks.callToolStream(params, sdk.results, options)) return one.task.taskId;
    };
    await client.listTools();
    await row("task is followed", async () => {
      const { result } = await ended("slow_compute", { seconds: 0.1, label: "it" });
      same(text(result), "it took 0.1 seconds.");
    });
    await row("task asks", async () => same(text((await ended("confirm_delete", { filename: "a" })).result), "Confirmed: a"));
    await row("task asks twice", async () =>
      same(text((await ended("multi_input")).result), "name: accept, confirm: accept"),
    );
    await row("task fails", async () => {
      const id = await begun("failing_job", {});
      const result = await tasks.getTaskResult(id, sdk.results);
      same([result.isError, result.content[0].text], [true, "the job has failed"]);
      const { status, statusMessage } = await tasks.getTask(id);
      same([status, statusMessage], ["failed", "the job has failed"]);
    });
    await row("task is cancelled", async () => {
      const id = await begun("slow_compute", { seconds: 60 });
      same((await tasks.cancelTask(id)).status, "cancelled");
      same((await tasks.getTask(id)).status, "cancelled");
    });
  }

  await connected("everything", async (client) => {
    const form = (name, tool, field) =>
      row(name, async () => {
        const said = text(await client.call(tool));
        holds(said.includes("action=accept"), said);
        same(JSON.parse(said.slice(said.indexOf("content=") + "content=".length))[field], FIELDS[field]);
      });
    await row("every kind of content", async () => {
      const kinds = (await client.call("all_content")).content.map((block) => block.type);
      same(kinds, ["text", "text", "image", "audio", "resource", "resource", "resource_link"]);
    });
    await form("form with defaults", "test_elicitation_sep1034_defaults", "status");
    await form("form with choices", "test_elicitation_sep1330_enums", "titledMulti");
    await row("watched resource changes", async () => {
      const watched = "test://watched-resource";
      await client.listening({ uri: watched }, async (heard) => {
        await client.call("trigger_resource_update");
        same((await heard()).uri, watched);
      });
    });
    await row("progress in order", async () => {
      const wanted = [0, 50, 100].map((done) => [done, 100]);
      same(await reported(client, "test_tool_with_progress", {}), wanted);
    });
    await row("broken stream", async () =>
      same(text(await client.call("test_reconnection")), "Reconnection test completed"),
    );
    if (which === "ts1") await tasksOf(client.client);
  });

  await connected("fetch", async (client) => {
    await row("reads a web page", async () => {
      const page = text(await client.call("fetch", { url: `${task.site}/story`, max_length: 100_000 }));
      holds(page.includes("Paragraph number 299 tells"), page);
    });
    await row("reads an image of the web", async () => {
      const { content } = await client.call("fetch", { url: `${task.site}/pixel` });
      same(content.map((block) => block.type), ["text", "image"]);
    });
  });

  await connected("prompts", async (client) => {
    await row("renders a file", async () => {
      const names = (await client.all("prompts")).map((prompt) => prompt.name);
      holds(names.includes("commit-message"), `it lists ${names}`);
      const { messages } = await client.client.getPrompt({ name: "commit-message", arguments: { diff: "{{ 7 * 7 }}" } });
      holds(messages[0].content.text.includes("{{ 7 * 7 }}"), messages[0].content.text);
    });
    await row("completes for a file", async () => {
      const ref = { type: "ref/prompt", name: "commit-message" };
      const { completion } = await client.client.complete({ ref, argument: { name: "style", value: "co" } });
      same(completion.values, ["conventional"]);
    });
    await row("new file is a prompt", async () => {
      const name = `${task.key}-${task.transport.slice(0, 4)}-${task.era}`;
      await client.all("prompts");
      await client.listening({ prompts: true }, async (heard) => {
        writeFileSync(join(task.folder, "library", `${name}.md`), "---\ndescription: New.\n---\nHello\n");
        await heard();
      });
      const names = (await client.all("prompts")).map((prompt) => prompt.name);
      holds(names.includes(name), "the prompt is not listed");
    });
  });

  await connected("postgres", async (client) => {
    await row("describes every table", async () => {
      const uris = (await client.all("resources")).map((one) => one.uri);
      const ours = uris.filter((one) => one.startsWith("postgres:///sample/") && !one.endsWith("/schema"));
      const tables = ours.map((one) => decodeURIComponent(one.split("/").at(-1)));
      holds(tables.length >= 25, `there are ${tables}`);
      for (const table of tables) text(await client.call("describe_table", { table_name: table, sample: 1 }));
    });
    await row("reads pages to the end", async () => {
      const args = { query: 'SELECT id FROM "order" WHERE id > $1 ORDER BY id', parameters: [100], max_rows: 400 };
      const seen = [];
      do {
        const lines = text(await client.call("read_query", args)).split("\n");
        for (const line of lines.filter((one) => one.startsWith("["))) seen.push(JSON.parse(line)[0]);
        args.cursor = lines[0].split("continue with cursor ")[1];
      } while (args.cursor);
      same(seen, Array.from({ length: 900 }, (_, n) => n + 101));
    });
    await row("finds a row", async () => {
      const { contents } = await client.client.readResource({ uri: "postgres:///sample/order_line/7,2" });
      same(JSON.parse(contents[0].text).row, { order_id: 7, line: 2, sku: "SKU-0015", quantity: 2 });
    });
    await row("table that changes is heard of", async () => {
      const uri = "postgres:///sample/warehouse.document";
      await client.listening({ uri }, async (heard) => {
        const change = { query: "INSERT INTO warehouse.document VALUES ($1, true)", parameters: [task.key] };
        text(await client.call("write_query", change));
        same((await heard()).uri, uri);
      });
    });
  });

  if ("bench" in task.servers && task.transport.endsWith("+token"))
    await row("refuses a wrong token", async () => {
      let client;
      try {
        client = await Connection.open("bench", "another-token");
        await client.all("tools");
      } catch {
        return;
      } finally {
        await client?.client.close();
      }
      throw new Error("the wrong token was let in");
    });
}

try {
  await allRows();
} catch (error) {
  found.driver = `${error.name}: ${error.message}`;
}
process.stdout.write(`${JSON.stringify(found)}\n`, () => process.exit(0));
