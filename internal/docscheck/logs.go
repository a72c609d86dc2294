package main

import "strings"

const operatorsGuide = "docs/operators.md"

// checkLogMessages looks for the messages of the operators guide in the code: those in the
// first column of the tables below its heading "Log messages".
func (r *repository) checkLogMessages() {
	guide, _ := r.document(operatorsGuide)
	inSection, found := false, false
	for _, l := range guide.lines {
		if strings.HasPrefix(l.text, "## ") {
			inSection = l.text == "## Log messages"
		}
		cells := strings.Split(l.text, "|")
		if !inSection || len(cells) < 3 {
			continue
		}
		for _, match := range codeSpan.FindAllStringSubmatch(cells[1], -1) {
			found = true
			if !strings.Contains(r.source, `"`+match[1]) {
				r.report(guide, l.number, "the log has no message %q", match[1])
			}
		}
	}
	if !found {
		r.report(document{name: operatorsGuide}, 1, `no table of messages below "## Log messages"`)
	}
}
