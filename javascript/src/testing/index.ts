// For an app's own tests: a storage in memory, scripted coins, an aggregator that can be made to fail.
import { inTurn, type Storage } from "../device/storage.js";
import { hex } from "../bytes.js";
import { Coins } from "../exact/coins.js";

/** A storage that lives as long as `texts`. */
export function memoryStorage(texts: Map<string, string> = new Map()): Storage {
  return {
    read: async (key) => texts.get(key) ?? null,
    async change(key, change) {
      const after = change(texts.get(key) ?? null);
      if (after === null) texts.delete(key);
      else texts.set(key, after);
    },
    clear: async () => texts.clear(),
    exclusive: inTurn(),
  };
}

/** Coins from a list of words. Throws where more are asked for. */
export function scriptedCoins(words: readonly bigint[]): Coins {
  let taken = 0;
  return new Coins(() => {
    const word = words[taken++];
    if (word === undefined) throw new Error(`the script holds ${words.length} words and more were asked for`);
    return word;
  });
}

/** An aggregator in memory: its documents and models by id, and every upload that came. Pass `fetch` to a device. */
export class FakeAggregator {
  readonly documents = new Map<string, string>();
  readonly models = new Map<string, string>();
  /** How campaigns stand, by id: `not-yet`, `closing`, `closed`, `full` or `deleted`; any other is `open`. */
  readonly states = new Map<string, string>();
  /** What publishers have signed, by key. */
  readonly directories = new Map<string, string>();
  /** Bodies of uploads, hexadecimal, in the order of arrival. */
  readonly uploads: string[] = [];
  /** Called first with every request; what it returns is the answer, and what it throws is a network that fails. */
  intercept: (method: string, path: string) => Response | undefined | Promise<Response | undefined> = () => undefined;
  /** Loses the answers to this many uploads that did arrive. */
  loseAnswers = 0;

  readonly fetch = async (url: string, init: RequestInit = {}): Promise<Response> => {
    const path = url.replace(/^https?:\/\/[^/]+/, "");
    const answer = await this.intercept(init.method ?? "GET", path);
    if (answer) return answer;
    const [, key] = /^\/v1\/directories\/(.*)$/.exec(path) ?? [];
    if (key !== undefined) return answerWith(this.directories.get(key), "no-directory");
    const [, id = "", rest] = /^\/v1\/campaigns\/([\w-]{43})(\/.*)?$/.exec(path) ?? [];
    if (init.method === "POST") {
      if (!this.documents.has(id)) return problem(404, "unknown-campaign");
      this.uploads.push(hex(init.body as Uint8Array));
      if (this.loseAnswers-- > 0) throw new TypeError("the answer was lost");
      return new Response(JSON.stringify({ rejected: [] }), { headers: { "Content-Type": "application/json" } });
    }
    if (!this.documents.has(id)) return problem(404, "unknown-campaign");
    if (rest === "/state") return new Response(JSON.stringify({ state: this.states.get(id) ?? "open" }));
    if (rest === "/model") return answerWith(this.models.get(id), "no-model");
    return answerWith(rest ? undefined : this.documents.get(id), "not-found");
  };
}

const answerWith = (text: string | undefined, otherwise: string): Response =>
  text === undefined ? problem(404, otherwise) : new Response(text);

/** A problem document (RFC 9457) as an answer. */
export function problem(status: number, code: string, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(JSON.stringify({ status, code }), {
    status,
    headers: { "Content-Type": "application/problem+json", ...headers },
  });
}
