// Package shell has what a shell and man need of the command line: completion scripts,
// the candidates that they ask for, and man pages. All come from the model of the command
// line, so that they cannot differ from it.
//
// A script calls `guidon __complete -- WORD...` with the words up to the cursor. Keys of
// flags come from the server of the current context, for at most ServerTime; without an
// answer there are none.
package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
)

// ServerTime bounds the request of a completion.
const ServerTime = 300 * time.Millisecond

var scripts = map[string]string{
	"bash": `# bash completion of guidon: source <(guidon completion bash)
_guidon() {
	local IFS=$'\n'
	COMPREPLY=($(guidon __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _guidon guidon
`,
	"zsh": `#compdef guidon
# zsh completion of guidon: source <(guidon completion zsh)
_guidon() {
	local -a found
	found=("${(@f)$(guidon __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	found=(${found:#})
	(( $#found )) && compadd -- $found || _files
}
compdef _guidon guidon
`,
	"fish": `# fish completion of guidon: guidon completion fish | source
complete -c guidon -a '(guidon __complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
}

// CompletionCommand prints a completion script.
type CompletionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints the script of the shell.
func (c CompletionCommand) Run(e *command.Env) error {
	_, err := io.WriteString(e.Out, scripts[c.Shell])
	return err
}

// CompleteCommand prints the candidates for the last word of a command line.
type CompleteCommand struct {
	Words []string `arg:"" optional:"" passthrough:"" help:"Words after guidon, up to the cursor."`
}

// Run prints one candidate a line.
func (c CompleteCommand) Run(e *command.Env, k *kong.Kong) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	for _, word := range Complete(k.Model.Node, words, func(kind string) []string { return stored(e, kind) }) {
		fmt.Fprintln(e.Out, word)
	}
	return nil
}

// Complete returns the candidates for the last of the words, sorted. stored returns the
// names of stored objects of a kind: context or flag.
func Complete(root *kong.Node, words []string, stored func(kind string) []string) []string {
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "=" }) // bash splits at it
	last := ""
	if n := len(words); n > 0 {
		last, words = words[n-1], words[:n-1]
	}
	node, arguments := root, 0
	var pending *kong.Flag // the flag whose value comes next
	for _, word := range words {
		switch {
		case pending != nil:
			pending = nil
		case strings.HasPrefix(word, "-"):
			if f := findFlag(node, word); f != nil && !f.IsBool() && !strings.Contains(word, "=") {
				pending = f
			}
		default:
			if child := findChild(node, word); child != nil {
				node, arguments = child, 0
			} else {
				arguments++
			}
		}
	}
	return matching(last, candidates(node, pending, last, arguments, stored))
}

func candidates(node *kong.Node, pending *kong.Flag, last string, arguments int, stored func(string) []string) (out []string) {
	switch {
	case pending != nil:
		return values(pending.Value, stored)
	case strings.HasPrefix(last, "-"):
		for _, group := range node.AllFlags(true) {
			for _, f := range group {
				out = append(out, "--"+f.Name)
			}
		}
		return out
	}
	for _, child := range node.Children {
		if !child.Hidden {
			out = append(out, child.Name)
		}
	}
	if arguments < len(node.Positional) {
		argument := node.Positional[arguments]
		if node.Parent != nil && node.Parent.Name == "context" {
			return stored("context")
		}
		out = append(out, values(argument, stored)...)
	}
	return out
}

// values returns the values of an option or an argument.
func values(v *kong.Value, stored func(string) []string) []string {
	switch {
	case v.Enum != "":
		return slices.DeleteFunc(strings.Split(v.Enum, ","), func(s string) bool { return s == "" })
	case v.Name == "context" || v.Name == "flag":
		return stored(v.Name)
	}
	return nil
}

func findFlag(node *kong.Node, word string) *kong.Flag {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	for _, group := range node.AllFlags(false) {
		for _, f := range group {
			if f.Name == name || f.Short != 0 && string(f.Short) == name {
				return f
			}
		}
	}
	return nil
}

func findChild(node *kong.Node, word string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == word || slices.Contains(child.Aliases, word) {
			return child
		}
	}
	return nil
}

func matching(prefix string, words []string) []string {
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !strings.HasPrefix(w, prefix) })
	slices.Sort(words)
	return slices.Compact(words)
}

// stored returns the names of contexts, or the keys of flags on the server.
func stored(e *command.Env, kind string) (names []string) {
	if kind == "context" {
		contexts, err := command.ReadContexts()
		if err != nil {
			return nil
		}
		for _, c := range contexts.List {
			names = append(names, c.Name)
		}
		return names
	}
	quiet := *e
	quiet.ErrOut = io.Discard
	client, err := command.Place{}.Client(&quiet, 0)
	if err != nil || client == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), ServerTime)
	defer cancel()
	flags, err := client.All(ctx, client.Project("feature_flags/"), nil, 0)
	if err != nil {
		return nil
	}
	for _, text := range flags {
		var f struct{ Key string }
		if json.Unmarshal(text, &f) == nil {
			names = append(names, output.Clean(f.Key))
		}
	}
	return names
}
