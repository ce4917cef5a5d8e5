/** An entry of a background pool whose every job never ends by itself. */
export function run(): never {
  for (;;);
}
