package main_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
)

// dedups are the sinks of a storm of upgrades, named after how they recognize a
// repetition: not at all, by the position that they store with the events, by event.
var dedups = []string{"none", "position", "uuid"}

// upgrades is a server with three sinks whose executable is replaced again and again.
type upgrades struct {
	storm
	load    *traffic
	program []byte // the executable without a version

	n       int    // versions so far
	served  string // the version that serves
	use     string // the executable in the config
	sum     string // its checksum in the config, "" for none
	note    bool   // the config has the option of new versions
	doubled map[int]bool
}

// TestUpgradeStorm replaces the executable of three sinks while events arrive: by newer
// versions, by older ones, by versions with another schema or protocol, by broken and
// half-written files, in place and beside the old one, with processes killed and the
// server restarted meanwhile. No event is lost. A sink that stores its position or
// recognizes events has each once. A sink that recognizes nothing has an event twice
// only if its process was killed between storing and answering, or answered after the
// deadline. An event whose request was repeated, because the server restarted before it
// answered, may be in the journal twice: only a sink that recognizes events has it once.
// STORM_UPGRADES sets the number of replacements (make upgrades: 100), and STORM_SEED
// which.
func TestUpgradeStorm(t *testing.T) {
	longTest(t, "STORM_UPGRADES")
	u := newUpgrades(t)
	u.upgradeTo(t, u.build(t, "", false))
	u.load = &traffic{server: u.server, stopped: make(chan struct{}), acked: map[string]sent{}, repeated: map[string]bool{}}
	for client := range senders {
		u.load.clients.Go(func() { u.load.sendEvents(client) })
	}
	t.Cleanup(u.load.stop)

	steps := slices.Sorted(maps.Keys(u.steps()))
	count := intVariable("STORM_UPGRADES", 12)
	for done := 0; done < count; {
		u.random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		for _, step := range steps[:min(len(steps), count-done)] {
			t.Logf("%s: from version %s", step, u.served)
			u.steps()[step](t)
			done++
		}
	}
	u.upgradeTo(t, u.build(t, "", u.note))
	u.load.stop()
	u.load.check(t)
	u.checkFiles(t)
	if err := u.stop(t); err != nil {
		t.Errorf("stop: %v", err)
	}
	until(t, func() string { return u.leftProcesses(0) })
}

// newUpgrades builds the plugin and prepares a server.
func newUpgrades(t *testing.T) *upgrades {
	t.Helper()
	u := &upgrades{storm: *newStorm(t), doubled: map[int]bool{}}
	var err error
	if u.program, err = os.ReadFile(versionsPlugin(t)); err != nil {
		t.Fatal(err)
	}
	write(t, u.config(), "plugins: {instances: []}\n")
	u.start(t)
	return u
}

// version is an executable and how it works.
type version struct {
	name, mode, path string
	note             bool
	text             []byte
}

// build writes a new version beside the others.
func (u *upgrades) build(t *testing.T, mode string, note bool) version {
	t.Helper()
	u.n++
	v := version{name: fmt.Sprintf("0.%d.0", u.n), mode: mode, note: note, path: filepath.Join(u.dir, fmt.Sprintf("versions-%d", u.n))}
	line, err := json.Marshal(map[string]any{"version": v.name, "mode": mode, "note": note})
	if err != nil {
		t.Fatal(err)
	}
	v.text = slices.Concat(u.program, []byte("\n"), line, []byte("\n"))
	u.place(t, v.path, v.text)
	return v
}

