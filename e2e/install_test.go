//go:build e2e

package e2e_test

import (
	"bytes"
	"encoding/json"
	flags "flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// installing has a func() error of each name that was installed.
var installing sync.Map

// TestMain installs what takes minutes beside the first tests, if all are run.
func TestMain(m *testing.M) {
	flags.Parse()
	if work := os.Getenv("GUIDON_E2E_WORK"); work != "" && flags.Lookup("test.run").Value.String() == "" {
		go func() {
			for _, name := range []string{"kafka", "rust"} {
				_ = installOnce(work, name) // the test that needs it fails with the error
			}
		}()
	}
	os.Exit(m.Run())
}

// install copies testdata/name into the work directory and runs its script install,
// which fetches pinned versions of the packages. The directory is kept between runs:
// install finds there what it has fetched before. A failure of install fails the test.
func install(t *testing.T, name string) string {
	t.Helper()
	work := workDir(t)
	if err := installOnce(work, name); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(work, name)
}

// installOnce runs the script of a name, or waits for its first run.
func installOnce(work, name string) error {
	once, _ := installing.LoadOrStore(name, sync.OnceValue(func() error { return runInstall(filepath.Join(work, name), name) }))
	return once.(func() error)()
}

func runInstall(dir, name string) error {
	if err := copyFiles(dir, filepath.Join("testdata", name)); err != nil {
		return err
	}
	need, err := filepath.Abs("need")
	if err != nil {
		return err
	}
	cmd := exec.Command("./install")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "NEED="+need, "GUIDON_E2E_ROOT="+filepath.Dir(filepath.Dir(need)))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("install %s: %w\n%s", name, err, tail(out, 6000))
	}
	return nil
}

// copyFiles replaces the files of from in to and leaves all other files there alone.
func copyFiles(to, from string) error {
	return filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if old, err := os.ReadFile(target); err == nil && bytes.Equal(old, data) {
			return nil // its time stays the same, so builds are not repeated
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, info.Mode())
	})
}

// script runs a command in the directory of an installed client, with task as JSON
// on its standard input, and decodes its standard output into out.
func script(t *testing.T, dir string, task, out any, command ...string) {
	t.Helper()
	input, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TZ=UTC")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", command, err, tail(stderr.Bytes(), 6000))
	}
	if err := json.Unmarshal(stdout.Bytes(), out); err != nil {
		t.Fatalf("%v: %v\n%s\n%s", command, err, tail(stdout.Bytes(), 6000), tail(stderr.Bytes(), 6000))
	}
}
