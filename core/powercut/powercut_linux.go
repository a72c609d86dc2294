package powercut

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
)

// diskVariable tells a process that it serves a disk; it holds the two paths as JSON.
const diskVariable = "POWERCUT_DISK"

// Losses counts what power cuts have taken away.
type Losses struct {
	OldPages  int   // pages with the content of the last fsync
	TornPages int   // pages with old and new sectors
	Bytes     int64 // of the ends of files that had grown
	Changes   int   // creations, removals, renames and truncations that were undone
}

// Disk is a directory on a file system that forgets unsynced data. Its methods are
// safe for concurrent use, but Cut must not run while a process has files of it open.
//
// A process of its own serves the file system: Go stops all goroutines of a process
// while a child starts, so a child that starts on a disk of its parent would wait
// for ever.
type Disk struct {
	process *exec.Cmd

	mu       sync.Mutex
	commands io.WriteCloser
	answers  *json.Decoder
	losses   Losses
}

// command is one line to the process of a disk.
type command struct {
	Verb string // cut, sync or unmount
	Seed uint64 // of cut
}

// answer is one line from it.
type answer struct {
	Error  string
	Losses Losses // of all cuts
}

// Mount mounts a new, empty disk at path, an existing directory. The content is kept
// in the existing directory store. The program must call ServeDisk at its start.
func Mount(path, store string) (*Disk, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	paths, err := json.Marshal([2]string{path, store})
	if err != nil {
		return nil, err
	}
	d := &Disk{process: exec.Command(self)}
	d.process.Env = append(os.Environ(), diskVariable+"="+string(paths))
	d.process.Stderr = os.Stderr
	if d.commands, err = d.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := d.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	d.answers = json.NewDecoder(out)
	if err := d.process.Start(); err != nil {
		return nil, err
	}
	return d, d.read()
}

// Cut drops a part of the unsynced writes, chosen by seed, and mounts the disk again.
// The caller has ended every process that uses the disk.
func (d *Disk) Cut(seed uint64) error { return d.do(command{Verb: "cut", Seed: seed}) }

// Sync makes all content durable, as sync(2) does.
func (d *Disk) Sync() error { return d.do(command{Verb: "sync"}) }

// Unmount ends the file system. What was not synced is lost.
func (d *Disk) Unmount() error {
	return errors.Join(d.do(command{Verb: "unmount"}), d.commands.Close(), d.process.Wait())
}

// Losses returns the sum of the losses of all cuts.
func (d *Disk) Losses() Losses {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.losses
}

func (d *Disk) do(c command) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := json.NewEncoder(d.commands).Encode(c); err != nil {
		return err
	}
	return d.read()
}

func (d *Disk) read() error {
	var a answer
	if err := d.answers.Decode(&a); err != nil {
		return fmt.Errorf("the process of the disk has ended: %w", err)
	}
	if a.Error != "" {
		return errors.New(a.Error)
	}
	d.losses = a.Losses
	return nil
}

// ServeDisk serves a disk and ends the process if Mount has started it; else it
// returns at once. A TestMain calls it first.
func ServeDisk() {
	value := os.Getenv(diskVariable)
	if value == "" {
		return
	}
	var paths [2]string
	if err := json.Unmarshal([]byte(value), &paths); err != nil {
		fmt.Fprintln(os.Stderr, "powercut:", err)
		os.Exit(1)
	}
	serve(paths[0], paths[1])
	os.Exit(0)
}

// serve answers commands until standard input ends, which also happens when the
// process of the tests is killed.
func serve(path, store string) {
	out := json.NewEncoder(os.Stdout)
	d, err := newDisk(path, store)
	tell(out, d, err)
	if err != nil {
		return
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var c command
		err := json.Unmarshal(lines.Bytes(), &c)
		if err == nil {
			err = d.run(c)
		}
		tell(out, d, err)
		if c.Verb == "unmount" && err == nil {
			return
		}
	}
	_ = d.server.Unmount()
}

func (d *disk) run(c command) error {
	switch c.Verb {
	case "cut":
		return d.cut(rand.New(rand.NewPCG(c.Seed, c.Seed)))
	case "sync":
		return d.syncAll()
	case "unmount":
		return d.server.Unmount()
	}
	return fmt.Errorf("unknown command %q", c.Verb)
}

func tell(out *json.Encoder, d *disk, err error) {
	var a answer
	if err != nil {
		a.Error = err.Error()
	} else {
		a.Losses = d.losses
	}
	_ = out.Encode(a) // without a reader, standard input ends next
}
