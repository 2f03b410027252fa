// What the page computes of counts, for direct encoding alone: the aggregator's estimates with their intervals, and the
// model that it believes in. vectors.json holds it to what ldp_aggregator/estimation and learning make of the same counts.
const Z = 1.959963984540054; // the 97.5 % point of the normal distribution
const SCALES = [...Array(11).keys()].map((step) => 10 ** (step / 2 - 4.5)); // variances that effects may have
const often = SCALES.map((scale) => Math.exp(-0.5 * ((Math.log10(scale) - Math.log10(0.03)) / 0.7) ** 2));
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const USUAL = often.map((one) => one / sum(often));
const INTERACTION = 0.1;
const PSEUDO_REPORTS = 4;
const PSEUDO_FEATURES = 2;
const REPORTS = 25;
const TRUST = 0.5;
const STEPS = 50;

const range = (size) => [...Array(size).keys()];
const filled = (rows, columns, value) => range(rows).map((i) => range(columns).map((j) => value(i, j)));
const clip = (x) => Math.min(Math.max(x, 0), 1);
const transposed = (a) => filled(a[0].length, a.length, (i, j) => a[j][i]);
const product = (a, b) => filled(a.length, b[0].length, (i, j) => sum(b.map((row, k) => a[i][k] * row[j])));
const times = (a, vector) => a.map((row) => sum(row.map((one, j) => one * vector[j])));
const kron = (a, b) =>
  filled(a.length * b.length, a[0].length * b[0].length, (i, j) => {
    const [rows, columns] = [b.length, b[0].length];
    return a[Math.floor(i / rows)][Math.floor(j / columns)] * b[i % rows][j % columns];
  });
/** Joint shares of what is independent, cell `value * classes + class`. */
const outer = (a, b) => a.flatMap((one) => b.map((other) => one * other));
const sandwich = (design, middle) => product(transposed(design), product(middle, design));

/** The inverse of a small matrix, by Gauss and Jordan. */
function inverse(matrix) {
  const size = matrix.length;
  const a = matrix.map((row, i) => [...row, ...range(size).map((j) => Number(i === j))]);
  for (let column = 0; column < size; column++) {
    let pivot = column;
    for (let row = column; row < size; row++) if (Math.abs(a[row][column]) > Math.abs(a[pivot][column])) pivot = row;
    [a[column], a[pivot]] = [a[pivot], a[column]];
    const head = a[column].map((one) => one / a[column][column]);
    a[column] = head;
    for (let row = 0; row < size; row++)
      if (row !== column) {
        const factor = a[row][column];
        a[row] = a[row].map((one, j) => one - factor * head[j]);
      }
  }
  return a.map((row) => row.slice(size));
}

/** Eigenvalues of a small symmetric matrix and a matrix of its eigenvectors, by Jacobi's rotations. */
function eigen(matrix) {
  const [size, a] = [matrix.length, matrix.map((row) => [...row])];
  const vectors = filled(size, size, (i, j) => Number(i === j));
  for (let sweep = 0; sweep < 60; sweep++) {
    for (let p = 0; p < size; p++)
      for (let q = p + 1; q < size; q++) {
        if (Math.abs(a[p][q]) <= 1e-17 * Math.sqrt(Math.abs(a[p][p] * a[q][q]))) continue;
        const theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
        const c = 1 / Math.sqrt(t * t + 1);
        const turn = (rows, s) => {
          for (const row of rows) [row[p], row[q]] = [c * row[p] - s * row[q], s * row[p] + c * row[q]];
        };
        turn(a, t * c);
        const turned = transposed(a);
        turn(turned, t * c);
        turned.forEach((row, i) => row.forEach((one, j) => (a[j][i] = one)));
        turn(vectors, t * c);
      }
  }
  return [a.map((row, i) => row[i]), vectors];
}

/** F of shares m, with F F' = diag(m) - m m': a Householder reflection without its first column, rows times sqrt(m). */
function factor(shares) {
  const root = shares.map(Math.sqrt);
  const mirror = root.map((one, i) => one + Number(i === 0));
  return filled(root.length, root.length - 1, (i, j) => {
    return root[i] * (Number(i === j + 1) - (mirror[i] * mirror[j + 1]) / mirror[0]);
  });
}

