package host

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Config is the `plugins` section of the server's config.
type Config struct {
	// Instances are the plugins to run.
	Instances []InstanceConfig `koanf:"instances"`
	// SocketDir is where the private directory for sockets is made; "" is
	// the data directory or, when its path is too long for a socket, the
	// system's temporary directory.
	SocketDir string `koanf:"socket_dir"`
	// LogLevel is what plugins are told to log: debug, info, warn or error.
	LogLevel string `koanf:"log_level"`
	// LogLinesPerSecond bounds what one instance may write to the log.
	LogLinesPerSecond int `koanf:"log_lines_per_second"`
	// HealthInterval is the time between two health checks.
	HealthInterval time.Duration `koanf:"health_interval"`
	// Restart is how an instance that died is started again.
	Restart RestartConfig `koanf:"restart"`
	// Dev lets executables run whose checksum the config does not hold. It is
	// for the development of plugins; the log says so each minute.
	Dev bool `koanf:"dev"`
}

// InstanceConfig is one configured plugin.
type InstanceConfig struct {
	// Name appears in every log line and metric, and names the cursor of a
	// sink: a new name is a new reader that starts from the beginning.
	Name string `koanf:"name"`
	// Use is the name of a bundled plugin, or the path of an executable.
	Use string `koanf:"use"`
	// Kind is what the plugin is used for: sink, notifier or matcher.
	Kind string `koanf:"kind"`
	// SHA256 is the checksum of the executable, required with a path unless
	// Dev is on.
	SHA256 string `koanf:"sha256"`
	// Required makes the server not ready while this instance is not.
	Required bool `koanf:"required"`
	// Config is handed to the plugin. Strings may hold ${env:NAME} and
	// ${file:/path}; what they stand for is never shown.
	Config map[string]any `koanf:"config"`
	// Delivery is what a sink is sent, and how.
	Delivery DeliveryConfig `koanf:"delivery"`
	// Restart is on_exit, always (also out of quarantine) or never; "" is
	// on_exit.
	Restart string `koanf:"restart"`
	// Env is the environment of the process, beside a few harmless names.
	Env EnvConfig `koanf:"env"`
	// Timeouts bound the calls.
	Timeouts TimeoutConfig `koanf:"timeouts"`
	// Isolated gives the instance a process of its own, also where the plugin
	// would share one.
	Isolated bool `koanf:"isolated"`
	// Limits bound what the process may use.
	Limits LimitConfig `koanf:"limits"`
	// Reattach and Remote connect to a process that the server does not start;
	// Use is then what that plugin says its name is.
	Reattach ReattachConfig `koanf:"reattach"`
	Remote   RemoteConfig   `koanf:"remote"`
}

// LimitConfig bounds what the process of an instance may use, on Linux; a zero
// takes the default.
type LimitConfig struct {
	// MemoryBytes is the most memory the process may hold; 0 is no limit.
	MemoryBytes int `koanf:"memory_bytes"`
	// OpenFiles is how many files and connections it may have open; 0 is the
	// server's own limit.
	OpenFiles int `koanf:"open_files"`
	// CPUTime ends the process when it has used that much; 0 is no limit.
	CPUTime time.Duration `koanf:"cpu_time"`
	// CoreDumps lets the system keep an image of a process that crashed, which
	// holds its secrets.
	CoreDumps bool `koanf:"core_dumps"`
}

// EnvConfig says which variables a plugin sees.
type EnvConfig struct {
	// Allow names variables to pass on from the server's environment.
	Allow []string `koanf:"allow"`
	// Set gives variables a value, which may hold references.
	Set map[string]string `koanf:"set"`
}

// TimeoutConfig bounds the calls of one instance; a zero takes the default.
type TimeoutConfig struct {
	// Start is for the process to come up and shake hands.
	Start time.Duration `koanf:"start"`
	// Open is for the plugin to connect.
	Open time.Duration `koanf:"open"`
	// Call is for one batch.
	Call time.Duration `koanf:"call"`
	// Flush is for making staged events safe.
	Flush time.Duration `koanf:"flush"`
	// Drain is for finishing the work at hand when stopping.
	Drain time.Duration `koanf:"drain"`
	// Stop is for the process to end by itself, and once more after SIGTERM.
	Stop time.Duration `koanf:"stop"`
	// Health is for one health check.
	Health time.Duration `koanf:"health"`
}

