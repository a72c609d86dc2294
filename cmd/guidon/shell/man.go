package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/guidonhq/guidon/cmd/guidon/command"
)

// ManCommand writes man pages.
type ManCommand struct {
	Dir string `required:"" help:"Directory for the pages; it must exist." placeholder:"DIR"`
}

// Run writes guidon.1, and a page for each command, such as guidon-flag.1.
func (c ManCommand) Run(e *command.Env, k *kong.Kong) error {
	root := k.Model.Node
	if err := c.write("guidon", page("guidon", root, root.Help)); err != nil {
		return err
	}
	pages := 1
	for _, child := range root.Children {
		if child.Hidden {
			continue
		}
		name := "guidon-" + child.Name
		if err := c.write(name, page(name, child, child.Help)); err != nil {
			return err
		}
		pages++
	}
	_, err := fmt.Fprintf(e.Out, "%s: %d pages\n", c.Dir, pages)
	return err
}

func (c ManCommand) write(name, text string) error {
	return os.WriteFile(filepath.Join(c.Dir, name+".1"), []byte(text), 0o644) //nolint:gosec // a public document
}

// page returns the page of a command and of those below it, except that the page of
// guidon only lists them.
func page(name string, node *kong.Node, summary string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1\n.SH NAME\n%s \\- %s\n", strings.ToUpper(roff(name)), roff(name), roff(summary))
	b.WriteString(".SH SYNOPSIS\n" + roff(synopsis(node)) + "\n")
	if node.Parent == nil {
		b.WriteString(".SH COMMANDS\n")
		for _, child := range node.Children {
			if !child.Hidden {
				fmt.Fprintf(&b, ".TP\n.B %s\n%s See guidon\\-%s(1).\n", roff(child.Name), roff(child.Help), roff(child.Name))
			}
		}
		options(&b, "OPTIONS", node)
	} else {
		section(&b, node)
	}
	b.WriteString(".SH EXIT STATUS\n0 done, 1 failed, 2 not confirmed, 3 no such object, 4 the server refuses the key, 5 no server answers, 80 wrong command line.\n")
	return b.String()
}

// section writes the arguments and options of a command and of those below it.
func section(b *strings.Builder, node *kong.Node) {
	if node.Leaf() {
		fmt.Fprintf(b, ".SH %s\n%s\n.PP\n%s\n", strings.ToUpper(roff(node.Name)), roff(synopsis(node)), roff(node.Help))
		for _, p := range node.Positional {
			fmt.Fprintf(b, ".TP\n.I %s\n%s\n", roff(p.Name), roff(p.Help))
		}
		options(b, "", node)
		return
	}
	for _, child := range node.Children {
		if !child.Hidden {
			section(b, child)
		}
	}
}

func options(b *strings.Builder, title string, node *kong.Node) {
	if title != "" {
		fmt.Fprintf(b, ".SH %s\n", title)
	}
	for _, f := range node.Flags {
		if !f.Hidden {
			fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(f.String()), roff(f.Help))
		}
	}
}

// synopsis returns the command with its arguments.
func synopsis(node *kong.Node) string {
	path := ""
	for n := node; n.Parent != nil; n = n.Parent {
		path = " " + n.Name + path
	}
	text := "guidon" + path
	for _, p := range node.Positional {
		text += " " + p.Summary()
	}
	if !node.Leaf() {
		text += " <command>"
	}
	return text + " [flags]"
}

// roff escapes a text for man.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
