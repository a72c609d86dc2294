package flags

import "strconv"

// form is the shape of an answer that a client asked for.
type form uint8

const (
	formKeys    form = iota // an array of the keys that are on
	formOn                  // an object of the flags that are on
	formValues              // an object of all flags, and their payloads
	formDetails             // an object of all flags with reason and metadata
)

// appendFlags appends the members of the answer that depend on flags, without
// braces and with a comma after each.
func (r *run) appendFlags(dst []byte, f form) []byte {
	failed := false
	switch f {
	case formKeys:
		dst, failed = r.appendKeys(append(dst, `"featureFlags":[`...))
		dst = append(dst, `],`...)
	case formOn:
		dst, failed = r.appendValues(append(dst, `"featureFlags":{`...), true)
		dst = append(dst, `},`...)
	case formValues:
		dst, failed = r.appendValues(append(dst, `"featureFlags":{`...), false)
		dst = r.appendPayloads(append(dst, `},"featureFlagPayloads":{`...))
		dst = append(dst, `},`...)
	case formDetails:
		dst, failed = r.appendDetails(append(dst, `"flags":{`...))
		dst = append(dst, `},`...)
	}
	return appendFailed(dst, failed)
}

// appendNoFlags is appendFlags when no flag was asked for.
func appendNoFlags(dst []byte, f form) []byte {
	switch f {
	case formKeys:
		dst = append(dst, `"featureFlags":[],`...)
	case formOn:
		dst = append(dst, `"featureFlags":{},`...)
	case formValues:
		dst = append(dst, `"featureFlags":{},"featureFlagPayloads":{},`...)
	case formDetails:
		dst = append(dst, `"flags":{},`...)
	}
	return appendFailed(dst, false)
}

func appendFailed(dst []byte, failed bool) []byte {
	if failed {
		return append(dst, `"errorsWhileComputingFlags":true,"errorComputingFlags":true,`...)
	}
	return append(dst, `"errorsWhileComputingFlags":false,"errorComputingFlags":false,`...)
}

func (r *run) appendKeys(dst []byte) ([]byte, bool) {
	failed, start := false, len(dst)
	for _, at := range r.asked() {
		f, o := &r.set.flags[at], &r.outcomes[at]
		if o.stage != settled {
			failed = true
			continue
		}
		if o.on {
			dst = append(comma(dst, start), f.quotedKey[:len(f.quotedKey)-1]...)
		}
	}
	return dst, failed
}

func (r *run) appendValues(dst []byte, onlyOn bool) ([]byte, bool) {
	failed, start := false, len(dst)
	for _, at := range r.asked() {
		f, o := &r.set.flags[at], &r.outcomes[at]
		if o.stage != settled {
			failed = true
			continue
		}
		if o.on || !onlyOn {
			dst = f.appendValue(append(comma(dst, start), f.quotedKey...), o)
		}
	}
	return dst, failed
}

func (f *flag) appendValue(dst []byte, o *outcome) []byte {
	if !o.on {
		return append(dst, "false"...)
	}
	if quoted := f.quotedVariant(o); quoted != "" {
		return append(dst, quoted...)
	}
	return append(dst, "true"...)
}

func (r *run) appendPayloads(dst []byte) []byte {
	start := len(dst)
	for _, at := range r.asked() {
		f, o := &r.set.flags[at], &r.outcomes[at]
		if o.stage != settled || !o.on {
			continue
		}
		if payload := f.quotedPayload(o); payload != "" {
			dst = append(append(comma(dst, start), f.quotedKey...), payload...)
		}
	}
	return dst
}

func (r *run) appendDetails(dst []byte) ([]byte, bool) {
	failed, start := false, len(dst)
	for _, at := range r.asked() {
		if o := &r.outcomes[at]; o.stage == settled {
			dst = r.set.flags[at].appendDetail(comma(dst, start), o)
		} else {
			failed = true
		}
	}
	return dst, failed
}

func (f *flag) appendDetail(dst []byte, o *outcome) []byte {
	dst = append(dst, f.detailsHead...)
	dst = strconv.AppendBool(dst, o.on)
	dst = append(dst, `,"variant":`...)
	dst = orNull(dst, f.quotedVariant(o))
	dst = append(dst, `,"reason":{"code":"`...)
	dst = append(dst, o.reason.Code()...)
	dst = append(dst, `","condition_index":`...)
	if o.condition >= 0 {
		dst = strconv.AppendInt(dst, int64(o.condition), 10)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"description":"`...)
	dst = append(dst, reasonTexts[o.reason]...)
	if o.reason == ReasonConditionMatch {
		dst = strconv.AppendInt(dst, int64(o.condition)+1, 10)
	}
	dst = append(append(dst, `"}`...), f.detailsTail...)
	return append(orNull(dst, f.quotedPayload(o)), `}}`...)
}

func orNull(dst []byte, quoted string) []byte {
	if quoted == "" {
		quoted = "null"
	}
	return append(dst, quoted...)
}

// comma separates what comes next from what is already there since start.
func comma(dst []byte, start int) []byte {
	if len(dst) > start {
		return append(dst, ',')
	}
	return dst
}
