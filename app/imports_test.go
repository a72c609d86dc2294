package app_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/guidonhq/guidon/"

// base lists the packages that every feature may import: they know nothing of
// flags, actions or events on their way in.
var base = []string{
	"core/fault", "core/jsontext", "core/text", "core/retry", "core/snapshot", "core/match", "core/db", "core/db/scan", "core/auth",
	"core/cluster", "core/cluster/notify", "core/propertyfilter", "core/auth/apikey", "core/auth/secretkey", "core/web", "core/web/body", "core/web/query", "core/web/budget", "core/web/envelope", "core/activity", "core/config/live", "core/tracing", "sdk",
}

// mayImport is the import table: for each package, the packages of this module
// that its code (not its tests) may import. A trailing /... covers the packages
// below. A child package never imports its parent, except those that help its handlers
// (core/web/query, core/web/admins) or tests. ARCHITECTURE.md draws the table and gives
// the reasons.
var mayImport = map[string][]string{
	"cmd/guidon": {"cmd/guidon/movejournal", "cmd/guidon/moveevents", "cmd/guidon/clusterstatus", "cmd/guidon/projectdata", "cmd/guidon/accounts", "cmd/guidon/command", "cmd/guidon/ephemeral", "cmd/guidon/doctor", "cmd/guidon/bench", "cmd/guidon/shell", "cmd/guidon/manage", "cmd/guidon/remote", "cmd/guidon/output", "app", "plugins", "sdk", "sdk/plugintest", "sdk/plugintest/inspect", "sdk/python", "sdk/proto", "examples", "core/startmemory"},
	"app":        {"app/configcheck", "app/greeting", "app/requestlog", "core/...", "api", "sdk", "sdk/units", "migrations"},

	"app/configcheck": {},
	"app/greeting":    {"core/auth", "core/db", "core/signin"},
	"app/requestlog":  {"core/cluster", "core/cluster/notify", "core/db/dbclock", "core/ingestion/unit", "core/config/live", "core/journal/format", "core/db", "core/eventlog", "core/eventlog/...", "core/ingestion/capture", "core/ingestion/reader", "core/journal", "core/logmove"},

	"cmd/guidon/command":     {"app", "cmd/guidon/remote", "cmd/guidon/output"},
	"cmd/guidon/accounts":    {"app", "cmd/guidon/command", "cmd/guidon/projectdata", "cmd/guidon/remote", "cmd/guidon/output"},
	"cmd/guidon/manage":      {"app", "core/text", "cmd/guidon/command", "cmd/guidon/remote", "cmd/guidon/output"},
	"cmd/guidon/bench":       {"cmd/guidon/command", "cmd/guidon/output", "cmd/guidon/remote", "sdk/units"},
	"cmd/guidon/movejournal": {"app", "app/requestlog", "cmd/guidon/command", "cmd/guidon/output", "core/logmove"},
	"cmd/guidon/moveevents":  {"app", "cmd/guidon/command", "core/db", "core/events", "core/events/clickhouse"},
	"cmd/guidon/doctor":      {"app", "app/requestlog", "core/roles", "core/events/clickhouse", "cmd/guidon/command", "cmd/guidon/remote", "cmd/guidon/output", "core/email"},
	"cmd/guidon/shell":       {"cmd/guidon/command", "cmd/guidon/output"},
	"cmd/guidon/projectdata": {"core/definitionfile", "cmd/guidon/command", "cmd/guidon/remote", "cmd/guidon/output"},

	"cmd/guidon/clusterstatus": {"cmd/guidon/output"},

	"cmd/guidon/remote": {},
	"cmd/guidon/output": {},

	"core/roles":        {"core/fault"},
	"core/standby":      with("core/flags/decide", "core/flags/eval"),
	"core/admin":        with("core/eventlog", "core/host/...", "core/ingestion/...", "core/operators", "core/journal", "core/journal/incident", "core/serverhealth"),
	"core/pluginconfig": with("core/admin", "core/flags/sealed", "core/host", "core/host/lifecycle", "core/host/reloadplan", "core/host/schema", "core/host/secret", "core/host/settings", "core/host/status"),

	// Leaves: no other package of this module, or almost none.
	"core/fault":    {},
	"core/text":     {},
	"core/retry":    {},
	"core/jsontext": {"core/fault"},
	"core/config":   {"core/host/secret", "core/text", "sdk/units"},

	"core/logging":     {"core/host/secret"},
	"core/config/mask": {}, "core/config/servicelink": {},
	"core/config/live":  {"core/config"},
	"core/tracing":      {"core/fault"},
	"core/tracing/otlp": {"core/text", "core/tracing"},

	"core/config/filewatch": {"core/config/yamlfile"},
	"core/config/yamlfile":  {},

	"core/snapshot":    {"core/retry"},
	"core/match":       {"core/fault", "core/jsontext", "core/text", "core/match/search", "core/match/pattern"},
	"core/db/dbclock":  {"core/db"},
	"core/db/sqlite":   {"core/db", "core/db/rowcodec", "core/db/scan", "core/sqlitepages"},
	"core/db/rowcodec": {},
	"core/db":          {"migrations", "core/fault", "core/text", "core/retry", "core/sqlitewal", "core/db/pools", "core/db/scan", "core/db/logcheck", "core/db/wake"},
	"core/db/wake":     {},
	"core/db/logcheck": {"core/sqlitewal"},
	"core/db/pools":    {},
	"core/db/scan":     {"core/fault", "core/db/pools"},
	"core/db/dbtest":   {"core/db", "core/db/sqlite", "migrations"},
	"core/journal":     {"core/config/live", "core/fault", "core/retry", "core/journal/...", "core/sqlitewal"},
	"core/auth/apikey": {"core/fault"},
	"core/auth":        {"core/auth/apikey", "core/auth/keyusage", "core/auth/secretkey", "core/fault", "core/db", "core/snapshot", "core/retry", "core/text"},
	"core/web/body":    {"core/fault", "core/jsontext", "core/web/budget"},
	"core/web":         {"core/tracing", "core/config/live", "core/auth", "core/auth/apikey", "core/fault", "core/jsontext", "core/text", "core/retry", "core/web/body", "core/web/budget", "core/web/envelope", "core/web/receive", "core/web/forwarded", "core/web/health", "core/web/inprocess", "core/web/limit", "core/web/listener", "core/web/framing", "core/web/hostname", "core/web/credential", "core/web/metrics", "core/web/tlsfiles", "core/web/accesslog", "core/web/csvtable", "core/web/failure", "core/web/fields", "core/web/ignored", "core/web/browser", "core/web/request", "core/db/pools"},
	"core/web/query":   {"core/fault", "core/web"},
	"core/web/admins":  {"core/auth", "core/fault", "core/web"},
	"core/activity":    {"core/web/admins", "core/activity/chain", "core/config/live", "core/changes/changelog", "core/web", "core/auth", "core/fault", "core/db", "core/jsontext", "core/text", "core/retry"},
	"migrations":       {},
	"api":              {},

	"core/match/search":   {"core/fault"},
	"core/match/pattern":  {"core/match/search", "core/fault", "core/text"},
	"core/propertyfilter": {"core/match", "core/fault"},

	"cmd/guidon/ephemeral": {"app", "core/definitionfile", "core/seed"},

	"cmd/notices": {},
	"cmd/sbom":    {},

	"core/servermetrics":  {"core/retry"},
	"core/serverhealth":   {},
	"core/definitionfile": {"core/text"},
	"core/seed":           with("core/definitionfile"),
	"core/cookieless":     {"core/db", "core/retry"},
	"core/geoip":          {"core/geoip/location", "core/jsontext", "core/retry", "core/web"},
	"core/geoip/location": {},

	"core/auth/keyusage": {},
	"core/web/browser":   {"core/fault"},
	"core/web/request":   {"core/fault"},

	"core/flags/sealed":   {"core/flags/document", "core/fault"},
	"core/activity/chain": {"core/db", "core/jsontext", "core/retry"},
	"core/flags/history":  {"core/activity", "core/activity/chain", "core/db", "core/flags/document", "core/flags/sealed", "core/jsontext"},

	"core/flags/listing": with("core/flags/eval", "core/flags/document"),

	"core/auth/secretkey": {"core/auth/apikey", "core/db", "core/fault"},

	"core/web/inprocess":  {},
	"core/web/listener":   {},
	"core/web/forwarded":  {},
	"core/web/framing":    {},
	"core/web/hostname":   {},
	"core/web/credential": {"core/web/body"},
	"core/web/metrics":    {},
	"core/web/tlsfiles":   {},
	"core/web/accesslog":  {},
	"core/web/csvtable":   {},
	"core/web/failure":    {"core/fault"},
	"core/web/ignored":    {},
	"core/web/fields":     {"core/fault", "core/jsontext", "core/web/body", "core/web/credential"},
	"core/web/health":     {"core/fault"},
	"core/web/limit":      {"core/fault"},
	"core/web/budget":     {"core/fault"},
	"core/web/envelope":   {"core/fault", "core/jsontext"},
	"core/web/receive":    {"core/web/budget", "core/web/listener"},

	"core/persons/properties": {"core/jsontext", "core/text"},
	"core/persons/stage":      {"core/geoip/location", "core/jsontext", "core/persons/properties", "core/db", "core/fault", "core/text", "sdk"},

	"core/backup":         {"core/backup/archive", "core/backup/place", "core/backup/schedule", "core/db", "core/journal", "core/journal/files", "core/journal/format", "core/journal/mark", "core/retry", "core/sqlitewal", "migrations"},
	"core/logmove":        {"core/eventlog", "core/ingestion/event", "core/journal"},
	"core/transfer":       {"core/db", "core/events/dictionaries", "core/journal", "migrations"},
	"core/backup/archive": {},
	"core/backup/place":   {},

	"core/backup/schedule": {"core/retry"},

	"core/sqlitepages":        {},
	"core/startmemory":        {},
	"core/sqlitewal":          {},
	"core/recovery":           {"core/journal", "core/journal/files", "core/journal/format", "core/journal/incident", "core/journal/mark", "core/sqlitewal"},
	"core/journal/format":     {},
	"core/journal/files":      {},
	"core/journal/clock":      {},
	"core/journal/expiry":     {},
	"core/journal/checkpoint": {"core/journal/format"},
	"core/journal/incident":   {},
	"core/journal/mark":       {},

	"core/web/stream":        {"core/web/listener", "core/web/receive"},
	"core/changes/changelog": {"core/db"},
	"core/changes":           with("core/changes/changelog", "core/web/listener", "core/web/stream"),

	// Data packages: any feature may import their read API.
	"core/accounts": with(),

	"core/accounts/invitation": with("core/email", "core/web/admins"),
	"core/email":               {"core/activity", "core/db", "core/retry", "core/text", "core/web", "core/web/limit"},

	"core/sessions":        {"core/auth", "core/auth/apikey", "core/auth/keyusage", "core/db", "core/fault", "core/retry"},
	"core/signin":          with("core/accounts/invitation", "core/email", "core/web/admins", "core/sessions", "core/signin/oidc", "core/signin/password", "core/web/browser", "core/web/limit", "core/web/listener"),
	"core/signin/password": {"core/fault"},
	"core/signin/oidc":     {"core/fault"},

	"core/commandline":     with("core/accounts", "core/activity/chain", "core/signin"),
	"core/console":         {"core/fault", "core/web"},
	"core/clients":         with("core/clients/scripts"),
	"core/clients/scripts": {},
	"core/clients/install": {"core/clients/scripts"},
	"core/persons":         with("core/persons/..."),
	"core/events":          with("core/db/rowcodec", "core/events/..."),
	"core/definitions":     with("core/persons"),
	"core/export":          with("core/events", "core/events/eventapi", "core/persons"),
	"core/propertyvalues":  with("core/events", "core/persons"),
	"core/retention":       with("core/events", "core/journal/clock", "core/cluster/onenode", "core/db/dbclock"),
	"core/cohorts":         with("core/persons", "core/flags/audience", "core/flags/eval", "core/flags/document", "core/flags/rules", "core/flags/revision"),

	"core/events/dictionaries":    {"core/db", "core/db/rowcodec"},
	"core/events/flagcalls":       with("core/events"),
	"core/events/clickhouse":      with("core/events", "core/events/flagcalls", "core/events/dictionaries", "core/events/clickhouse/...", "core/persons/stage"),
	"core/events/eventapi":        with("core/auth/keyusage", "core/events", "core/events/tail", "core/web/stream"),
	"core/events/propertytest":    {"core/match", "core/propertyfilter"},
	"core/events/tail":            with("core/db/pools", "core/events", "core/events/propertytest", "core/web/stream"),
	"core/events/clickhouse/wire": {"core/fault"},

	"core/events/clickhouse/refusal":      {"core/events/clickhouse/wire"},
	"core/events/clickhouse/mutation":     {"core/events/clickhouse/wire", "core/fault"},
	"core/events/clickhouse/erased":       {"core/db", "core/events/clickhouse/wire"},
	"core/events/clickhouse/health":       {"core/events/clickhouse/wire"},
	"core/events/clickhouse/personcolumn": {"core/persons/stage"},

	// Flags.
	"core/flags/eval/filters": {"core/match"},

	"core/flags/eval/explanation": {},
	"core/flags/eval/bucket":      {},
	"core/flags/eval/cycle":       {},
	"core/flags/eval/schema":      {},
	"core/flags/eval/reason":      {},
	"core/flags/eval/definition":  {},
	"core/flags/eval/answers":     {"core/match"},
	"core/flags/eval":             {"core/flags/eval/...", "core/match"},
	"core/flags/document":         {},
	"core/flags/rules":            {"core/flags/eval/filters", "core/flags/document", "core/match", "core/jsontext", "core/fault"},
	"core/flags/graph":            {"core/flags/eval", "core/flags/eval/filters", "core/flags/document", "core/flags/rules"},
	"core/flags/usecount":         {},
	"core/flags/revision":         with("core/changes/changelog"),
	"core/flags/access":           {"core/auth", "core/db", "core/fault"},
	"core/flags/continuity":       with(),
	"core/flags/source":           with("core/flags/decide", "core/flags/eval", "core/flags/revision", "core/cohorts"),
	"core/flags/calls":            with("core/flags/revision"),
	"core/flags/callseries":       with("core/events/flagcalls"),
	"core/flags/audience":         with("core/flags/eval", "core/flags/document", "core/persons"),
	"core/flags/fields":           with("core/flags/document", "core/flags/eval", "core/flags/rules"),
	"core/flagapi":                with("core/flags", "core/flags/audience", "core/flags/document", "core/cohorts"),
	"core/flags/schedule":         with("core/flags/sealed", "core/db/dbclock"),
	"core/flags/dashboards":       with("core/flags/document", "core/flags/revision", "core/flags/calls", "core/events"),
	"core/flags/decide":           with("core/flags/eval", "core/flags/usecount", "core/cookieless", "core/geoip/location"),
	"core/flags/ofrep":            with("core/flags/eval", "core/flags/eval/filters", "core/flags/decide", "core/cookieless"),
	"core/flags/local":            with("core/flags/eval", "core/flags/eval/filters", "core/flags/document"),
	"core/flags":                  with("core/flags/...", "core/cohorts", "core/persons", "core/events", "core/events/flagcalls"),

	// Actions and notifications.
	"core/actions/match":              {"core/match", "core/match/search", "core/match/pattern", "core/fault", "core/jsontext", "core/text", "sdk"},
	"core/actions/history/background": {"core/db/scan", "core/fault"},
	"core/actions/history/calendar":   {"core/fault"},
	"core/actions/history":            with("core/actions/history/...", "core/actions/match", "core/cohorts", "core/persons", "core/events"),
	"core/actions":                    with("core/actions/...", "core/cohorts", "core/persons", "core/events"),
	"core/notifications":              with("core/actions/...", "core/persons", "core/events", "core/host/...", "core/db/dbclock"),

	// The log in partitions, and the nodes that share it.
	"core/eventlog":          {"core/journal"},
	"core/eventlog/cursors":  {"core/db", "core/eventlog/logstate", "core/fault", "core/journal", "core/retry"},
	"core/cluster":           {"core/cluster/notify", "core/db", "core/db/dbclock", "core/fault", "core/retry"},
	"core/cluster/notify":    {"core/db", "core/db/wake", "core/retry"},
	"core/eventlog/chunks":   {"core/journal"},
	"core/eventlog/logstate": {"core/fault", "core/journal"},
	"core/eventlog/kafka":    {"core/eventlog", "core/eventlog/chunks", "core/eventlog/cursors", "core/eventlog/logstate", "core/fault", "core/journal", "core/retry", "core/text"},
	"core/eventlog/pglog":    {"core/cluster/notify", "core/db", "core/db/pools", "core/eventlog", "core/eventlog/chunks", "core/eventlog/cursors", "core/eventlog/logstate", "core/journal", "core/retry"},
	"core/cluster/onenode":   {"core/retry"},

	// Ingestion.
	"core/ingestion/items":           {"core/jsontext"},
	"core/ingestion/event":           {"core/geoip/location", "core/match", "core/fault", "core/jsontext", "core/text", "sdk"},
	"core/ingestion/reader":          with("core/ingestion/event", "core/journal"),
	"core/ingestion/warning":         with("core/ingestion/event"),
	"core/ingestion/deadletter":      with("core/ingestion/event", "core/journal"),
	"core/ingestion/erasure":         with("core/cluster/onenode", "core/eventlog", "core/ingestion/event", "core/ingestion/deadletter", "core/journal", "core/persons"),
	"core/ingestion/capture":         with("core/eventlog", "core/ingestion/event", "core/ingestion/items", "core/ingestion/warning", "core/cookieless", "core/geoip/location"),
	"core/ingestion/otlp":            with("core/ingestion/capture", "core/web/failure"),
	"core/ingestion/ai":              with("core/ingestion/capture"),
	"core/ingestion/pipeline":        with("core/ingestion/event", "core/ingestion/erasure", "core/ingestion/reader", "core/ingestion/warning", "core/ingestion/deadletter", "core/journal", "core/events", "core/persons", "core/definitions"),
	"core/ingestion/unit":            with("core/eventlog", "core/ingestion/pipeline", "core/journal"),
	"core/ingestion/delivery/filter": {"core/host/settings", "core/ingestion/event", "core/match", "core/jsontext", "core/fault", "sdk"},
	"core/ingestion/delivery/window": {"sdk"},
	"core/ingestion/delivery/pause":  {"core/db", "core/retry"},
	"core/ingestion/delivery/status": with("core/ingestion/deadletter", "core/ingestion/delivery/pause", "core/journal"),
	"core/ingestion/delivery":        with("core/ingestion/event", "core/ingestion/reader", "core/ingestion/deadletter", "core/ingestion/delivery/filter", "core/ingestion/delivery/pause", "core/ingestion/delivery/status", "core/ingestion/delivery/window", "core/journal", "core/host/settings"),
	"core/ingestion/replay":          with("core/ingestion/deadletter", "core/ingestion/delivery", "core/cluster/onenode"),
	"core/ingestion/trace":           with("core/eventlog", "core/ingestion/event", "core/ingestion/erasure", "core/ingestion/reader", "core/ingestion/deadletter", "core/ingestion/delivery", "core/ingestion/pipeline", "core/journal"),
	"core/ingestion":                 with("core/eventlog", "core/ingestion/...", "core/journal", "core/journal/clock"),

	"core/ingestion/delivery/bypartition": with("core/journal", "core/eventlog", "core/ingestion/delivery", "core/ingestion/delivery/status", "core/ingestion/erasure", "core/ingestion/pipeline", "core/ingestion/unit"),

	// Plugins.
	"core/host/settings":  {},
	"core/host/secret":    {"core/host/settings"},
	"core/host/cgroup":    {},
	"core/host/process":   {"core/host/settings", "core/host/cgroup", "core/host/secret", "core/text", "sdk", "sdk/hostcert"},
	"core/host/wire":      {"core/host/settings", "core/host/secret", "core/text", "sdk", "sdk/pb/..."},
	"core/host/lifecycle": {"core/host/settings", "core/host/process", "core/host/wire", "core/text"},
	"core/host/schema":    {"core/host/settings", "core/host/secret", "core/host/wire", "core/text", "sdk/units"},
	"core/host/metrics":   {"core/host/lifecycle"},
	"core/host/conn": {
		"core/host/settings", "core/host/secret", "core/host/process", "core/host/cgroup", "core/host/wire", "core/host/lifecycle", "core/host/schema",
		"core/host/metrics", "core/text", "sdk", "sdk/pb/...",
	},
	"core/host/status": {
		"core/host/settings", "core/host/process", "core/host/wire", "core/host/lifecycle", "core/host/metrics", "core/host/conn", "core/text",
	},
	"core/host/reloadplan":  {"core/host/settings"},
	"core/host/delivery":    {"core/host", "core/host/settings", "sdk"},
	"core/host/executable":  {"core/host/settings", "core/host/process", "core/host/lifecycle", "core/text"},
	"core/host":             {"core/host/...", "core/fault", "core/text", "core/retry", "sdk", "sdk/pb/..."},
	"core/operators":        {"core/match", "core/fault", "core/text", "core/retry", "core/host", "core/host/wire", "sdk"},
	"plugins":               {"plugins/...", "sdk"},
	"sdk":                   {"sdk/internal/...", "sdk/units", "sdk/pb/..."},
	"sdk/units":             {},
	"sdk/internal/linefile": {},
	"sdk/python":            {},
	"sdk/proto":             {},
	"examples":              {},
	"sdk/hostcert":          {},
	"sdk/plugintest":        {"sdk", "sdk/hostcert", "sdk/pb/...", "sdk/plugintest/internal/..."},

	"sdk/plugintest/inspect":            {"sdk", "sdk/units", "sdk/pb/...", "sdk/plugintest/internal/candidate"},
	"sdk/plugintest/internal/candidate": {"sdk", "sdk/hostcert", "sdk/pb/...", "sdk/plugintest/internal/observe"},

	// Support for tests.
	"api/apitest":                  {},
	"core/flags/flagstest":         {"core/flags/eval"},
	"core/geoip/geoiptest":         {},
	"core/ingestion/ingestiontest": {"core/eventlog", "core/ingestion/event", "core/journal", "core/fault", "sdk"},
	"core/email/emailtest":         {},
	"core/web/webtest":             {"core/web", "core/auth", "core/fault"},
	"core/journal/journaltest":     {"core/journal", "core/fault"},
	"core/eventlog/eventlogtest":   {"core/eventlog", "core/journal", "core/fault"},
	"core/powercut":                {},
	"core/simulation":              {"core/journal", "core/fault"},
}

