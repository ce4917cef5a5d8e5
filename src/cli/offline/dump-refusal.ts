/** Why a dump or a restore was not done, in one line for the person who asked. */

/** The message is the whole line; nothing was written that counts. Exit code 1. */
export class DumpRefusal extends Error {
  override readonly name = 'DumpRefusal'
}
