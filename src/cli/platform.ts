/** What the operating system is good for, before anything of a broker is made there. Pure. */

/** `serve` refuses, warns in the log, or says nothing. */
export type PlatformVerdict =
  | { readonly kind: 'fit' }
  | { readonly kind: 'untried'; readonly warning: string }
  | { readonly kind: 'unfit'; readonly reason: string }

/** @param platform of process.platform. */
export function judgePlatform(platform: NodeJS.Platform): PlatformVerdict {
  if (platform === 'linux') return { kind: 'fit' }
  if (platform === 'win32') {
    const reason =
      'serve does not run on Windows, which can neither sync a directory to disk nor ask a process to stop: run the ' +
      'broker on Linux (WSL 2 or a container will do) and reach it from here with --broker'
    return { kind: 'unfit', reason }
  }
  const warning =
    platform === 'darwin'
      ? 'macOS is for development, no test runs there: records are synced through the cache of the drive (F_FULLFSYNC), ' +
        'topics, keys and group offsets are not, and a power cut may take the newest of those'
      : `no test runs on ${platform}: Linux is what Millrace is made for`
  return { kind: 'untried', warning }
}
