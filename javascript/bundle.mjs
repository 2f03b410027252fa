// One module of several, minified: for the file that is published, and for the sizes that are measured.
import { build } from "esbuild";
import { minify } from "terser";

/** The text of the module that `source` makes. */
export async function bundled(source) {
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
  });
  return (await minify(text, { module: true, ecma: 2020, compress: { passes: 3 } })).code;
}
