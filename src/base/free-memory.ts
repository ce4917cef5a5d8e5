/**
 * Memory of record size, given back when its owner is done with it. Pure; any thread.
 * The collector would free it too, but it comes by when JavaScript objects have piled up, which large buffers are not.
 */

/** Gives memory back to the system at once, not when the collector comes by. Views of it become empty. */
export function freeMemory(memory: ArrayBuffer): void {
  // A buffer that has moved to another thread is empty here already.
  if (!memory.detached) memory.transfer(0)
}
