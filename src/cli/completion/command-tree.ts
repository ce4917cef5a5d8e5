/**
 * The commands of a program as completion needs them, read out of commander: what a script is made of is what the program
 * has, and no list is kept by hand. Pure.
 */
import type { Command, Option } from 'commander'
import { cleanupPolicies } from '../../model/topic.ts'

/** What follows a flag. */
export type FlagValue = 'none' | 'file' | 'text' | { readonly choices: readonly string[] }

export interface Flag {
  /** `--broker`, `-h`. */
  readonly names: readonly string[]
  readonly description: string
  readonly value: FlagValue
}

export interface CommandNode {
  /** Words behind the name of the program: none of the program itself. */
  readonly path: readonly string[]
  readonly description: string
  readonly flags: readonly Flag[]
  /** Words that may stand behind it instead of a command. */
  readonly words: readonly string[]
  readonly commands: readonly CommandNode[]
}

/** Words that the value of a flag may be beside others, by the name that its value has in --help. */
const knownWords: Readonly<Record<string, readonly string[]>> = {
  place: ['earliest', 'latest'],
  policy: cleanupPolicies
}

/** The tree under a command. */
export function commandTree(command: Command, path: readonly string[] = []): CommandNode {
  const help = command.createHelp()
  const children = help.visibleCommands(command)
  const names = children.map(child => child.name())
  return {
    path,
    description: command.description(),
    flags: help.visibleOptions(command).map(flagOf),
    words: command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
    commands: children.map(child => {
      const node = commandTree(child, [...path, child.name()])
      // `help` takes the name of a command beside it.
      return child.name() === 'help' ? { ...node, words: names.filter(name => name !== 'help') } : node
    })
  }
}

/** A node and all below it. */
export function nodesOf(node: CommandNode): CommandNode[] {
  return [node, ...node.commands.flatMap(nodesOf)]
}

function flagOf(option: Option): Flag {
  const names = [option.long, option.short].filter(name => name !== undefined && name !== null)
  return { names, description: option.description, value: valueOf(option) }
}

function valueOf(option: Option): FlagValue {
  if (option.argChoices !== undefined) return { choices: option.argChoices }
  // A value that may be left out is not waited for.
  if (!option.required) return 'none'
  // Settings have their words in the flag, since what they may be is judged together with the other sources.
  const words = /<(\w+(?:\|\w+)+)>/.exec(option.flags)?.[1]
  if (words !== undefined) return { choices: words.split('|') }
  const known = knownWords[/<([\w-]+)>/.exec(option.flags)?.[1] ?? '']
  if (known !== undefined) return { choices: known }
  return /[<[](file|path)/.test(option.flags) ? 'file' : 'text'
}
