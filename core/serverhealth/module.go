package serverhealth

import (
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
)

// Module provides a Recorder that samples while the server runs. It needs a Registerer
// made by Watch.
var Module = fx.Module("serverhealth", fx.Provide(provide))

func provide(lc fx.Lifecycle, reg prometheus.Registerer) *Recorder {
	r := New(Watched(reg), nil)
	lc.Append(fx.StartStopHook(r.Start, r.Stop))
	return r
}