/** An orthonormal basis of what adds up to 0. */
const contrasts = (size) => factor(Array(size).fill(1 / size)).map((row) => row.map((one) => one * Math.sqrt(size)));

/** The nearest probabilities: one constant less for each, and nothing below zero (Wang et al., NDSS 2020). */
export function nearest(values) {
  let total = 0;
  const constants = [...values].sort((a, b) => b - a).map((one, rank) => ((total += one) - 1) / (rank + 1));
  return values.map((one) => Math.max(one - Math.max(...constants), 0));
}

/** The chance of the truth, and that of each other answer. */
export function lawOf({ parameters, domain_size: size }) {
  const keep = BigInt(parameters.p);
  return { p: Number(keep) / 2 ** 64, q: Number(2n ** 64n - keep) / 2 ** 64 / (size - 1) };
}

/** n times the variance that noise adds to the sum of `cells` cells that hold `frequency` together. */
function noiseOfSum(question, cells, frequency) {
  const { p, q } = lawOf(question);
  const alone = (share) => (q * (1 - q)) / (p - q) ** 2 + (share * (1 - p - q)) / (p - q);
  const scale = (p - q) ** 2;
  const withTrue = 2 * (cells - 1) * frequency;
  const both = withTrue * -p * q - (cells * (cells - 1) - withTrue) * q * q;
  return (cells - 1) * alone(0) + alone(frequency) + both / scale;
}

/** n times the variance of a contrast of two cells of even frequency, halved: what a report is worth. */
function unitVariance(question) {
  const { p, q } = lawOf(question);
  const share = 1 / question.domain_size;
  const alone = (at) => (q * (1 - q)) / (p - q) ** 2 + (at * (1 - p - q)) / (p - q);
  const contrast = alone(0) + alone(2 * share) + (2 * q * q - 4 * share * (q * q - p * q)) / (p - q) ** 2;
  return contrast / 2 + share;
}

const normal = (value, variance) => {
  const reach = variance.map((one) => Z * Math.sqrt(one));
  return { value, variance, low: value.map((x, i) => x - reach[i]), high: value.map((x, i) => x + reach[i]) };
};

const uninformed = (size) => ({
  value: Array(size).fill(1 / size),
  variance: Array(size).fill(Infinity),
  low: Array(size).fill(0),
  high: Array(size).fill(1),
});

/** Unbiased shares of a question's cells, with Wilson's intervals. */
function cellsOf(question, n, counts) {
  if (n === 0) return uninformed(counts.length);
  const { p, q } = lawOf(question);
  const unbiased = (share) => (share - q) / (p - q);
  const z2 = Z ** 2 / n;
  const ends = counts.map((count) => {
    const share = count / n;
    const centre = (share + z2 / 2) / (1 + z2);
    const reach = (Z / (1 + z2)) * Math.sqrt((share * (1 - share)) / n + z2 / (4 * n));
    return [unbiased(centre - reach), unbiased(centre + reach)];
  });
  return {
    value: counts.map((count) => unbiased(count / n)),
    variance: counts.map((count) => {
      const success = (count + 0.5) / (n + 1);
      return (success * (1 - success)) / (n * (p - q) ** 2);
    }),
    low: ends.map(([low]) => low),
    high: ends.map(([, high]) => high),
  };
}

/** Shares of the classes, as one question tells them. */
function classesOf(question, n, counts, classes) {
  const { p, q } = lawOf(question);
  const members = counts.length / classes;
  const totals = range(classes).map((c) => sum(counts.filter((_, cell) => cell % classes === c)));
  const value = totals.map((total) => (total / n - members * q) / (p - q));
  const [none, every] = [0, 1].map((frequency) => noiseOfSum(question, members, frequency));
  const variance = value.map(clip).map((x) => (none + (every - none) * x + x * (1 - x) + 0.5 / n) / n);
  return { value, variance };
}

/**
 * What counts tell: of each question its cells, of the classes their shares; unbiased, with 95 % intervals, and the
 * most that one lie moves each. `counts` are as the tally has them, by question and cell.
 */
