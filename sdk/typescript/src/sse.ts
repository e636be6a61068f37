/** Server-sent events, from the bytes of a stream. */

export interface ServerSentEvent {
  id: string;
  name: string;
  data: string;
}

/** Takes pieces of a stream, however they are cut, and gives the events that are complete. */
export class SseDecoder {
  /** The last id that the stream gave. */
  lastId = "";
  readonly #text = new TextDecoder();
  #rest = "";
  #name = "";
  #data: string[] = [];

  feed(piece: Uint8Array): ServerSentEvent[] {
    this.#rest += this.#text.decode(piece, { stream: true });
    const events: ServerSentEvent[] = [];
    for (;;) {
      const end = /\r\n|\n|\r(?!$)/.exec(this.#rest);
      if (end === null) return events;
      const line = this.#rest.slice(0, end.index);
      this.#rest = this.#rest.slice(end.index + end[0].length);
      const event = this.#line(line);
      if (event !== undefined) events.push(event);
    }
  }

  /** Takes a line; an empty one completes an event. */
  #line(line: string): ServerSentEvent | undefined {
    if (line === "") return this.#complete();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "id" && !value.includes("\0")) this.lastId = value;
    else if (field === "event") this.#name = value;
    else if (field === "data") this.#data.push(value);
    return undefined;
  }

  #complete(): ServerSentEvent | undefined {
    const [name, data] = [this.#name, this.#data];
    [this.#name, this.#data] = ["", []];
    if (data.length === 0) return undefined;
    return { id: this.lastId, name: name === "" ? "message" : name, data: data.join("\n") };
  }
}
