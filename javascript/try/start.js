// What the page says at its start, and again whenever a dial is turned: used by the build, which writes it into the page, and by the page.
import { liarsMove, sureness } from "./estimation.js";
import { answersTo, inHundred, truthOf } from "./render.js";

export const EPSILONS = [0.25, 0.5, 1, 2, 3, 4, 6];
export const DEVICES = [1000, 2000, 5000, 10000, 20000];
export const START = { epsilon: 2, devices: 4 };
/** Who the reader is at first: places in the lists of the first table's features, and the class. */
export const ME = [2, 1, 1, 1, 0, 1];

/** The people of a table as [places and class, how many]. */
export const peopleIn = (counted) => counted.map(([digits, number]) => [[...digits].map(Number), number]);

/** The true shares of a question's answers among all people. */
export function truthIn(table, question) {
  const counts = Array(question.domain_size).fill(0);
  let total = 0;
  for (const [person, number] of peopleIn(table.people)) {
    counts[truthOf(table, question, person)] += number;
    total += number;
  }
  return counts.map((one) => one / total);
}

export const guessWords = (epsilon) =>
  `a guess of 50 in 100 can become ${inHundred(sureness(0.5, epsilon)[1])} at most`;

const SURE = [
  ["Somebody with no idea", 0.5],
  ["Somebody who doubts it", 0.1],
  ["Somebody nearly sure", 0.9],
];

export const limitRows = (epsilon) =>
  SURE.map(([who, before]) => {
    const [low, high] = sureness(before, epsilon);
    return { who: `${who} (${inHundred(before)})`, before, low, high };
  });

/** In a crowd (`alone` is the epsilon of one answer by itself) the cap holds as long as two parties keep apart. */
export function limitWords(epsilon, alone = null) {
  const [low, high] = sureness(0.5, epsilon).map(inHundred);
  const cap = `At epsilon ${epsilon}, somebody who was 50 in 100 sure of something about you can become ${high} in 100 sure. Or ${low}, if your answer points the other way.`;
  if (alone === null) return `${cap} Never more.`;
  const together = inHundred(sureness(0.5, alone)[1]);
  return `${cap} That is while relay and server keep apart, but for one chance in a billion. Together they could reach ${together}.`;
}

/** How well noise of each epsilon protects one answer by itself, and what follows. */
const PROTECTION = {
  0.25: ["Very strong protection", "Nearly a coin toss, and a server needs very many people."],
  0.5: ["Strong protection", "A server needs many people."],
  1: [
    "Good protection",
    "A common choice: one answer is a hint and no proof, and tens of thousands of people make a clear picture.",
  ],
  2: ["Weaker protection", "One answer is a real hint, though anybody may still deny it."],
  3: ["Weak protection", "One answer is a strong hint, and may still be noise."],
  4: ["Very weak protection", "Only in a crowd is this a good idea."],
  6: ["Noise this small hardly protects", "One answer is nearly always the truth."],
};

export const dialWords = (epsilon) => PROTECTION[epsilon].join(". ");

/** How well each answer is protected without a crowd. */
export const aloneWords = (epsilon) => `${PROTECTION[epsilon][0]}. Each answer carries its own noise.`;

/** What `percent` liars of 100 say, and how far they move a result of the question that is shown. */
export function liarsWords(table, question, percent) {
  const classes = table.label.values;
  const moves = liarsMove(question, truthIn(table, question), classes.length, percent / 100);
  const most = moves.indexOf(Math.max(...moves));
  const moved = percent
    ? ` Here they raise “${answersTo(table, question)[most]}” by about ${(100 * moves[most]).toFixed(1)} in 100.`
    : "";
  return `of 100 devices say “${classes.at(-1)}”, whatever is true. One liar changes almost nothing. Many who tell the same lie spoil it, and the server cannot see it.${moved}`;
}

/** Whose record the form shows. */
export const whoWords = ({ origin }) =>
  origin.startsWith("Real") ? "(from the real table; change it)" : "(invented; change it)";

/** The model that always names the class that most people have. */
export function alwaysTheSame({ people, features, label }) {
  const prior = label.values.map(() => 0);
  for (const [person, number] of peopleIn(people)) prior[person.at(-1)] += number;
  return { prior, tables: features.map(({ values }) => values.map(() => prior.map(() => 1))) };
}
