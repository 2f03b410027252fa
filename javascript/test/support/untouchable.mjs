// A record that nobody may look at. What a getter throws, the client takes for a missing value: so looks are noted, and told at the end.
import assert from "node:assert/strict";
import { after } from "node:test";

const touched = [];

export const UNTOUCHABLE = new Proxy(
  {},
  { get: (_, name) => void touched.push(name), ownKeys: () => (touched.push("all"), []) },
);
after(() => assert.deepEqual(touched, [], "the record was read"));
