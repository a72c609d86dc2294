package actions

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

// Limits of an action.
const (
	maxName         = 400
	maxDescription  = 10_000
	maxTags         = 100
	maxTag          = 255
	maxFormat       = 1200
	maxDestinations = 20
	maxTo           = 2048
)

// Input are the fields of a request; absent fields are not Set.
type Input struct {
	Name         web.Opt[string]
	Description  web.Opt[string]
	Tags         web.Opt[[]string]
	PostToChat   web.Opt[bool]
	Format       web.Opt[string]
	Destinations web.Opt[[]Destination]
	Steps        web.Opt[[]actionmatch.Step]
	Deleted      web.Opt[bool]
	CalculatedAt web.Opt[time.Time]
	Pinned       web.Opt[json.RawMessage]
	Version      web.Opt[int64] // that the client has read

	formatName string // the name of the request field of Format
}

// ReadInput reads the writable fields of an action. Unknown and read-only
// fields are ignored. Notification fields are read under the names of older
// clients, too; the newer name has precedence.
func ReadInput(f *web.Fields) (Input, error) {
	in := Input{
		Name:        f.String("name", web.Nullable, web.Untrimmed, web.Max(maxName)),
		Description: f.String("description", web.Nullable, web.Blank, web.Untrimmed, web.Max(maxDescription)),
		Tags:        f.Strings("tags", web.Nullable, web.Max(maxTags)),
		PostToChat:  f.Bool("post_to_slack"),
		Format:      f.String("slack_message_format", web.Nullable, web.Blank, web.Untrimmed, web.Max(maxFormat)),
		Steps:       ReadSteps(f, web.Nullable), Deleted: f.Bool("deleted"),
		CalculatedAt: f.Time("last_calculated_at", web.Nullable), Pinned: f.Any("pinned_at", web.Nullable),
		Version:    f.Int("version", web.Nullable),
		formatName: "slack_message_format",
	}
	if in.Name.Set && !in.Name.Null && strings.TrimSpace(in.Name.Value) == "" && f.Err() == nil {
		f.Fail("name", "blank", "This field may not be blank.")
	}
	if f.Has("post_to_chat") {
		in.PostToChat = f.Bool("post_to_chat")
	}
	if f.Has("chat_message_format") {
		in.Format = f.String("chat_message_format", web.Nullable, web.Blank, web.Untrimmed, web.Max(maxFormat))
		in.formatName = "chat_message_format"
	}
	items := f.Items("chat_destinations", web.Nullable, web.Max(maxDestinations))
	in.Destinations = web.Opt[[]Destination]{Set: items.Set, Null: items.Null}
	for _, item := range items.Value {
		in.Destinations.Value = append(in.Destinations.Value, Destination{
			Notifier: item.String("notifier", web.Required, web.Max(63)).Value,
			To:       item.String("to", web.Nullable, web.Blank, web.Max(maxTo)).Value,
			Format:   item.String("format", web.Nullable, web.Blank, web.Untrimmed, web.Max(maxFormat)).Value,
		})
	}
	for i, tag := range in.Tags.Value {
		if len([]rune(tag)) > maxTag {
			f.Fail(fmt.Sprintf("tags__%d", i), "max_length", "Ensure this field has no more than 255 characters.")
		}
	}
	return in, f.Err()
}

// apply copies in to a. The steps and the notification settings were validated
// before.
func (s *Service) apply(ctx context.Context, a *Action, in Input) error {
	if in.Name.Set {
		a.Name = in.Name.Value
	}
	if in.Deleted.Set {
		a.Deleted = in.Deleted.Value
	}
	if err := s.checkUniqueName(ctx, a); err != nil {
		return err
	}
	if in.Description.Set {
		a.Description = in.Description.Value
	}
	if in.Tags.Set {
		a.Tags = normalizeTags(in.Tags.Value)
	}
	if in.CalculatedAt.Set && !in.CalculatedAt.Null {
		a.CalculatedAt = in.CalculatedAt.Value
	}
	if in.Pinned.Set {
		a.PinnedAt = s.pinnedAt(a.PinnedAt, in.Pinned)
	}
	if in.Steps.Set {
		a.Steps = in.Steps.Value
	}
	a.applyChat(in)
	return nil
}

// pinnedAt is the new time of the pin: any value pins an action, null unpins
// it, and a pinned action keeps its time.
func (s *Service) pinnedAt(was *time.Time, in web.Opt[json.RawMessage]) *time.Time {
	if in.Null || string(in.Value) == "false" || string(in.Value) == `""` {
		return nil
	}
	if was != nil {
		return was
	}
	now := s.clock()
	return &now
}

