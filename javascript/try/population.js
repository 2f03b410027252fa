// What many devices answer, by the client's own code: each draws its question and its noise, and encodes what it would send.
import { encodeUpload, perturb, uploadLength } from "../dist/index.js";
import { utf8 } from "../dist/bytes.js";
import { keyedCoins, randomBytes, systemCoins } from "../dist/exact/coins.js";
import { littleEndian } from "../dist/bytes.js";
import { drawQuestions } from "../dist/perturb.js";
import { reportId } from "../dist/wire.js";

/** People as records: the counted ones of a table, one after the other, each as [place in the list, how many so far]. */
export function peopleOf({ people, features, label }) {
  const records = people.map(([digits]) => ({
    record: Object.fromEntries(features.map(({ name, values }, i) => [name, values[digits[i]]])),
    label: label.values[digits.at(-1)],
  }));
  let total = 0;
  return { records, ends: people.map(([, number]) => (total += number)) };
}

/** The coins of device `number`: of the platform, or where there is a seed (32 bytes) a function of it. */
function coinsOf(seed, number) {
  if (!seed)
    return { owner: (bound) => Math.floor(Math.random() * bound), secret: randomBytes(32), coins: systemCoins() };
  const words = (subject) => keyedCoins(seed, utf8(subject), littleEndian(number, 4));
  const secret = new Uint8Array(new BigUint64Array([0, 1, 2, 3].map(words("secret").next)).buffer);
  return { owner: (bound) => words("owner").index(bound), secret, coins: words("noise") };
}

/** One device in so many of a hundred lies, evenly spread over the devices. */
const isLiar = (number, percent) => (number * 37) % 100 < percent;

/** What a liar says: always the last class, with some value. */
function lie(campaign, secret, coins) {
  const classes = campaign.label.classes.length;
  return drawQuestions(campaign, secret).map((question) => ({
    question: question.index,
    id: reportId(secret, campaign, question.group),
    payload: Uint8Array.of(coins.index(question.domain_size / classes) * classes + classes - 1),
  }));
}

/** Reports by question, and by cell, of the devices from one number to another; and the bytes of their uploads. */
export function answers(campaign, { records, ends }, { from, to, liars = 0, seed = null }) {
  const counts = campaign.questions.map(({ domain_size: size }) => Array(size).fill(0));
  const n = counts.map(() => 0);
  const length = uploadLength(campaign);
  let bytes = 0;
  for (let number = from; number < to; number++) {
    const { owner, secret, coins } = coinsOf(seed, number);
    const place = owner(ends.at(-1));
    const { record, label } = records[ends.findIndex((end) => place < end)];
    const sent = isLiar(number, liars) ? lie(campaign, secret, coins) : perturb(campaign, record, label, secret, coins);
    bytes += encodeUpload(sent, length).length;
    for (const { question, payload } of sent) {
      n[question] += 1;
      counts[question][payload[0]] += 1; // an index of one byte
    }
  }
  return { n, counts, bytes };
}
