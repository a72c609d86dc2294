package main

import (
	"regexp"
	"strings"
)

var (
	targetName  = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	keyOfYAML   = regexp.MustCompile(`^(?:- +)?(?:[a-z_-]+: +)?`)
	commentYAML = regexp.MustCompile(`^\s*#`)
)

// checkMakeTargets checks that the targets that documents and workflows give to make are in
// the Makefile.
func (r *repository) checkMakeTargets() {
	for _, d := range r.documents {
		for _, c := range d.code() {
			r.checkTargetsOf(d, c)
		}
	}
	for _, d := range r.workflows {
		for _, l := range d.lines {
			if commentYAML.MatchString(l.text) {
				continue
			}
			command := keyOfYAML.ReplaceAllString(strings.TrimSpace(l.text), "")
			r.checkTargetsOf(d, code{line: l.number, text: command})
		}
	}
}

func (r *repository) checkTargetsOf(d document, c code) {
	for _, words := range c.commands() {
		if words[0] != "make" {
			continue
		}
		for _, word := range words[1:] {
			if strings.Contains(word, "=") {
				continue // a variable
			}
			if !targetName.MatchString(word) {
				break
			}
			if !r.targets[word] {
				r.report(d, c.line, "make has no target %s", word)
			}
		}
	}
}
