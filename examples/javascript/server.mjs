// The server's side of an upload, as far as the test vectors go: what is refused, and what a report adds to the tally.
import { width } from "./document.mjs";
import { cellBound, encodeUpload } from "./encoder.mjs";
import { Refusal } from "./refusal.mjs";

/** The reports of an upload. One encoding is valid: what is read here must give the same bytes when it is written. */
export function decodeUpload(bytes, campaign) {
  try {
    const reports = readBlocks(bytes, campaign);
    if (!encodeUpload(reports).equals(bytes)) throw new Error("not the one encoding of its content");
    return reports;
  } catch (error) {
    throw new Refusal("malformed-upload", error.message);
  }
}

function readBlocks(bytes, campaign) {
  let at = 0;
  const number = (size) => bytes.readUIntBE((at += size) - size, size); // throws beyond the end
  const expect = (right) => {
    if (!right) throw new Error(`unexpected at byte ${at}`);
  };
  const binary = () => {
    const size = { 0xc4: 1, 0xc5: 2, 0xc6: 4 }[number(1)];
    expect(size);
    const length = number(size);
    expect(at + length <= bytes.length);
    return bytes.subarray((at += length) - length, at);
  };
  const head = () => {
    const code = number(1);
    expect(code >> 4 === 9 || code === 0xdc);
    return code === 0xdc ? number(2) : code & 15;
  };
  expect(head() === 2 && number(1) === 1);
  const blocks = head();
  expect(blocks >= 1 && blocks <= campaign.questions.length);
  const reports = [];
  for (let block = 0, last = -1; block < blocks; block++) {
    expect(head() === 3);
    const code = number(1);
    const question = code < 128 ? code : number({ 0xcc: 1, 0xcd: 2 }[code]);
    expect(question > last && question < campaign.questions.length);
    const [ids, payloads] = [binary(), binary()];
    const [count, size] = [ids.length / 16, width(campaign.questions[(last = question)])];
    expect(count >= 1 && Number.isInteger(count) && payloads.length === count * size);
    for (let i = 0; i < count; i++) {
      reports.push({ question, id: ids.subarray(16 * i, 16 * i + 16), payload: payloads.subarray(size * i, size * i + size) });
    }
  }
  return reports;
}

/** Adds one report to `counts`, the tally of its question. Throws Refusal for a payload that no device sends. */
export function count(question, payload, counts) {
  const { mechanism, domain_size: d } = question;
  const refuse = (wrong, code) => {
    if (wrong) throw new Refusal(code);
  };
  if (mechanism === "de" || mechanism === "onebit") {
    const index = payload.readUIntLE(0, payload.length - (mechanism === "onebit"));
    refuse(index >= d, "index-out-of-range");
    refuse(mechanism === "onebit" && payload.at(-1) > 1, "bit-out-of-range");
    counts[mechanism === "de" ? index : 2 * index + payload.at(-1)]++;
  } else if (mechanism === "she" || mechanism === "laplace") {
    const cells = Array.from({ length: d }, (_, i) => payload.readInt32LE(4 * i));
    refuse(cells.some((cell) => Math.abs(cell) > Number(cellBound(question))), "value-out-of-range");
    cells.forEach((cell, i) => (counts[i] += cell));
  } else {
    const set = Array.from({ length: 8 * payload.length }, (_, i) => i).filter((i) => (payload[i >> 3] >> (i & 7)) & 1);
    refuse(set.some((i) => i >= d), "padding-bits-set");
    refuse(mechanism === "ss" && set.length !== Number(question.parameters.w), "wrong-subset-size");
    set.forEach((i) => counts[i]++);
  }
}
