package notifications

import (
	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/actions"
	"github.com/guidonhq/guidon/core/host"
)

// Module queues and sends notifications while the server runs. app binds the
// Dependencies.
var Module = fx.Module("notifications",
	fx.Provide(
		func(m *actions.EventMatcher) Actions { return m },
		func(h *host.Host) Notifiers { return hostNotifiers{h} },
		fx.Annotate(NewService, fx.OnStart((*Service).Start), fx.OnStop((*Service).Stop)),
		func(s *Service) actions.Chat { return s },
		NewHTTP,
	),
	fx.Invoke(func(*Service) {}),
)

// hostNotifiers lists the notifier instances of the plugin host.
type hostNotifiers struct{ host *host.Host }

// Notifiers implements Notifiers.
func (n hostNotifiers) Notifiers() []Notifier {
	instances := n.host.Notifiers()
	out := make([]Notifier, len(instances))
	for i := range instances {
		out[i] = instances[i]
	}
	return out
}
