import { fileURLToPath } from 'node:url'
import tseslint from 'typescript-eslint'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Files in which one line runs per record or per frame. Statuses instead of throws, no closures, nothing that allocates by habit. */
const hotFiles = [
  'src/ring/spsc-ring.ts',
  'src/base/crc32c.ts',
  'src/base/hash.ts',
  'src/wire/batch/encode.ts',
  'src/log/group-bodies.ts',
  'src/log/group-encoder.ts',
  'src/log/group-sources.ts'
]

export default tseslint.config(
  { ignores: ['dist/**', 'node_modules/**', '**/*.cjs'] },
  {
    files: ['**/*.ts', '**/*.js'],
    extends: [tseslint.configs.base],
    languageOptions: {
      parserOptions: {
        projectService: { allowDefaultProject: ['*.js', 'src/*.js', 'config/tooling/*.js'] },
        tsconfigRootDir: root
      }
    },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      'max-lines': ['error', { max: 400, skipBlankLines: false, skipComments: false }],
      'max-lines-per-function': ['error', { max: 70, skipComments: true, skipBlankLines: true }],
      'max-params': ['error', 5],
      'max-depth': ['error', 4],
      eqeqeq: 'error',
      'no-var': 'error',
      'prefer-const': 'error',
      'no-empty': 'error',
      'no-debugger': 'error',
      'no-console': 'error',
      'no-eval': 'error',
      'no-warning-comments': ['error', { terms: ['fixme', 'xxx'], location: 'anywhere' }],
      'no-restricted-exports': ['error', { restrictDefaultExports: { direct: true, named: true } }]
    }
  },
  {
    files: ['**/*.ts'],
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/no-unnecessary-type-assertion': 'error',
      '@typescript-eslint/only-throw-error': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/naming-convention': [
        'error',
        { selector: 'typeLike', format: ['PascalCase'] },
        { selector: 'function', format: ['camelCase'] },
        { selector: 'method', format: ['camelCase'] },
        // Readers of series stand in objects under the names that Prometheus shows.
        { selector: 'objectLiteralMethod', filter: { regex: '^millrace_', match: true }, format: null }
      ]
    }
  },
  {
    files: ['test/**/*.ts', 'config/tooling/*.js'],
    rules: {
      'max-lines-per-function': 'off',
      'no-restricted-exports': 'off',
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          allowForKnownSafeCalls: [{ from: 'package', name: ['test', 'it', 'describe', 'suite'], package: 'node:test' }]
        }
      ]
    }
  },
  {
    files: ['src/cli/**', 'native-free-bench/**', 'test/support/**', 'src/main.ts', 'src/bin.js'],
    rules: { 'no-console': 'off' }
  },
  {
    files: hotFiles,
    rules: {
      'no-restricted-syntax': [
        'error',
        { selector: ':function[async=true]', message: 'hot file: no async' },
        { selector: 'ArrowFunctionExpression', message: 'hot file: no closures' },
        { selector: 'FunctionExpression FunctionExpression', message: 'hot file: no closures' },
        { selector: 'SpreadElement', message: 'hot file: no spread' },
        { selector: ':function > ObjectPattern', message: 'hot file: no destructured parameters' },
        { selector: 'TryStatement', message: 'hot file: a status instead of try' },
        { selector: 'TemplateLiteral[expressions.length>0]', message: 'hot file: no template strings' },
        { selector: 'Literal[regex]', message: 'hot file: no regular expressions' },
        { selector: 'Literal[bigint]', message: 'hot file: no bigint arithmetic' },
        { selector: "MemberExpression[object.name='JSON']", message: 'hot file: no JSON' },
        {
          selector: 'CallExpression[callee.property.name=/^(map|filter|forEach|reduce|some|every|find|flatMap)$/]',
          message: 'hot file: no array callbacks'
        }
      ]
    }
  }
)
