/** AlterConfigs (33), which sets all settings of a resource, and IncrementalAlterConfigs (44), which sets those named. Pure, any thread. */
import { apiOf } from '../message.ts'
import { bool, int8, int16, int32, string, structsOf } from '../schema.ts'

const response = {
  throttleTimeMs: int32({ default: 0 }),
  responses: structsOf({
    errorCode: int16(),
    errorMessage: string({ nullableSince: 0 }),
    resourceType: int8(),
    resourceName: string()
  })
}

export const alterConfigs = apiOf('AlterConfigs', {
  key: 33,
  first: 0,
  last: 2,
  flexibleSince: 2,
  request: {
    resources: structsOf({
      resourceType: int8(),
      resourceName: string(),
      configs: structsOf({ name: string(), value: string({ nullableSince: 0 }) })
    }),
    validateOnly: bool()
  },
  response
})

/** Operations: 0 set, 1 delete, 2 append, 3 subtract. */
export const incrementalAlterConfigs = apiOf('IncrementalAlterConfigs', {
  key: 44,
  first: 0,
  last: 1,
  flexibleSince: 1,
  request: {
    resources: structsOf({
      resourceType: int8(),
      resourceName: string(),
      configs: structsOf({ name: string(), configOperation: int8(), value: string({ nullableSince: 0 }) })
    }),
    validateOnly: bool()
  },
  response
})
