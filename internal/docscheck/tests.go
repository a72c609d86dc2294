package main

import (
	"regexp"
	"slices"
	"strings"
)

var (
	testName    = regexp.MustCompile(`\b((?:Test|Benchmark|Fuzz)[A-Z]\w*)(…|\*|\.\*)?`)
	testCommand = regexp.MustCompile("`[^`]*(go test|e2e/run) [^`]*`")
	defined     = regexp.MustCompile(`func ((?:Test|Benchmark|Fuzz)\w+)\(`)
)

// noTests are patterns that leave out all tests, to run benchmarks alone.
var noTests = []string{"^$", "-", "NONE"}

// checkTestNames looks for the tests, benchmarks and fuzz targets that documents give as
// evidence. TestName… stands for all whose names begin so.
func (r *repository) checkTestNames() {
	var all []string
	for _, names := range r.tests {
		all = append(all, names...)
	}
	slices.Sort(all)

	for _, d := range r.documents {
		if d.name == "CHANGELOG.md" {
			continue
		}
		own := ownTests(d)
		for _, l := range d.lines {
			if l.fenced {
				continue
			}
			text := testCommand.ReplaceAllString(l.text, "") // see checkTestCommands
			for _, match := range testName.FindAllStringSubmatch(text, -1) {
				name, isPrefix := match[1], match[2] != ""
				i, found := slices.BinarySearch(all, name)
				if isPrefix {
					found = i < len(all) && strings.HasPrefix(all[i], name)
				}
				if !found && !own[name] {
					r.report(d, l.number, "%s does not exist", match[0])
				}
			}
		}
	}
}

// ownTests returns the tests that a document itself contains, as a tutorial does.
func ownTests(d document) map[string]bool {
	own := map[string]bool{}
	for _, l := range d.lines {
		for _, match := range defined.FindAllStringSubmatch(l.text, -1) {
			own[match[1]] = true
		}
	}
	return own
}

// checkTestCommands checks that go test commands, and those of e2e/run, name packages of the
// repository, and that their patterns select a test of them.
func (r *repository) checkTestCommands() {
	for _, d := range r.documents {
		for _, c := range d.code() {
			for _, words := range c.commands() {
				r.checkTestCommand(d, c.line, words)
			}
		}
	}
}

func (r *repository) checkTestCommand(d document, number int, words []string) {
	var packages, patterns []string
	switch {
	case len(words) > 1 && words[0] == "go" && words[1] == "test":
	case words[0] == "./e2e/run":
		packages = []string{"e2e"}
	default:
		return
	}

	for i, word := range words {
		flag, value, hasValue := strings.Cut(word, "=")
		isPattern := slices.Contains([]string{"-run", "-bench", "-fuzz"}, flag)
		switch {
		case isPattern && hasValue:
			patterns = append(patterns, strings.Trim(value, `'"`))
		case isPattern && i+1 < len(words):
			patterns = append(patterns, words[i+1])
		case strings.HasPrefix(word, "./") && word != "./e2e/run":
			packages = append(packages, strings.TrimPrefix(word, "./"))
		}
	}

	if len(packages) == 0 {
		return // those of the reader's own module
	}

	var names []string
	for _, pkg := range packages {
		selected := r.testsOf(pkg)
		if selected == nil && !r.exists(strings.TrimSuffix(pkg, "/...")) {
			r.report(d, number, "%s does not exist", pkg)
			return
		}
		names = append(names, selected...)
	}

	for _, pattern := range patterns {
		if slices.Contains(noTests, pattern) {
			continue
		}
		first, _, _ := strings.Cut(pattern, "/")
		expression, err := regexp.Compile(first)
		if err != nil {
			r.report(d, number, "pattern %s: %v", pattern, err)
		} else if !slices.ContainsFunc(names, expression.MatchString) {
			r.report(d, number, "%s has no test that matches %s", strings.Join(packages, " "), pattern)
		}
	}
}

// testsOf returns the names of the tests of a package, or of a tree of them (core/...).
func (r *repository) testsOf(pkg string) []string {
	tree, isTree := strings.CutSuffix(pkg, "...")
	if !isTree {
		return r.tests[pkg]
	}
	var names []string
	for directory, found := range r.tests {
		if strings.HasPrefix(directory+"/", tree) {
			names = append(names, found...)
		}
	}
	return names
}
