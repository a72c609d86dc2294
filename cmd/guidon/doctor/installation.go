package doctor

import (
	"context"
	"crypto/sha256"
	cryptotls "crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
	"github.com/guidonhq/guidon/core/email"
	"github.com/guidonhq/guidon/core/events/clickhouse"
)

// checkPorts reports for each address of the server whether it is free, or what answers.
func checkPorts(_ context.Context, cfg app.Config) (out []Result) {
	for _, a := range []struct {
		setting, address string
		tls              bool
	}{{"http.address", cfg.HTTP.Address, cfg.HTTP.TLS.Enabled()}, {"http.admin_address", cfg.HTTP.AdminAddress, cfg.HTTP.AdminTLS.Enabled()}, {"http.console_address", cfg.HTTP.ConsoleAddress, cfg.HTTP.TLS.Enabled()}} {
		if a.address == "" {
			continue
		}
		out = append(out, checkPort(a.setting, a.address, a.tls))
	}
	return out
}

func checkPort(setting, address string, tls bool) Result {
	network, listen := "tcp", address
	if socket, isSocket := strings.CutPrefix(address, "unix:"); isSocket {
		network, listen = "unix", socket
		if !exists(socket) {
			return ok("%s %s: free", setting, address)
		}
	} else if l, err := net.Listen(network, address); err == nil {
		_ = l.Close()
		return ok("%s %s: free", setting, address)
	} else if errors.Is(err, fs.ErrPermission) {
		return fail("ports below 1024 need the capability CAP_NET_BIND_SERVICE, or choose another one", "%s %s: %v", setting, address, err)
	}
	if isGuidon(address, tls) {
		return ok("%s %s: a running server of Guidon", setting, address)
	}
	conn, err := net.DialTimeout(network, listen, time.Second)
	if err != nil {
		return fail("choose an address of this machine for "+setting, "%s %s: cannot be used: %v", setting, address, err)
	}
	_ = conn.Close()
	return fail("stop the other program, or choose another address for "+setting, "%s %s: another program listens", setting, address)
}

// isGuidon reports whether a server of Guidon answers at the address.
func isGuidon(address string, tls bool) bool {
	base, socket, err := remote.LocalURL(address, tls)
	if err != nil {
		return false
	}
	t := &http.Transport{TLSClientConfig: &cryptotls.Config{InsecureSkipVerify: true}} //nolint:gosec // it sends nothing secret, and asks only what listens
	if socket != "" {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}
	}
	defer t.CloseIdleConnections()
	client := &http.Client{Transport: t, Timeout: 2 * time.Second}
	res, err := client.Get(base + "/_liveness")
	if err != nil {
		return false
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<16))
	return res.StatusCode == http.StatusOK
}

// checkDatabase compares the schema and reads every page.
func checkDatabase(ctx context.Context, cfg app.Config) []Result {
	database, steps, err := app.SchemaSteps(ctx, cfg)
	if err != nil {
		return []Result{fail("check database.url and that the database runs", "%v", err)}
	}
	if database == "" {
		return []Result{warn("guidon serve or guidon migrate creates it; check data_dir and the working directory", "there is no database yet in %s", cfg.DataDir)}
	}
	missing, current := 0, 0
	for _, s := range steps {
		switch applied := !s.AppliedAt.IsZero(); {
		case applied && !s.Known:
			return []Result{fail("run a newer guidon", "%s has schema step %d, which this binary does not know", database, s.Number)}
		case applied:
			current = s.Number
		default:
			missing++
		}
	}
	if missing > 0 {
		return []Result{fail("run guidon migrate", "%s is at schema %d and lacks %d steps of this binary", database, current, missing)}
	}
	out := []Result{ok("%s is at schema %d, the newest", database, current)}
	if skipped(ctx) {
		return out
	}
	begin := time.Now()
	problems, err := app.CheckDatabase(ctx, cfg)
	switch {
	case err != nil:
		out = append(out, fail("", "integrity check: %v", err))
	case len(problems) > 0:
		out = append(out, fail("restore a backup, see \"Backup and restore\" in docs/operators.md", "%d problems, the first: %s", len(problems), problems[0]))
	default:
		out = append(out, ok("no damage found in %s", rounded(time.Since(begin))))
	}
	return out
}

