package main_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// curlCommands returns the curl commands in an output: lines that begin with curl,
// each with its continuation lines.
func curlCommands(output string) []string {
	var out []string
	open := false
	for line := range strings.SplitSeq(output, "\n") {
		text := strings.TrimSpace(line)
		switch {
		case open:
			out[len(out)-1] += "\n" + text
		case strings.HasPrefix(text, "curl "):
			out = append(out, text)
		default:
			continue
		}
		open = strings.HasSuffix(text, "\\")
	}
	return out
}

// needCommand makes sure that there is a command which a test runs, as a document shows it.
// As root it installs the Debian package of the command; otherwise the test fails with a
// sentence that names the package.
func needCommand(t testing.TB, command, pkg string) {
	t.Helper()
	if _, err := exec.LookPath(command); err == nil {
		return
	}
	if out, err := exec.Command("../../e2e/need", "command -v "+command, pkg).CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
}

func shell(dir, command string) (string, error) {
	cmd := exec.Command("bash", "-c", command)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func drain(from <-chan int, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = <-from
	}
	return out
}

func anyContains(lines []string, dir string) bool {
	for _, line := range lines {
		if strings.Contains(line, dir) {
			return true
		}
	}
	return false
}
