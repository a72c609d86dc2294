package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/sdk/units"
)

// setValue sets into, a field of the setting key, to a single value. The error
// completes a sentence that begins with the value.
func setValue(key string, value any, into reflect.Value) error {
	switch {
	case into.Type() == reflect.TypeFor[time.Duration]():
		d, err := units.ParseDuration(fmt.Sprint(value))
		into.SetInt(int64(d))
		return err
	case into.CanInt():
		n, err := toWhole(key, value)
		if err == nil && into.OverflowInt(n) {
			return fmt.Errorf("is too large: at most %d bits", into.Type().Bits())
		}
		into.SetInt(n)
		return err
	case into.CanFloat():
		f, err := toNumber(value)
		into.SetFloat(f)
		return err
	case into.Kind() == reflect.Bool:
		b, err := toBool(value)
		into.SetBool(b)
		return err
	case into.Kind() == reflect.String:
		s, ok := literalText(value)
		if !ok {
			return errors.New("is not a text: write it in quotes")
		}
		into.SetString(s)
		return nil
	}
	return fmt.Errorf("cannot set a %s", into.Type())
}

// literalText returns a text, a whole number or a boolean as text.
func literalText(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case bool, int, int64, uint64:
		return fmt.Sprint(v), true
	}
	return "", false
}

// toWhole returns a whole number, or a size for a setting that counts bytes.
func toWhole(key string, value any) (int64, error) {
	switch v := value.(type) {
	case int:
		return int64(v), nil
	case int64:
		return v, nil
	case uint64:
		return 0, errTooLarge
	case float64:
		return wholeFloat(v)
	case string:
		if units.IsSize(key) {
			return units.ParseSize(v)
		}
		return wholeText(strings.TrimSpace(v))
	}
	return 0, errNotWhole
}

var (
	errNotWhole = errors.New("is not a whole number")
	errTooLarge = fmt.Errorf("is too large: the largest number is %d", math.MaxInt64)
)

func wholeFloat(f float64) (int64, error) {
	switch {
	case math.IsNaN(f) || f != math.Trunc(f):
		return 0, errNotWhole
	case f >= 1<<63 || f < -1<<63:
		return 0, errTooLarge
	}
	return int64(f), nil
}

func wholeText(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err == nil {
		return n, nil
	}
	if errors.Is(err, strconv.ErrRange) {
		return 0, errTooLarge
	}
	f, err := strconv.ParseFloat(s, 64)
	if errors.Is(err, strconv.ErrRange) {
		return 0, errTooLarge
	}
	if err != nil {
		return 0, errNotWhole
	}
	return wholeFloat(f)
}

func toNumber(value any) (float64, error) {
	var f float64
	switch v := value.(type) {
	case int:
		f = float64(v)
	case int64:
		f = float64(v)
	case uint64:
		f = float64(v)
	case float64:
		f = v
	default:
		var err error
		if f, err = strconv.ParseFloat(strings.TrimSpace(fmt.Sprint(value)), 64); err != nil {
			return 0, errors.New("is not a number")
		}
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, errors.New("is not a finite number")
	}
	return f, nil
}

func toBool(value any) (bool, error) {
	if b, ok := value.(bool); ok {
		return b, nil
	}
	if s, ok := value.(string); ok {
		if b, err := strconv.ParseBool(strings.TrimSpace(s)); err == nil {
			return b, nil
		}
	}
	return false, errors.New("must be true or false")
}
