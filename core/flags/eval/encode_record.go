package eval

import "strconv"

// appendRecords appends one record per flag, and reports whether a flag failed.
// FormatDetails leaves failed flags out, because the clients that ask for it would
// take them as off and forget the value they have.
func (e *Evaluation) appendRecords(dst []byte, form Format) ([]byte, bool) {
	failed, start := false, len(dst)
	for _, at := range e.selected() {
		f, o := e.set.flags[at], &e.outcomes[at]
		switch {
		case o.stage == settled:
			dst = f.appendRecord(appendComma(dst, start), o, form)
		case form == FormatDetails:
			failed = true
		default:
			failed = true
			dst = f.appendFailedRecord(appendComma(dst, start), o, form)
		}
	}
	return dst, failed
}

func (f *flag) appendRecord(dst []byte, o *outcome, form Format) []byte {
	dst = append(dst, f.recordHead...)
	variant := f.quotedVariant(o)
	if form == FormatTyped {
		dst = f.appendValue(append(dst, `,"value":`...), o)
	} else {
		dst = strconv.AppendBool(append(dst, `,"enabled":`...), o.on)
		dst = appendOrNull(append(dst, `,"variant":`...), variant)
	}
	dst = append(dst, `,"reason":{"code":"`...)
	dst = append(dst, o.reason.Code()...)
	dst = append(dst, `","condition_index":`...)
	if o.condition >= 0 {
		dst = strconv.AppendInt(dst, int64(o.condition), 10)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"description":"`...)
	dst = append(dst, o.reason.Text()...)
	if o.reason == ReasonConditionMatch {
		dst = strconv.AppendInt(dst, int64(o.condition)+1, 10)
	}
	dst = append(append(dst, `"}`...), f.recordTail...)
	dst = appendOrNull(appendMetadata(dst, form), f.quotedPayload(o))
	if form == FormatTyped && variant != "" {
		dst = append(append(dst, `,"variant_key":`...), variant...)
	}
	return append(dst, `}}`...)
}

// appendMetadata appends the members between the version and the payload.
func appendMetadata(dst []byte, form Format) []byte {
	if form == FormatTyped {
		dst = append(dst, `,"config_version":1`...)
	}
	return append(dst, `,"description":null,"has_experiment":false,"payload":`...)
}

// appendFailedRecord appends the record of a flag without a value. Its reason is
// the cause of the failure.
func (f *flag) appendFailedRecord(dst []byte, o *outcome, form Format) []byte {
	dst = append(dst, f.recordHead...)
	if form == FormatTyped {
		dst = append(dst, `,"value":null`...)
	} else {
		dst = append(dst, `,"enabled":false,"variant":null`...)
	}
	cause := o.failure()
	dst = append(append(dst, `,"failed":true,"reason":{"code":"`...), cause.Code()...)
	dst = append(append(dst, `","condition_index":null,"description":"`...), cause.Text()...)
	dst = append(append(dst, `"}`...), f.recordTail...)
	return append(appendMetadata(dst, form), `null}}`...)
}
