package notifications

import (
	"context"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/actions"
	"github.com/guidonhq/guidon/sdk"
)

// Name names the reader of the journal.
func (s *Service) Name() string { return "notifications" }

// Accepts reports whether the project has an action that posts, and there is
// somewhere to post to.
func (s *Service) Accepts(projectID int64) bool {
	return s.deps.Actions.HasPosting(projectID) && len(s.deps.Notifiers.Notifiers()) > 0
}

// Prepare finds the actions that post and that the events fit, and returns what
// queues a message for each destination of each, in a transaction.
func (s *Service) Prepare(ctx context.Context, batch []*sdk.Event) (func(context.Context) error, error) {
	byProject := map[int64][]*sdk.Event{}
	for _, ev := range batch {
		byProject[ev.ProjectID] = append(byProject[ev.ProjectID], ev)
	}
	var posts []*Post
	for id, events := range byProject {
		name, loc := s.project(ctx, id)
		project := sdk.ProjectRef{ID: id, Name: name, URL: s.projectURL(id)}
		err := s.deps.Actions.MatchPosting(ctx, id, events, func(ev *sdk.Event, a *actions.Action) {
			posts = append(posts, s.postsOf(project, loc, ev, a)...)
		})
		if err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) error { return s.file(ctx, posts) }, nil
}

// postsOf is what one action says about one event.
func (s *Service) postsOf(project sdk.ProjectRef, loc *time.Location, ev *sdk.Event, a *actions.Action) (posts []*Post) {
	for _, d := range s.destinations(a) {
		if s.find(d.Notifier) == nil {
			s.log.Warn("an action posts to a notifier that is not there", zap.Int64("action", a.ID), zap.String("notifier", d.Notifier))
			continue
		}
		post := &Post{
			ProjectID: project.ID, ActionID: a.ID, Notifier: d.Notifier, Destination: d.To, Format: d.Format, Location: loc, Event: ev,
			Message: func(ctx context.Context) Message { return s.compose(ctx, project, ev, a, d.Format, false) },
		}
		posts = append(posts, post.identify())
	}
	return posts
}

// compose renders a message. A format that cannot be parsed any more, or a
// person that cannot be read, does not keep it from being sent.
func (s *Service) compose(ctx context.Context, project sdk.ProjectRef, ev *sdk.Event, a *actions.Action, format string, test bool) Message {
	if format == "" {
		format = a.Format
	}
	t, err := s.template(format)
	if err != nil {
		t, _ = ParseTemplate("") // the default can be parsed
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

func (s *Service) facts(ctx context.Context, projectID int64, ev *sdk.Event, a *actions.Action) *Facts {
	person, _, err := s.deps.People.Properties(ctx, projectID, ev.DistinctID)
	if err != nil {
		s.log.Warn("a message is told without what is known of the person", zap.Error(err))
	}
	return &Facts{
		Site: strings.TrimSuffix(s.cfg.SiteURL, "/"), ProjectID: projectID, ActionID: a.ID, ActionName: a.Title(), Event: ev,
		Person: append([]byte(nil), person...), Names: s.cfg.DisplayNames,
		Group: func(kind, key string) []byte {
			properties, _, err := s.deps.People.GroupProperties(ctx, projectID, kind, key)
			if err != nil {
				s.log.Warn("a message is told without what is known of a group", zap.Error(err))
			}
			return properties
		},
	}
}

func (s *Service) projectURL(id int64) string {
	return (&Facts{Site: strings.TrimSuffix(s.cfg.SiteURL, "/"), ProjectID: id}).project()
}
