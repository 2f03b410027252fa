// `npx vite` while you write, `npx vite build` for what is shipped. A service worker needs a name that stays.
const [page, worker] = ["index.html", "worker.js"].map(
  (name) => new URL(name, import.meta.url).pathname,
);

export default {
  esbuild: { jsx: "automatic" },
  build: {
    rollupOptions: {
      input: { page, worker },
      output: { entryFileNames: "[name].js" },
    },
  },
};