// with returns base and more.
func with(more ...string) []string { return append(slices.Clone(base), more...) }

// libraryRule restricts an import to some files.
type libraryRule struct {
	imports string // a prefix of the import path
	reason  string
	allows  func(pkg, file string) bool
}

func files(prefixes ...string) func(pkg, file string) bool {
	return func(_, file string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(file, p) })
	}
}

func packages(trees ...string) func(pkg, file string) bool {
	return func(pkg, _ string) bool {
		return slices.ContainsFunc(trees, func(r string) bool { return pkg == r || strings.HasPrefix(pkg, r+"/") })
	}
}

func either(a, b func(pkg, file string) bool) func(pkg, file string) bool {
	return func(pkg, file string) bool { return a(pkg, file) || b(pkg, file) }
}

var libraryRules = []libraryRule{
	{"github.com/uptrace/bun", "SQL belongs in store*.go", either(files("store"), packages("core/db"))},
	{"database/sql", "SQL belongs in store*.go", either(files("store"), packages("core/db", "core/journal", "core/journal/format", "core/journal/checkpoint"))},
	{"modernc.org/", "SQLite is slow to link: import core/db/sqlite in the program", packages("core/db/sqlite", "core/sqlitepages", "core/backup")},
	{"github.com/jackc/pgx", "SQL belongs in store*.go", either(files("store"), packages("core/db", "plugins/sink/postgres"))},
	{"github.com/gofiber/fiber", "HTTP belongs in http*.go and in core/web", either(files("http"), packages("core/web"))},
	{"go.uber.org/fx", "wiring belongs in module.go and in app", either(files("module"), packages("app"))},
	{"github.com/hashicorp/go-plugin", "only sdk and core/host reach plugins", packages("sdk", "core/host")},
	{"google.golang.org/grpc", "only sdk and core/host reach plugins", packages("sdk", "core/host")},
	{"github.com/nats-io", "only core/journal and the nats sink use NATS", packages("core/journal", "plugins/sink/nats")},
	{"github.com/twmb", "only core/eventlog/kafka and the kafka sink use Kafka", packages("core/eventlog/kafka", "plugins/sink/kafka")},
	{"github.com/parquet-go", "only the parquet sink writes Parquet", packages("plugins/sink/parquet")},
	{"github.com/minio", "only backups and the parquet sink use S3", packages("core/backup/place", "plugins/sink/parquet")},
}

