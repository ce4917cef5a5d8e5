/**
 * The layer table. Each row: a folder and what it may import. Nothing else inside the project is allowed.
 * Packages with effects come in through one folder each.
 */
const below = ['src/base', 'src/model', 'src/wire']
const layers = {
  'src/base': [],
  'src/model': ['src/base'],
  'src/wire': ['src/base', 'src/model'],
  'src/ring': ['src/base', 'src/model'],
  'src/disk': ['src/base', 'src/model'],
  'src/log': [...below, 'src/disk'],
  'src/cold': ['src/base', 'src/model', 'src/disk'],
  'src/config': ['src/base', 'src/model'],
  'src/schemas': ['src/base', 'src/model'],
  'src/observe': ['src/base', 'src/model'],
  'src/control': below,
  'src/store': [...below, 'src/control'],
  'src/shards': [...below, 'src/ring'],
  'src/background': below,
  'src/broker': [...below, 'src/control', 'src/store', 'src/shards', 'src/background'],
  'src/gateway': [...below, 'src/broker', 'src/background', 'src/observe'],
  'src/client': below,
  'src/cli': [...below, 'src/config', 'src/client', 'src/observe', 'src/server\\.ts'],
  'src/cli/offline': [
    ...below,
    'src/cli',
    'src/config',
    'src/disk',
    'src/log',
    'src/control/(store-image|keys)\\.ts',
    'src/store/(directory-lock|sqlite-error|store-open-error)\\.ts',
    'workers/store/(schema|database)\\.ts',
    // Whether the native HTTP engine loads is told by loading it as serve does.
    'src/gateway/http/engines/uws-loader\\.ts'
  ],
  'src/server\\.ts': ['src'],
  // Parts of the composition root, one per theme.
  'src/composition': ['src'],
  // Part of the composition: it ties store, catalog and thread together.
  'src/placement\\.ts': [...below, 'src/control', 'src/store', 'src/shards'],
  'src/main\\.ts': ['src/cli'],
  'src/bin\\.js': [],
  'workers/shard': [...below, 'src/ring', 'src/log', 'src/disk'],
  'workers/store': [...below, 'src/control', 'src/store'],
  'workers/placement': [...below, 'src/disk', 'src/log'],
  'workers/settler': [...below, 'src/disk', 'src/log'],
  'workers/background': [...below, 'src/background', 'src/schemas', 'src/log', 'src/disk', 'src/cold'],
  'native-free-bench': [...below, 'src/client'],
  test: ['src', 'workers', 'native-free-bench']
}

const packages = {
  'uWebSockets\\.js': 'src/gateway/http',
  piscina: 'src/background',
  pino: 'src/observe',
  'pino-pretty': 'src/observe',
  'prom-client': 'src/observe',
  commander: 'src/cli',
  msgpackr: 'src/wire',
  '@aws-sdk': 'src/cold',
  'smol-toml': 'src/config',
  ajv: 'src/schemas',
  'ajv-formats': 'src/schemas',
  protobufjs: 'src/schemas',
  'hdr-histogram-js': 'native-free-bench',
  'cli-progress': 'src/cli',
  'tar-stream': 'src/cli/offline'
}

/** A folder within a folder of the table has a row of its own, and the other's does not count there. */
function rowsWithin(folder) {
  return Object.keys(layers).filter(other => other.startsWith(`${folder}/`))
}

const layerRules = Object.entries(layers).map(([from, allowed]) => ({
  name: `layer ${from}`,
  comment: `${from} may import only: ${[from, ...allowed].join(', ')}`,
  severity: 'error',
  from: {
    path: `^${from}(/|$)`.replace('\\.ts(/|$)', '\\.ts$').replace('\\.js(/|$)', '\\.js$'),
    ...(rowsWithin(from).length > 0 && { pathNot: rowsWithin(from).map(folder => `^${folder}/`) })
  },
  to: { path: '^(src|workers|native-free-bench|test)/', pathNot: [from, ...allowed].map(path => `^${path}`) }
}))

const packageRules = Object.entries(packages).map(([name, folder]) => ({
  name: `package ${name}`,
  comment: `${name} comes in through ${folder} only`,
  severity: 'error',
  from: { pathNot: [`^${folder}/`, '^test/'] },
  to: { path: `node_modules/${name}/` }
}))

module.exports = {
  forbidden: [
    { name: 'no cycles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'resolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'fs only in disk, config, cli, store and tests',
      severity: 'error',
      from: { path: '^(src/(log|ring|wire|base|model|broker|shards|control)|workers/shard)/' },
      to: { path: '^(node:)?fs(/promises)?$' }
    },
    ...layerRules,
    ...packageRules
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      extensions: ['.ts', '.js', '.cjs', '.json'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types']
    }
  }
}
