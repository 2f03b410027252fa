// What this client makes of campaigns, records and scripted words, line by line, for a comparison with Python:
//   {"document", "secret", "records": [[record, label, [word, ...]], ...]}
// is answered by {"refused": code}, or by {"id", "epsilon", "closes", "window", "questions", "answers": [...]}, one answer for each record. It
// runs the bundled file.
import { createInterface } from "node:readline";
import {
  Coins,
  drawQuestions,
  drawWindow,
  encodeUpload,
  hex,
  LdpError,
  parseCampaign,
  perturb,
  unhex,
  uploadLength,
} from "../dist/ldp-bayes-client.min.js";

const types = { integer: BigInt, double: (text) => Number(text.replace("inf", "Infinity")) };

function read(value) {
  const [type] = Object.keys(Object(value));
  return typeof value === "object" && value !== null && types[type] ? types[type](value[type]) : value;
}

function answer(campaign, secret, [record, label, words]) {
  let taken = 0;
  const coins = new Coins(() => {
    if (taken === words.length) throw new Error("more words were asked for than scripted");
    return BigInt(`0x${words[taken++]}`);
  });
  const whole =
    Array.isArray(record) || Object(record) !== record
      ? record
      : Object.fromEntries(Object.entries(record).map(([name, value]) => [name, read(value)]));
  try {
    const reports = perturb(campaign, whole, read(label), secret, coins);
    return [hex(encodeUpload(reports, uploadLength(campaign))), taken];
  } catch (error) {
    if (error instanceof LdpError) return error.code;
    throw error;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const { document, secret, records } = JSON.parse(line);
  let told;
  try {
    const campaign = parseCampaign(document);
    const key = unhex(secret);
    told = {
      id: campaign.id,
      epsilon: campaign.realisedEpsilon,
      closes: campaign.closes ? Date.parse(campaign.closes) : null,
      window: drawWindow(campaign, key),
      questions: drawQuestions(campaign, key).map(({ index }) => index),
      answers: records.map((record) => answer(campaign, key, record)),
    };
  } catch (error) {
    if (!(error instanceof LdpError)) throw error;
    told = { refused: error.code };
  }
  process.stdout.write(`${JSON.stringify(told)}\n`);
}
