/**
 * Completion for bash and zsh. Both find the place in the same way: they walk the words so far, pass over values of flags,
 * and take those that are commands. Pure.
 */
import { nodesOf, type CommandNode, type Flag } from './command-tree.ts'
import { brief, caseLines, placeOf, quote } from './shell-text.ts'

/** Labels of a flag at a place, for a `case`. */
function flagLabels(place: string, { names }: Flag): string {
  return names.map(name => quote(`${place} ${name}`)).join('|')
}

function valueText({ value }: Flag): string {
  if (typeof value === 'object') return value.choices.join(' ')
  return value === 'file' ? '@file' : '@text'
}

/** Sets `reply` to what follows the flag `$2` at the place `$1`: nothing, @file, @text, or the words there are. */
function valueFunction(nodes: readonly CommandNode[]): string {
  const lines = nodes.flatMap(node =>
    node.flags
      .filter(({ value }) => value !== 'none')
      .map(flag => `    ${flagLabels(placeOf(node), flag)}) reply=${quote(valueText(flag))} ;;\n`)
  )
  return `_millrace_value() {\n  reply=''\n  case "$1 $2" in\n${lines.join('')}  esac\n}\n`
}

/** Sets `at` to the place that the words from \`$1\` on lead to. */
function placeFunction(nodes: readonly CommandNode[]): string {
  const labels = nodes
    .filter(({ path }) => path.length > 0)
    .map(node => quote(placeOf(node)))
    .join('|')
  return `_millrace_place() {
  local word is_value='' reply
  at=''
  for word in "$@"; do
    if [ -n "$is_value" ]; then is_value=''; continue; fi
    case "$word" in
      -*) _millrace_value "$at" "$word"; is_value="$reply"; continue ;;
    esac
    case "$at $word" in
      ${labels}) at="$at $word" ;;
    esac
  done
}
`
}

/** For bash 3.2 and newer. */
export function bashScript(tree: CommandNode): string {
  const nodes = nodesOf(tree)
  const words = nodes.map(node => {
    const names = [...node.commands.map(({ path }) => path.at(-1) ?? ''), ...node.words]
    return [placeOf(node), `words=${quote(names.join(' '))}`] as const
  })
  const flags = nodes.map(node => {
    return [placeOf(node), `flags=${quote(node.flags.flatMap(({ names }) => names).join(' '))}`] as const
  })
  return `# Completion of millrace for bash. Take it with: source <(millrace completions bash)
${valueFunction(nodes)}${placeFunction(nodes)}_millrace() {
  local at words='' flags='' reply='' cur="\${COMP_WORDS[COMP_CWORD]}" flag="\${COMP_WORDS[COMP_CWORD-1]}"
  COMPREPLY=()
  # bash takes --flag=value for three words.
  if [ "$cur" = '=' ]; then cur=''; elif [ "$flag" = '=' ]; then flag="\${COMP_WORDS[COMP_CWORD-2]}"; fi
  _millrace_place "\${COMP_WORDS[@]:1:COMP_CWORD-1}"
  case "$flag" in
    -*) _millrace_value "$at" "$flag" ;;
  esac
  case "$reply" in
    '@file') compopt -o default 2>/dev/null; return ;;
    '@text') return ;;
    ?*) COMPREPLY=($(compgen -W "$reply" -- "$cur")); return ;;
  esac
  case "$at" in
${caseLines(words)}  esac
  case "$at" in
${caseLines(flags)}  esac
  case "$cur" in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$cur")) ;;
    *) COMPREPLY=($(compgen -W "$words" -- "$cur")) ;;
  esac
}
complete -F _millrace millrace
# npx millrace, unless npx is completed by something else.
_millrace_npx() {
  COMPREPLY=()
  [ "\${COMP_WORDS[1]:-}" = millrace ] && [ "$COMP_CWORD" -gt 1 ] || return 0
  local -a COMP_WORDS=("\${COMP_WORDS[@]:1}")
  local COMP_CWORD=$((COMP_CWORD - 1))
  _millrace
}
complete -p npx >/dev/null 2>&1 || complete -o default -F _millrace_npx npx
`
}

/** \`name:what it is\`, as _describe takes it. */
function described(names: readonly string[], description: string): string {
  return names.map(name => quote(`${name}:${brief(description)}`)).join(' ')
}

/** For zsh 5. */
export function zshScript(tree: CommandNode): string {
  const nodes = nodesOf(tree)
  const words = nodes.map(node => {
    const commands = node.commands.map(({ path, description }) => described([path.at(-1) ?? ''], description))
    const all = [...commands, ...node.words.map(quote)].join(' ')
    return [placeOf(node), all === '' ? '' : `items=(${all})`] as const
  })
  const flags = nodes.map(node => {
    return [
      placeOf(node),
      `items=(${node.flags.map(flag => described(flag.names, flag.description)).join(' ')})`
    ] as const
  })
  return `#compdef millrace
# Completion of millrace for zsh. Take it with: source <(millrace completions zsh), behind compinit; or as a file
# _millrace in a folder of $fpath.
${valueFunction(nodes)}${placeFunction(nodes)}_millrace() {
  local at reply=''
  local -a items
  _millrace_place "\${(@)words[2,CURRENT-1]}"
  case "\${words[CURRENT-1]}" in
    -*) _millrace_value "$at" "\${words[CURRENT-1]}" ;;
  esac
  case "$reply" in
    '@file') _files; return ;;
    '@text') return ;;
    ?*) compadd -- \${=reply}; return ;;
  esac
  case "\${words[CURRENT]}" in
    -*)
  case "$at" in
${caseLines(flags)}  esac
  _describe 'option' items ;;
    *)
  case "$at" in
${caseLines(words)}  esac
  _describe 'command' items ;;
  esac
}
if [ "$funcstack[1]" = '_millrace' ]; then _millrace "$@"; else compdef _millrace millrace; fi
`
}
