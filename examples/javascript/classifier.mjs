// Classifying on the device with a published model.
import { strictJson } from "./document.mjs";
import { clip, held, numberOf, project, valueIndex } from "./record.mjs";
import { Refusal } from "./refusal.mjs";

const adds = (shares) => shares.every((p) => p >= 0) && Math.abs(shares.reduce((a, b) => a + b, 0) - 1) < 1e-6;

/** A model document. Throws Refusal with the code `invalid-model`. */
export function parseModel(bytes) {
  const refuse = (problem) => new Refusal("invalid-model", problem);
  return checkModel(strictJson(bytes, refuse), refuse);
}

/** A model that was parsed; `refuse` makes the error of a problem. */
export function checkModel(model, refuse) {
  const must = (right, problem) => {
    if (!right) throw refuse(problem);
  };
  const k = model?.classes?.length;
  must(model?.version === 1 && model.kind === "naive-bayes" && k >= 2, "version, kind or classes");
  must(Array.isArray(model.features), "features");
  must(model.prior?.length === k && adds(model.prior), "prior");
  for (const feature of model.features) {
    const { weight = 1 } = feature;
    must(typeof weight === "number" && weight > 0 && weight <= 1, `${feature.name}: weight`);
    if (feature.kind === "gaussian") {
      must(feature.mean?.length === k && feature.variance?.length === k, `${feature.name}: mean or variance`);
      must(feature.variance.every((v) => v > 0 && v <= 1e300), `${feature.name}: variance`);
    } else {
      const table = feature.likelihood;
      must(table?.length === (feature.values?.length ?? feature.bins), `${feature.name}: likelihood`);
      must(model.classes.every((_, c) => adds(table.map((row) => row[c]))), `${feature.name}: likelihood`);
    }
  }
  return model;
}

function valueOf(model, name, record) { // a projection's output is computed, a missing input standing at its mean
  const { projection } = model;
  const row = projection?.outputs.findIndex((output) => output.name === name) ?? -1;
  if (row < 0) return held(record, name);
  const inputs = projection.inputs.map((input) => projection.features.find((feature) => feature.name === input));
  const numbers = inputs.map((input) => numberOf(held(record, input.name)));
  if (numbers.every(Number.isNaN)) return undefined;
  const values = numbers.map((number, i) => (Number.isNaN(number) ? projection.mean[i] : number));
  return project(projection, inputs, row, values);
}

/** ln P(class) + sum of weight * ln P(value | class), per class; a feature without a usable value does not take part. */
export function scores(model, record) {
  let sums = model.prior.map(Math.log);
  for (const feature of model.features) {
    const value = valueOf(model, feature.name, record);
    const weight = feature.weight ?? 1;
    if (feature.kind === "gaussian") {
      const number = numberOf(value);
      if (Number.isNaN(number)) continue;
      const x = clip(number, feature.low, feature.high);
      sums = sums.map((sum, c) => {
        const [mean, variance] = [feature.mean[c], feature.variance[c]];
        return sum + weight * (-0.5 * Math.log(2 * Math.PI * variance) - ((x - mean) * (x - mean)) / (2 * variance));
      });
    } else {
      const index = valueIndex(feature, value);
      if (index !== null) sums = sums.map((sum, c) => sum + weight * Math.log(feature.likelihood[index][c]));
    }
  }
  return sums;
}

/** The most probable class; of equals the first declared. Where every class is impossible, by the prior. */
export function predict(model, record) {
  const found = scores(model, record);
  const shown = found.some((score) => score > -Infinity) ? found : model.prior;
  return model.classes[shown.indexOf(Math.max(...shown))];
}