// place writes an executable as tools do that copy files: beside it, then by rename.
func (u *upgrades) place(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func checksum(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// apply writes a config with an executable for all sinks, and has the server read it.
func (u *upgrades) apply(t *testing.T, path, sum string, note bool) {
	t.Helper()
	u.use, u.sum, u.note = path, sum, note
	var b strings.Builder
	b.WriteString("plugins:\n  dev: true\n  health_interval: 500ms\n  restart: {initial: 20ms, max: 500ms}\n  instances:\n")
	for _, dedup := range dedups {
		fmt.Fprintf(&b, "    - name: %s\n      kind: sink\n      use: %s\n", dedup, path)
		if sum != "" {
			fmt.Fprintf(&b, "      sha256: %q\n", sum)
		}
		fmt.Fprintf(&b, "      env: {set: {%s}}\n", strings.Replace(u.mark(), "=", ": ", 1))
		if dedup == "position" { // the neighbours of a process end it in its calls, too: dead letters
			b.WriteString("      isolated: true\n")
		}
		b.WriteString("      timeouts: {start: 5s, open: 2s, call: 2s, flush: 2s, drain: 10s, stop: 2s, health: 2s}\n")
		fmt.Fprintf(&b, "      config: {path: %q, dedup: %s", u.file(dedup), dedup)
		if note {
			b.WriteString(", note: required")
		}
		b.WriteString("}\n")
	}
	u.place(t, u.config(), []byte(b.String()))
	u.reload(t)
}

func (u *upgrades) file(dedup string) string { return filepath.Join(u.dir, dedup+".lines") }

// upgradeTo configures a version and waits until it serves all sinks.
func (u *upgrades) upgradeTo(t *testing.T, v version) {
	t.Helper()
	u.apply(t, v.path, checksum(v.text), v.note)
	u.serves(t, v)
}

// readAgain has the server read a config that has not changed, for an executable that
// has: the server watches the config only.
func (u *upgrades) readAgain(t *testing.T) {
	t.Helper()
	if out, err := u.guidon("plugin", "reload", "--key", u.personal); err != nil {
		t.Fatalf("reload: %v\n%s", err, out)
	}
}

// serves waits until all sinks have the version and no trouble, and store events.
func (u *upgrades) serves(t *testing.T, v version) {
	t.Helper()
	until(t, func() string {
		for name, p := range u.states(t) {
			if p.State != "ready" || p.Version != v.name || p.Trouble != "" {
				return fmt.Sprintf("%s has not version %s: %+v", name, v.name, p)
			}
		}
		return ""
	})
	u.served = v.name
	if u.load != nil {
		u.stores(t)
	}
}

// states returns the three sinks; a sink that is missing has an empty state.
func (u *upgrades) states(t *testing.T) map[string]pluginState {
	t.Helper()
	all, out := u.plugins(t), map[string]pluginState{}
	for _, name := range dedups {
		out[name] = all[name]
	}
	return out
}

// stores waits until each sink has stored another event.
func (u *upgrades) stores(t *testing.T) {
	t.Helper()
	for _, name := range dedups {
		before := u.size(name)
		until(t, func() string {
			if u.size(name) <= before {
				return "nothing is stored by " + name
			}
			return ""
		})
	}
}

func (u *upgrades) size(dedup string) int64 {
	info, err := os.Stat(u.file(dedup))
	if err != nil {
		return 0
	}
	return info.Size()
}

// refused waits until the trouble of each sink is named while the old version serves.
func (u *upgrades) refused(t *testing.T) {
	t.Helper()
	until(t, func() string {
		for name, p := range u.states(t) {
			if p.State != "degraded" || p.Reason != "upgrade_failed" || p.Trouble == "" || p.Version != u.served {
				return fmt.Sprintf("%s does not keep version %s: %+v", name, u.served, p)
			}
		}
		return ""
	})
	u.stores(t)
}

// troubled waits until readiness names a trouble of each sink.
func (u *upgrades) troubled(t *testing.T) {
	t.Helper()
	until(t, func() string {
		troubles := u.troubles(t)
		for _, name := range dedups {
			if troubles[name] == "" {
				return fmt.Sprintf("%s has no trouble: %+v", name, u.states(t)[name])
			}
		}
		return ""
	})
}

// steps are the replacements by name.
func (u *upgrades) steps() map[string]func(*testing.T) {
	steps := map[string]func(*testing.T){
		"newer version":                      func(t *testing.T) { u.upgradeTo(t, u.build(t, "", u.note)) },
		"slow version":                       func(t *testing.T) { u.upgradeTo(t, u.build(t, "slow", u.note)) },
		"newer version and back":             u.stepBack,
		"many versions at once":              u.stepMany,
		"changed schema":                     u.stepSchema,
		"file replaced in place":             u.stepInPlace,
		"half-written file":                  u.stepHalfWritten,
		"file replaced without a checksum":   u.stepUnverified,
		"wrong checksum":                     u.stepChecksum,
		"text file":                          u.stepText,
		"process killed during an upgrade":   u.stepKill,
		"server restarted with a new one":    u.stepRestart,
		"server restarted with a broken one": u.stepRestartBroken,
	}
	for _, mode := range []string{"exit", "silent", "protocol", "open_exit", "open_panic", "open_error", "open_hang"} {
		steps["version that does not start: "+mode] = func(t *testing.T) { u.stepRefused(t, mode) }
	}
	for _, mode := range []string{"transient", "die", "hang"} {
		steps["version that stores nothing: "+mode] = func(t *testing.T) { u.stepTroubled(t, mode) }
	}
	for _, mode := range []string{"die_once", "torn_once"} {
		steps["version that is killed in a write: "+mode] = func(t *testing.T) { u.upgradeTo(t, u.build(t, mode, u.note)) }
	}
	return steps
}

func (u *upgrades) stepBack(t *testing.T) {
	old := u.build(t, "", u.note)
	u.upgradeTo(t, old)
	u.upgradeTo(t, u.build(t, "", u.note))
	u.upgradeTo(t, old)
}

// stepMany replaces the version before the one before it has come up.
func (u *upgrades) stepMany(t *testing.T) {
	var v version
	for range 5 {
		v = u.build(t, []string{"", "exit", "open_error"}[u.random.IntN(3)], u.note)
		u.apply(t, v.path, checksum(v.text), v.note)
	}
	u.upgradeTo(t, u.build(t, "", u.note))
}

// stepSchema upgrades to a version that requires a new option, or forbids it: first
// without a change of the config, then with it.
func (u *upgrades) stepSchema(t *testing.T) {
	v := u.build(t, "", !u.note)
	u.apply(t, v.path, checksum(v.text), u.note)
	u.refused(t)
	u.upgradeTo(t, v)
}

// stepInPlace writes into the executable that runs. The config changes afterwards.
func (u *upgrades) stepInPlace(t *testing.T) {
	path, next := u.use, u.build(t, "", u.note)
	if err := os.WriteFile(path, next.text, 0o755); err != nil {
		t.Fatal(err)
	}
	u.readAgain(t)
	u.stores(t)
	next.path = path
	u.upgradeTo(t, next)
}

// stepHalfWritten writes the first half of an executable, and the rest after the server
// has read the config.
func (u *upgrades) stepHalfWritten(t *testing.T) {
	v := u.build(t, "", u.note)
	if err := os.WriteFile(v.path, v.text[:len(v.text)/2], 0o755); err != nil {
		t.Fatal(err)
	}
	u.apply(t, v.path, checksum(v.text), v.note)
	u.refused(t)
	if err := os.WriteFile(v.path, v.text, 0o755); err != nil {
		t.Fatal(err)
	}
	u.readAgain(t)
	u.serves(t, v)
}

// stepUnverified replaces the executable in development mode, where it has no checksum:
// by a half of one, then by a whole one.
func (u *upgrades) stepUnverified(t *testing.T) {
	v := u.build(t, "", u.note)
	u.apply(t, v.path, "", v.note)
	u.serves(t, v)
	next := u.build(t, "", u.note)
	if err := os.WriteFile(v.path, next.text[:len(next.text)/2], 0o755); err != nil {
		t.Fatal(err)
	}
	u.readAgain(t)
	u.refused(t)
	u.place(t, v.path, next.text)
	u.readAgain(t)
	u.serves(t, next)
	u.upgradeTo(t, u.build(t, "", u.note))
}

func (u *upgrades) stepChecksum(t *testing.T) {
	v := u.build(t, "", u.note)
	u.apply(t, v.path, strings.Repeat("ab", 32), v.note)
	u.refused(t)
	u.upgradeTo(t, v)
}

func (u *upgrades) stepText(t *testing.T) {
	path, text := filepath.Join(u.dir, "text"), []byte("this is no program\n")
	u.place(t, path, text)
	u.apply(t, path, checksum(text), u.note)
	u.refused(t)
	u.upgradeTo(t, u.build(t, "", u.note))
}

// stepKill kills the processes of the old version while the new one comes up.
func (u *upgrades) stepKill(t *testing.T) {
	v := u.build(t, "", u.note)
	old := u.states(t)
	u.apply(t, v.path, checksum(v.text), v.note)
	time.Sleep(time.Duration(u.random.IntN(300)) * time.Millisecond)
	for _, p := range old {
		u.doubled[p.PID] = true
		if p.PID != 0 {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
	u.serves(t, v)
}

// stepRestart stops the server, and starts it with another version.
func (u *upgrades) stepRestart(t *testing.T) {
	v := u.build(t, "", u.note)
	u.restart(t, v)
	u.serves(t, v)
}

// stepRestartBroken starts the server with a version that does not work: the events
// wait for one that does.
func (u *upgrades) stepRestartBroken(t *testing.T) {
	u.restart(t, u.build(t, "exit", u.note))
	u.troubled(t)
	u.upgradeTo(t, u.build(t, "", u.note))
}

func (u *upgrades) restart(t *testing.T, v version) {
	t.Helper()
	u.apply(t, v.path, checksum(v.text), v.note)
	if err := u.stop(t); err != nil {
		t.Fatal(err)
	}
	u.start(t)
}

// stepRefused upgrades to a version that does not start: the old one goes on.
func (u *upgrades) stepRefused(t *testing.T, mode string) {
	v := u.build(t, mode, u.note)
	u.apply(t, v.path, checksum(v.text), v.note)
	u.refused(t)
	u.upgradeTo(t, u.build(t, "", u.note))
}

// stepTroubled upgrades to a version that opens and stores nothing, and goes back.
func (u *upgrades) stepTroubled(t *testing.T, mode string) {
	v := u.build(t, mode, u.note)
	u.apply(t, v.path, checksum(v.text), v.note)
	u.troubled(t)
	u.upgradeTo(t, u.build(t, "", u.note))
}

// stored is one line of a sink's file.
type stored struct {
	Seq     uint64
	UUID    [16]byte
	Batch   string
	Attempt uint32
	PID     int
	Version string
	Event   struct {
		UUID       string
		Properties struct{ Client, N int }
	}
}

// checkFiles replays the dead letters of versions that broke, waits until each sink has
// all events, and checks which are there twice and in which order they are.
func (u *upgrades) checkFiles(t *testing.T) {
	t.Helper()
	u.findKilled(t)
	replayed := map[string]int{}
	for _, dedup := range dedups {
		until(t, func() string { return u.behind(t, dedup) })
		replayed[dedup] = len(u.read(t, dedup))
	}
	out, err := u.guidon("deadletter", "replay", "--all")
	if err != nil {
		t.Fatalf("replay: %v\n%s", err, out)
	}
	t.Logf("%d events, %d versions; dead letters: %s", len(u.load.acked), u.n, strings.TrimSpace(out))
	for _, dedup := range dedups {
		until(t, func() string { return u.missing(t, dedup) })
		u.checkLines(t, dedup, u.read(t, dedup), replayed[dedup])
	}
}

// findKilled notes the processes that killed themselves in a write.
func (u *upgrades) findKilled(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(u.dir, "*.lines.0.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, _ := os.ReadFile(file)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			u.doubled[pid] = true
		}
	}
}

// read returns the whole lines of a sink.
func (u *upgrades) read(t *testing.T, dedup string) []stored {
	t.Helper()
	text, err := os.ReadFile(u.file(dedup))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var out []stored
	for line := range strings.Lines(string(text)) {
		var one stored
		if !strings.HasSuffix(line, "\n") {
			break
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%s: %v: %s", dedup, err, line)
		}
		out = append(out, one)
	}
	return out
}

// behind returns "" when delivery has come to the end of the journal.
func (u *upgrades) behind(t *testing.T, dedup string) string {
	t.Helper()
	var page struct {
		Results []struct {
			Name     string
			Delivery struct {
				LagRecords int `json:"lag_records"`
				State      string
			}
		}
	}
	u.get(t, "/api/plugins", &page)
	for _, p := range page.Results {
		if p.Name == dedup && (p.Delivery.LagRecords != 0 || p.Delivery.State != "idle") {
			return fmt.Sprintf("%s: %+v", dedup, p)
		}
	}
	return ""
}

func (u *upgrades) missing(t *testing.T, dedup string) string {
	t.Helper()
	acked, found := map[string]bool{}, map[string]int{}
	for id := range u.load.acked {
		acked[id] = true
	}
	for _, one := range u.read(t, dedup) {
		found[one.Event.UUID]++
	}
	return missingEvents(acked, found, dedup)
}

// checkLines checks the lines of a sink; those from replayed on are replayed dead
// letters, which are behind their place.
func (u *upgrades) checkLines(t *testing.T, dedup string, lines []stored, replayed int) {
	t.Helper()
	first, last, twice := map[[16]byte]stored{}, map[int]int{}, 0
	late, err := os.ReadFile(u.file(dedup) + ".late")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for i, one := range lines {
		if before, found := first[one.UUID]; found {
			twice++
			unknown := u.doubled[before.PID] || strings.Contains(string(late), before.Batch+"\n")
			again := dedup != "uuid" && u.load.repeated[one.Event.UUID]
			if !again && (dedup != "none" || !unknown) {
				t.Errorf("%s: event %s is there twice: batch %s attempt %d of %s (process %d), then batch %s attempt %d of %s", dedup, uuid.UUID(one.UUID),
					before.Batch, before.Attempt, before.Version, before.PID, one.Batch, one.Attempt, one.Version)
			}
			continue
		}
		first[one.UUID] = one
		client, n := one.Event.Properties.Client, one.Event.Properties.N
		if before, found := last[client]; found && n <= before && i < replayed {
			t.Errorf("%s: event %d of client %d is behind event %d", dedup, n, client, before)
		}
		last[client] = max(n, last[client])
	}
	t.Logf("%s: %d lines, %d events twice", dedup, len(lines), twice)
}