export function estimate({ questions, label }, n, counts) {
  const classes = label.classes.length;
  const found = questions.map((question, i) => {
    const { p, q } = lawOf(question);
    const answered = n[i] > 0;
    return {
      question,
      n: n[i],
      cells: cellsOf(question, n[i], counts[i]),
      classes: answered ? classesOf(question, n[i], counts[i], classes) : null,
      perLiar: answered ? 1 / (p - q) / n[i] : Infinity,
    };
  });
  const telling = found.filter((one) => one.classes);
  if (!telling.length) return { questions: found, prior: uninformed(classes) };
  const weights = telling.map(({ question, n: reports }) => {
    const spread = (1 - 1 / classes) / classes;
    return reports / (noiseOfSum(question, question.domain_size / classes, 1 / classes) + spread);
  });
  const shares = weights.map((one) => one / sum(weights));
  const pooled = (key, power) =>
    range(classes).map((c) => sum(telling.map((one, i) => shares[i] ** power * one.classes[key][c])));
  return { questions: found, prior: normal(pooled("value", 1), pooled("variance", 2)) };
}

/** The shares of the classes that are believed: nearly as told, and none of them impossible. */
function believedClasses(questions, classes) {
  let precision = 0;
  const linear = Array(classes).fill(0);
  for (const one of questions.filter(({ n }) => n)) {
    const known = one.n / ((one.question.domain_size / classes) * unitVariance(one.question));
    precision += known;
    const mean = sum(one.classes.value) / classes;
    one.classes.value.forEach((value, c) => (linear[c] += known * (value - mean)));
  }
  const raw = linear.map((one) => 1 / classes + one / (precision + classes * (classes + 1)));
  const reports = sum(questions.map(({ n }) => n));
  return nearest(raw).map((one) => (reports * one + 1) / (reports + classes));
}

/** The information of n reports on the cells of their question: at these frequencies, or at even ones. */
function informationOf(question, n, frequencies) {
  const size = question.domain_size;
  if (!frequencies) {
    const each = n / unitVariance(question);
    return filled(size, size, (i, j) => each * (Number(i === j) - 1 / size));
  }
  const { p, q } = lawOf(question);
  const support = frequencies.map((one) => q + (p - q) * one);
  const covariance = filled(
    size,
    size,
    (i, j) => (Number(i === j) * support[i] - support[i] * support[j]) / (p - q) ** 2,
  );
  const basis = contrasts(size);
  const middle = inverse(sandwich(basis, covariance)).map((row) => row.map((one) => n * one));
  return product(product(basis, middle), transposed(basis));
}

/** Shares of the values of a feature, none of them impossible, estimated beside a small effect of the class. */
function marginalOf(information, linear, classes) {
  const size = linear.length / classes.length;
  const even = Array(size).fill(1 / size);
  const values = contrasts(size);
  const effect = factor(even).map((row) => row.map((one) => one * Math.sqrt(INTERACTION)));
  const column = classes.map((one) => [one]);
  const [first, second] = [kron(values, column), kron(effect, factor(classes))];
  const design = first.map((row, i) => [...row, ...second[i]]);
  const precision = sandwich(design, information);
  const variance = inverse(precision.map((row, i) => row.map((one, j) => one + Number(i === j))));
  const told = times(information, outer(even, classes));
  const effects = times(
    product(variance, transposed(design)),
    linear.map((one, i) => one - told[i]),
  );
  const share = nearest(times(values, effects.slice(0, size - 1)).map((one, i) => even[i] + one));
  const spread = sum(range(size - 1).map((i) => variance[i][i]));
  const effective = (sum(share.map((one) => one * (1 - one))) + 1 / size) / spread;
  return share.map((one) => (effective * one + PSEUDO_REPORTS / size) / (effective + PSEUDO_REPORTS));
}

/** How likely each scale of a feature's effects is: shared by all features, by expectation maximisation. */
function sharedScales(logarithms) {
  const likelihood = logarithms.map((row) => row.map((one) => Math.exp(one - Math.max(...row))));
  const believed = (weights) =>
    likelihood.map((row) => {
      const posterior = row.map((one, i) => one * weights[i]);
      return posterior.map((one) => one / sum(posterior));
    });
  let weights = USUAL;
  for (let step = 0; step < STEPS; step++) {
    const posterior = believed(weights);
    weights = weights.map(
      (_, i) =>
        (sum(posterior.map((row) => row[i])) + PSEUDO_FEATURES * USUAL[i]) / (logarithms.length + PSEUDO_FEATURES),
    );
  }
  return believed(weights);
}

