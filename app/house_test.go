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

// mayImport is the import table of the house: for each room, the rooms of
// ours that its code (not its tests) may know. A trailing /... covers the
// rooms below. docs/decisions/0001, 0002, 0012 and 0022 say why it looks like this.
var mayImport = map[string][]string{
	"cmd/guidon":         {"app", "plugins", "sdk", "sdk/plugintest"},
	"app":                {"core/...", "api", "sdk", "migrations"},
	"core/flags":         {"core/web", "core/auth", "core/match", "core/fault", "core/db", "sdk"},
	"core/actions":       {"core/web", "core/auth", "core/match", "core/fault", "core/db", "sdk"},
	"core/notifications": {"core/web", "core/auth", "core/match", "core/fault", "core/db", "sdk"},
	"core/ingestion":     {"core/web", "core/auth", "core/journal", "core/match", "core/fault", "core/db", "sdk"},
	"core/persons":       {"core/web", "core/auth", "core/match", "core/fault", "core/db", "sdk"},
	"core/events":        {"core/web", "core/auth", "core/match", "core/fault", "core/db", "sdk"},
	"core/definitions":   {"core/web", "core/auth", "core/fault", "core/db", "sdk"},
	"core/operators":     {"core/match", "core/fault", "sdk"},
	"core/web":           {"core/auth", "core/fault"},
	"core/host":          {"sdk", "sdk/pb/...", "core/fault"},
	"core/auth":          {"core/fault", "core/db"},
	"core/match":         {"core/fault"},
	"core/db":            {"migrations", "core/fault"},
	"core/db/dbtest":     {"core/db"},
	"core/journal":       {"core/fault"},
	"core/fault":         {},
	"migrations":         {},
	"api":                {},
	"api/apitest":        {},
	"sdk":                {"sdk/pb/..."},
	"sdk/plugintest":     {"sdk", "sdk/pb/..."},

	"core/accounts":            {"core/web", "core/auth", "core/fault"},
	"core/flags/flagstest":     {"core/flags"},
	"core/web/webtest":         {"core/web", "core/auth", "core/fault"},
	"core/journal/journaltest": {"core/journal", "core/fault"},
	"plugins":                  {"plugins/...", "sdk"},
}

// wall says that one import may appear only in some files.
type wall struct {
	imports string // a prefix of the import path
	reason  string
	open    func(room, file string) bool
}

func named(prefixes ...string) func(room, file string) bool {
	return func(_, file string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(file, p) })
	}
}

func within(rooms ...string) func(room, file string) bool {
	return func(room, _ string) bool {
		return slices.ContainsFunc(rooms, func(r string) bool { return room == r || strings.HasPrefix(room, r+"/") })
	}
}

func either(a, b func(room, file string) bool) func(room, file string) bool {
	return func(room, file string) bool { return a(room, file) || b(room, file) }
}

var walls = []wall{
	{"github.com/uptrace/bun", "SQL belongs in store*.go", either(named("store"), within("core/db"))},
	{"database/sql", "SQL belongs in store*.go", either(named("store"), within("core/db", "core/journal"))},
	{"github.com/jackc/pgx", "SQL belongs in store*.go", either(named("store"), within("core/db", "plugins/sink/postgres"))},
	{"github.com/gofiber/fiber", "HTTP belongs in http*.go and in core/web", either(named("http"), within("core/web"))},
	{"go.uber.org/fx", "wiring belongs in module.go and in app", either(named("module"), within("app"))},
	{"github.com/hashicorp/go-plugin", "only sdk and core/host know how a plugin is reached", within("sdk", "core/host")},
	{"google.golang.org/grpc", "only sdk and core/host know how a plugin is reached", within("sdk", "core/host")},
	{"github.com/nats-io", "only core/journal and the nats sink know NATS", within("core/journal", "plugins/sink/nats")},
	{"github.com/parquet-go", "only the parquet sink knows Parquet", within("plugins/sink/parquet")},
	{"github.com/minio", "only the parquet sink knows S3", within("plugins/sink/parquet")},
}

func TestRoomsImportOnlyWhatTheHouseAllows(t *testing.T) {
	t.Parallel()
	eachFile(t, func(room, file string, imports []string) {
		for _, imp := range imports {
			ours, ok := strings.CutPrefix(imp, module)
			if ok && ours != room && !allowed(room, ours) {
				t.Errorf("%s/%s imports %s: the house allows %s only %v; declare a small interface and bind it in app/ports.go", room, file, ours, room, mayImport[room])
			}
			for _, w := range walls {
				if strings.HasPrefix(imp, w.imports) && !w.open(room, file) {
					t.Errorf("%s/%s imports %s: %s", room, file, imp, w.reason)
				}
			}
		}
	})
}

func TestEveryRoomOpensWithAComment(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	fset := token.NewFileSet()
	eachFile(t, func(room, file string, _ []string) {
		f, err := parser.ParseFile(fset, filepath.Join("..", room, file), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		documented[room] = documented[room] || f.Doc != nil
	})
	for room, ok := range documented {
		if !ok && !strings.HasPrefix(room, "sdk/pb") {
			t.Errorf("%s has no package comment: open the file named after the room with a paragraph a stranger would thank you for", room)
		}
	}
}

func TestThereAreNoDrawers(t *testing.T) {
	t.Parallel()
	drawers := []string{"util", "utils", "common", "helper", "helpers", "model", "models", "types", "shared", "misc"}
	eachFile(t, func(room, file string, _ []string) {
		if slices.Contains(drawers, path.Base(room)) {
			t.Errorf("%s/%s lies in a drawer: give the thing a room with a name of its own", room, file)
		}
	})
}

func allowed(room, imp string) bool {
	list, ok := mayImport[room]
	if !ok && strings.HasPrefix(room, "plugins/") {
		// Beside the SDK, what is internal to plugins of a kind.
		list, ok = []string{"sdk", path.Dir(room) + "/internal/..."}, true
	}
	if !ok && strings.HasPrefix(room, "sdk/pb") {
		list = []string{"sdk/pb/..."}
	}
	return slices.ContainsFunc(list, func(a string) bool {
		below, tree := strings.CutSuffix(a, "/...")
		return a == imp || tree && (imp == below || strings.HasPrefix(imp, below+"/"))
	})
}

// eachFile calls fn for every Go file of the tree that is neither a test nor
// test data, with its folder and its imports.
func eachFile(t *testing.T, fn func(room, file string, imports []string)) {
	t.Helper()
	fset := token.NewFileSet()
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(p, ".."), string(filepath.Separator)))
		if d.IsDir() {
			if d.Name() == "testdata" || rel != "" && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || rel == "e2e" || rel == "data" {
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
