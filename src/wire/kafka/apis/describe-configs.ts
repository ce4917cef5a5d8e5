/** DescribeConfigs (32). Resource types: 2 a topic, 4 a broker. Null keys ask for all settings. Pure, any thread. */
import { apiOf } from '../message.ts'
import { arrayOf, bool, int8, int16, int32, string, structsOf } from '../schema.ts'

export const describeConfigs = apiOf('DescribeConfigs', {
  key: 32,
  first: 1,
  last: 4,
  flexibleSince: 4,
  request: {
    resources: structsOf({
      resourceType: int8(),
      resourceName: string(),
      configurationKeys: arrayOf(string(), { nullableSince: 0 })
    }),
    includeSynonyms: bool({ default: false }),
    includeDocumentation: bool({ since: 3, default: false })
  },
  response: {
    throttleTimeMs: int32({ default: 0 }),
    results: structsOf({
      errorCode: int16(),
      errorMessage: string({ nullableSince: 0 }),
      resourceType: int8(),
      resourceName: string(),
      configs: structsOf({
        name: string(),
        value: string({ nullableSince: 0 }),
        readOnly: bool(),
        configSource: int8({ default: -1, ignorable: true }),
        isSensitive: bool(),
        synonyms: structsOf(
          { name: string(), value: string({ nullableSince: 0 }), source: int8() },
          { default: [], ignorable: true }
        ),
        configType: int8({ since: 3, default: 0, ignorable: true }),
        documentation: string({ since: 3, nullableSince: 0, ignorable: true })
      })
    })
  }
})
