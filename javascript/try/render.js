// Parts of the page as texts of HTML: the build puts the first ones into the page, so that nothing moves once it is shown.
const HIDDEN = (text) => `<span class="hidden">${text}</span>`;
const escaped = (text) => String(text).replace(/[&<>"]/g, (one) => `&#${one.charCodeAt(0)};`);

export const inHundred = (share) => brief(share).replace("<", "under ").replace(">", "over ");
const brief = (share) =>
  share > 0 && share < 0.01 ? "<1" : share > 0.99 && share < 1 ? ">99" : String(Math.round(100 * share));
const COUNTS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
export const whole = (number) => number.toLocaleString("en");

/** The names of a question's answers, in their order. */
export function answersTo({ label, features }, question) {
  const values = features.find(({ name }) => name === question.feature)?.values ?? [null];
  return values.flatMap((value) => label.values.map((one) => (value === null ? one : `${value}, ${one}`)));
}

export const subject = ({ label }, { feature }) =>
  feature ? `${feature} and ${label.name.toLowerCase()}` : label.name;

/** Which answer to a question is true of a person, a list of places with the class last. */
export function truthOf({ features, label }, question, person) {
  const place = features.findIndex(({ name }) => name === question.feature);
  return (place < 0 ? 0 : person[place] * label.values.length) + person.at(-1);
}

/** The form with a record. */
export function recordForm({ features, label }, person) {
  const entries = [...features, label].map(({ name, values }, i) => {
    const options = values.map(
      (value, v) => `<option value="${v}"${person[i] === v ? " selected" : ""}>${escaped(value)}</option>`,
    );
    return `<label class="entry"><span>${escaped(name)}</span><select autocomplete="off" data-place="${i}">${options.join("")}</select></label>`;
  });
  return entries.join("");
}

const percent = (share) => `${(100 * share).toFixed(2)}%`;
const rect = (kind, from, to, y, height) =>
  `<rect class="${kind}" x="${percent(from)}" y="${y}" width="${percent(Math.max(to - from, 0))}" height="${height}" rx="2"/>`;
const track = (height, ...parts) => `<svg class="track" height="${height}" aria-hidden="true">${parts.join("")}</svg>`;

/** What may be believed of each answer before and after; `mine` is the true one, `said` the one that was sent. */
export function beliefs(names, before, after, mine, said) {
  const rows = names.map((name, i) => {
    const tags = [
      i === mine ? '<b class="tag mine">you</b>' : "",
      i === said ? '<b class="tag said">sent</b>' : "",
    ].join(" ");
    const numbers = after
      ? `${HIDDEN("before ")}${escaped(brief(before[i]))}<i aria-hidden="true"> → </i>${HIDDEN(", after ")}<b>${escaped(brief(after[i]))}</b>`
      : escaped(brief(before[i]));
    const bars = [rect("before", 0, before[i], 3, 6)].concat(
      after ? rect(i === said ? "after said" : "after", 0, after[i], 11, 8) : [],
    );
    return `<li><span class="name">${escaped(name)} ${tags}</span>${track(22, ...bars)}<span class="num">${numbers}</span></li>`;
  });
  return rows.join("");
}

/** The chances of the truth after so many answers: on average, and of one device. */
export function rise(numbers, average, own) {
  const rows = numbers.map((number, i) => {
    const dot = `<circle class="start" cx="${percent(own[i])}" cy="11" r="5"/>`;
    const name = number === 0 ? "before" : `after ${number} answer${number > 1 ? "s" : ""}`;
    return `<li><span class="name">${name}</span>${track(22, rect("after", 0, average[i], 4, 14), dot)}<span class="num">${HIDDEN("on average ")}<b>${escaped(brief(average[i]))}</b>${HIDDEN(`, of this device ${brief(own[i])}`)}</span></li>`;
  });
  return rows.join("");
}

/** The weighted coin: how it can fall, and how it fell (`kept`: on the truth; null: not yet). */
export function coin({ p, q }, size, at) {
  const others = [...Array(size - 1).keys()].map((i) => rect("other", p + i * q + 0.004, p + (i + 1) * q, 12, 14));
  const pin = at === null ? "" : `<path class="pin" d="M-6 0h12l-6 11z"/>`;
  const svg = `<svg class="track coin" height="40" aria-hidden="true">${rect("truth", 0, p, 12, 14)}${others.join("")}
<svg x="${percent(at ?? 0)}" y="0" overflow="visible">${pin}</svg></svg>`;
  const rest = size === 2 ? "the other" : `each of the ${COUNTS[size - 1]} others`;
  return `${svg}<p class="ends"><i class="truth"></i>Truth ${inHundred(p)} in 100, <i class="other"></i>${rest} ${inHundred(q)}: so the truth still stands out in a crowd.</p>`;
}

/** Bytes of an upload, with the question and the answer marked. */
export function bytes(upload) {
  const parts = [
    [0, 4, ""],
    [4, 5, "question"],
    [5, 7, ""],
    [7, 23, "id"],
    [23, 25, ""],
    [25, 26, "answer"],
  ];
  return parts
    .map(
      ([from, to, kind]) => `<span class="${kind}">${upload.slice(2 * from, 2 * to).replace(/..(?=.)/g, "$& ")}</span>`,
    )
    .join(" ");
}

/** Estimated shares with their intervals, and the true ones; `cells` null before there are any. */
export function shares(names, truth, cells) {
  const [low, high] = [-0.06, Math.max(...truth) * 1.25 + 0.08];
  const x = (share) => Math.min(Math.max((share - low) / (high - low), 0), 1);
  const rows = names.map((name, i) => {
    const known = cells && Number.isFinite(cells.variance[i]);
    const marks = [rect("zero", x(0), x(0) + 0.002, 0, 26), rect("line", 0, 1, 12.5, 1)];
    // What lies beyond the scale is shown at its end.
    if (known) marks.push(rect("interval", Math.min(x(cells.low[i]), 0.97), Math.max(x(cells.high[i]), 0.03), 8, 10));
    marks.push(`<svg x="${percent(x(truth[i]))}" y="13" overflow="visible"><path class="true" d="M0-10v20"/></svg>`);
    if (known) marks.push(`<circle class="dot" cx="${percent(x(cells.value[i]))}" cy="13" r="5.5"/>`);
    const reach = known ? Math.max(cells.high[i] - cells.value[i], cells.value[i] - cells.low[i]) : 0;
    const digits = 100 * reach < 9.95 ? 1 : 0;
    const [share, around] = known
      ? [cells.value[i], reach].map((one) => (100 * one).toFixed(digits).replace(/^-(?=0(\.0)?$)/, ""))
      : [];
    const number = known ? `<b>${share}</b> <small>± ${around}</small>` : "<b>?</b>";
    return `<li><span class="name">${escaped(name)}</span>${track(26, ...marks)}<span class="num">${number}${HIDDEN(` of 100; in truth ${(100 * truth[i]).toFixed(1)}`)}</span></li>`;
  });
  return rows.join("");
}

/** How often the model is right while answers come in; `points` are [share of the answers, share that is right]. */
export function accuracyPlot(points, base, best) {
  const y = (share) => (100 * (1 - (share - 0.2) / 0.8)).toFixed(2);
  const level = (kind, share) => `<path class="${kind}" d="M0 ${y(share)}H100"/>`;
  const path = points
    .map(([at, right], i) => `${i ? "L" : "M"}${(100 * at).toFixed(2)} ${y(Math.max(right, 0.2))}`)
    .join("");
  const [at, right] = points.at(-1) ?? [];
  const now = points.length
    ? `<path class="right now" d="M${(100 * at).toFixed(2)} ${y(Math.max(right, 0.2))}h0"/>`
    : "";
  return `<svg class="plot" viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">${level("base", base)}${level("best", best)}<path class="right" d="${path || "M0 0"}"/>${now}</svg>`;
}

/** What somebody who was so sure can become: at least and at most. */
export function limits(rows) {
  return rows
    .map(({ who, before, low, high }) => {
      const marks = [
        rect("line", 0, 1, 14.5, 1),
        rect("interval", low, high, 8, 14),
        `<circle class="start" cx="${percent(before)}" cy="15" r="6"/>`,
      ];
      const now = `${escaped(brief(low))}<i aria-hidden="true"> – </i>${HIDDEN(" to ")}${escaped(brief(high))}`;
      return `<li><span class="name">${escaped(who)}</span>${track(30, ...marks)}<span class="num">${HIDDEN("after your answer: ")}<b>${now}</b></span></li>`;
    })
    .join("");
}

/** A moon of dots, each of which is on the wrong side with one chance in four. */
export function moon() {
  let word = 20;
  const chance = () => (word = (word * 48271) % 2147483647) / 2147483647;
  const paths = { out: "", in: "" };
  for (let y = 0; y < 32; y++)
    for (let x = 0; x < 44; x++) {
      const isMoon = Math.hypot(x - 21, y - 15.5) < 14.2 && Math.hypot(x - 27, y - 13.2) > 10.2;
      paths[isMoon === chance() > 0.25 ? "in" : "out"] += `M${x}.5 ${y}.5h0`;
    }
  return `<path class="out" d="${paths.out}"/><path class="in" d="${paths.in}"/>`;
}
