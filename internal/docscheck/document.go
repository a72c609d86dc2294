package main

import (
	"regexp"
	"strings"
)

// A document is a text file by lines.
type document struct {
	name  string
	lines []line
}

// A line is one of a document. A fenced one belongs to a block of code; the lines with the
// fences themselves are left out.
type line struct {
	number int
	text   string
	fenced bool
}

// A code is a piece of code in a document: a span in backticks or a line of a block.
type code struct {
	line int
	text string
	span bool
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

func parseDocument(name, text string) document {
	d := document{name: name}
	fence := ""
	number := 0
	for content := range strings.Lines(text) {
		number++
		content = strings.TrimRight(content, "\r\n")
		trimmed := strings.TrimSpace(content)

		switch {
		case fence == "" && (strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~")):
			fence = trimmed[:3]
			continue
		case fence != "" && trimmed == fence:
			fence = ""
			continue
		}
		d.lines = append(d.lines, line{number, content, fence != ""})
	}
	return d
}

// code returns the spans and the lines of blocks in order.
func (d document) code() []code {
	var all []code
	for _, l := range d.lines {
		if l.fenced {
			all = append(all, code{l.number, l.text, false})
			continue
		}
		for _, match := range codeSpan.FindAllStringSubmatch(l.text, -1) {
			all = append(all, code{l.number, match[1], true})
		}
	}
	return all
}

var assignment = regexp.MustCompile(`^[A-Za-z_]+=`)

// commands splits a piece of code into its commands, each a list of words without the prompt,
// assignments of variables, sudo, quotes and what follows a #.
func (c code) commands() [][]string {
	var all [][]string
	text := strings.NewReplacer("&&", "\n", "||", "\n", "; ", "\n").Replace(c.text)
	for command := range strings.Lines(text) {
		words := strings.Fields(command)
		for len(words) > 0 && (words[0] == "$" || words[0] == "sudo" || assignment.MatchString(words[0])) {
			words = words[1:]
		}

		for i, word := range words {
			if strings.HasPrefix(word, "#") {
				words = words[:i]
				break
			}
			words[i] = strings.Trim(word, `'"`)
		}
		if len(words) > 0 {
			all = append(all, words)
		}
	}
	return all
}