// RestartConfig is the curve of restarts: the first is immediate, the next wait
// a random part of Initial × 2ⁿ, at most Max.
type RestartConfig struct {
	Initial time.Duration `koanf:"initial"`
	Max     time.Duration `koanf:"max"`
	// ResetAfter is how long an instance must have been ready to be trusted
	// again.
	ResetAfter time.Duration `koanf:"reset_after"`
	// QuarantineExits exits within QuarantineWindow end the restarts.
	QuarantineExits  int           `koanf:"quarantine_exits"`
	QuarantineWindow time.Duration `koanf:"quarantine_window"`
	// QuarantineFor is how long the quarantine lasts with restart: always.
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
)

// The least that a limit may be.
const (
	minMemory = 32 << 20
	minFiles  = 32
)

// DefaultConfig runs no plugin.
func DefaultConfig() Config {
	return Config{
		LogLevel:          "info",
		LogLinesPerSecond: 1000,
		HealthInterval:    5 * time.Second,
		Restart: RestartConfig{
			Initial: 250 * time.Millisecond, Max: time.Minute, ResetAfter: 5 * time.Minute,
			QuarantineExits: 6, QuarantineWindow: 10 * time.Minute, QuarantineFor: 30 * time.Minute,
		},
	}
}

// DefaultTimeouts are used where an instance gives none.
func DefaultTimeouts() TimeoutConfig {
	return TimeoutConfig{
		Start: 10 * time.Second, Open: 30 * time.Second, Call: 10 * time.Second, Flush: 30 * time.Second,
		Drain: 15 * time.Second, Stop: 2 * time.Second, Health: time.Second,
	}
}

var instanceName = regexp.MustCompile(`^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$`)

// Validate finds what is wrong with the config itself. What only shows when the
// plugin is started, such as a missing file, becomes the instance's state.
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
	if r := c.Restart; r.Initial <= 0 || r.Max < r.Initial || r.QuarantineExits < 1 || r.QuarantineWindow <= 0 || r.QuarantineFor <= 0 {
		bad("restart: initial, quarantine_exits, quarantine_window and quarantine_for must be positive, max at least initial")
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

func (c InstanceConfig) validate() error {
	switch {
	case !instanceName.MatchString(c.Name):
		return errors.New("name must be 1 to 63 lower-case letters, digits, - and _")
	case c.Use == "":
		return errors.New("use is missing: the name of a bundled plugin or the path of an executable")
	case kinds[c.Kind] == 0:
		return fmt.Errorf("kind must be %s, %s or %s, not %q", KindSink, KindNotifier, KindMatcher, c.Kind)
	}
	switch c.Restart {
	case "", RestartOnExit, RestartAlways, RestartNever:
	default:
		return fmt.Errorf("restart must be %s, %s or %s, not %q", RestartOnExit, RestartAlways, RestartNever, c.Restart)
	}
	if l := c.Limits; l.MemoryBytes < 0 || l.OpenFiles < 0 || l.CPUTime < 0 {
		return errors.New("limits must not be negative")
	}
	if l := c.Limits; l.MemoryBytes > 0 && l.MemoryBytes < minMemory {
		return fmt.Errorf("limits.memory_bytes must be at least %d: no plugin starts with less", minMemory)
	}
	if l := c.Limits; l.OpenFiles > 0 && l.OpenFiles < minFiles {
		return fmt.Errorf("limits.open_files must be at least %d", minFiles)
	}
	t := c.Timeouts
	for _, d := range []time.Duration{t.Start, t.Open, t.Call, t.Flush, t.Drain, t.Stop, t.Health} {
		if d < 0 {
			return errors.New("timeouts must not be negative")
		}
	}
	return c.validateAttached()
}

// process is the part of the config that the process sees or is made by; another
// one calls for another process.
func (c InstanceConfig) process() InstanceConfig {
	return InstanceConfig{
		Name: c.Name, Use: c.Use, Kind: c.Kind, SHA256: c.SHA256, Config: c.Config, Env: c.Env, Timeouts: c.Timeouts,
		Isolated: c.Isolated, Limits: c.Limits, Reattach: c.Reattach, Remote: c.Remote,
	}
}

// external reports whether Use is a path rather than a bundled name.
func (c InstanceConfig) external() bool {
	return strings.ContainsRune(c.Use, filepath.Separator) && !c.attached()
}

// unverified reports whether nobody vouches for the executable.
func (c InstanceConfig) unverified() bool { return c.external() && strings.TrimSpace(c.SHA256) == "" }

// timeouts are the instance's timeouts with the defaults filled in.
func (c InstanceConfig) timeouts() TimeoutConfig {
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
