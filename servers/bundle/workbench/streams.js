// The two kinds of streams that a server sends messages on: with the answer to a request, and by itself.
import { isStream, pause } from "./http_transport.js";
import { readEvents } from "./sse.js";

const SHORTEST_WAIT = 1_000;
const LONGEST_WAIT = 30_000;
const MOST_IN_VAIN = 5;

/**
 * Reads the response to a request, and goes on with its stream where that breaks off. `received` hears of each
 * message; `isAnswered` says whether that is all.
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
      // A connection that was lost is a TypeError.
      if (signal.aborted || !(error instanceof TypeError)) throw error;
    }
    if (isAnswered() || !last) return;
    await pause(wait, signal);
    stream = await http.get(last, signal);
  }
}

/** What a server says by itself in one session. It is asked again, after the last event, where it breaks off. */
export class ServerStream {
  #http;
  #received;
  #gone;
  #last = "";
  #reading = null;

  /** `received` hears of each message, and `gone` that the server does not know the session any more. */
  constructor(http, received, gone) {
    this.#http = http;
    this.#received = received;
    this.#gone = gone;
  }

  /** Reads from now on, after what was read before. */
  open() {
    if (this.#reading) return;
    this.#reading = new AbortController();
    this.#read(this.#reading.signal);
  }

  /** Reads no more. */
  close() {
    this.#reading?.abort();
    this.#reading = null;
  }

  async #read(signal) {
    let wait = SHORTEST_WAIT;
    while (!signal.aborted) {
      try {
        const response = await this.#http.get(this.#last, signal);
        if (!response) return; // it never says anything
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
