// Package settings declares the configuration of plugins: the `plugins` section
// with its instances, their limits, timeouts and delivery sections, with defaults
// and validation.
//
// It is a leaf, so that a package which needs one section (delivery needs the
// delivery section of a sink) imports the type instead of declaring it again.
// Values are plain data: references to secrets (${env:NAME}) are kept as written
// and resolved by the host. Validate checks what the configuration alone shows; a
// missing executable, a wrong checksum or a config that the plugin rejects
// becomes the state of the instance and never stops the server.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Config is the `plugins` section of the server's configuration.
type Config struct {
	// Instances are the plugins to run.
	Instances []Instance `koanf:"instances"`
	// SocketDir is the parent of the private directory for sockets; "" is the
	// data directory or, when its path is too long for a socket, the system's
	// temporary directory.
	SocketDir string `koanf:"socket_dir"`
	// LogLevel is the log level of plugins: debug, info, warn or error.
	LogLevel string `koanf:"log_level"`
	// LogLinesPerSecond limits the log lines of one process; a long line counts as one
	// for each started KiB.
	LogLinesPerSecond int `koanf:"log_lines_per_second"`
	// HealthInterval is the time between two health checks.
	HealthInterval time.Duration `koanf:"health_interval"`
	// Restart controls restarts after an exit.
	Restart Restart `koanf:"restart"`
	// Limits apply to each process that starts, where the instance sets none.
	Limits Limits `koanf:"limits"`
	// ManagedBy is api if operators may configure bundled plugins with the API beside
	// the instances here, or file if only these run.
	ManagedBy string `koanf:"managed_by"`
	// Dev runs executables without a configured checksum. It is for the
	// development of plugins; the log warns each minute.
	Dev bool `koanf:"dev"`
}

// Instance is one configured plugin.
type Instance struct {
	// Name labels every log line and metric, and names the cursor of a sink: a
	// new name is a new reader that starts from the beginning.
	Name string `koanf:"name"`
	// Use is the name of a bundled plugin, or the path of an executable.
	Use string `koanf:"use"`
	// Kind is sink, notifier or matcher.
	Kind string `koanf:"kind"`
	// SHA256 is the checksum of the executable; required with a path unless Dev
	// is on.
	SHA256 string `koanf:"sha256"`
	// Required makes the server report not ready while this instance is not.
	Required bool `koanf:"required"`
	// Config is sent to the plugin. Strings may contain the references
	// ${env:NAME} and ${file:/path}; resolved values are never logged or
	// returned.
	Config map[string]any `koanf:"config"`
	// Secrets are values by JSON Pointer, in the places where Config has StoredSecret.
	// They belong to configurations that are not in the file, and are treated as the
	// values of references.
	Secrets map[string]string `koanf:"-"`
	// Delivery selects the events of a sink, and their batches and retries.
	Delivery Delivery `koanf:"delivery"`
	// Restart is on_exit, always (without quarantine) or never; "" is on_exit.
	Restart string `koanf:"restart"`
	// Env adds variables to the process environment, which otherwise holds only
	// PATH, TZ, TMPDIR and the certificate locations.
	Env Env `koanf:"env"`
	// Timeouts limit the calls.
	Timeouts Timeouts `koanf:"timeouts"`
	// Isolated gives the instance its own process where it would otherwise
	// share one.
	Isolated bool `koanf:"isolated"`
	// Limits are the resource limits of the process; those of the plugins section
	// apply where they are zero.
	Limits Limits `koanf:"limits"`
	// Network is host, or none for a process without a network. It is for
	// matchers, and for sinks and notifiers that write files only. "" is host.
	Network string `koanf:"network"`
	// Reattach and Remote connect to a process that the server does not start;
	// Use is then the name that the plugin reports.
	Reattach Reattach `koanf:"reattach"`
	Remote   Remote   `koanf:"remote"`
}

// Limits are the resource limits of a plugin process. They work on Linux; zero
// takes the value of the plugins section, where it means none.
type Limits struct {
	// MemoryBytes is the largest data segment (RLIMIT_DATA).
	MemoryBytes int `koanf:"memory_bytes"`
	// OpenFiles limits open files and connections; 0 is the server's own limit.
	OpenFiles int `koanf:"open_files"`
	// CPUTime ends the process after this much CPU time.
	CPUTime time.Duration `koanf:"cpu_time"`
	// Nice is the scheduling priority, 1 to 19: the higher, the more a busy
	// process leaves to the server.
	Nice int `koanf:"nice"`
	// CoreDumps allows core dumps, which contain the secrets of the process.
	CoreDumps bool `koanf:"core_dumps"`
	// User is the user that the process runs as: a name, a number or uid:gid. It
	// works on Linux, for a server that runs as root; "" is the user of the server.
	User string `koanf:"user"`
}

