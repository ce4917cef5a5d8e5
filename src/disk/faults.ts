/** The named points of the disk at which a fault can be armed. One list; tests walk it. */
export const faultPoints = [
  'slot.open',
  'slot.create',
  'slot.fill',
  'slot.fill-sync',
  'slot.rename',
  'slot.header-write',
  'slot.header-sync',
  'slot.footer-write',
  'slot.footer-sync',
  'slot.truncate',
  'slot.remove',
  'slot.read',
  'group.write',
  'group.sync',
  'journal.directory',
  'journal.directory-sync'
] as const
export type FaultPoint = (typeof faultPoints)[number]
