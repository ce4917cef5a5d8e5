/** Kinds of things that have a configuration, as the Kafka protocol numbers them: those that exist here. */
export const resourceTypes = { topic: 2, broker: 4 } as const
