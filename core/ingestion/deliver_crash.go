package ingestion

import (
	"math"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/sdk"
)

// How a sink says that nobody answered. Died means that the process was there
// when the batch was sent, and gone before it answered: the batch may be why.
// Down means that there was none to send it to.
const (
	codeDied  = "plugin_unavailable"
	codeDown  = "plugin_not_running"
	codeCrash = "plugin_crash" // of a dead letter
)

// Restarts are dear: the host gives up on a plugin that dies too often. So the
// events that bring it down are found in few of them, though in many calls. A
// batch that did is sent again with nothing beside it; then in parts, each about
// the square root of it; then, of the part that did, event by event. With five
// restarts one event is found in a batch of a thousand.
const (
	partCrashes  = 1 // alone, before records are sent apart
	eventCrashes = 2 // alone, before a single event is set aside
	// fatalInRow is how many events in a row may be set aside so. When even
	// more bring it down it is not the events.
	fatalInRow = 3
	// fewEvents are sent one by one at once.
	fewEvents = 64
)

// fatalTo reports whether so many crashes are enough to blame n records.
func (d *delivery) fatalTo(n, crashes int) bool {
	if n == 1 {
		return crashes >= eventCrashes && d.fatal.Load() < fatalInRow
	}
	return crashes >= partCrashes
}

// crashed deals with records that bring the plugin down: several are sent in
// parts, a single one is set aside.
func (d *delivery) crashed(p *parcel, from, to int, t trial, cause *sdk.Error) error {
	if to-from == 1 {
		d.fatal.Add(1)
		e := sdk.Errorf(sdk.ClassPermanent, codeCrash, "the plugin's process ends whenever it is sent this event: %s", cause.Message)
		return d.bury(&p.events[from], p.firstSeq+uint64(from), e)
	}
	part := 1
	if n := to - from; n > fewEvents {
		part = int(math.Ceil(math.Sqrt(float64(n))))
	}
	d.logger.Warn("a batch brings the plugin down; looking for the event that does", zap.Int("events", to-from), zap.Int("parts_of", part))
	for start := from; start < to; start += part {
		if err := d.send(p, start, min(start+part, to), t); err != nil {
			return err
		}
	}
	return nil
}
