package main_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// pluginDir is the directory of the plugins that tests build. TestMain removes it.
var pluginDir string

// Plugins of testdata, each built once for all tests.
var (
	hangingPlugin     = sharedPlugin("hanging")
	misbehavingPlugin = sharedPlugin("misbehaving")
	versionsPlugin    = sharedPlugin("versions")
)

// sharedPlugin returns a function that returns the path of a plugin of testdata, and
// builds it at the first call.
func sharedPlugin(name string) func(t testing.TB) string {
	build := sync.OnceValues(func() (string, error) {
		path := filepath.Join(pluginDir, name)
		return path, goBuild(path, "./testdata/"+name)
	})
	return func(t testing.TB) string {
		t.Helper()
		path, err := build()
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
}

// goBuild builds a program of this module, without the symbols that no test reads.
func goBuild(path, pkg string) error {
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, pkg).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}
