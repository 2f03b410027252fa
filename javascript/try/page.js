// The page: a device of the reader's own, thousands in workers, and what can be concluded from what they send.
import { unhex, utf8 } from "../dist/bytes.js";
import { Device } from "../dist/browser/index.js";
import { parseCampaign } from "../dist/document/campaign.js";
import { hmac } from "../dist/exact/sha256.js";
import { checkCrowd } from "../dist/later/crowd.js";
import { perturb } from "../dist/perturb.js";
import { FakeAggregator, memoryStorage } from "../dist/testing/index.js";
import { accuracy, afterAnswer, estimate, lawOf, learned, model, onAverage, sureness } from "./estimation.js";
import { answers, peopleOf } from "./population.js";
import * as render from "./render.js";
import {
  aloneWords,
  alwaysTheSame,
  DEVICES,
  dialWords,
  EPSILONS,
  guessWords,
  liarsWords,
  limitRows,
  limitWords,
  ME,
  peopleIn,
  START,
  truthIn,
  whoWords,
} from "./start.js";

const BATCH = 250;
const FIRST_SECONDS = 3; // of the first run, so that it can be followed; a dial's is as fast as can be
const SERVER = "https://in.this.page";
const MOST_WORKERS = 4;
const NUMBERS = [0, 1, 5, 10, 20, 50]; // of answers, had it sent more than one

/* global SOURCE, TABLES: the text of this script and that of tables.json, which the build puts before it */
const campaignOf = ([id, text]) => parseCampaign(text, id, checkCrowd);

/** In a worker: what some devices answer. */
function work(scope) {
  const known = new Map();
  scope.onmessage = ({ data: { run, document, table, ...rest } }) => {
    const key = document[0];
    if (!known.has(key)) known.set(key, [campaignOf(document), peopleOf(table)]);
    scope.postMessage({ run, ...answers(...known.get(key), rest) });
  };
}

