package persons

import "strings"

// What an event says about its client is copied to the person: the latest
// value under the name of the event property, the first one ever seen under
// $initial_<name>.
//
// Most of it changes with every page and every window. Such a quiet value is
// stored when the person is written anyway, and does not cause a write of its
// own: the price of a page view would otherwise be a rewritten person.

// automatic is one event property that is copied to persons.
type automatic struct {
	name    string // on the person
	initial string // of the first value
	quiet   bool   // a change of it alone is not worth a write
	client  bool   // meaningless when a server sent the event for somebody
}

var automatics = func() map[string]*automatic {
	m := map[string]*automatic{}
	add := func(quiet, client bool, names string) {
		for _, n := range strings.Fields(names) {
			m[n] = &automatic{name: n, initial: "$initial_" + strings.TrimPrefix(n, "$"), quiet: quiet, client: client}
		}
	}
	add(true, false, `$browser $browser_version $device_type $current_url $pathname $referring_domain $referrer
		$screen_height $screen_width $viewport_height $viewport_width $raw_user_agent`)
	add(true, true, `$os $os_version`)
	add(false, false, `$app_build $app_name $app_namespace $app_version
		utm_source utm_medium utm_campaign utm_content utm_name utm_term
		gclid gad_source gclsrc dclid gbraid wbraid fbclid msclkid twclid li_fat_id mc_cid igshid ttclid rdt_cid
		irclid _kx epik qclid sccid`)
	m["$os_name"] = m["$os"] // mobile clients call it so
	return m
}()

// serverLibs are the clients that run on a server: their operating system is
// not the person's.
var serverLibs = map[string]bool{
	"posthog-node": true, "posthog-go": true, "posthog-python": true, "posthog-php": true, "posthog-ruby": true,
	"posthog-java": true, "posthog-dotnet": true, "posthog-elixir": true, "posthog-rs": true, "posthog-edge": true,
	"posthog-server": true,
}

// quietPlace tells whether the person property key says where somebody is, as
// found out from the address of a request. The country and the city are what
// people ask for; the rest moves with the network.
func quietPlace(key string) bool {
	return strings.HasPrefix(key, "$geoip_") && key != "$geoip_country_name" && key != "$geoip_city_name"
}

// CopiedPropertyNames returns the names under which a property of an event is copied to
// the person who did it: the latest value, and the first one. There are none
// for most properties.
func CopiedPropertyNames(property string) []string {
	if a := automatics[property]; a != nil {
		return []string{a.name, a.initial}
	}
	return nil
}
