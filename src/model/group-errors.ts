/** The errors of consumer groups, of both protocols: 4xx of the table in errors.ts. Pure data. */
import { spec, type ErrorSpec } from './error-spec.ts'

export const groupErrors = {
  GROUP_OWNED: spec(
    401,
    403,
    'forbidden',
    "group '{group}' belongs to another key: use that key, one that is admin on '*', or another group",
    { kafka: 30 }
  ),
  GROUP_NOT_FOUND: spec(
    402,
    404,
    'not found',
    "no group '{group}': a group comes to be with its first commit or join",
    { kafka: 69 }
  ),
  MEMBER_NOT_FOUND: spec(403, 404, 'not found', "group '{group}' has no member '{member}': join again", { kafka: 25 }),
  MEMBER_OWNED: spec(404, 403, 'forbidden', "member '{member}' of group '{group}' belongs to another key", {
    kafka: 30
  }),
  GROUP_NOT_EMPTY: spec(
    405,
    409,
    'bad request',
    "group '{group}' has {count} member(s): it can be deleted once they have left, or were silent for --coord-member-timeout",
    { kafka: 68 }
  ),
  GROUPS_TOO_MANY: spec(
    406,
    400,
    'bad request',
    "group '{group}' would be one more than the {limit} that there may be; delete some that are not used",
    { kafka: 24 }
  ),
  GROUP_OFFSETS_TOO_MANY: spec(
    407,
    400,
    'bad request',
    "an offset of group '{group}' would be one more than the {limit} partitions that {whose} with an offset; delete groups that are not used",
    { kafka: 28 }
  ),
  MEMBERS_TOO_MANY: spec(
    408,
    400,
    'bad request',
    "group '{group}' has {limit} members, as many as one may have; use another group",
    { kafka: 81 }
  ),
  GROUP_KIND: spec(
    409,
    409,
    'bad request',
    "the members of group '{group}' speak {kind}: one that speaks {wanted} can join when they are gone",
    { kafka: 23 }
  ),
  OFFSET_METADATA_TOO_LARGE: spec(
    410,
    400,
    'bad request',
    "the metadata beside an offset of group '{group}' would make {bytes} bytes, more than the {limit} that {whose}; the offset is not noted",
    { kafka: 12 }
  ),
  GENERATION_STALE: spec(
    411,
    409,
    'bad request',
    "member '{member}' commits as of generation {generation}, and group '{group}' has {current}: ask for the assignment, and commit what is still assigned",
    { kafka: 22 }
  )
} as const satisfies Record<string, ErrorSpec>
