package geoip

import "github.com/guidonhq/guidon/core/web"

// Routes shows the state of the database in the readiness of the server, if a file
// is configured.
func (d *Database) Routes(r *web.Router) {
	if d.Enabled() {
		r.ReadinessField("geoip", func() any { return d.Status() })
	}
}
