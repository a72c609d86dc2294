package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// event is a line of go test -json (go doc test2json).
type event struct {
	Action     string
	Package    string
	ImportPath string // of build-output and build-fail
	Test       string
	Elapsed    float64 // seconds
	Output     string
}

// failure is a test, or a package without one that can be named, that failed.
type failure struct {
	Package string
	Test    string // the outermost test; empty: the package failed as a whole
	Reason  string // why the package failed, if no test did
	Output  string
}

// packageRun is what is known of a package that has not ended.
type packageRun struct {
	running map[string]bool             // outermost tests that have begun and not ended
	failed  []string                    // outermost tests that have failed
	output  map[string]*strings.Builder // by outermost test; "" is the package's own
	cached  bool
}

// endedPackage is the time that a package took.
type endedPackage struct {
	name    string
	seconds float64
}

// report reads the events of a run and prints the packages as they end.
type report struct {
	out      io.Writer
	log      io.Writer // of the events as they came; nil: none
	verbose  bool      // print the output of all tests as it comes
	packages map[string]*packageRun
	builds   map[string]*strings.Builder // output of the compiler, by package
	ended    []endedPackage
	failures []failure

	passed, failed, skipped int // outermost tests
}

func newReport(out io.Writer) *report {
	return &report{out: out, packages: map[string]*packageRun{}, builds: map[string]*strings.Builder{}}
}

// read takes the events until in ends. Lines that are no events are printed as they are.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			r.add(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) add(line string) {
	if r.log != nil {
		_, _ = io.WriteString(r.log, line) // the log is a courtesy
	}
	var e event
	if json.Unmarshal([]byte(line), &e) != nil {
		fmt.Fprint(r.out, line)
		return
	}

	switch {
	case e.Action == "build-output":
		appendTo(r.builds, e.ImportPath, e.Output)
	case e.Package == "" || e.Action == "build-fail":
		// The package that needs the build fails, too.
	case e.Test == "":
		r.addPackageEvent(e)
	default:
		r.addTestEvent(e)
	}
}

func (r *report) run(name string) *packageRun {
	p := r.packages[name]
	if p == nil {
		p = &packageRun{running: map[string]bool{}, output: map[string]*strings.Builder{}}
		r.packages[name] = p
	}
	return p
}

// addTestEvent keeps the output of a test until it is known to have passed. What a
// subtest prints belongs to its outermost test.
func (r *report) addTestEvent(e event) {
	p := r.run(e.Package)
	root, _, isSubtest := strings.Cut(e.Test, "/")
	if e.Action == "output" {
		appendTo(p.output, root, e.Output)
		if r.verbose {
			fmt.Fprint(r.out, e.Output)
		}
		return
	}
	if isSubtest {
		return
	}

	switch e.Action {
	case "run":
		p.running[root] = true
	case "pass", "skip":
		delete(p.running, root)
		delete(p.output, root)
		if e.Action == "pass" {
			r.passed++
		} else {
			r.skipped++
		}
	case "fail":
		delete(p.running, root)
		p.failed = append(p.failed, root)
		r.failed++
	}
}

func (r *report) addPackageEvent(e event) {
	p := r.run(e.Package)
	switch e.Action {
	case "output":
		p.cached = p.cached || strings.Contains(e.Output, "\t(cached)")
		appendTo(p.output, "", e.Output)
		return
	case "start":
		return
	case "fail":
		r.endFailed(e.Package, p)
	}

	delete(r.packages, e.Package)
	r.ended = append(r.ended, endedPackage{e.Package, e.Elapsed})
	r.printEnd(e, p.cached)
}

func (r *report) printEnd(e event, cached bool) {
	switch {
	case e.Action == "fail":
		fmt.Fprintf(r.out, "FAIL %s %.1fs\n", short(e.Package), e.Elapsed)
	case e.Action == "pass" && cached:
		fmt.Fprintf(r.out, "ok   %s (cached)\n", short(e.Package))
	case e.Action == "pass":
		fmt.Fprintf(r.out, "ok   %s %.1fs\n", short(e.Package), e.Elapsed)
	}
}

// endFailed finds out what failed in a package: its tests, those that a panic or
// the time limit ended, or the package as a whole.
func (r *report) endFailed(name string, p *packageRun) {
	for _, test := range p.failed {
		r.failures = append(r.failures, failure{Package: name, Test: test, Output: textOf(p.output, test)})
	}
	unfinished := make([]string, 0, len(p.running))
	for test := range p.running {
		unfinished = append(unfinished, test)
	}
	slices.Sort(unfinished)

	// What is printed outside of the tests, for example that they left something behind,
	// is a failure of its own. A package that has tests reported its end in any case.
	if rest := withoutResult(textOf(p.output, "")); len(p.failed) > 0 && rest != "" {
		r.failures = append(r.failures, failure{Package: name, Reason: "printed outside of its tests", Output: rest})
	}

	switch {
	case len(unfinished) > 0:
		output := textOf(p.output, "")
		for _, test := range unfinished {
			output += textOf(p.output, test)
		}
		r.failed += len(unfinished)
		r.failures = append(r.failures, failure{Package: name, Reason: "ended within " + strings.Join(unfinished, ", "), Output: output})
	case len(p.failed) > 0:
	case r.buildOutput(name) != "":
		r.failures = append(r.failures, failure{Package: name, Reason: "does not compile", Output: r.buildOutput(name)})
	default:
		r.failures = append(r.failures, failure{Package: name, Reason: "failed outside of its tests", Output: textOf(p.output, "")})
	}
}

