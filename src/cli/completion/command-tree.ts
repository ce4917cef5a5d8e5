/**
 * The commands of a program as completion needs them, read out of commander: what a script is made of is what the program
 * has, and no list is kept by hand. Pure.
 */
import type { Command, Option } from 'commander'

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

/** The tree under a command. */
export function commandTree(command: Command, path: readonly string[] = []): CommandNode {
  const help = command.createHelp()
  return {
    path,
    description: command.description(),
    flags: help.visibleOptions(command).map(flagOf),
    words: command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
    commands: help.visibleCommands(command).map(child => commandTree(child, [...path, child.name()]))
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
  return /[<[](file|path)/.test(option.flags) ? 'file' : 'text'
}