func TestImports(t *testing.T) {
	t.Parallel()
	eachFile(t, func(pkg, file string, imports []string) {
		for _, imp := range imports {
			ours, ok := strings.CutPrefix(imp, module)
			if ok && ours != pkg && !allowed(pkg, ours) {
				t.Errorf("%s/%s imports %s: the import table allows %s only %v; declare a small interface beside its use and bind it in app", pkg, file, ours, pkg, mayImport[pkg])
			}
			for _, r := range libraryRules {
				if strings.HasPrefix(imp, r.imports) && !r.allows(pkg, file) {
					t.Errorf("%s/%s imports %s: %s", pkg, file, imp, r.reason)
				}
			}
		}
	})
}

func allowed(pkg, imp string) bool {
	list, ok := mayImport[pkg]
	if !ok && strings.HasPrefix(pkg, "plugins/") {
		// Beside the SDK, the internal packages of plugins of the same kind.
		list, ok = []string{"sdk", path.Dir(pkg) + "/internal/..."}, true
	}
	if !ok && strings.HasPrefix(pkg, "sdk/pb") {
		list = []string{"sdk/pb/..."}
	}
	return slices.ContainsFunc(list, func(a string) bool {
		below, tree := strings.CutSuffix(a, "/...")
		return a == imp || tree && (imp == below || strings.HasPrefix(imp, below+"/"))
	})
}

// eachFile calls fn for every Go file of the module that is neither a test nor
// test data, with its package path inside the module and its imports.
func eachFile(t *testing.T, fn func(pkg, file string, imports []string)) {
	t.Helper()
	fset := token.NewFileSet()
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(p, ".."), string(filepath.Separator)))
		if d.IsDir() {
			if d.Name() == "testdata" || d.Name() == "node_modules" || rel != "" && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || rel == "e2e" || rel == "data" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(fset, p, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		var imports []string
		for _, spec := range f.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			imports = append(imports, imp)
		}
		fn(path.Dir(rel), path.Base(rel), imports)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
