//go:build e2e

package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// shiftSource is a part of package time in shiftedBinary. Plugins get no variables of the
// environment, so the seconds are in a file beside the executable.
const shiftSource = `package time

import "syscall"

var shift = func() (seconds int64) {
	name := make([]byte, 4096)
	n, err := syscall.Readlink("/proc/self/exe", name)
	if err != nil {
		return 0
	}
	f, err := syscall.Open(string(name[:n])+".clock", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer syscall.Close(f)
	n, _ = syscall.Read(f, name)
	sign := int64(1)
	for _, c := range name[:max(n, 0)] {
		if c == '-' {
			sign = -1
		} else {
			seconds = 10*seconds + sign*int64(c-'0')
		}
	}
	return seconds
}()
`

var shifted sync.Mutex

// shiftedBinary builds the server with a clock that a file beside it shifts, in the
// server, its libraries and its plugins: package time adds the seconds to what the
// kernel says. The monotonic clock is as it is. Everything has to be compiled with that
// package, which takes minutes: the result is kept beside the key of what it was built from.
func shiftedBinary(t *testing.T) string {
	t.Helper()
	shifted.Lock()
	defer shifted.Unlock()
	dir := filepath.Join(workDir(t), "shifted")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	root := strings.TrimSpace(string(output(t, dir, "go", "env", "GOROOT")))
	out, key := filepath.Join(dir, "guidon"), shiftedKey(t, root)
	if built, err := os.ReadFile(out + ".key"); err == nil && string(built) == key {
		return out
	}
	for _, old := range []string{out, out + ".key"} { // a running node may have it under another name
		if err := os.RemoveAll(old); err != nil {
			t.Fatal(err)
		}
	}
	original := filepath.Join(root, "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	const reading = "sec, nsec, mono := runtimeNow()\n"
	text := string(source)
	if begin := strings.Index(text, "\nfunc Now() Time {"); begin < 0 || !strings.HasPrefix(text[begin:], "\nfunc Now() Time {\n\t"+reading) {
		t.Fatal("package time of this version of Go reads the clock in another way")
	}
	text = strings.Replace(text, "\nfunc Now() Time {\n\t"+reading, "\nfunc Now() Time {\n\t"+reading+"\tsec += shift\n", 1)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		original: writeFile(t, dir, "time.go", "%s", text),
		filepath.Join(filepath.Dir(original), "shift.go"): writeFile(t, dir, "shift.go", "%s", shiftSource),
	}})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-overlay", writeFile(t, dir, "overlay.json", "%s", overlay), "-o", out, "./cmd/guidon")
	cmd.Dir = ".."
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build a server with another clock: %v\n%s", err, tail(text, 3000))
	}
	writeFile(t, dir, "guidon.key", "%s", key)
	return out
}

// shiftedKey names what shiftedBinary builds: the sources are those of the server that the
// tests run, so its contents stand for them.
func shiftedKey(t *testing.T, root string) string {
	t.Helper()
	hash := sha256.New()
	fmt.Fprint(hash, root, shiftSource)
	for _, path := range []string{binary(t), filepath.Join(root, "VERSION")} {
		f, err := os.Open(path)
		if err == nil {
			_, err = io.Copy(hash, f)
			_ = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// shiftClock gives a node a program of its own whose clock is wrong by some seconds.
func (c *chaos) shiftClock(n *chaosNode, seconds int64) {
	c.Helper()
	path := filepath.Join(n.dir, "guidon")
	if err := os.Link(c.program, path); err != nil {
		c.Fatal(err)
	}
	n.program = path
	writeFile(c.T, n.dir, "guidon.clock", "%d", seconds)
}