// checkJournal reads the journal and compares its size with its bound.
func checkJournal(ctx context.Context, cfg app.Config) []Result {
	if cfg.Journal.Shared() {
		return checkSharedLog(ctx, cfg)
	}
	dir, err := cfg.Journal.Directory(cfg.DataDir)
	if err != nil {
		return []Result{fail("set journal.dir", "%v", err)}
	}
	if !exists(dir) {
		return []Result{warn("guidon serve creates it", "there is no journal yet in %s", dir)}
	}
	size := sizeOf(dir)
	r := ok("%s: %s of at most %s", dir, bytesText(size), bytesText(cfg.Journal.MaxBytes))
	if cfg.Journal.MaxBytes > 0 && size > cfg.Journal.MaxBytes/10*9 {
		r.State, r.Advice = Warn, "a sink or the worker may lag: compare guidon plugin list; a larger journal.max_bytes keeps more"
	}
	out := []Result{r}
	if skipped(ctx) {
		return out
	}
	report, err := app.CheckJournal(ctx, cfg)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		out = append(out, fail("see \"The journal is damaged\" in docs/operators.md", "%v", err))
	case report.Damaged():
		out = append(out, fail("see \"The journal is damaged\" in docs/operators.md", "%d damaged ranges, %d problems", len(report.Contents.Damaged), len(report.Contents.Problems)))
	default:
		out = append(out, ok("no damage found in %d records", report.Contents.Records))
	}
	return out
}

// checkEvents asks the ClickHouse of events.url, if there is one.
func checkEvents(ctx context.Context, cfg app.Config) []Result {
	if cfg.Events.URL == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	version, err := clickhouse.Check(ctx, cfg.Events.URL)
	switch {
	case err == nil:
		return []Result{ok("ClickHouse %s", version)}
	case clickhouse.Reached(err):
		return []Result{fail("correct the database in events.url, the rights of its user, or the version of ClickHouse", "%v", err)}
	default:
		return []Result{fail("check events.url and that ClickHouse runs; until then events wait in PostgreSQL", "%v", err)}
	}
}

func sizeOf(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil
	})
	return size
}

// checkPlugins compares executables with their checksums.
func checkPlugins(_ context.Context, cfg app.Config) (out []Result) {
	bundled := 0
	for _, p := range cfg.Plugins.Instances {
		switch {
		case p.Attached():
			out = append(out, ok("%s: a process that the server does not start", p.Name))
		case !p.External():
			bundled++
		default:
			out = append(out, checkExecutable(p.Name, p.Use, p.SHA256, cfg.Plugins.Dev))
		}
	}
	return append(out, ok("bundled plugins in use: %d", bundled))
}

func checkExecutable(name, path, want string, dev bool) Result {
	info, err := os.Stat(path)
	if err != nil {
		return fail("correct plugins.instances.use, or install the executable", "%s: %v", name, err)
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return fail("chmod +x "+path, "%s: %s is not an executable file", name, path)
	}
	if info.Mode()&0o022 != 0 {
		return warn("chmod go-w "+path, "%s: other users can replace %s", name, path)
	}
	sum, err := checksum(path)
	if err != nil {
		return fail("make the file readable by the user of the server", "%s: %v", name, err)
	}
	if want = strings.TrimSpace(want); want == "" {
		if dev {
			return warn("set sha256 outside of development", "%s: %s has no checksum in the config", name, path)
		}
		return fail("set sha256 to "+sum, "%s: %s has no checksum in the config", name, path)
	}
	if !strings.EqualFold(want, sum) {
		return fail("if you have replaced the executable, set sha256 to "+sum, "%s: the checksum of %s is not that of the config", name, path)
	}
	return ok("%s: %s has the checksum of the config", name, path)
}

func checksum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// checkEmail connects to the SMTP server of email.host, if there is one, and signs in.
func checkEmail(ctx context.Context, cfg app.Config) []Result {
	if !cfg.Email.Enabled() {
		return nil
	}
	if err := email.Check(ctx, cfg.Email); err != nil {
		return []Result{fail("check email.host, email.port, email.tls, email.username and email.password; until then links must be handed over", "%s", cfg.Redact(err.Error()))}
	}
	return []Result{ok("the SMTP server %s accepts this server", cfg.Email.Host)}
}
