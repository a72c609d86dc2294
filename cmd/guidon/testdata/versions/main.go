// Command versions is a sink in many versions. The last line of its executable, which
// the test appends, is a JSON object with the version and how it works. So a version
// costs no build.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// build is the last line of the executable.
var build struct {
	// Version is semantic.
	Version string
	// Mode is how it breaks, "" for not at all.
	Mode string
	// Note adds a required option to the config.
	Note bool
}

func main() {
	if err := readBuild(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	switch build.Mode {
	case "exit":
		os.Exit(4)
	case "silent":
		select {}
	case "protocol":
		fmt.Printf("1|2|unix|%s/s|grpc|\n", os.Getenv("PLUGIN_UNIX_SOCKET_DIR"))
		select {}
	}
	newSink := func() sdk.Sink { return &sink{} }
	if build.Note {
		newSink = func() sdk.Sink { return &sinkWithNote{} }
	}
	sdk.Serve(sdk.Plugin{Name: "test/versions", Version: build.Version, Sink: newSink})
}

func readBuild() error {
	path, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	last := bytes.TrimSuffix(text, []byte("\n"))
	return json.Unmarshal(last[bytes.LastIndexByte(last, '\n')+1:], &build)
}

// config is the config of the first versions.
type config struct {
	Path  string `json:"path" required:"true" doc:"File to append to."`
	Dedup string `json:"dedup" enum:"none|position|uuid" required:"true" doc:"How a repetition is recognized."`
}

// sink appends events to a file that several processes may have open.
type sink struct {
	cfg  config
	file *os.File

	read     int64 // how much of the file is known
	position uint64
	stored   map[[16]byte]bool
}

// sinkWithNote is the sink of the versions with another schema.
type sinkWithNote struct {
	noted struct {
		Path  string `json:"path" required:"true" doc:"File to append to."`
		Dedup string `json:"dedup" enum:"none|position|uuid" required:"true" doc:"How a repetition is recognized."`
		Note  string `json:"note" required:"true" doc:"What the new versions require."`
	}
	sink
}

func (s *sinkWithNote) Config() any { return &s.noted }

func (s *sinkWithNote) Open(ctx context.Context, req sdk.OpenRequest) (sdk.SinkProperties, error) {
	s.cfg = config{s.noted.Path, s.noted.Dedup}
	return s.sink.Open(ctx, req)
}

func (s *sink) Config() any { return &s.cfg }

// Open opens the file and its lock.
func (s *sink) Open(context.Context, sdk.OpenRequest) (p sdk.SinkProperties, err error) {
	switch build.Mode {
	case "open_exit":
		os.Exit(5)
	case "open_panic":
		panic("open")
	case "open_error":
		return p, sdk.Transient(fmt.Errorf("the destination is away"))
	case "open_hang":
		select {}
	}
	p.Ordering, p.Durability, p.MaxEvents = sdk.OrderTotal, sdk.DurabilityLocalDisk, 50
	if s.cfg.Dedup == "uuid" {
		p.Dedup = sdk.DedupByEventID
	}
	s.stored = map[[16]byte]bool{}
	if s.file, err = sdk.OpenLines(s.cfg.Path); err != nil {
		return p, sdk.ConfigError("/path", err)
	}
	return p, sdk.Transient(s.catchUp()) // all but the last lines, so that the first batch needs little time
}

// Close closes the file.
func (s *sink) Close(context.Context) error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// line is one event in the file, with who wrote it and under which number.
type line struct {
	Seq     uint64
	UUID    [16]byte
	Batch   string
	Attempt uint32
	PID     int
	Version string
	Event   json.RawMessage
}

// Write appends the events that the file does not have.
func (s *sink) Write(ctx context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	defer s.noteLate(ctx, b)
	switch {
	case build.Mode == "hang":
		select {}
	case build.Mode == "transient", build.Mode == "die" && s.cfg.Dedup == "position":
		// A replayed dead letter has its former number: position takes none.
		return sdk.WriteResult{}, sdk.Transient(fmt.Errorf("the destination is away"))
	case build.Mode == "die":
		os.Exit(6)
	case build.Mode == "slow":
		time.Sleep(50 * time.Millisecond)
	}
	unlock, err := s.lock()
	if err != nil {
		return sdk.WriteResult{}, sdk.Transient(err)
	}
	defer unlock()
	if err := s.catchUp(); err != nil {
		return sdk.WriteResult{}, sdk.Transient(err)
	}
	text := s.lines(b)
	if build.Mode == "torn_once" && s.once() {
		_, _ = s.file.Write(text[:len(text)*2/3])
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	if err := sdk.AppendLines(s.file, text); err != nil {
		return sdk.WriteResult{}, sdk.Transient(err)
	}
	if build.Mode == "die_once" && s.once() { // stored, and not answered
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return b.Committed(), nil
}

func (s *sink) lines(b *sdk.Batch) []byte {
	var text []byte
	inBatch := map[[16]byte]bool{}
	for i := range b.Records {
		r, seq := &b.Records[i], b.FirstSeq+uint64(i)
		if s.cfg.Dedup == "uuid" && (s.stored[r.UUID] || inBatch[r.UUID]) || s.cfg.Dedup == "position" && seq <= s.position {
			continue
		}
		inBatch[r.UUID] = true
		one, err := json.Marshal(line{seq, r.UUID, b.ID, b.Attempt, os.Getpid(), build.Version, r.JSON})
		if err != nil {
			panic(err)
		}
		text = append(append(text, one...), '\n')
	}
	return text
}

// catchUp reads the whole lines that it or another process has appended.
func (s *sink) catchUp() error {
	info, err := s.file.Stat()
	if err != nil || s.cfg.Dedup == "none" {
		return err
	}
	text := make([]byte, max(0, info.Size()-s.read))
	if _, err := s.file.ReadAt(text, s.read); err != nil {
		return err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	s.read += int64(len(text))
	for one := range bytes.Lines(text) {
		var l line
		if err := json.Unmarshal(one, &l); err != nil {
			return err
		}
		s.stored[l.UUID] = true
		s.position = max(s.position, l.Seq)
	}
	return nil
}

// noteLate notes a batch whose answer may have come too late: the server then does not
// know its outcome.
func (s *sink) noteLate(ctx context.Context, b *sdk.Batch) {
	if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > 500*time.Millisecond {
		return
	}
	f, err := os.OpenFile(s.cfg.Path+".late", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = fmt.Fprintln(f, b.ID)
		_ = f.Close()
	}
}

// lock keeps the other process of an upgrade out between reading and appending.
func (s *sink) lock() (unlock func(), err error) {
	f, err := os.OpenFile(s.cfg.Path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// once reports whether this version has not broken yet.
func (s *sink) once() bool {
	f, err := os.OpenFile(s.cfg.Path+"."+build.Version, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = fmt.Fprintln(f, os.Getpid())
		_ = f.Close()
	}
	return err == nil
}
