/** Commands out of a document, as a reader would copy them into a shell. */

export interface DocumentedCommand {
  /** As printed, several lines if it goes on behind a backslash. */
  readonly line: string
  /** What the document says it prints; null: nothing is said. */
  readonly answer: RegExp | null
}

/** From a heading of the second level to the next one. @throws if there is none of that name. */
export function section(document: string, name: string): string {
  const [, text] = document.split(new RegExp(`^## ${name}$`, 'm'))
  if (text === undefined) throw new Error(`no section ${name}`)
  return text.split(/^## /m)[0] ?? ''
}

/** The commands of all shell blocks, in order; a comment line behind one is its answer, in which … stands for anything. */
export function commandsOf(text: string): DocumentedCommand[] {
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block.replaceAll('\\\n', '\\\r'))
  return blocks.flatMap(block => {
    const lines = block.split('\n').filter(line => line !== '')
    return lines.flatMap((line, i) =>
      line.startsWith('# ')
        ? []
        : [{ line: withoutComment(line.replaceAll('\r', '\n')), answer: answerOf(lines[i + 1]) }]
    )
  })
}

/** `npx millrace …` within the text of a document, whose words after that match. */
export function inlineCommands(document: string, words: RegExp): string[] {
  const commands = [...document.matchAll(/`npx millrace ([^`]+)`/g)].map(([, command = '']) => command)
  return commands.filter(command => words.test(command)).map(command => `npx millrace ${command}`)
}

const withoutComment = (line: string): string => line.replace(/ +# .*$/, '')

function answerOf(line = ''): RegExp | null {
  if (!line.startsWith('# ')) return null
  return new RegExp(
    `^${line
      .slice(2)
      .replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
      .replaceAll('…', '.+')}$`
  )
}
