// Package cookieless tells visitors without cookies apart.
//
// A browser that keeps no id sends Sentinel as the distinct id of every visitor.
// The id of a visitor derives from the project, the address, the domain of the page
// and the user agent, with a random salt of the calendar day in the zone of the
// visitor: the same visitor has the same id on one site for one day. Salts are kept
// in the database, so that all nodes derive the same ids, and are deleted 86 hours
// after their day has begun: clients may send events of the last three days late.
// Without its salt an id cannot be traced back to an address, not even by trying
// all of them.
//
// Salts are made a day ahead and held in memory, so an id is derived without I/O,
// also while the database is away. A visitor without an address, and an event of a
// day without a salt, have no id: they stay indistinguishable.
//
// Ids are stateless: logging in and out on one day does not change them.
package cookieless

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/net/publicsuffix"
)

// Sentinel is the distinct id that clients send for a visitor without cookies.
const Sentinel = "$posthog_cookieless"

// Visitor describes a visitor. The texts are as the client sent them.
type Visitor struct {
	ProjectID int64
	Addr      netip.Addr
	Host      string // of the page: a host with or without a port, or a URL
	Agent     string // User-Agent
	Zone      string // time zone; UTC if it is empty or unknown
	Extra     string // further text that tells visitors apart
	At        time.Time
}

// Identity holds the ids of a visitor on one day.
type Identity struct {
	DistinctID string
	DeviceID   string
	SessionID  string // a version 7 uuid of the begin of the day
}

// Bounds of the texts in a hash, in bytes.
const (
	maxAgent = 1000 // as browsers cut it off
	maxExtra = 100
)

// derive returns the ids of a visitor with the salt of a day that began at start.
func derive(salt []byte, v *Visitor, start time.Time) Identity {
	mac := hmac.New(sha256.New, salt)
	var project [8]byte
	binary.BigEndian.PutUint64(project[:], uint64(v.ProjectID))
	_, _ = mac.Write(project[:])
	for _, part := range [...]string{v.Addr.Unmap().WithZone("").String(), rootDomain(v.Host), cut(v.Agent, maxAgent), cut(v.Extra, maxExtra)} {
		var length [4]byte
		binary.BigEndian.PutUint32(length[:], uint32(len(part)))
		_, _ = mac.Write(length[:])
		_, _ = mac.Write([]byte(part))
	}
	sum := mac.Sum(nil)[:16]
	text := base64.RawURLEncoding.EncodeToString(sum)
	return Identity{"cookieless_" + text, "cookielessd_" + text, sessionID(start, sum)}
}

// sessionID returns a version 7 uuid of a moment with bits of a hash.
func sessionID(at time.Time, sum []byte) string {
	var id uuid.UUID
	copy(id[6:], sum)
	ms := uint64(at.UnixMilli())
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id.String()
}

func cut(s string, n int) string { return s[:min(len(s), n)] }

// rootDomain returns the registrable domain of a host or URL, with its port: pages
// of www.example.com and shop.example.com have the same visitors. Other hosts are
// returned in lower case.
func rootDomain(host string) string {
	host = strings.ToLower(cut(host, maxAgent))
	if strings.Contains(host, "://") {
		u, err := url.Parse(host)
		if err != nil {
			return host
		}
		host = u.Host
	}
	name, port := host, ""
	if h, p, err := net.SplitHostPort(host); err == nil {
		name, port = h, ":"+p
	}
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return name + port
	}
	if root, err := publicsuffix.EffectiveTLDPlusOne(strings.TrimSuffix(name, ".")); err == nil {
		name = root
	}
	return name + port
}
