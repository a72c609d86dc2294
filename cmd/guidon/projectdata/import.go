package projectdata

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
	"github.com/guidonhq/guidon/core/definitionfile"
)

// Import brings the directory of an export into a project of a running server.
type Import struct {
	command.Remote `embed:""`

	From       string   `arg:"" name:"path" help:"Directory of an export, or a YAML file with definitions, such as a seed file."`
	FromName   string   `name:"from-project" help:"Project of the file, if it has several." placeholder:"NAME"`
	Only       []string `enum:"definitions,persons,events" default:"definitions,persons,events" help:"What to import."`
	OnConflict string   `enum:"fail,skip,update" default:"fail" help:"What to do with a definition that exists and differs: fail, skip or update."`
	DryRun     bool     `name:"dry-run" help:"Print which definitions would be created, changed and left; change nothing."`
	ProjectKey string   `env:"GUIDON_PROJECT_KEY" help:"Key of the project (phc_) that receives events; default: the first key of the project." placeholder:"PHC"`
}

// Help is printed below the options.
func (Import) Help() string {
	return "Events go to /batch/ of the server as an import, with their uuids: an import that was interrupted goes on, and one that is repeated stores nothing twice. Events come first, because they create persons and group types. Persons become events $identify, $set and $merge_dangerously with their properties and ids."
}

// Run imports events, persons and definitions.
func (c Import) Run(e *command.Env) error {
	client, err := c.Connect(e)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	x := &importer{env: e, client: client, onConflict: c.OnConflict, dryRun: c.DryRun}
	if info, err := os.Stat(c.From); err == nil && !info.IsDir() {
		return c.importDefinitions(ctx, x, c.From)
	}
	m, err := readManifest(c.From)
	if err != nil {
		return err
	}
	if m == nil {
		return fmt.Errorf("%s has no %s", c.From, manifestName)
	}
	if err := c.importLines(ctx, e, client, m); err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted; the same command goes on")
		}
		return err
	}
	if !slices.Contains(c.Only, "definitions") {
		return nil
	}
	path := filepath.Join(c.From, definitionsName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && len(c.Only) > 1 {
		return nil // the export has none
	}
	return c.importDefinitions(ctx, x, path)
}

// groupTypeWait is how long an import waits for group types of events that were just
// accepted, before it creates them: those of the events keep their indexes.
const groupTypeWait = 2 * time.Minute

