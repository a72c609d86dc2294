package operators

import "time"

// WatchAnswersQuickly reports changed answers without a pause.
func (o *Operators) WatchAnswersQuickly() {
	o.answerTimes = answerTimes{interval: time.Millisecond, settle: 20 * time.Millisecond}
}
