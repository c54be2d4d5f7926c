// Requests to the service this page came from.

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export async function get(path, parameters = {}, signal = undefined) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  const text = query.toString();
  return answer(await send(text ? `v1/${path}?${text}` : `v1/${path}`, { signal }));
}

export async function post(path, body, signal = undefined) {
  return answer(
    await send(`v1/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal,
    }),
  );
}

async function send(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The service is not answering. Is it still running?");
  }
}

async function answer(response) {
  let body = null;
  try {
    body = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
  }
  if (response.ok && body !== null) return body;
  throw new Refused(response.status, body?.error?.message ?? `The service answered ${response.status}.`);
}

// Only the newest of several requests counts: starting another aborts the one before.
export class Newest {
  #controller = null;

  begin() {
    this.#controller?.abort();
    this.#controller = new AbortController();
    return this.#controller.signal;
  }

  abandon() {
    this.#controller?.abort();
  }
}

const AT_ONCE = 2;

// Questions that come faster than answers, as when someone types: a few are under way at once, of those
// that wait only the newest is kept, and no answer is shown after that to a newer question. What can no
// longer be shown is aborted.
export class Typed {
  #ask;
  #show;
  #underWay = new Map();
  #waiting = null;
  #asked = 0;

  // `ask(question, signal)` promises an answer; `show(question, answer, error, last)` is told of it, and
  // whether it is the last that is due.
  constructor(ask, show) {
    this.#ask = ask;
    this.#show = show;
  }

  put(question) {
    this.#waiting = question;
    this.#send();
  }

  abandon() {
    this.#waiting = null;
    this.#abortBefore(Infinity);
  }

  async #send() {
    if (this.#waiting === null || this.#underWay.size >= AT_ONCE) return;
    const [question, number, controller] = [this.#waiting, ++this.#asked, new AbortController()];
    this.#waiting = null;
    this.#underWay.set(number, controller);
    let answer = null;
    let error = null;
    try {
      answer = await this.#ask(question, controller.signal);
    } catch (caught) {
      error = caught;
    }
    if (controller.signal.aborted) return;
    this.#abortBefore(number);
    this.#underWay.delete(number);
    this.#show(question, answer, error, this.#underWay.size === 0 && this.#waiting === null);
    this.#send();
  }

  #abortBefore(number) {
    for (const [older, controller] of this.#underWay) {
      if (older < number) {
        this.#underWay.delete(older);
        controller.abort();
      }
    }
  }
}