// checkUniqueName fails if another action that is not deleted has the name.
func (s *Service) checkUniqueName(ctx context.Context, a *Action) error {
	if a.Name == "" || a.Deleted {
		return nil
	}
	id, err := s.store.idByName(ctx, a.ProjectID, a.Name)
	if err != nil || id == 0 || id == a.ID {
		return err
	}
	return fault.Field("name", "unique", fmt.Sprintf("This project already has an action with this name, ID %d", id))
}

// normalizeTags trims, lowercases, sorts and deduplicates tags.
func normalizeTags(tags []string) []string {
	out := make([]string, 0, len(tags))
	for _, tag := range tags {
		if tag = strings.ToLower(strings.TrimSpace(tag)); tag != "" {
			out = append(out, tag)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// validateInput validates the name and the steps before the transaction, which
// blocks other writers.
func (s *Service) validateInput(ctx context.Context, project auth.Project, a Action, in *Input) error {
	if in.Name.Set {
		a.Name = in.Name.Value
	}
	if in.Deleted.Set {
		a.Deleted = in.Deleted.Value
	}
	if err := s.checkUniqueName(ctx, &a); err != nil {
		return err
	}
	if err := s.validateChat(in); err != nil || !in.Steps.Set {
		return err
	}
	return s.validateSteps(ctx, project, in)
}

// validateSteps validates new steps and sets their ids: the given id if it is
// valid and unique, else a new one.
func (s *Service) validateSteps(ctx context.Context, project auth.Project, in *Input) error {
	steps := in.Steps.Value
	opts := actionmatch.CompileOptions{Location: project.Location(), Operators: s.deps.Operators}
	if s.deps.CohortIDs != nil && usesCohorts(steps) {
		ids, err := s.deps.CohortIDs.CohortIDs(ctx, project.ID)
		if err != nil {
			return err
		}
		opts.Cohorts = cohortSet(ids)
	}
	if _, err := actionmatch.Compile(steps, opts); err != nil {
		if f := fault.From(err); f != nil {
			return f
		}
		return err
	}
	in.Steps.Value = make([]actionmatch.Step, len(steps))
	seen := map[string]bool{}
	for i, step := range steps {
		if step.ID == "" || len(step.ID) > 64 || seen[step.ID] {
			step.ID = uuid.NewString()
		}
		seen[step.ID] = true
		step.Null = slices.DeleteFunc(slices.Clone(step.Null), func(name string) bool { return name == "id" })
		in.Steps.Value[i] = step
	}
	return nil
}

// usesCohorts reports whether a filter may read a cohort.
func usesCohorts(steps []actionmatch.Step) bool {
	return slices.ContainsFunc(steps, func(s actionmatch.Step) bool {
		return slices.ContainsFunc(s.Properties, func(raw json.RawMessage) bool { return strings.Contains(string(raw), "cohort") })
	})
}

// cohortSet are the cohorts of a project.
type cohortSet []int64

// HasCohort implements Cohorts.
func (c cohortSet) HasCohort(id int64) bool { return slices.Contains(c, id) }

// applyChat copies the notification settings, which were validated before.
func (a *Action) applyChat(in Input) {
	if in.PostToChat.Set {
		a.PostToChat = in.PostToChat.Value
	}
	if in.Format.Set {
		a.Format = in.Format.Value
	}
	if in.Destinations.Set {
		a.Destinations = append([]Destination{}, in.Destinations.Value...)
	}
}

// validateChat validates the notification settings.
func (s *Service) validateChat(in *Input) error {
	if in.Format.Set {
		if err := s.checkFormat(in.formatName, in.Format.Value); err != nil {
			return err
		}
	}
	for i, d := range in.Destinations.Value {
		at := fmt.Sprintf("chat_destinations__%d__", i)
		if s.deps.Chat != nil && !s.deps.Chat.HasNotifier(d.Notifier) {
			return fault.Field(at+"notifier", "does_not_exist", fmt.Sprintf("There is no notifier %q in the config of the server.", d.Notifier))
		}
		if err := s.checkFormat(at+"format", d.Format); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) checkFormat(attr, format string) error {
	if s.deps.Chat == nil || format == "" {
		return nil
	}
	err := s.deps.Chat.CheckFormat(format)
	if f := fault.From(err); f != nil {
		return f.At(attr)
	}
	return err
}
