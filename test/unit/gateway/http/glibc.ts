/** Which glibc this process runs on: whether uWebSockets.js must load here. */

/** Newest version that the binaries need once the 2.38 names are replaced (arc4random). */
const GLIBC_MINOR_MIN = 36

/** True where a uWebSockets.js that does not load is a fault and not a limit of the system. */
export function mustLoadUws(): boolean {
  if (process.platform !== 'linux' || process.arch !== 'x64') return false
  const report = process.report.getReport()
  const version = /"glibcVersionRuntime":"2\.(\d+)/.exec(JSON.stringify(report))?.[1]
  return version !== undefined && Number(version) >= GLIBC_MINOR_MIN
}
