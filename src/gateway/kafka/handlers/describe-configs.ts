/**
 * DescribeConfigs: of topics, and of this broker, whose settings are read-only here. A resource is described once, as it is
 * first asked for: its settings are a thousand times larger than what asks for them. Main thread.
 */
import { authorise } from '../../../model/access.ts'
import { describeConfigs } from '../../../wire/kafka/apis/describe-configs.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import type { ReadOf, WriteOf } from '../../../wire/kafka/schema.ts'
import { showBrokerConfig } from '../broker-configs.ts'
import { resourceTypes } from '../config-resources.ts'
import { longHandlerOf, type KafkaCall, type KafkaHandler } from '../handler.ts'
import { NODE_ID } from '../node.ts'
import { toldOf } from '../refusals.ts'
import { showConfig, type ShownConfig } from '../topic-configs.ts'

type Call = KafkaCall<typeof describeConfigs.request.fields, typeof describeConfigs.response.fields>
type Resource = ReadOf<typeof describeConfigs.request.fields>['resources'][number]
type Told = WriteOf<typeof describeConfigs.response.fields>['results'][number]

export const describeConfigsHandler: KafkaHandler = longHandlerOf(describeConfigs, async call => {
  const asked = new Map<string, Resource>()
  for (const resource of call.body.resources) {
    const place = `${resource.resourceType} ${resource.resourceName}`
    if (!asked.has(place)) asked.set(place, resource)
  }
  const { pace } = call
  const results = await pace.inOrder(asked.values(), resource => describeOne(call, resource))
  await call.answerInTurns({ results })
})

function describeOne(call: Call, resource: Resource): Told {
  const { resourceType, resourceName, configurationKeys: keys } = resource
  const place = { resourceType, resourceName }
  try {
    const shown = shownOf(call, resource)
    if (shown === null) {
      const errorMessage = `there is no resource of type ${resourceType} named '${resourceName}' here`
      return { ...place, errorCode: kafkaErrors.INVALID_REQUEST.code, errorMessage, configs: [] }
    }
    const wanted = shown.filter(({ name }) => keys === null || keys.includes(name))
    const configs = wanted.map(config => toldConfig(call, config))
    return { ...place, errorCode: kafkaErrors.NONE.code, errorMessage: null, configs }
  } catch (error) {
    return { ...place, ...toldOf(error), configs: [] }
  }
}

type Shown = ShownConfig & { readonly source: number }

/** null: there is no such resource. @throws BrokerError */
function shownOf({ who, services }: Call, { resourceType, resourceName }: Resource): readonly Shown[] | null {
  const { broker, settings } = services
  if (resourceType === resourceTypes.topic) return showConfig(broker.topicConfig(who, resourceName), settings)
  if (resourceType !== resourceTypes.broker) return null
  if (resourceName !== '' && resourceName !== String(NODE_ID)) return null
  authorise(who, 'list topics')
  return showBrokerConfig(settings)
}

function toldConfig({ version, body }: Call, shown: Shown): Told['configs'][number] {
  const { name, value, isFixed, type, documentation, source } = shown
  return {
    name,
    value,
    readOnly: isFixed,
    configSource: source,
    isSensitive: false,
    synonyms: body.includeSynonyms ? [{ name, value, source }] : [],
    ...(version >= 3 && { configType: type, documentation: body.includeDocumentation ? documentation : null })
  }
}
