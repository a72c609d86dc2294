package notifications

import (
	"context"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/actions"
	"github.com/guidonhq/guidon/sdk"
)

// composer renders messages. It caches parsed templates.
type composer struct {
	*base
	mu        sync.Mutex
	templates map[string]*Template
}

// template parses a format, or returns it from the cache.
func (s *composer) template(format string) (*Template, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.templates[format]; t != nil {
		return t, nil
	}
	t, err := ParseTemplate(format)
	if err != nil {
		return nil, err
	}
	if len(s.templates) > 10_000 {
		clear(s.templates)
	}
	s.templates[format] = t
	return t, nil
}

// compose renders a message. An invalid stored format or an unreadable person
// does not prevent it.
func (s *composer) compose(ctx context.Context, project sdk.ProjectRef, ev *sdk.Event, a *actions.Action, format string, test bool) Message {
	if format == "" {
		format = a.Format
	}
	t, err := s.template(format)
	if err != nil {
		t, _ = ParseTemplate("") // the default is valid
	}
	f := s.facts(ctx, project.ID, ev, a)
	segments, text := t.Render(f)
	m := Message{
		Text: text, Template: t.source, Project: project, Event: *ev, EventURL: f.EventURL(), Test: test,
		Action: sdk.ActionRef{ID: a.ID, Name: a.Title(), URL: f.actionURL(), Tags: a.Tags},
		Person: sdk.PersonRef{Display: f.Display(), URL: f.PersonURL(), Properties: f.Person},
	}
	for _, seg := range segments {
		m.Segments = append(m.Segments, segment(seg))
	}
	return m
}

func (s *composer) facts(ctx context.Context, projectID int64, ev *sdk.Event, a *actions.Action) *Facts {
	person, _, err := s.deps.People.Properties(ctx, projectID, ev.DistinctID)
	if err != nil {
		s.log.Warn("notification rendered without person: read failed", zap.Error(err))
	}
	return &Facts{
		Site: strings.TrimSuffix(s.cfg.SiteURL, "/"), ProjectID: projectID, ActionID: a.ID, ActionName: a.Title(), Event: ev,
		Person: append([]byte(nil), person...), Names: s.cfg.DisplayNames,
		Group: func(kind, key string) []byte {
			properties, _, err := s.deps.People.GroupProperties(ctx, projectID, kind, key)
			if err != nil {
				s.log.Warn("notification rendered without group: read failed", zap.Error(err))
			}
			return properties
		},
	}
}