/**
 * The model: shares of the classes, and of each feature P(value | class), rows of values. What noise may have made is
 * drawn towards "the class changes nothing", the more the less is known: ldp_aggregator/estimation/posterior.py.
 */
export function model({ label, asked }, { questions }) {
  const classes = label.classes.length;
  const prior = believedClasses(questions, classes);
  const evidence = asked.map(({ name, values }) => {
    const one = questions.find(({ question }) => question.kind === "pair" && question.feature === name);
    const told = (frequencies) => {
      const information = informationOf(one.question, one.n, frequencies);
      return [information, times(information, one.cells.value)];
    };
    const cells = values.length * classes;
    const first = marginalOf(...told(null), prior);
    const halfway = outer(first, prior).map((share) => TRUST * share + (1 - TRUST) / cells);
    const [information, linear] = told(halfway);
    const marginal = marginalOf(information, linear, prior);
    const design = kron(factor(marginal), factor(prior));
    const [eigenvalues, rotation] = eigen(sandwich(design, information));
    const basis = product(design, rotation);
    const independent = times(information, outer(marginal, prior));
    const effects = times(
      transposed(basis),
      linear.map((value, i) => value - independent[i]),
    );
    return { marginal, basis, effects, known: eigenvalues.map((value) => Math.max(value, 0)) };
  });
  const scales = sharedScales(
    evidence.map(({ known, effects }) =>
      SCALES.map(
        (scale) =>
          sum(known.map((one, i) => (scale * effects[i] ** 2) / (1 + scale * one) - Math.log(1 + scale * one))) / 2,
      ),
    ),
  );
  const tables = evidence.map(({ marginal, basis, effects, known }, place) => {
    const mean = effects.map(
      (effect, i) => effect * sum(SCALES.map((scale, t) => (scales[place][t] * scale) / (1 + scale * known[i]))),
    );
    const deviation = times(basis, mean);
    const cells = marginal.length * classes;
    const weight = (REPORTS * sum(known)) / known.length;
    const columns = range(classes).map((c) => {
      const column = nearest(marginal.map((share, v) => share + deviation[v * classes + c] / prior[c]));
      const mixed = column.map((one, v) => (weight * one + cells * marginal[v]) / (weight + cells));
      return mixed.map((one) => one / sum(mixed));
    });
    return transposed(columns);
  });
  return { prior, tables };
}

/** Naive Bayes of the records themselves, without any privacy; `people` are [values and class, how many]. */
export function learned(people, sizes, classes) {
  const prior = Array(classes).fill(0);
  const tables = sizes.map((size) => filled(size, classes, () => 1));
  for (const [person, number] of people) {
    const c = person.at(-1);
    prior[c] += number;
    tables.forEach((table, i) => (table[person[i]][c] += number));
  }
  const totals = tables.map((table) => range(classes).map((c) => sum(table.map((row) => row[c]))));
  return {
    prior: prior.map((one) => one / sum(prior)),
    tables: tables.map((table, i) => table.map((row) => row.map((one, c) => one / totals[i][c]))),
  };
}

/** The share of people whose class a model names rightly. */
export function accuracy({ prior, tables }, people) {
  const scores = tables.map((table) => table.map((row) => row.map(Math.log)));
  let [right, all] = [0, 0];
  for (const [person, number] of people) {
    const of = prior.map((share, c) => Math.log(share) + sum(scores.map((table, i) => table[person[i]][c])));
    if (of.indexOf(Math.max(...of)) === person.at(-1)) right += number;
    all += number;
  }
  return right / all;
}

/** What may be believed of each cell after an answer, by Bayes' theorem. */
export function afterAnswer(before, question, answer) {
  const { p, q } = lawOf(question);
  const joint = before.map((share, cell) => share * (cell === answer ? p : q));
  return joint.map((one) => one / sum(joint));
}

/** How sure somebody can be at most, and must be at least, who was `before` sure, if odds move by exp(epsilon). */
export const sureness = (before, epsilon) =>
  [-epsilon, epsilon].map((power) => (before * Math.exp(power)) / (before * Math.exp(power) + 1 - before));
