// The two kinds of streams with messages from a server: the response to a request, and the session's own stream.
import { isStream, pause } from "./http_transport.js";
import { readEvents } from "./sse.js";

const SHORTEST_WAIT = 1_000;
const LONGEST_WAIT = 30_000;
const MOST_IN_VAIN = 5;

/**
 * Reads the response to a request, and resumes its stream if it breaks. `received` is called with each message;
 * `isAnswered` returns true when no more are expected.
 */
export async function readAnswer(http, response, signal, { received, isAnswered }) {
  if (!isStream(response)) return received(await response.json());
  let stream = response;
  let last = "";
  for (let inVain = 0; stream && inVain < MOST_IN_VAIN; inVain += 1) {
    let wait = SHORTEST_WAIT;
    try {
      for await (const event of readEvents(stream.body)) {
        inVain = 0;
        last = event.id;
        wait = event.retry ?? wait;
        if (event.data) received(JSON.parse(event.data));
      }
    } catch (error) {
      // A lost connection is a TypeError.
      if (signal.aborted || !(error instanceof TypeError)) throw error;
    }
    if (isAnswered() || !last) return;
    await pause(wait, signal);
    stream = await http.get(last, signal);
  }
}

/** The session's own stream. If it breaks, it is resumed after the last event. */
export class ServerStream {
  #http;
  #received;
  #gone;
  #last = "";
  #reading = null;

  /** `received` is called with each message, and `gone` if the server no longer knows the session. */
  constructor(http, received, gone) {
    this.#http = http;
    this.#received = received;
    this.#gone = gone;
  }

  /** Starts reading, after the events read before. */
  open() {
    if (this.#reading) return;
    this.#reading = new AbortController();
    this.#read(this.#reading.signal);
  }

  /** Stops reading. */
  close() {
    this.#reading?.abort();
    this.#reading = null;
  }

  async #read(signal) {
    let wait = SHORTEST_WAIT;
    while (!signal.aborted) {
      try {
        const response = await this.#http.get(this.#last, signal);
        if (!response) return; // the server never sends anything by itself
        for await (const event of readEvents(response.body)) {
          this.#last = event.id || this.#last;
          wait = event.retry ?? SHORTEST_WAIT;
          if (event.data) this.#received(JSON.parse(event.data));
        }
      } catch (error) {
        if (signal.aborted || error.status === 401) return;
        if (error.status === 404) return this.#gone();
      }
      await pause(wait, signal).catch(() => {});
      wait = Math.min(wait * 2, LONGEST_WAIT);
    }
  }
}
