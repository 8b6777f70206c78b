// Requests of the history as command lines.

const NAMED_BY = { "tools/call": "name", "prompts/get": "name", "resources/read": "uri" };
const STATELESS_VERSION = "2026-07-28";
const META = "io.modelcontextprotocol/";
// In a terminal, these characters would have an effect, or mislead the reader of the line.
const TERMINAL_UNSAFE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]/;
const PLAIN_WORD = /^[A-Za-z0-9_@%+=:,./-]+$/;
const PLAIN_KEY = /^[A-Za-z_][A-Za-z0-9_.-]*$/;

/** One word of a command line, quoted for a POSIX shell. */
export function shellWord(text) {
  return PLAIN_WORD.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** JSON with everything escaped that a terminal would interpret. */
export function terminalJson(value) {
  const escape = (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`;
  // Surrogate pairs are ordinary characters. With `u` they match as one, so that only lone surrogates are escaped.
  return JSON.stringify(value).replace(new RegExp(TERMINAL_UNSAFE, "gu"), (sign) => escape(sign));
}

/** `mcp-server-bundle call ...`, or `read` or `prompt`; null if there is no such command. */
export function bundleCommand(url, { method, params }, hasToken) {
  const words = bundleWords(method, params ?? {}, url);
  if (words === null || words.some((word) => isUnsafe(word))) return null;
  const token = hasToken ? ["--token-variable", "MCP_TOKEN"] : [];
  return ["mcp-server-bundle", ...words, ...token].map(shellWord).join(" ");
}

function bundleWords(method, params, url) {
  const name = params[NAMED_BY[method]];
  if (typeof name !== "string" || name.startsWith("-") || !name) return null;
  const given = Object.entries(params.arguments ?? {});
  if (method === "resources/read") return ["read", url, name];
  if (method === "prompts/get") {
    const isPlain = given.every(([key, value]) => PLAIN_KEY.test(key) && typeof value === "string");
    return isPlain ? ["prompt", url, name, ...given.map(([key, value]) => `${key}=${value}`)] : null;
  }
  const isPlain = given.every(([key, value]) => PLAIN_KEY.test(key) && readsBack(value));
  if (!isPlain) return ["call", url, name, "--arguments", terminalJson(params.arguments)];
  const pair = ([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`;
  return ["call", url, name, ...given.map(pair)];
}

/** Returns true if `key=value` is read as this value again, whatever the tool's schema. */
function readsBack(value) {
  if (typeof value !== "string") return value !== null && !isUnsafe(JSON.stringify(value));
  if (isUnsafe(value)) return false;
  try {
    JSON.parse(value);
    return false;
  } catch {
    return true;
  }
}

function isUnsafe(text) {
  return new RegExp(TERMINAL_UNSAFE, "u").test(text);
}

/** The complete request for curl, without a session; `schema` is that of the called tool, if any. */
export function curlCommand(url, { method, params }, { hasToken, schema }) {
  const { task, _meta, ...own } = params ?? {};
  const meta = { [`${META}protocolVersion`]: STATELESS_VERSION, [`${META}clientCapabilities`]: {} };
  const body = { jsonrpc: "2.0", id: 1, method, params: { ...own, _meta: meta } };
  const named = own[NAMED_BY[method]];
  const headers = [
    ["Content-Type", "application/json"],
    ["Accept", "application/json, text/event-stream"],
    ["MCP-Protocol-Version", STATELESS_VERSION],
    ["Mcp-Method", method],
    ...(typeof named === "string" ? [["Mcp-Name", headerValue(named)]] : []),
    ...markedArguments(schema, own.arguments),
  ];
  const lines = headers.map(([name, value]) => `-H ${shellWord(`${name}: ${value}`)}`);
  // Double quotes, because the shell inserts the token.
  if (hasToken) lines.push('-H "Authorization: Bearer $MCP_TOKEN"');
  return [`curl -sS ${shellWord(url)}`, ...lines, `--data-raw ${shellWord(terminalJson(body))}`].join(" \\\n  ");
}

/** The headers that repeat arguments, which the tool's schema marks with `x-mcp-header`. */
function markedArguments(schema, given) {
  const properties = isJsonObject(schema) && isJsonObject(schema.properties) ? Object.entries(schema.properties) : [];
  return properties.flatMap(([name, field]) => {
    const value = isJsonObject(given) ? given[name] : undefined;
    const mark = isJsonObject(field) ? field["x-mcp-header"] : undefined;
    const isMarked = typeof mark === "string" && /^[\w!#$%&'*+.^`|~-]+$/.test(mark) && !isJsonObject(value);
    const own =
      isMarked && value !== undefined && value !== null ? [[`Mcp-Param-${mark}`, headerValue(String(value))]] : [];
    return [...own, ...markedArguments(field, value)];
  });
}

function isJsonObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A header value: the text if a header can contain it, otherwise its base64 form. */
function headerValue(text) {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith("=?base64?")) return text;
  const bytes = new TextEncoder().encode(text);
  return `=?base64?${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))}?=`;
}