/** On the page. `source` is the text of this script, which workers run, too: a page from a folder may load no other. */
function show(source, tables) {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const out = (name) => document.querySelector(`[data-out="${name}"]`);
  const write = (name, text) => (out(name).textContent = text);
  const draw = (name, html) => (out(name).innerHTML = html);
  const state = { ...START, table: tables[0], liars: 0, crowd: false, asked: 1 };
  const seedText = new URLSearchParams(location.hash.slice(1)).get("seed");
  const seed = seedText === null ? null : hmac(utf8("seed"), utf8(seedText));

  const epsilon = () => EPSILONS[state.epsilon];
  const devices = () => DEVICES[state.devices];
  const documentOf = (crowd) => state.table.documents[`${crowd ? devices() : "local"} ${epsilon()}`];
  const campaign = (crowd = state.crowd) => campaignOf(documentOf(crowd));

  // 1. The reader's own device

  let me = [...ME];
  let mine = null;
  const entriesOf = (person) => {
    const { features, label } = state.table;
    return [
      Object.fromEntries(features.map(({ name, values }, i) => [name, values[person[i]]])),
      label.values[person.at(-1)],
    ];
  };
  const anybody = () => {
    const { records, ends } = peopleOf(state.table);
    const place = Math.floor(Math.random() * ends.at(-1));
    const found = state.table.people[ends.findIndex((end) => place < end)][0];
    return records.length > 1 && found === me.join("") ? anybody() : [...found].map(Number);
  };

  /** A new device with all that an app has, but a disk and a network; `told` is what it is told about its owner. */
  async function answer(told) {
    const [id, text] = documentOf(false);
    const aggregator = new FakeAggregator();
    aggregator.documents.set(id, text);
    const options = { maxTotalEpsilon: 8, identity: "per installation", fetch: aggregator.fetch };
    const device = new Device(memoryStorage(), options);
    const asked = device.campaign(SERVER, id, { maxEpsilon: 8 });
    const deliver = async () => {
      await asked.contribute(...entriesOf(told));
      await device.runOnce(5000);
    };
    await asked.decide(true);
    await deliver();
    const [upload] = aggregator.uploads;
    const sent = unhex(upload);
    const question = campaign(false).questions[sent[4]];
    mine = {
      campaign: campaign(false),
      deliver,
      aggregator,
      told,
      question,
      upload,
      heard: [sent[25]],
      refused: false,
    };
    drawMine();
  }

  const heardOf = (before, question, heard) =>
    heard.reduce((belief, one) => afterAnswer(belief, question, one), before);

  function drawMine() {
    const { table } = state;
    const { question, heard, told, upload, refused } = mine;
    const [names, law, [first]] = [render.answersTo(table, question), lawOf(question), heard];
    const [truth, claimed] = [me, told].map((person) => render.truthOf(table, question, person));
    // Where the coin fell: on what the device takes for the truth, or on one of the others, which lie side by side.
    const other = first - Number(first > claimed);
    const before = truthIn(table, question);
    const after = heardOf(before, question, heard);
    const chances = (cell) => [before, after].map((shares) => render.inHundred(shares[cell]));
    const [was, is] = chances(truth);
    write("question", render.subject(table, question));
    write("truth", told === me ? names[truth] : `${names[truth]}. You told it: ${names[claimed]}`);
    draw("coin", render.coin(law, question.domain_size, first === claimed ? law.p / 2 : law.p + (other + 0.5) * law.q));
    write("sent", refused ? "nothing more: your device said No" : `“${names[first]}”, in ${upload.length / 2} bytes`);
    draw("bytes", refused ? "" : render.bytes(upload));
    draw("beliefs", render.beliefs(names, before, after, truth, refused ? null : first));
    document.querySelector('[data-act="answer"]').textContent = "Start as a new person";
    write("once", "A second answer? A real device would say No: it answers once.");
    if (refused) {
      const uncertain = (share) => Math.min(share, 1 - 1e-9); // what rounds to 1 is not certain either
      const average = onAverage(before, question, claimed, NUMBERS).map(uncertain);
      const own = NUMBERS.map((number) => uncertain(heardOf(before, question, heard.slice(0, number))[claimed]));
      draw("beliefs", render.rise(NUMBERS, average, own));
      const end = average.at(-1);
      const enough = NUMBERS.find((_, i) => average[i] >= 0.9);
      const later = enough
        ? `After ${enough > 1 ? `about ${enough} answers` : "one answer"} it nearly always has you.`
        : `On average 50 answers bring it to ${render.inHundred(end)}: with so much noise it takes more.`;
      const misled =
        own.at(-1) < own[0]
          ? "Chance misled the server this time. "
          : Math.min(...own) < own[0]
            ? "Chance misled the server at first. "
            : "";
      const [from, to] = [own[0], own.at(-1)].map(render.inHundred);
      const what = told === me ? "your truth" : "what you told your device";
      write(
        "belief",
        `Had it sent ${heard.length} answers, each with new noise, the server would now give ${what} ${to} chances in 100. It began at ${from}. ${misled}${later}`,
      );
      write(
        "hint",
        "Bars: the average of 2,000 such devices. Dots: this one. So your device answers once, and never again.",
      );
      return;
    }
    const [heardWas, heardIs] = chances(first);
    const about =
      first === truth
        ? `It is true. The server cannot be certain${after[first] < 0.9 ? "." : `, but ${heardIs} in 100 is nearly that.`}`
        : `Your truth, “${names[truth]}”, had ${was} and has ${is}.`;
    write(
      "belief",
      `The server heard “${names[first]}”. Before, it would have given that ${heardWas} chances in 100. Now it gives ${heardIs}. ${about}`,
    );
    const weights = mine.campaign.questions.map(({ weight }) => weight);
    const asked = (devices() * question.weight) / weights.reduce((sum, one) => sum + one);
    const reach = (100 / (law.p - law.q) / asked).toFixed(2);
    write(
      "hint",
      told === me
        ? `That is all the answer tells. It was asked nothing about your other entries, and no name was sent; a real server also sees your network address, unless a relay hides it.${state.crowd ? " This answer travels alone, outside the crowd." : ""}`
        : `This starts again, as if you had not answered yet; a real device answers once. The server cannot see that it is a lie, and counts it. One lie among ${render.whole(devices())} devices moves a result by at most ${reach} in 100.`,
    );
  }

  /** The device is asked again, and sends nothing; then what one without that rule would give away. */
  async function again() {
    if (!mine) await answer(me);
    await mine.deliver();
    mine.refused = mine.aggregator.uploads.length === 1;
    mine.heard.length = 1;
    while (mine.heard.length < NUMBERS.at(-1)) {
      const [{ question, payload }] = perturb(mine.campaign, ...entriesOf(mine.told));
      if (question !== mine.question.index) continue; // such a device would keep to its question
      mine.heard.push(payload[0]);
    }
    drawMine();
  }

  /** Forgets the answer: of another person, of other entries, or with another dial. */
  function forget() {
    mine = null;
    const { table } = state;
    const question = campaign(false).questions[state.asked];
    const names = render.answersTo(table, question);
    write("question", `one of ${table.features.length + 1}, at random`);
    write("truth", "not looked up yet");
    document.querySelector('[data-act="answer"]').textContent = "Answer";
    write("once", ONCE);
    draw("coin", render.coin(lawOf(question), question.domain_size, null));
    write("sent", "nothing yet");
    draw("bytes", "");
    write("belief", BEFORE);
    write("hint", ASSUMED);
    draw("beliefs", render.beliefs(names, truthIn(table, question), null, null, null));
  }

  // 2. The thousands

  let workers = null;
  let run = 0; // the number of the run; what an earlier one still sends is let go
  let told = null; // what was counted so far

  function hire() {
    workers ??= [...Array(Math.min(navigator.hardwareConcurrency || 2, MOST_WORKERS))].map(() => {
      const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
      worker.onerror = () => write("count", "This browser lets the page start no workers, so that nobody can answer.");
      return worker;
    });
  }

  function start(seconds) {
    hire();
    const mineNow = ++run;
    delete document.body.dataset.done;
    const one = campaign();
    const total = devices();
    const arrived = [];
    let from = 0;
    const began = performance.now();
    told = { campaign: one, total, devices: 0, bytes: 0, n: one.questions.map(() => 0), points: [] };
    told.counts = one.questions.map(({ domain_size: size }) => Array(size).fill(0));
    const send = (worker) => {
      if (from >= total) return;
      const { people, features, label } = state.table;
      const job = { run: mineNow, document: documentOf(state.crowd), table: { people, features, label } };
      worker.postMessage({ ...job, from, to: (from += BATCH), liars: state.liars, seed });
    };
    for (const worker of workers) {
      worker.onmessage = ({ data }) => {
        if (data.run !== run) return;
        arrived.push(data);
        send(worker);
      };
      send(worker);
    }
    const tick = () => {
      if (mineNow !== run) return;
      const due = seconds ? (total * (performance.now() - began)) / 1000 / seconds : total;
      let news = false;
      while (arrived.length && told.devices < due) {
        const { n, counts, bytes } = arrived.shift();
        n.forEach((number, i) => (told.n[i] += number));
        counts.forEach((row, i) => row.forEach((number, cell) => (told.counts[i][cell] += number)));
        told.bytes += bytes;
        told.devices += BATCH;
        news = true;
      }
      if (news) conclude();
      if (told.devices < total) setTimeout(tick, 60);
    };
    if (state.crowd) {
      drawShares();
      drawModel();
    }
    tick();
  }

  /** Everything that follows from what was counted; of a crowd nothing does before all of it has answered. */
  function conclude() {
    const { table } = state;
    const { total, devices: came, n, counts, bytes } = told;
    const isComplete = came >= total;
    const isHidden = state.crowd && !isComplete;
    const sizes = `${render.whole(came)} of ${render.whole(total)} devices have answered`;
    // While they come nothing is read aloud.
    out("count").ariaLive = isComplete ? "polite" : "off";
    if (isHidden) write("count", `${sizes}. The relay keeps them until the crowd is complete.`);
    if (isHidden) return;
    const estimates = estimate(told.campaign, n, counts);
    const found = model(told.campaign, estimates);
    told.found = { estimates, ...found, right: accuracy(found, peopleIn(table.held_out)) };
    told.points.push([came / total, told.found.right]);
    const size = `${sizes}, with ${render.whole(Math.round(bytes / 1000))} kB in all.`;
    const guessed = `The model guesses ${render.inHundred(told.found.right)} of 100 strangers rightly.`;
    write("count", isComplete ? `${size} ${guessed}` : size);
    drawShares();
    drawModel();
    if (isComplete) {
      const lines = told.campaign.questions.map(
        (question, i) => `${render.subject(table, question)}: ${n[i]} answers, ${counts[i].join(" ")}`,
      );
      write("tally", [`campaign ${told.campaign.id}`, ...lines].join("\n"));
      document.body.dataset.done = String(run); // for whoever waits for it
    }
  }

  function drawShares() {
    const question = campaign().questions[state.asked];
    const cells = told?.found && told.found.estimates.questions[state.asked].cells;
    draw("shares", render.shares(render.answersTo(state.table, question), truthIn(state.table, question), cells));
    write(
      "below",
      cells?.value.some((one) => one < -0.0005)
        ? "Below 0 cannot be true: noise did it. Further below than ± allows, suspect liars."
        : "",
    );
  }

  function drawModel() {
    const { table } = state;
    const strangers = peopleIn(table.held_out);
    const sizes = table.features.map(({ values }) => values.length);
    const best = accuracy(learned(peopleIn(table.people), sizes, table.label.values.length), strangers);
    const base = accuracy(alwaysTheSame(table), strangers);
    const right = told?.found?.right;
    write("right", right === undefined ? "?" : render.inHundred(right));
    write("best", `${render.inHundred(best)}${right > best ? " (chance put it below)" : ""}`);
    write("base", render.inHundred(base));
    draw("plot", render.accuracyPlot(told?.points ?? [], base, best));
    const verdict =
      right === undefined || right > base
        ? "A phone can load this model and use it by itself. The strangers took no part."
        : "That is no better than always saying the same. A server that is well run publishes no such model.";
    write("model", verdict);
  }

  // 3. Dials

  function drawDials() {
    const [now, crowd] = [epsilon(), state.crowd];
    const local = campaign().privacy.epsilon;
    for (const one of all('[data-value="epsilon"]')) one.textContent = now;
    const guess = `${guessWords(now)}${crowd ? ", while relay and server keep apart" : ""}`;
    for (const one of all('[data-note="epsilon"]')) one.textContent = guess;
    for (const one of all('[data-set="epsilon"]')) {
      one.value = state.epsilon;
      one.ariaValueText = `${now}: ${guess}`;
    }
    for (const one of all('[data-value="devices"]')) one.textContent = render.whole(devices());
    document.querySelector('[data-set="devices"]').ariaValueText = render.whole(devices());
    for (const one of all('[data-value="liars"]')) one.textContent = state.liars;
    const shown = campaign().questions[state.asked];
    document.querySelector('[data-note="liars"]').textContent = liarsWords(state.table, shown, state.liars);
    write("unless", state.liars ? ", if nobody lies" : "");
    document.querySelector('[data-note="way"]').textContent = crowd
      ? `A relay of somebody else mixes ${render.whole(devices())} sealed answers, so each may carry less noise. If relay and server worked together, a guess of 50 in 100 could become ${render.inHundred(sureness(0.5, local)[1])}.`
      : aloneWords(now);
    document.querySelector('[data-act="run"]').textContent = `Let ${render.whole(devices())} people answer`;
    draw("limits", render.limits(limitRows(now)));
    write("limit", limitWords(now, crowd ? local : null));
    write(
      "dial",
      crowd
        ? `In a crowd of ${render.whole(devices())}, with relay and server apart. One answer alone has epsilon ${Math.ceil(10 * local) / 10}.`
        : dialWords(now),
    );
  }

  function drawTable() {
    const { table } = state;
    document.querySelector("[data-origin]").textContent = table.origin;
    write("who", whoWords(table));
    document.querySelector("[data-record]").innerHTML = render.recordForm(table, me);
    const options = campaign(false).questions.map(
      (question, i) => new Option(render.subject(table, question), i, false, i === state.asked),
    );
    document.querySelector("[data-pick]").replaceChildren(...options);
  }

  function nothingCounted() {
    run++;
    told = null;
    delete document.body.dataset.done;
    write("count", NOBODY);
    write("tally", "nothing yet");
  }

  const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  /** Moves the page to the card where a press shows, unless what it says is in sight. */
  function reveal(card, name) {
    const { top, bottom } = out(name).getBoundingClientRect();
    if (top >= 0 && bottom <= innerHeight) return;
    document.querySelector(card).scrollIntoView({ behavior: isStill() ? "auto" : "smooth", block: "start" });
  }

  const acts = {
    async answer() {
      if (mine) return acts.other();
      await answer(me);
      reveal(".leaves", "belief");
    },
    async other() {
      me = anybody();
      drawTable();
      forget();
    },
    async lie() {
      const other = anybody();
      await answer([...other.slice(0, -1), (me.at(-1) + 1) % state.table.label.values.length]);
      reveal(".leaves", "hint");
    },
    async again() {
      await again();
      reveal(".believed", "hint");
    },
    async run() {
      start(isStill() ? 0 : FIRST_SECONDS);
      reveal(".counted", "count");
    },
  };

  document.addEventListener("click", ({ target }) => {
    const act = acts[target.dataset?.act];
    if (act) act().catch((error) => write("belief", `This did not work: ${error.message}`));
  });
  document.addEventListener("input", ({ target }) => {
    const { set, place } = target.dataset;
    if (place !== undefined) {
      me[place] = Number(target.value);
      forget();
    } else if ("pick" in target.dataset) {
      state.asked = Number(target.value);
      drawShares();
      drawDials();
      if (!mine) forget();
    } else if (target.name === "table") {
      Object.assign(state, { table: tables.find(({ name }) => name === target.value), asked: 1 });
      me = anybody();
      nothingCounted();
      drawTable();
      forget();
      drawShares();
      drawModel();
      drawDials();
    } else if (set || target.name === "way") {
      if (set) state[set] = Number(target.value);
      else state.crowd = target.value === "crowd";
      drawDials();
      if (set === "epsilon") forget();
      start(0);
    }
  });

  const [BEFORE, ASSUMED, ONCE, NOBODY] = ["belief", "hint", "once", "count"].map((name) => out(name).textContent);
  if (location.protocol === "file:") document.querySelector("[data-home]").removeAttribute("href");
  drawTable();
  drawDials();
  for (const one of all("button, input, select")) one.disabled = false;
  addEventListener("load", () => setTimeout(hire, 500)); // so that a dial need not wait for them
}

if (typeof document === "undefined") work(globalThis);
else show(SOURCE, JSON.parse(TABLES));
