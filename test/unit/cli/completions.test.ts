/** Completion scripts, asked as the shells ask them: in a real bash, and in zsh and fish where they are installed. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { commandTree, nodesOf } from '../../../src/cli/completion/command-tree.ts'
import { buildProgram } from '../../../src/cli/run.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { run } from './terminal.ts'

const tree = commandTree(
  buildProgram({ stdin: process.stdin, stdout: process.stdout, stderr: process.stderr, env: {} }, () => undefined)
)

async function scriptOf(t: TestContext, shell: string): Promise<string> {
  const { code, stdout, stderr } = await run(['completions', shell])
  assert.deepEqual([code, stderr], [0, ''])
  const path = join(temporaryDirectory(t), `millrace.${shell}`)
  writeFileSync(path, stdout)
  return path
}

/** What bash completes, for each line; the word to complete is the last one, and may be empty. */
function inBash(script: string, lines: readonly (readonly string[])[]): string[][] {
  const asks = lines.map(words => {
    const quoted = words.map(word => `'${word}'`).join(' ')
    return `COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; COMPREPLY=(); _millrace; echo "\${COMPREPLY[*]}"`
  })
  const program = ['set -u', `source '${script}'`, 'complete -p millrace >&2', ...asks].join('\n')
  const { status, stdout, stderr } = spawnSync('bash', ['--noprofile', '--norc'], { input: program, encoding: 'utf8' })
  assert.deepEqual([status, stderr], [0, 'complete -F _millrace millrace\n'])
  return stdout
    .split('\n')
    .slice(0, -1)
    .map(line => line.split(' ').filter(word => word !== ''))
}

test('bash completes the commands and the flags of every command, as the program has them', async t => {
  const nodes = nodesOf(tree)
  assert.ok(nodes.length > 40)
  const answers = inBash(
    await scriptOf(t, 'bash'),
    nodes.flatMap(({ path }) => [
      ['millrace', ...path, ''],
      ['millrace', ...path, '-']
    ])
  )
  for (const [i, node] of nodes.entries()) {
    const commands = [...node.commands.map(({ path }) => path.at(-1) ?? ''), ...node.words]
    assert.deepEqual(answers[2 * i], commands, `behind ${node.path.join(' ')}`)
    assert.deepEqual(
      answers[2 * i + 1],
      node.flags.flatMap(({ names }) => names),
      `flags of ${node.path.join(' ')}`
    )
  }
  const topic = nodes.find(({ path }) => path.join(' ') === 'topic')
  assert.ok(topic?.commands.some(({ path }) => path.join(' ') === 'topic create'))
  assert.ok(nodes.find(({ path }) => path.join(' ') === 'tail')?.flags.some(({ names }) => names.includes('--tls-ca')))
})

test('bash passes over values of flags, and completes those that are known', async t => {
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ['millrace --broker topic topic cr', ['create']],
    ['millrace topic create --name list --segment-b', ['--segment-bytes']],
    ['millrace --json topic li', ['list']],
    ['millrace consume --encoding ', ['utf8', 'base64']],
    ['millrace consume --encoding b', ['base64']],
    ['millrace consume --encoding = b', ['base64']],
    ['millrace consume --encoding =', ['utf8', 'base64']],
    ['millrace consume --topic ', []],
    ['millrace serve --http-engine ', ['auto', 'uws', 'node']],
    ['millrace topic alter --validate-schema t', ['true']],
    ['millrace topic create --partitioner m', ['murmur2']],
    ['millrace key create --data-dir ', []],
    ['millrace tail --topic orders ', []],
    ['millrace completions z', ['zsh']],
    ['millrace help con', ['config', 'consume']],
    ['millrace help topic', ['topic']],
    ['millrace topic help del', ['delete-records', 'delete']],
    ['millrace schema register --type ', ['json_schema', 'avro', 'protobuf']],
    ['millrace topic create --cleanup-policy compact,', ['compact,delete']],
    ['millrace group reset --to ', ['earliest', 'latest']],
    ['millrace tail --from e', ['earliest']],
    ['millrace consume --offset l', ['latest']],
    ['millrace commit --offset ', []],
    ['millrace nothing ', tree.commands.map(({ path }) => path.at(-1) ?? '')]
  ]
  const answers = inBash(
    await scriptOf(t, 'bash'),
    cases.map(([line]) => line.split(' '))
  )
  for (const [i, [line, expected]] of cases.entries()) assert.deepEqual(answers[i], expected, line)
})

