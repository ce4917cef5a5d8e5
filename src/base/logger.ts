/** The shape of a logger, so that no layer below observe/ knows the library. Fields use the words of the types. */
export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Drops everything: for tests and tools that watch results instead. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} }
