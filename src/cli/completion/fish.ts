/** Completion for fish: one line for each command and each flag, with the place where it counts. Pure. */
import { nodesOf, type CommandNode, type Flag } from './command-tree.ts'
import { brief, placeOf } from './shell-text.ts'

/** In single quotes fish knows two escapes. */
function quoteFish(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}

function flagLine(place: string, { names, description, value }: Flag): string {
  const letters = names.map(name => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`))
  const after =
    typeof value === 'object'
      ? [`-x -a ${quoteFish(value.choices.join(' '))}`]
      : { none: [], text: ['-x'], file: ['-r -F'] }[value]
  const condition = `-n ${quoteFish(`__millrace_is_at ${quoteFish(place)}`)}`
  return ['complete -c millrace', condition, ...letters, ...after, `-d ${quoteFish(brief(description))}`].join(' ')
}

function wordLine(place: string, word: string, description: string): string {
  const condition = `-n ${quoteFish(`__millrace_is_at ${quoteFish(place)}`)}`
  return `complete -c millrace ${condition} -f -a ${word} -d ${quoteFish(brief(description))}`
}

/** For fish 3. */
export function fishScript(tree: CommandNode): string {
  const nodes = nodesOf(tree)
  const valued = nodes.flatMap(node =>
    node.flags
      .filter(({ value }) => value !== 'none')
      .flatMap(({ names }) => names.map(name => quoteFish(`${placeOf(node)} ${name}`)))
  )
  const places = nodes.filter(({ path }) => path.length > 0).map(node => quoteFish(placeOf(node)))
  const lines = nodes.flatMap(node => [
    ...node.commands.map(({ path, description }) => wordLine(placeOf(node), path.at(-1) ?? '', description)),
    ...node.words.map(word => wordLine(placeOf(node), word, '')),
    ...node.flags.map(flag => flagLine(placeOf(node), flag))
  ])
  return `# Completion of millrace for fish. Take it with: millrace completions fish | source
function __millrace_is_at
  set -l at ''
  set -l is_value 0
  for word in (commandline -opc)[2..-1]
    if test $is_value = 1
      set is_value 0
      continue
    end
    switch "$at $word"
      case ${valued.join(' ')}
        set is_value 1
      case ${places.join(' ')}
        set at "$at $word"
    end
  end
  test "$at" = "$argv[1]"
end
complete -c millrace -f
${lines.join('\n')}
`
}