test('bash completes npx millrace too, and leaves npx to others who complete it', async t => {
  const script = await scriptOf(t, 'bash')
  const ask = (words: string, index: number): string =>
    `COMP_WORDS=(${words}); COMP_CWORD=${index}; COMPREPLY=(); _millrace_npx; echo "\${COMPREPLY[*]}"`
  const inNewBash = (...lines: readonly string[]): string => {
    const input = ['set -u', ...lines].join('\n')
    const { status, stdout, stderr } = spawnSync('bash', ['--noprofile', '--norc'], { input, encoding: 'utf8' })
    assert.deepEqual([status, stderr], [0, ''])
    return stdout
  }
  const source = `source '${script}'`
  assert.equal(
    inNewBash(
      source,
      'complete -p npx',
      ask('npx millrace consume --enc', 3),
      ask('npx millrace topic cr', 3),
      ask('npx other topic cr', 3),
      ask('npx mill', 1)
    ),
    'complete -o default -F _millrace_npx npx\n--encoding\ncreate\n\n\n'
  )
  assert.equal(inNewBash('complete -W x npx', source, 'complete -p npx'), "complete -W 'x' npx\n")
})

/** Whether this machine has the shell. */
function hasShell(shell: string): boolean {
  return spawnSync(shell, ['-c', 'exit 0']).status === 0
}

for (const shell of ['zsh', 'fish']) {
  test(`the script for ${shell} is one that it reads, and has every command and flag`, async t => {
    const path = await scriptOf(t, shell)
    const { stdout } = await run(['completions', shell])
    for (const node of nodesOf(tree)) {
      const place = node.path.map(word => ` ${word}`).join('')
      assert.ok(stdout.includes(`'${place}'`) || stdout.includes(`\\'${place}\\'`), place)
      for (const name of node.flags.flatMap(({ names }) => names)) {
        const written =
          shell === 'zsh' ? `'${name}:` : name.startsWith('--') ? ` -l ${name.slice(2)} ` : ` -s ${name.slice(1)} `
        assert.ok(stdout.includes(written), `${place} ${name}`)
      }
    }
    if (hasShell(shell)) {
      assert.deepEqual(spawnSync(shell, ['-n', path], { encoding: 'utf8' }).stderr, '')
      return
    }
    // Without the shell: whatever is opened is closed. No text of ours has a quote that is not written as the shell has it.
    const bare = stdout.replaceAll(shell === 'zsh' ? "'\\''" : /\\['\\]/g, '').replaceAll(/'[^'\n]*'/g, '')
    assert.doesNotMatch(bare.replaceAll(/#.*$/gm, ''), /'/, 'a quote is left open')
    if (shell === 'fish') {
      const words = bare.match(/^ *(function|for|if|switch|end)\b/gm) ?? []
      const ends = words.filter(word => word.trim() === 'end').length
      assert.equal(ends, words.length - ends)
    }
  })
}

test('the list of commands names every shell that there is a script for', async () => {
  const { stdout } = await run(['--help'])
  assert.match(stdout, /completions <shell> +print a script for bash, zsh or fish\b/)
  for (const shell of ['bash', 'zsh', 'fish']) assert.equal((await run(['completions', shell])).code, 0, shell)
})

test('a shell that is not known is an error of use', async () => {
  const { code, stderr } = await run(['completions', 'tcsh'])
  assert.equal(code, 2)
  assert.match(stderr, /Allowed choices are bash, zsh, fish/)
  assert.equal((await run(['completions'])).code, 2)
})
