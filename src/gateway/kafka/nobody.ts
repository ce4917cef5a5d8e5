/** A client that has not said who it is: it may do nothing but say so. Main thread. */
import type { Principal } from '../../model/principal.ts'

export const nobody: Principal = {
  keyId: '',
  isRevoked: false,
  isAdmin: false,
  mayRead: () => false,
  mayWrite: () => false
}
