//go:build e2e

package e2e_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// software is a program that events are delivered to. A test kills it and starts it
// again.
type software struct {
	name    string
	command []string
	dir     string
	ready   func() error // returns nil when the program accepts what the test sends

	cmd   *exec.Cmd
	ended chan struct{} // closed when cmd has ended
}

// launch starts the program, which ends with the test.
func launch(t *testing.T, p *software) *software {
	t.Helper()
	t.Cleanup(func() { // also if it never becomes ready
		p.kill(t)
		if log, err := os.ReadFile(p.log()); err == nil && t.Failed() {
			t.Logf("output of %s:\n%s", p.name, tail(log, 4000))
		}
	})
	p.start(t)
	return p
}

func (p *software) log() string { return filepath.Join(p.dir, p.name+".log") }

// start starts the program and returns when it is ready.
func (p *software) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(p.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(p.command[0], p.command[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", p.name, err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	p.cmd, p.ended = cmd, ended
	eventually(t, 5*time.Minute, p.name+" is ready", func() error {
		select {
		case <-ended:
			log, _ := os.ReadFile(p.log())
			t.Fatalf("%s has ended: %s\n%s", p.name, cmd.ProcessState, tail(log, 4000))
		default:
		}
		return p.ready()
	})
}

// kill ends the program with SIGKILL and returns when it has ended.
func (p *software) kill(t *testing.T) {
	t.Helper()
	if p.cmd == nil { // it did not start
		return
	}
	_ = p.cmd.Process.Kill() // fails if it has ended
	<-p.ended
}

// listening returns nil when the address accepts connections.
func listening(address string) func() error {
	return func() error {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return err
		}
		return c.Close()
	}
}

// output runs a command in a directory and returns its standard output alone.
func output(t *testing.T, dir string, command ...string) []byte {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", command, err, tail(append(stdout.Bytes(), stderr.Bytes()...), 4000))
	}
	return stdout.Bytes()
}

// writeFile writes a file of a test and returns its path.
func writeFile(t *testing.T, dir, name, format string, arguments ...any) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, fmt.Appendf(nil, format, arguments...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
