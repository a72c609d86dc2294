package notifications

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/actions"
	"github.com/guidonhq/guidon/core/tracing"
	"github.com/guidonhq/guidon/sdk"
)

// Name is the name of the journal reader.
func (s *Service) Name() string { return "notifications" }

// Accepts reports whether the project has an action that posts, and a notifier
// exists.
func (s *Service) Accepts(projectID int64) bool {
	return s.deps.Actions.HasPosting(projectID) && len(s.deps.Notifiers.Notifiers()) > 0
}

// Prepare matches the events with the actions that post. It returns the
// function that queues a notification for each destination, in a transaction.
func (s *Service) Prepare(ctx context.Context, batch []*sdk.Event) (func(context.Context) error, error) {
	// Times of messages are those of the database also before the first delivery.
	if err := s.database.Sync(ctx); err != nil {
		return nil, err
	}
	byProject := map[int64][]*sdk.Event{}
	for _, ev := range batch {
		byProject[ev.ProjectID] = append(byProject[ev.ProjectID], ev)
	}
	var posts []*Post
	for id, events := range byProject {
		name, loc := s.project(ctx, id)
		project := sdk.ProjectRef{ID: id, Name: name, URL: s.projectURL(id)}
		err := s.deps.Actions.MatchPosting(ctx, id, events, func(ev *sdk.Event, a *actions.Action) {
			for _, p := range s.postsOf(project, loc, ev, a) {
				p.origin = tracing.OriginOfEvent(ctx, ev.UUID)
				posts = append(posts, p)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) error { return s.queue.add(ctx, posts) }, nil
}

// postsOf are the posts of one action for one event.
func (s *Service) postsOf(project sdk.ProjectRef, loc *time.Location, ev *sdk.Event, a *actions.Action) (posts []*Post) {
	for _, d := range s.destinations(a) {
		if s.find(d.Notifier) == nil {
			s.log.Warn("action posts to unknown notifier", zap.Int64("action", a.ID), zap.String("notifier", d.Notifier))
			continue
		}
		post := &Post{
			ProjectID: project.ID, ActionID: a.ID, Notifier: d.Notifier, Destination: d.To, Format: d.Format, Location: loc, Event: ev,
			Message: func(ctx context.Context) Message { return s.composer.compose(ctx, project, ev, a, d.Format, false) },
		}
		posts = append(posts, post.identify())
	}
	return posts
}
