/** `millrace completions <shell>`: prints a script that completes commands and flags, made from the program itself. */
import { Argument, type Command } from 'commander'
import { addExamples } from '../common-options.ts'
import { print, type CliIo } from '../io.ts'
import { commandTree, type CommandNode } from './command-tree.ts'
import { fishScript } from './fish.ts'
import { bashScript, zshScript } from './posix-shells.ts'

const scripts: Readonly<Record<string, (tree: CommandNode) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript
}

/** Adds the command to the program. */
export function addCompletionsCommand(program: Command, io: CliIo): void {
  const command = program
    .command('completions')
    .description('print a script for bash, zsh or fish that completes commands and flags')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(scripts)))
  addExamples(command, [
    'source <(millrace completions bash)',
    'millrace completions zsh > ~/.zfunc/_millrace',
    'millrace completions fish > ~/.config/fish/completions/millrace.fish'
  ])
  command.action(async (shell: string) => {
    await print(io.stdout, scripts[shell]?.(commandTree(program)) ?? '')
  })
}
