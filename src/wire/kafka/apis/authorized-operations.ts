/** What the bit fields of authorized operations say of operations that nobody asked for. */
export const NO_AUTHORIZED_OPERATIONS = -0x8000_0000
