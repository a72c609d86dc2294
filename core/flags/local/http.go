package local

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/web"
)

// HTTP serves the documents for local evaluation.
type HTTP struct{ documents *cache }

var _ web.Routes = (*HTTP)(nil)

// Sets returns the compiled flags of a project. It returns the same set until
// the definitions of the project change.
type Sets interface {
	Set(projectID int64) *eval.Set
}

// Source reads the definitions of a project. A source that also has Kept answers
// from memory while the database is away.
type Source interface {
	Definitions(ctx context.Context, projectID int64) (eval.ProjectDefinitions, error)
}

// keeper has the definitions of which a set was compiled, or newer ones.
type keeper interface {
	Kept(projectID int64) (eval.ProjectDefinitions, bool)
}

// definitions takes the definitions from memory, else from the source.
func (l *cache) definitions(ctx context.Context, projectID int64) (eval.ProjectDefinitions, error) {
	if k, ok := l.source.(keeper); ok {
		if d, ok := k.Kept(projectID); ok {
			return d, nil
		}
	}
	return l.source.Definitions(ctx, projectID)
}

// NewHTTP returns the endpoints. A document is made from source and kept
// while sets returns the same set. The cohorts and the client of opts are those of
// the request.
func NewHTTP(sets Sets, source Source, opts Options) *HTTP {
	return &HTTP{&cache{sets: sets, source: source, opts: opts, projects: map[int64]*projectDocuments{}}}
}

const scopeRead = "feature_flag:read"

// Routes registers the three paths under which client libraries of different
// versions request the same document.
func (h *HTTP) Routes(g *web.Router) {
	g.ManageFromMemory("GET", "/api/projects/:project_id/feature_flags/local_evaluation", scopeRead,
		func(c *web.Call) error { return h.serve(c, c.Project) })
	for _, path := range []string{"/api/feature_flag/local_evaluation", "/flags/definitions"} {
		g.ManageFromMemory("GET", path, scopeRead, func(c *web.Call) error {
			project, err := c.CurrentProject()
			if err != nil {
				return err
			}
			return h.serve(c, project)
		})
	}
}

// serve answers with the document for local evaluation, or with 304 if the
// client has it already.
func (h *HTTP) serve(c *web.Call, project auth.Project) error {
	doc, err := h.documents.get(c.UserContext(), project.ID, form{wantsCohorts(c), ClientOf(c.Get(fiber.HeaderUserAgent))})
	if err != nil {
		return err
	}
	c.Append(fiber.HeaderVary, fiber.HeaderUserAgent)
	c.Set(fiber.HeaderETag, doc.etag)
	c.Set(fiber.HeaderCacheControl, "private, must-revalidate")
	if matchesETag(c.Get(fiber.HeaderIfNoneMatch), doc.etag) {
		return web.Empty(c.Ctx, fiber.StatusNotModified)
	}
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	c.Response().SetBodyRaw(doc.body)
	return nil
}

// wantsCohorts reads send_cohorts: any value except false and 0 means yes.
func wantsCohorts(c *web.Call) bool {
	if !c.HasQuery("send_cohorts") {
		return false
	}
	value := strings.ToLower(c.Query("send_cohorts"))
	return value != "false" && value != "0"
}

// matchesETag reports whether an If-None-Match header names the tag: strong,
// weak, without quotes, or in a list.
func matchesETag(header, tag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" || candidate != "" && opaqueTag(candidate) == opaqueTag(tag) {
			return true
		}
	}
	return false
}

func opaqueTag(tag string) string { return strings.Trim(strings.TrimPrefix(tag, "W/"), `"`) }

// cached is a document for local evaluation, ready to send.
type cached struct {
	body []byte
	etag string
}

// cache keeps the documents of every project while its set stays the
// same: a poll of a client costs one map lookup.
type cache struct {
	sets   Sets
	source Source
	opts   Options

	mu       sync.Mutex
	projects map[int64]*projectDocuments
}

// form is what the document of a project depends on besides its definitions.
type form struct {
	cohorts bool
	client  Client
}

// projectDocuments has the documents of a project that clients asked for, made
// from one set.
type projectDocuments struct {
	mu          sync.Mutex
	set         *eval.Set
	definitions eval.ProjectDefinitions
	byForm      map[form]*cached
}

// get returns the document of a project, and makes it if the set has changed.
// Projects do not wait for each other.
func (l *cache) get(ctx context.Context, projectID int64, f form) (*cached, error) {
	p := l.project(projectID)
	p.mu.Lock()
	defer p.mu.Unlock()
	if set := l.sets.Set(projectID); p.byForm == nil || p.set != set {
		definitions, err := l.definitions(ctx, projectID)
		if err != nil {
			return nil, err
		}
		p.set, p.definitions, p.byForm = set, definitions, map[form]*cached{}
	}
	if p.byForm[f] == nil {
		opts := l.opts
		opts.Cohorts, opts.Client = f.cohorts, f.client
		p.byForm[f] = newCached(Document(p.definitions, opts))
	}
	return p.byForm[f], nil
}

func (l *cache) project(projectID int64) *projectDocuments {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.projects[projectID]
	if p == nil {
		p = &projectDocuments{}
		l.projects[projectID] = p
	}
	return p
}

func newCached(body []byte) *cached {
	sum := sha256.Sum256(body)
	return &cached{body: body, etag: `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
}
