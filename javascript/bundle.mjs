// One module of several, minified: for the file that is published, and for the sizes that are measured.
import { readFileSync } from "node:fs";
import { build } from "esbuild";
import { minify } from "terser";

/** What is loaded when it is first needed, loaded with the rest: a bundler that keeps it apart in one file wraps every module. */
const alongside = (apart) => ({
  name: "alongside",
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.js$/ }, ({ path }) => {
      const heads = [];
      const contents = readFileSync(path, "utf8").replace(/\bimport\(".*?([^/]+)"\)/g, (whole, name) => {
        if (apart.includes(name)) return whole;
        heads.push(`import * as later${heads.length} from ${whole.slice("import(".length, -1)};\n`);
        return `later${heads.length - 1}`;
      });
      return { contents: heads.join("") + contents, loader: "js" };
    }),
});

/** The text of the module that `source` makes, without the modules that are loaded `apart`. */
export async function bundled(source, apart = []) {
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
    external: apart.map((name) => `*/${name}`),
    plugins: [alongside(apart)],
  });
  return (await minify(text, { module: true, ecma: 2020, compress: { passes: 3 } })).code;
}
