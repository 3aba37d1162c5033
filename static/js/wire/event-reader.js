// @ts-check
// Server-sent events of our own server (apps/gateway/events.py) from text in any pieces. Pure.

/** @typedef {{name: string, data: string}} ServerEvent */

export class EventReader {
  #rest = "";

  /** The events that this piece completes; comments are none. @param {string} text @returns {ServerEvent[]} */
  read(text) {
    const blocks = (this.#rest + text).split("\n\n");
    this.#rest = blocks.pop() ?? "";
    return blocks.map(eventOf).filter((event) => event.data !== "");
  }
}

/** @param {string} block @returns {ServerEvent} */
function eventOf(block) {
  const event = { name: "", data: "" };
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) event.name = line.slice(7);
    else if (line.startsWith("data: ")) event.data += line.slice(6);
  }
  return event;
}
