/**
 * Where a sibling module lies: the same sources run compiled (`.js` in dist) and by type stripping (`.ts`).
 */

/** URL of `path` (relative, without extension) beside the module whose `import.meta.url` is `base`. */
export function siblingModule(base: string, path: string): URL {
  return new URL(`${path}${base.endsWith('.ts') ? '.ts' : '.js'}`, base)
}
