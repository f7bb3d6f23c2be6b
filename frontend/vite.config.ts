/** Builds one ES module that TensorBoard's frame imports and calls `render()` of; everything it needs is inside. */
import {defineConfig} from "vitest/config";

export default defineConfig({
  base: "./",
  build: {
    outDir: "../tb_gradflow/serve/static",
    // The pages of the causes lie beside it, see hatch_build.py; each build writes the same one file.
    emptyOutDir: false,
    target: "es2022",
    modulePreload: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      input: "src/index.ts",
      // The frame calls an export of the entry, which a page's own build would drop.
      preserveEntrySignatures: "strict",
      output: {entryFileNames: "index.js"},
    },
  },
  test: {include: ["tests/**/*.test.ts"], environment: "node"},
});