// importDefinitions imports the definitions of a file. After events it waits for their
// group types.
func (c Import) importDefinitions(ctx context.Context, x *importer, path string) error {
	f, p, err := readFile(path, c.FromName)
	if err != nil {
		return err
	}
	hasEvents := path != c.From && !c.DryRun && slices.Contains(c.Only, kindEvents)
	for deadline := time.Now().Add(groupTypeWait); hasEvents && ctx.Err() == nil && time.Now().Before(deadline); {
		if x.target, err = readDefinitions(ctx, x.client); err != nil {
			return err
		}
		if !slices.ContainsFunc(p.GroupTypes, func(t definitionfile.Item) bool { return x.target.typeIndex[t.Name] == nil }) {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	return x.run(ctx, f, p)
}

// sent is how far an import has come. It is kept beside the export. It does not count
// for another export or for another project at the same address.
type sent struct {
	Server  string         `json:"server"`
	Export  string         `json:"export"`
	Project string         `json:"project"` // the time at which it was created; empty if not readable
	Lines   map[string]int `json:"lines"`   // accepted, by part
}

// readSent returns what is kept for the target of begin, or begin.
func readSent(path string, begin sent) (*sent, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &begin, nil
	}
	if err != nil {
		return nil, err
	}
	s := new(sent)
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if s.Export != begin.Export || s.Project != begin.Project || s.Lines == nil {
		return &begin, nil
	}
	return s, nil
}

// sender sends lines as events.
type sender struct {
	client *http.Client
	url    string
	key    string
	batch  []json.RawMessage
	bytes  int
}

// A request ends with the event that reaches one of these bounds.
const (
	batchEvents = 1000
	batchBytes  = 4 << 20
)

func (c Import) importLines(ctx context.Context, e *command.Env, client *remote.Client, m *manifest) error {
	if c.DryRun || !slices.Contains(c.Only, kindEvents) && !slices.Contains(c.Only, kindPersons) {
		return nil
	}
	key, created, err := c.target(ctx, client)
	if err != nil {
		return err
	}
	s := &sender{client: client.HTTP(), url: client.URL() + "/batch/", key: key}
	name := "import-" + strings.NewReplacer(":", "-", "/", "-").Replace(client.Place()+client.Project("")) + ".json"
	path := filepath.Join(c.From, name)
	done, err := readSent(path, sent{client.Place(), m.ID, created, map[string]int{}})
	if err != nil {
		return err
	}
	for _, kind := range []string{kindEvents, kindPersons} {
		total, before := 0, 0
		for i := range m.Parts {
			p := &m.Parts[i]
			if p.Kind != kind || !slices.Contains(c.Only, kind) {
				continue
			}
			before += done.Lines[p.Name]
			work := e.StartProgress(fmt.Sprintf("sending %s", p.Name))
			err := s.sendPart(ctx, c.From, p, m, done, path)
			work.Stop()
			if err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
			total += p.Lines
		}
		if slices.Contains(c.Only, kind) {
			text := ""
			if before > 0 {
				text = fmt.Sprintf(", %d of them by an earlier import", before)
			}
			fmt.Fprintf(e.Out, "%s: %d accepted%s\n", kind, total, text)
		}
	}
	return nil
}

// target returns the key that events are sent with, and when the project was created.
func (c Import) target(ctx context.Context, client *remote.Client) (key, created string, err error) {
	var p struct {
		Token   string `json:"api_token"`
		Created string `json:"created_at"`
	}
	err = client.Do(ctx, http.MethodGet, client.Project(""), nil, &p)
	if c.ProjectKey != "" {
		if command.IsStatus(err, http.StatusForbidden) { // a personal key without project:read
			err = nil
		}
		return c.ProjectKey, p.Created, err
	}
	if err == nil && p.Token == "" {
		err = errors.New("the project has no key: create one, or name one with --project-key")
	}
	return p.Token, p.Created, err
}

func (s *sender) sendPart(ctx context.Context, dir string, p *part, m *manifest, done *sent, path string) error {
	n := done.Lines[p.Name]
	flush := func() error {
		if err := s.flush(ctx); err != nil {
			return err
		}
		done.Lines[p.Name] = n
		return writeJSON(path, done)
	}
	err := readPart(dir, p, n, func(line []byte) error {
		list, err := eventsOf(p.Kind, line, m)
		if err != nil {
			return err
		}
		for _, ev := range list {
			s.batch, s.bytes = append(s.batch, ev), s.bytes+len(ev)
		}
		n++
		if len(s.batch) >= batchEvents || s.bytes >= batchBytes {
			return flush()
		}
		return nil
	})
	if err != nil || len(s.batch) == 0 {
		return err
	}
	return flush()
}

// eventsOf returns the events of a line.
func eventsOf(kind string, line []byte, m *manifest) ([]json.RawMessage, error) {
	if kind == kindPersons {
		return personEvents(line, m)
	}
	var ev map[string]json.RawMessage
	if err := json.Unmarshal(line, &ev); err != nil {
		return nil, err
	}
	// Without $ip the server would add the address of this machine.
	var own map[string]json.RawMessage
	if err := json.Unmarshal(ev["properties"], &own); err != nil || own["$ip"] == nil {
		ev["properties"] = withNullIP(ev["properties"])
	}
	text, err := json.Marshal(ev)
	return []json.RawMessage{text}, err
}

func withNullIP(properties []byte) []byte {
	rest := bytes.TrimSpace(properties)
	if len(rest) < 2 || rest[0] != '{' {
		return []byte(`{"$ip":null}`)
	}
	if rest = bytes.TrimSpace(rest[1:]); rest[0] == '}' {
		return []byte(`{"$ip":null}`)
	}
	return append([]byte(`{"$ip":null,`), rest...)
}

// personEvents returns events that give a person its properties and ids. Their uuids
// derive from the export and the person, so that a repetition stores nothing twice.
func personEvents(line []byte, m *manifest) ([]json.RawMessage, error) {
	var p struct {
		UUID        string          `json:"uuid"`
		DistinctIDs []string        `json:"distinct_ids"`
		Properties  json.RawMessage `json:"properties"`
		Identified  bool            `json:"is_identified"`
	}
	if err := json.Unmarshal(line, &p); err != nil || len(p.DistinctIDs) == 0 {
		return nil, err
	}
	space := uuid.NewSHA1(uuid.NameSpaceOID, []byte("guidon export "+m.ID+" "+p.UUID))
	var out []json.RawMessage
	add := func(name string, properties map[string]any) error {
		properties["$ip"] = nil
		text, err := json.Marshal(map[string]any{
			"uuid": uuid.NewSHA1(space, fmt.Append(nil, len(out))).String(), "event": name, "distinct_id": p.DistinctIDs[0],
			"timestamp": m.StartedAt.Format(time.RFC3339), "properties": properties,
		})
		out = append(out, text)
		return err
	}
	name := "$set"
	if p.Identified {
		name = "$identify"
	}
	for _, id := range p.DistinctIDs[1:] {
		if err := add("$merge_dangerously", map[string]any{"alias": id}); err != nil {
			return nil, err
		}
	}
	return out, add(name, map[string]any{"$set": p.Properties})
}

// retries is how often a request is repeated, with 1 s to 30 s between.
const retries = 20

// flush sends the events that wait, until they are accepted.
func (s *sender) flush(ctx context.Context) error {
	body, err := json.Marshal(map[string]any{"api_key": s.key, "historical_migration": true, "batch": s.batch})
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err = z.Write(body)
	if err = errors.Join(err, z.Close()); err != nil {
		return err
	}
	wait := time.Second
	for n := 0; ; n++ {
		var again bool
		if again, err = s.post(ctx, packed.Bytes()); err == nil {
			s.batch, s.bytes = s.batch[:0], 0
			return nil
		}
		if !again || n == retries {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
		wait = min(2*wait, 30*time.Second)
	}
}

// post sends a body; again reports that the request may be repeated.
func (s *sender) post(ctx context.Context, body []byte) (again bool, err error) {
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(bounded, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Content-Encoding", "gzip")
	res, err := s.client.Do(req)
	if err != nil {
		return ctx.Err() == nil, &remote.UnreachableError{Err: err}
	}
	defer func() { _ = res.Body.Close() }()
	answer, _ := io.ReadAll(io.LimitReader(res.Body, 1000))
	if res.StatusCode == http.StatusOK {
		// Over quota the server drops the events with status 200.
		if bytes.Contains(answer, []byte(`"quota_limited"`)) {
			return false, errors.New("the project is over its quota (ingestion.quota): raise the quota, then the same command goes on")
		}
		return false, nil
	}
	again = res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500
	return again, fmt.Errorf("the server answered %d: %s", res.StatusCode, cmp.Or(strings.TrimSpace(string(answer)), http.StatusText(res.StatusCode)))
}
