/** ApiVersions (18). Its response has the header of version 0 in all versions, see ../headers.ts. Pure, any thread. */
import { apiOf } from '../message.ts'
import { bool, int16, int32, int64, string, structsOf } from '../schema.ts'

export const apiVersions = apiOf('ApiVersions', {
  key: 18,
  first: 0,
  last: 4,
  flexibleSince: 3,
  request: {
    clientSoftwareName: string({ since: 3, ignorable: true }),
    clientSoftwareVersion: string({ since: 3, ignorable: true })
  },
  response: {
    errorCode: int16(),
    apiKeys: structsOf({ apiKey: int16(), minVersion: int16(), maxVersion: int16() }),
    throttleTimeMs: int32({ since: 1, ignorable: true }),
    supportedFeatures: structsOf(
      { name: string(), minVersion: int16(), maxVersion: int16() },
      { since: 3, tag: 0, ignorable: true }
    ),
    finalizedFeaturesEpoch: int64({ since: 3, tag: 1, default: -1, ignorable: true }),
    finalizedFeatures: structsOf(
      { name: string(), maxVersionLevel: int16(), minVersionLevel: int16() },
      { since: 3, tag: 2, ignorable: true }
    ),
    zkMigrationReady: bool({ since: 3, tag: 3, default: false, ignorable: true })
  }
})
