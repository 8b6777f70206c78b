// Parser for event streams (HTML Standard, Server-sent events).

const MOST_EVENT = 128 * 1024 * 1024;

/** The events of a body: `{id, retry, data}`; `id` is the most recent one, `data` is "" if there was none. */
export async function* readEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let event = newEvent("");
  let held = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      held += value;
      // A line may end with CR LF, and the LF may be in the next chunk.
      const isWhole = !held.endsWith("\r");
      const lines = (isWhole ? held : held.slice(0, -1)).split(/\r\n|\n|\r/);
      held = lines.pop() + (isWhole ? "" : "\r");
      for (const line of lines) {
        if (line) {
          readField(event, line);
        } else {
          if (event.isSaid) yield { id: event.id, retry: event.retry, data: event.data.join("\n") };
          event = newEvent(event.id);
        }
      }
      if (held.length + event.size > MOST_EVENT) throw new RangeError("an event of the stream is too long");
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function newEvent(id) {
  return { id, retry: null, data: [], size: 0, isSaid: false };
}

function readField(event, line) {
  const colon = line.indexOf(":");
  const name = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
  if (name === "data") {
    event.data.push(value);
    event.size += value.length;
  } else if (name === "id" && !value.includes("\0")) {
    event.id = value;
  } else if (name === "retry" && /^\d+$/.test(value)) {
    event.retry = Number(value);
  }
  event.isSaid = event.isSaid || name === "data" || name === "id" || name === "retry";
}
