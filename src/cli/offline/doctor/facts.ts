/** What `doctor` gathers before it judges: plain values, each from one source. Shapes only. */
import type { Settings } from '../../../config/settings.ts'

/** From node:process, node:os and the dynamic linker. */
export interface HostFacts {
  readonly platform: NodeJS.Platform
  readonly architecture: string
  readonly kernel: string
  /** Of glibc; null: another C library, or it cannot be told. */
  readonly glibc: string | null
  readonly nodeVersion: string
  readonly nodePath: string
}

/** How the native HTTP engine loads here. patchedPath: by a copy that asks for less of glibc. */
export type EngineFacts =
  | { readonly state: 'native'; readonly patchedPath: string | null }
  | { readonly state: 'fallback'; readonly reason: string }
  | { readonly state: 'not-tried' }

/** One line of /proc/self/mountinfo. */
export interface MountFacts {
  readonly type: string
  readonly source: string
  readonly mountPoint: string
  readonly major: number
  readonly minor: number
  /** Options of the mount and of its file system. */
  readonly options: readonly string[]
}

/** From /sys of the block device below the mount. */
export interface DeviceFacts {
  readonly name: string
  /** As the kernel believes of the device; null: it does not say. */
  readonly writeCache: 'write back' | 'write through' | null
  readonly isRotational: boolean | null
}

/** How long write + fdatasync of so many bytes took, over blocks that were written before. */
export interface SyncTimes {
  readonly bytes: number
  readonly count: number
  readonly p50Ms: number
  readonly p99Ms: number
}

export interface DiskProbe {
  readonly writtenBytes: number
  /** Sequential, one sync at the end included. */
  readonly writeBytesPerSecond: number
  /** By size, rising. */
  readonly syncs: readonly SyncTimes[]
}

/** Why the disk was not put to work, or what that showed. */
export type DiskFacts = { readonly probe: DiskProbe } | { readonly skipped: string }

export interface DirectoryFacts {
  /** Absolute. */
  readonly path: string
  /** It, or the nearest folder above that exists: what was looked at. */
  readonly nearest: string
  readonly exists: boolean
  readonly isDirectory: boolean
  /** Permission bits and owner of `nearest`. */
  readonly mode: number
  readonly ownerId: number
  /** User of this process; null where there is no such thing. */
  readonly userId: number | null
  /** Whether this process may make files in `nearest`. */
  readonly isWritable: boolean
  /** Why the directory cannot be made in `nearest` all the same; null: it can, or it exists, or the rights say why not. */
  readonly problem: string | null
}

/**
 * Who has the directory. unused: no broker has ever. free: nobody now. held: a running broker or tool. refused: it
 * cannot be opened.
 */
export type OwnerFacts =
  | { readonly state: 'unused' }
  | { readonly state: 'free'; readonly shards: number; readonly problems: readonly string[] }
  | { readonly state: 'held' | 'refused'; readonly message: string }

export interface SpaceFacts {
  readonly freeBytes: number
  readonly diskBytes: number
  /** Of the file system; 0 where it has no fixed number. */
  readonly inodes: number
  readonly freeInodes: number
  /** What the journals take already. */
  readonly journalBytes: number
}

export interface MachineFacts {
  /** Of the machine. */
  readonly totalBytes: number
  /** Of a control group or a limit; null: none. */
  readonly limitBytes: number | null
  /** Processors that this process may run on. */
  readonly processors: number
  /** Of a control group, in processors; null: none. */
  readonly quota: number | null
  /** Soft and hard limit of open files; Infinity: none. */
  readonly descriptors: { readonly soft: number; readonly hard: number }
}

export interface ClockFacts {
  readonly wallMs: number
  /** How far the wall clock went from the monotonic one while `doctor` ran, and how long that was. */
  readonly stepMs: number
  readonly watchedMs: number
  /** null: nothing here tells. */
  readonly isSynchronised: boolean | null
  /** Who told. */
  readonly source: string
}

/** An address that the broker would listen on. */
export interface PortFacts {
  readonly flag: '--bind' | '--bind-binary' | '--bind-kafka'
  readonly address: string
  /** null: it can be taken. Else the code of the system, such as EADDRINUSE, or in words what is wrong with the address. */
  readonly problem: string | null
}

/** The configuration: what it gives, or its faults. */
export interface ConfigurationFacts {
  /** With faults: the defaults, which everything else is judged by. */
  readonly settings: Settings
  readonly faults: readonly string[]
  /** Settings that are not at their default. */
  readonly changed: number
}

export interface Facts {
  readonly configuration: ConfigurationFacts
  readonly host: HostFacts
  readonly engine: EngineFacts
  readonly directory: DirectoryFacts
  readonly owner: OwnerFacts
  readonly mount: MountFacts | null
  readonly device: DeviceFacts | null
  readonly space: SpaceFacts
  readonly machine: MachineFacts
  readonly disk: DiskFacts
  readonly ports: readonly PortFacts[]
  readonly clock: ClockFacts
}
