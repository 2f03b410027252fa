// One module of several, minified: for the files that are published, and for the sizes that are measured.
import { build } from "esbuild";
import { minify } from "terser";

/** The parts that are loaded later, by modules in `device/`; beside the one file each has a file of its own. */
export const LATER = ["answering", "tokens", "sealing", "words", "crowd"];

const apart = {
  name: "apart",
  setup({ onResolve }) {
    onResolve({ filter: /\/later\/\w+\.js$/ }, ({ path, kind }) =>
      kind === "dynamic-import"
        ? { path: path.replace(/.*\/(\w+)\.js$/, "./ldp-bayes-client.$1.min.js"), external: true }
        : undefined,
    );
  },
};

/** Of a part that stands beside the one file: errors are that file's, so that an app knows them by their type. */
export const beside = {
  name: "beside",
  setup({ onResolve }) {
    onResolve({ filter: /\/errors\.js$/ }, () => ({ path: "./ldp-bayes-client.min.js", external: true }));
  },
};

/** The text of the module that `source` makes; without what it loads later, and without what are packages of others. */
export async function bundled(source, ...more) {
  const {
    outputFiles: [{ text }],
  } = await build({
    stdin: { contents: source, resolveDir: new URL(".", import.meta.url).pathname },
    bundle: true,
    format: "esm",
    write: false,
    platform: "browser",
    minifySyntax: true,
    minifyWhitespace: true,
    external: ["@hpke/*"],
    plugins: [apart, ...more],
  });
  return (await minify(text, { module: true, ecma: 2020, compress: { passes: 3, inline: 1 } })).code;
}
