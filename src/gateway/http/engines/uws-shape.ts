/**
 * The part of uWebSockets.js that this project uses, as types. The package's own declarations lack the listen form with
 * host and options, and type every response as open-ended.
 */

export interface UwsRequest {
  getCaseSensitiveMethod(): string
  getUrl(): string
  /** undefined without a question mark. */
  getQuery(): string | undefined
  getHeader(lowerCaseName: string): string
  /** Equal ones come one by one. */
  forEach(callback: (lowerCaseName: string, value: string) => void): void
}

export interface UwsResponse {
  writeStatus(status: string): UwsResponse
  writeHeader(name: string, value: string): UwsResponse
  /** Without a body it ends what write() began; closeConnection must not be given then: it would be written as a header. */
  end(body?: Uint8Array | string, closeConnection?: boolean): UwsResponse
  endWithoutBody(reportedContentLength?: number, closeConnection?: boolean): UwsResponse
  /** One chunk of an answer without a length, not empty. @returns false: some of it waits, in the library's memory. */
  write(chunk: Uint8Array): boolean
  /** [everything of this chunk was taken, the whole answer is out]. */
  tryEnd(chunk: Uint8Array, totalBytes: number): [boolean, boolean]
  getWriteOffset(): number
  onWritable(handler: (offset: number) => boolean): UwsResponse
  onAborted(handler: () => void): UwsResponse
  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): UwsResponse
  /** 4 or 16 bytes. */
  getRemoteAddress(): ArrayBuffer
  cork(callback: () => void): UwsResponse
  close(): UwsResponse
}

export interface UwsApp {
  any(pattern: string, handler: (response: UwsResponse, request: UwsRequest) => void): UwsApp
  /** Hears of every connection: a change above 0, it opened; below 0, it closed. */
  filter(handler: (response: UwsResponse, change: number) => void): UwsApp
  listen(host: string, port: number, options: number, callback: (socket: object | false | null) => void): UwsApp
  close(): UwsApp
  /** Tells of each connection: 1 when it was opened, −1 when it has ended. */
  filter(handler: (response: UwsResponse, change: number) => void): UwsApp
  /** What another app of the same kind hands sockets to. */
  getDescriptor(): number
  addChildAppDescriptor(descriptor: number): UwsApp
  removeChildAppDescriptor(descriptor: number): UwsApp
  /** Seconds. Only in the republication that package.json names. */
  setIdleTimeout?(seconds: number): UwsApp
  setResponseTimeout?(seconds: number): UwsApp
}

/** Files in PEM form. */
export interface UwsTlsFiles {
  readonly cert_file_name?: string
  readonly key_file_name?: string
}

type MakeApp = () => UwsApp
type MakeSecureApp = (files: UwsTlsFiles) => UwsApp
type CloseSocket = (socket: object) => void
type ReadPort = (socket: object) => number

/** The module itself, under the names that it has. */
export interface Uws {
  readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number
  readonly App: MakeApp
  readonly SSLApp: MakeSecureApp
  readonly us_listen_socket_close: CloseSocket
  readonly us_socket_local_port: ReadPort
}
