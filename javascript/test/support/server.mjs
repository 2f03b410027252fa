// The server's side of an upload, as far as the test vectors go: what is refused, and what a report adds to the tally.

const refuse = (code, problem = code) => Object.assign(new Error(problem), { code });
const indexWidth = (d) => (d <= 256 ? 1 : d <= 65536 ? 2 : 4);
const utmost = (value, codes) => codes.find(([most]) => value < most).slice(1);

const VERSION = 2;

/** Canonical msgpack of reports by question: what is read must give the same bytes when it is written. */
function encode(reports) {
  const number = (value, size) =>
    Array.from({ length: size }, (_, i) => Math.floor(value / 256 ** (size - 1 - i)) % 256);
  const sized = (value, codes) => {
    const [code, size] = utmost(value, codes);
    return size ? [code, ...number(value, size)] : [code + value];
  };
  const list = (length) =>
    sized(length, [
      [16, 0x90, 0],
      [65536, 0xdc, 2],
    ]);
  const binary = (bytes) => [
    ...sized(bytes.length, [
      [256, 0xc4, 1],
      [65536, 0xc5, 2],
      [2 ** 32, 0xc6, 4],
    ]),
    ...bytes,
  ];
  const blocks = [...new Set(reports.map(({ question }) => question))].map((question) => {
    const all = (name) => reports.filter((one) => one.question === question).flatMap((one) => [...one[name]]);
    return [
      ...list(3),
      ...sized(question, [
        [128, 0, 0],
        [256, 0xcc, 1],
        [65536, 0xcd, 2],
      ]),
      ...binary(all("id")),
      ...binary(all("payload")),
    ];
  });
  return [...list(2), VERSION, ...list(blocks.length), ...blocks.flat()];
}

const same = (a, b) => a.length === b.length && a.every((byte, i) => byte === b[i]);

/** Bytes of a question's payloads. */
function width({ mechanism, domain_size: d }) {
  if (mechanism === "de") return indexWidth(d);
  if (mechanism === "onebit") return indexWidth(d) + 1;
  return mechanism === "she" || mechanism === "laplace" ? 4 * d : Math.ceil(d / 8);
}

const MOST_PADDED = 512 * 1024;

/** The bytes of a campaign's uploads: those of the longest of all that one device could send, up to a limit. */
export const longest = (campaign) => Math.min(longestOf(campaign), MOST_PADDED);

function longestOf({ privacy, groups, questions, windows }) {
  const size = (asked) =>
    encode(asked.map(([question, bytes]) => ({ question, id: new Uint8Array(16), payload: new Uint8Array(bytes) })))
      .length;
  const counted = Array.from({ length: windows?.count ?? 1 }, (_, window) =>
    questions.map((question) => [window * questions.length + question.index, width(question), question]),
  );
  if (privacy.answers !== "all") return Math.max(...counted.flat().map((one) => size([one])));
  const widest = (pool) => pool.reduce((a, b) => (size([b]) > size([a]) ? b : a));
  return Math.max(
    ...counted.map((asked) => size(groups.map((group) => widest(asked.filter(([, , one]) => group.includes(one)))))),
  );
}

/** The reports of an upload. One encoding is valid: what is read here must give the same bytes when it is written. */
export function decodeUpload(bytes, campaign) {
  try {
    const reports = readBlocks(bytes, campaign);
    const packed = encode(reports);
    const padded = [...packed, ...Array(Math.max(0, longest(campaign) - packed.length)).fill(0)];
    if (!same(padded, bytes)) throw new Error("not the one encoding of its content");
    return reports;
  } catch (error) {
    throw refuse("malformed-upload", error.message);
  }
}

function readBlocks(bytes, campaign) {
  let at = 0;
  const expect = (right) => {
    if (!right) throw new Error(`unexpected at byte ${at}`);
  };
  const number = (size) => {
    expect(size && at + size <= bytes.length);
    return bytes.subarray(at, (at += size)).reduce((value, byte) => 256 * value + byte, 0);
  };
  const binary = () => {
    const length = number({ 0xc4: 1, 0xc5: 2, 0xc6: 4 }[number(1)]);
    expect(at + length <= bytes.length);
    return bytes.subarray((at += length) - length, at);
  };
  const head = () => {
    const code = number(1);
    expect(code >> 4 === 9 || code === 0xdc);
    return code === 0xdc ? number(2) : code & 15;
  };
  expect(head() === 2 && number(1) === VERSION);
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
      reports.push({
        question,
        id: ids.slice(16 * i, 16 * i + 16),
        payload: payloads.slice(size * i, size * i + size),
      });
    }
  }
  return reports;
}

/** Adds one report to `counts`, the tally of its question. Throws an error with a `code` for what no device sends. */
export function count(question, payload, counts) {
  const { mechanism, domain_size: d, parameters } = question;
  const refuseWhere = (wrong, code) => {
    if (wrong) throw refuse(code);
  };
  const view = new DataView(payload.buffer, payload.byteOffset, payload.length);
  if (mechanism === "de" || mechanism === "onebit") {
    const digits = mechanism === "onebit" ? payload.subarray(0, -1) : payload;
    const index = digits.reduceRight((value, byte) => 256 * value + byte, 0);
    const bit = payload[payload.length - 1];
    refuseWhere(index >= d, "index-out-of-range");
    refuseWhere(mechanism === "onebit" && bit > 1, "bit-out-of-range");
    counts[mechanism === "de" ? index : 2 * index + bit]++;
  } else if (mechanism === "she" || mechanism === "laplace") {
    const cells = Array.from({ length: d }, (_, i) => view.getInt32(4 * i, true));
    const noise = (16n * parameters.scale + (1n << 40n) - 1n) >> 40n;
    const bound = Number((1n << (parameters.grid ?? 0n)) + noise);
    refuseWhere(
      cells.some((cell) => Math.abs(cell) > bound),
      "value-out-of-range",
    );
    cells.forEach((cell, i) => (counts[i] += cell));
  } else {
    const set = Array.from({ length: 8 * payload.length }, (_, i) => i).filter((i) => (payload[i >> 3] >> (i & 7)) & 1);
    refuseWhere(
      set.some((i) => i >= d),
      "padding-bits-set",
    );
    refuseWhere(mechanism === "ss" && set.length !== Number(parameters.w), "wrong-subset-size");
    set.forEach((i) => counts[i]++);
  }
}