// Or returns l with the values of defaults in place of zeros.
func (l Limits) Or(defaults Limits) Limits {
	return Limits{
		MemoryBytes: cmp.Or(l.MemoryBytes, defaults.MemoryBytes),
		OpenFiles:   cmp.Or(l.OpenFiles, defaults.OpenFiles),
		CPUTime:     cmp.Or(l.CPUTime, defaults.CPUTime),
		Nice:        cmp.Or(l.Nice, defaults.Nice),
		CoreDumps:   l.CoreDumps || defaults.CoreDumps,
		User:        cmp.Or(l.User, defaults.User),
	}
}

func (l Limits) validate() error {
	switch {
	case l.MemoryBytes < 0 || l.OpenFiles < 0 || l.CPUTime < 0:
		return errors.New("limits must not be negative")
	case l.MemoryBytes > 0 && l.MemoryBytes < minMemory:
		return fmt.Errorf("limits.memory_bytes must be at least %d: no plugin starts with less", minMemory)
	case l.OpenFiles > 0 && l.OpenFiles < minFiles:
		return fmt.Errorf("limits.open_files must be at least %d", minFiles)
	case l.Nice < 0 || l.Nice > 19:
		return errors.New("limits.nice must be 0 to 19")
	}
	return nil
}

// Env selects the environment variables that a plugin sees.
type Env struct {
	// Allow names variables to copy from the server's environment.
	Allow []string `koanf:"allow"`
	// Set holds further variables; values may contain references.
	Set map[string]string `koanf:"set"`
}

// Timeouts limit the calls of one instance; zero is the default.
type Timeouts struct {
	// Start limits process start and handshake.
	Start time.Duration `koanf:"start"`
	// Open limits the plugin's connection to its service.
	Open time.Duration `koanf:"open"`
	// Call limits one batch.
	Call time.Duration `koanf:"call"`
	// Flush limits the commit of staged events.
	Flush time.Duration `koanf:"flush"`
	// Drain limits the completion of running calls at a stop.
	Drain time.Duration `koanf:"drain"`
	// Stop limits the wait for the exit after a shutdown request, and again after
	// SIGTERM.
	Stop time.Duration `koanf:"stop"`
	// Health limits one health check.
	Health time.Duration `koanf:"health"`
}

// Restart is the delay between restarts: the first is immediate, later ones wait
// between half and all of Initial × 2ⁿ, at most Max.
type Restart struct {
	Initial time.Duration `koanf:"initial"`
	Max     time.Duration `koanf:"max"`
	// ResetAfter is how long an instance must be ready to reset the delay.
	ResetAfter time.Duration `koanf:"reset_after"`
	// QuarantineExits exits within QuarantineWindow put the instance into
	// quarantine, once the delay has grown to Max. Exits that an isolated event
	// explains and those before a committed batch do not count.
	QuarantineExits  int           `koanf:"quarantine_exits"`
	QuarantineWindow time.Duration `koanf:"quarantine_window"`
	// QuarantineFor is how long the first quarantine lasts. Each further one in a
	// row lasts twice as long, up to 32 times.
	QuarantineFor time.Duration `koanf:"quarantine_for"`
}

// The kinds of instances and the ways to restart one.
const (
	KindSink     = "sink"
	KindNotifier = "notifier"
	KindMatcher  = "matcher"

	RestartOnExit = "on_exit"
	RestartAlways = "always"
	RestartNever  = "never"

	ManagedByAPI  = "api"
	ManagedByFile = "file"

	NetworkHost = "host"
	NetworkNone = "none"
)

// StoredSecret stands for a secret that is stored elsewhere, also in what is shown.
const StoredSecret = "********* (encrypted)"

// The smallest limits under which a plugin starts.
const (
	minMemory = 32 << 20
	minFiles  = 32
)

// Default returns the configuration without instances.
func Default() Config {
	return Config{
		LogLevel:          "info",
		ManagedBy:         ManagedByAPI,
		LogLinesPerSecond: 100,
		HealthInterval:    5 * time.Second,
		Limits:            Limits{MemoryBytes: 1 << 30, Nice: 5},
		Restart: Restart{
			Initial: 250 * time.Millisecond, Max: time.Minute, ResetAfter: 5 * time.Minute,
			QuarantineExits: 12, QuarantineWindow: 10 * time.Minute, QuarantineFor: 10 * time.Minute,
		},
	}
}

