package flags

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

// localRoutes registers the three paths under which client libraries of
// different ages ask for the same document, and the remote config.
func (h *HTTP) localRoutes(g *web.Router) {
	g.Manage("GET", flagsPath+"/local_evaluation", scopeRead, func(c *web.Call) error { return h.definitions(c, c.Project) })
	for _, path := range []string{"/api/feature_flag/local_evaluation", "/flags/definitions"} {
		g.Manage("GET", path, scopeRead, func(c *web.Call) error {
			project, err := c.CurrentProject()
			if err != nil {
				return err
			}
			return h.definitions(c, project)
		})
	}
	g.Manage("GET", flagsPath+"/:id/remote_config", scopeRead, h.remoteConfig)
}

// definitions answers with the document for local evaluation, or with 304 when
// the client has it already.
func (h *HTTP) definitions(c *web.Call, project auth.Project) error {
	doc, err := h.local.of(c.UserContext(), project.ID, asksForCohorts(c))
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderETag, doc.etag)
	c.Set(fiber.HeaderCacheControl, "private, must-revalidate")
	if knows(c.Get(fiber.HeaderIfNoneMatch), doc.etag) {
		return web.Empty(c.Ctx, fiber.StatusNotModified)
	}
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	c.Response().SetBodyRaw(doc.body)
	return nil
}

// asksForCohorts reads send_cohorts: there at all, it asks, unless it says no.
func asksForCohorts(c *web.Call) bool {
	if !c.Request().URI().QueryArgs().Has("send_cohorts") {
		return false
	}
	said := strings.ToLower(c.Query("send_cohorts"))
	return said != "false" && said != "0"
}

// knows reports whether an If-None-Match header names the tag: strong, weak,
// without quotes, or among others.
func knows(header, tag string) bool {
	for named := range strings.SplitSeq(header, ",") {
		named = strings.TrimSpace(named)
		if named == "*" || named != "" && opaque(named) == opaque(tag) {
			return true
		}
	}
	return false
}

func opaque(tag string) string { return strings.Trim(strings.TrimPrefix(tag, "W/"), `"`) }

// localDocument is a document for local evaluation, ready to send.
type localDocument struct {
	body []byte
	etag string
}

// localDocuments keeps the documents of every project for as long as the
// project's snapshot is the same one: a poll costs a look into a map.
type localDocuments struct {
	snapshots *Snapshots
	source    Source

	mu       sync.Mutex
	projects map[int64]*localPair
}

// localPair is both documents of a project at one moment.
type localPair struct {
	mu    sync.Mutex
	set   *eval.Set
	plain *localDocument
	full  *localDocument
}

func newLocalDocuments(snapshots *Snapshots, source Source) *localDocuments {
	return &localDocuments{snapshots: snapshots, source: source, projects: map[int64]*localPair{}}
}

// of returns the document of a project, made when there is none yet of the
// snapshot that flags are decided from now.
func (l *localDocuments) of(ctx context.Context, projectID int64, cohorts bool) (*localDocument, error) {
	l.mu.Lock()
	p := l.projects[projectID]
	if p == nil {
		p = &localPair{}
		l.projects[projectID] = p
	}
	l.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if set := l.snapshots.Set(projectID); p.plain == nil || p.set != set {
		stored, err := l.source.Definitions(ctx, projectID)
		if err != nil {
			return nil, err
		}
		p.set, p.plain, p.full = set, tagged(LocalEvaluation(stored, false, l.snapshots.operators)), tagged(LocalEvaluation(stored, true, l.snapshots.operators))
	}
	if cohorts {
		return p.full, nil
	}
	return p.plain, nil
}

func tagged(body []byte) *localDocument {
	sum := sha256.Sum256(body)
	return &localDocument{body: body, etag: `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
}

// remoteConfig answers with the payload of a flag, by its key or id: a JSON
// text as a JSON string, null when there is none.
func (h *HTTP) remoteConfig(c *web.Call) error {
	payload, err := h.service.RemoteConfig(c.UserContext(), c.Project, c.Params("id"))
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, payload)
}