// endUnfinished counts packages as failed that go test has begun and not ended, because
// something ended go test itself.
func (r *report) endUnfinished() {
	for name, p := range r.packages {
		r.endFailed(name, p)
		r.failures = append(r.failures, failure{Package: name, Reason: "did not end"})
	}
}

// resultLine is a line that a package prints in any case.
var resultLine = regexp.MustCompile(`^(PASS|FAIL|ok|exit status|coverage:|\?)(\s.*)?$`)

// withoutResult is the output of a package without the lines that say how it ended.
func withoutResult(output string) string {
	var rest strings.Builder
	for line := range strings.Lines(output) {
		if text := strings.TrimSpace(line); text != "" && !resultLine.MatchString(text) {
			rest.WriteString(line)
		}
	}
	return rest.String()
}

// buildOutput is what the compiler said of a package or of its tests, which have an
// import path such as "p [p.test]".
func (r *report) buildOutput(name string) (text string) {
	for path, output := range r.builds {
		if base, _, _ := strings.Cut(path, " "); base == name || base == name+"_test" || base == name+".test" {
			text += output.String()
		}
	}
	return text
}

// outputOf is the output of a failed test.
func (r *report) outputOf(f failure) (text string) {
	for _, known := range r.failures {
		if known.Package == f.Package {
			text += known.Output
		}
	}
	return text
}

// print prints what failed and why, what the run cost, and last the names.
func (r *report) print(lasting, flaky []failure, wall, cpu time.Duration) {
	for _, f := range append(slices.Clone(lasting), flaky...) {
		if r.verbose && f.Test != "" {
			continue // its output is above
		}
		fmt.Fprintf(r.out, "\n=== %s\n%s", f.name(), lastPart(f.Output))
	}

	slices.SortFunc(r.ended, func(a, b endedPackage) int { return int(1000 * (b.seconds - a.seconds)) })
	fmt.Fprintln(r.out, "\nslowest packages, in seconds beside the others:")
	for _, p := range r.ended[:min(10, len(r.ended))] {
		fmt.Fprintf(r.out, "%8.1f %s\n", p.seconds, short(p.name))
	}
	fmt.Fprintf(r.out, "%d packages in %.0f s, %.0f s of processor time\n", len(r.ended), wall.Seconds(), cpu.Seconds())

	for _, f := range lasting {
		fmt.Fprintf(r.out, "FAILED %s\n", f.name())
	}
	for _, f := range flaky {
		fmt.Fprintf(r.out, "FLAKY %s: it passed %d times alone; list it in docs/flaky.md\n", f.name(), attempts)
	}

	// A flaky test has passed in the end. A package that failed as a whole counts as
	// one test, so that no failed run says that nothing failed.
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed+len(flaky), max(r.failed-len(flaky), len(lasting)), r.skipped)
}

func (f failure) name() string {
	if f.Test == "" {
		return short(f.Package) + " " + f.Reason
	}
	return short(f.Package) + " " + f.Test
}

// What is never retried: tests, by name or package, whose subject is what must not be lost,
// done twice or left behind when something breaks, and output that says so, or that tells
// of a seed, which a retry would replace by a luckier one. There one failure in a thousand
// runs is a defect.
var (
	neverRetriedTests = regexp.MustCompile(`Kill|Crash|Chaos|Simulat|PowerCut|Damage|Storm|Misbehav|Linearizab|Outage|Lost|Lose|` +
		`Survive|Memory|Move|Death|Fenced|Frozen|Reattach|Restart|Clock|Destination|OnKafka|Commit|Erasure|Torn`)
	neverRetriedPackages = regexp.MustCompile(`/(simulation|powercut|recovery|journal|eventlog|cluster|erasure)(/|$)`)
	neverRetriedOutput   = regexp.MustCompile(`WARNING: DATA RACE|panic: |fatal error: |(?i)\bseed\b|are lost|not in the event store`)
)

// mayRetry reports whether a failure may be the fault of the test or of the machine.
func mayRetry(f failure) bool {
	return f.Test != "" &&
		!neverRetriedTests.MatchString(f.Test) &&
		!neverRetriedPackages.MatchString(f.Package) &&
		!neverRetriedOutput.MatchString(f.Output)
}

// lastPart is the end of an output that is too long to read.
func lastPart(output string) string {
	const limit = 16_000
	if len(output) <= limit {
		return output
	}
	return "[…]" + output[len(output)-limit:]
}

// short is the path of a package within the module.
func short(path string) string {
	return strings.TrimPrefix(path, "github.com/guidonhq/guidon/")
}

func appendTo(texts map[string]*strings.Builder, key, text string) {
	b := texts[key]
	if b == nil {
		b = &strings.Builder{}
		texts[key] = b
	}
	b.WriteString(text)
}

func textOf(texts map[string]*strings.Builder, key string) string {
	if b := texts[key]; b != nil {
		return b.String()
	}
	return ""
}