// DefaultTimeouts returns the timeouts of an instance that configures none.
func DefaultTimeouts() Timeouts {
	return Timeouts{
		Start: 10 * time.Second, Open: 30 * time.Second, Call: 10 * time.Second, Flush: 30 * time.Second,
		Drain: 15 * time.Second, Stop: 2 * time.Second, Health: time.Second,
	}
}

var instanceName = regexp.MustCompile(`^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$`)

// Validate returns all errors of the configuration, joined. Errors that only show
// at start, such as a missing file, become the state of the instance.
func (c Config) Validate() error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if c.LogLinesPerSecond < 1 {
		bad("log_lines_per_second must be at least 1")
	}
	if c.HealthInterval <= 0 {
		bad("health_interval must be positive")
	}
	switch c.LogLevel {
	case "debug", "info", "warn", "error":
	default:
		bad("log_level must be debug, info, warn or error, not %q", c.LogLevel)
	}
	if c.ManagedBy != ManagedByAPI && c.ManagedBy != ManagedByFile {
		bad("managed_by must be %s or %s, not %q", ManagedByAPI, ManagedByFile, c.ManagedBy)
	}
	if r := c.Restart; r.Initial <= 0 || r.Max < r.Initial || r.QuarantineExits < 1 || r.QuarantineWindow <= 0 || r.QuarantineFor <= 0 {
		bad("restart: initial, quarantine_exits, quarantine_window and quarantine_for must be positive, max at least initial")
	}
	if err := c.Limits.validate(); err != nil {
		bad("%w", err)
	}
	seen := map[string]bool{}
	for i, instance := range c.Instances {
		if seen[instance.Name] {
			bad("instances[%d]: a second instance is named %q", i, instance.Name)
		}
		seen[instance.Name] = true
		if err := instance.validate(); err != nil {
			bad("instances[%d] (%s): %w", i, instance.Name, err)
		}
	}
	return errors.Join(problems...)
}

func (c Instance) validate() error {
	switch {
	case !instanceName.MatchString(c.Name):
		return errors.New("name must be 1 to 63 lower-case letters, digits, - and _")
	case c.Use == "":
		return errors.New("use is missing: the name of a bundled plugin or the path of an executable")
	case c.Kind != KindSink && c.Kind != KindNotifier && c.Kind != KindMatcher:
		return fmt.Errorf("kind must be %s, %s or %s, not %q", KindSink, KindNotifier, KindMatcher, c.Kind)
	}
	switch c.Restart {
	case "", RestartOnExit, RestartAlways, RestartNever:
	default:
		return fmt.Errorf("restart must be %s, %s or %s, not %q", RestartOnExit, RestartAlways, RestartNever, c.Restart)
	}
	if err := c.Limits.validate(); err != nil {
		return err
	}
	switch c.Network {
	case "", NetworkHost, NetworkNone:
	default:
		return fmt.Errorf("network must be %s or %s, not %q", NetworkHost, NetworkNone, c.Network)
	}
	t := c.Timeouts
	for _, d := range []time.Duration{t.Start, t.Open, t.Call, t.Flush, t.Drain, t.Stop, t.Health} {
		if d < 0 {
			return errors.New("timeouts must not be negative")
		}
	}
	return c.validateAttached()
}

// ProcessPart returns c reduced to the settings that the process sees or is
// started with. A change to any of them needs a new process.
func (c Instance) ProcessPart() Instance {
	return Instance{
		Name: c.Name, Use: c.Use, Kind: c.Kind, SHA256: c.SHA256, Config: c.Config, Secrets: c.Secrets, Env: c.Env, Timeouts: c.Timeouts,
		Isolated: c.Isolated, Limits: c.Limits, Network: c.Network, Reattach: c.Reattach, Remote: c.Remote,
	}
}

// External reports whether Use is a path rather than a bundled name.
func (c Instance) External() bool {
	return strings.ContainsRune(c.Use, filepath.Separator) && !c.Attached()
}

// Unverified reports whether the executable runs without a checksum.
func (c Instance) Unverified() bool { return c.External() && strings.TrimSpace(c.SHA256) == "" }

// EffectiveTimeouts returns the timeouts with defaults in place of zeros.
func (c Instance) EffectiveTimeouts() Timeouts {
	t, d := c.Timeouts, DefaultTimeouts()
	for dst, value := range map[*time.Duration]time.Duration{
		&t.Start: d.Start, &t.Open: d.Open, &t.Call: d.Call, &t.Flush: d.Flush,
		&t.Drain: d.Drain, &t.Stop: d.Stop, &t.Health: d.Health,
	} {
		if *dst == 0 {
			*dst = value
		}
	}
	return t
}
