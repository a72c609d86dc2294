package web

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/web/accesslog"
	"github.com/guidonhq/guidon/core/web/body"
	"github.com/guidonhq/guidon/core/web/forwarded"
	"github.com/guidonhq/guidon/core/web/limit"
	"github.com/guidonhq/guidon/core/web/tlsfiles"
)

// Requests that are logged. Server errors (5xx) are always logged.
const (
	LogAll          = accesslog.All
	LogManagement   = accesslog.Management
	LogErrors       = accesslog.Errors
	LogServerErrors = accesslog.ServerErrors
)

// Config holds the settings of the server.
type Config struct {
	// Address is the address to listen on, host:port; port 0 takes a free one.
	Address string `koanf:"address"`
	// AdminAddress is the address for operators: metrics, readiness with its
	// details, profiles and the administration of plugins. It is host:port, or
	// unix:/path for a socket that only the user of the server can open. Empty
	// switches these pages off.
	AdminAddress string `koanf:"admin_address"`
	// ConsoleAddress is the address of the console, which then is served there only; the
	// API is served on both. Empty: the console is at Address.
	ConsoleAddress string `koanf:"console_address"`
	// TLS names the certificate of the public address; empty: plain HTTP. A
	// changed file is used without a restart.
	TLS tlsfiles.Files `koanf:"tls"`
	// AdminTLS is TLS for the admin address.
	AdminTLS tlsfiles.Files `koanf:"admin_tls"`
	// SiteURL is the public address, for links in answers. Empty: links are derived
	// from the request (and from the X-Forwarded headers of trusted proxies).
	SiteURL string `koanf:"site_url"`
	// ConsoleURL is SiteURL for ConsoleAddress.
	ConsoleURL string `koanf:"console_url"`
	// BodyBytes is the maximum size of a request body before decompression.
	BodyBytes int `koanf:"body_bytes"`
	// InflatedBytes is the maximum size of a body after decompression.
	InflatedBytes int `koanf:"inflated_bytes"`
	// MemoryBytes bounds the memory of all requests while they are received and
	// decoded; beyond it a request gets 503. 0 is no bound.
	MemoryBytes int `koanf:"memory_bytes"`
	// JSONDepth is the maximum nesting of a JSON body, at most 300.
	JSONDepth int `koanf:"json_depth"`
	// MaxConnections is the maximum number of concurrent connections; the files
	// that the process may open can lower it. At the bound the connection that has
	// idled the longest is closed for a new one.
	MaxConnections int `koanf:"max_connections"`
	// ClientConnections is the maximum number of concurrent connections of one
	// client address (IPv6: of a /64 network); 0 means no limit. Trusted proxies
	// have none.
	ClientConnections int `koanf:"client_connections"`
	// HeaderBytes is the maximum size of the request line with all headers.
	HeaderBytes int `koanf:"header_bytes"`
	// ReadTimeout is the time to receive a whole request.
	ReadTimeout time.Duration `koanf:"read_timeout"`
	// WriteTimeout is the time to send an answer.
	WriteTimeout time.Duration `koanf:"write_timeout"`
	// IdleTimeout is the time that a connection may idle between two requests.
	IdleTimeout time.Duration `koanf:"idle_timeout"`
	// RequestTimeout is the time that a management request may take; its context
	// ends then.
	RequestTimeout time.Duration `koanf:"request_timeout" live:"true"`
	// StopDelay is the time for which a stopping server serves on while it is not
	// ready, so that load balancers notice.
	StopDelay time.Duration `koanf:"stop_delay"`
	// TrustedProxies are the senders whose X-Forwarded headers are trusted:
	// addresses, networks (10.0.0.0/8), or the words loopback and private. A
	// client inside a trusted network can claim any address.
	TrustedProxies []string `koanf:"trusted_proxies" live:"true"`
	// ManageOrigins are the browser origins (https://app.example.com) that may
	// call the management paths. Empty: none but the server's own.
	ManageOrigins []string `koanf:"manage_origins" live:"true"`
	// PublicRate limits public requests per project.
	PublicRate Rate `koanf:"public_rate" live:"true"`
	// ManageRate limits management requests per personal key.
	ManageRate Rate `koanf:"manage_rate" live:"true"`
	// FailedKeyRate limits requests with unknown keys per client address. Past it,
	// requests of that address with keys that are not in use are refused.
	FailedKeyRate Rate `koanf:"failed_key_rate" live:"true"`
	// Metrics enables GET /metrics of the admin address.
	Metrics bool `koanf:"metrics"`
	// Pprof enables the profiles below /debug/pprof/ of the admin address.
	Pprof bool `koanf:"pprof"`
	// AccessLog selects the requests to log: all, manage, refused or broken.
	AccessLog string `koanf:"access_log" live:"true"`
	// AccessSample logs one of this number of successful public requests, and one of
	// this number of successful management requests that read; 0 and 1 log all.
	AccessSample int `koanf:"access_sample" live:"true"`
	// LogClient adds the address of the client to the lines of the access log.
	LogClient bool `koanf:"log_client" live:"true"`
}

// Rate is a limit with bursts.
type Rate = limit.Rate

// DefaultConfig listens on 127.0.0.1:8000, and on 127.0.0.1:8001 for operators.
func DefaultConfig() Config {
	return Config{
		Address:        "127.0.0.1:8000",
		AdminAddress:   "127.0.0.1:8001",
		BodyBytes:      20 << 20,
		InflatedBytes:  25 << 20,
		MemoryBytes:    128 << 20,
		JSONDepth:      128,
		MaxConnections: 65536, ClientConnections: 1024,
		HeaderBytes:    16 << 10,
		ReadTimeout:    time.Minute,
		WriteTimeout:   30 * time.Second,
		IdleTimeout:    75 * time.Second,
		RequestTimeout: 30 * time.Second,
		TrustedProxies: []string{"loopback", "private"},
		Metrics:        true,
		Pprof:          true,
		AccessLog:      LogAll,
		AccessSample:   100,
		LogClient:      true,
		ManageRate:     Rate{PerSecond: 50, Burst: 200},
		FailedKeyRate:  Rate{PerSecond: 20, Burst: 100},
	}
}

// Validate returns an error that names the invalid key.
func (c Config) Validate() error {
	switch {
	case c.Address == "":
		return fmt.Errorf("address is empty: give host:port")
	case c.Address == c.AdminAddress && !strings.HasSuffix(c.Address, ":0"):
		return fmt.Errorf("admin_address is the same as address (%s): give it another port, or leave it empty", c.Address)
	case c.ConsoleAddress != "" && !strings.HasSuffix(c.ConsoleAddress, ":0") && (c.ConsoleAddress == c.Address || c.ConsoleAddress == c.AdminAddress):
		return fmt.Errorf("console_address is the same as another address (%s): give it another port, or leave it empty", c.ConsoleAddress)
	case c.ConsoleURL != "" && c.ConsoleAddress == "":
		return fmt.Errorf("console_url is for the console at console_address, which is empty: set site_url")
	case c.BodyBytes < 1:
		return fmt.Errorf("body_bytes must be at least 1, got %d", c.BodyBytes)
	case c.InflatedBytes < 1 || c.InflatedBytes > 1<<30:
		return fmt.Errorf("inflated_bytes must be between 1 and %d, got %d", 1<<30, c.InflatedBytes)
	case c.MemoryBytes < 0:
		return fmt.Errorf("memory_bytes must not be negative, got %d", c.MemoryBytes)
	case c.JSONDepth < 1 || c.JSONDepth > body.MaxDepth:
		return fmt.Errorf("json_depth must be between 1 and %d, got %d", body.MaxDepth, c.JSONDepth)
	case c.MaxConnections < 1:
		return fmt.Errorf("max_connections must be at least 1, got %d", c.MaxConnections)
	case c.ClientConnections < 0:
		return fmt.Errorf("client_connections must not be negative, got %d", c.ClientConnections)
	case c.HeaderBytes < 1024:
		return fmt.Errorf("header_bytes must be at least 1024, got %d", c.HeaderBytes)
	case c.ReadTimeout <= 0 || c.WriteTimeout <= 0 || c.IdleTimeout <= 0 || c.RequestTimeout <= 0:
		return fmt.Errorf("read_timeout, write_timeout, idle_timeout and request_timeout must be longer than 0")
	case c.StopDelay < 0:
		return fmt.Errorf("stop_delay must not be negative, got %s", c.StopDelay)
	case c.AccessSample < 0:
		return fmt.Errorf("access_sample must not be negative, got %d", c.AccessSample)
	}
	return c.validateNames()
}

func (c Config) validateNames() error {
	switch c.AccessLog {
	case LogAll, LogManagement, LogErrors, LogServerErrors:
	default:
		return fmt.Errorf("access_log must be all, manage, refused or broken, got %q", c.AccessLog)
	}
	for setting, site := range map[string]string{"site_url": c.SiteURL, "console_url": c.ConsoleURL} {
		if u, err := url.Parse(site); site != "" && (err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https")) {
			return fmt.Errorf("%s must look like https://flags.example.com, got %q", setting, site)
		}
	}
	for _, o := range c.ManageOrigins {
		if u, err := url.Parse(o); err != nil || u.Host == "" || u.Path != "" || u.Scheme == "" {
			return fmt.Errorf("manage_origins: %q must look like https://app.example.com, without a path", o)
		}
	}
	_, err := forwarded.ParseNetworks(c.TrustedProxies)
	for _, err := range []error{
		c.PublicRate.Validate("public_rate"), c.ManageRate.Validate("manage_rate"), c.FailedKeyRate.Validate("failed_key_rate"),
		c.TLS.Validate("tls"), c.AdminTLS.Validate("admin_tls"), err,
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

var siteOrigin = regexp.MustCompile(`(?i)^https?://[^/]*`)

// ConsoleSite returns the configured URL of the console, which is below no path; or "".
func (c Config) ConsoleSite() string {
	if c.ConsoleAddress != "" {
		return siteOrigin.FindString(c.ConsoleURL)
	}
	return siteOrigin.FindString(c.SiteURL)
}
