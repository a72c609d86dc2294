package units

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strings"
)

// sizeUnits are the units of sizes in lower case. A single letter is refused: for
// some programs 1K is 1000 bytes and for others 1024.
var sizeUnits = map[string]int64{
	"": 1, "b": 1,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "pb": 1e15,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40, "pib": 1 << 50,
	"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40, "pi": 1 << 50,
}

var errSizeTooLarge = fmt.Errorf("is too large: the largest number is %d", math.MaxInt64)

var sizeText = regexp.MustCompile(`^(-?[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][+]?[0-9]{1,2})?)\s*([A-Za-z]*)$`)

// ParseSize returns the bytes of a size: digits, with a fraction if the result is
// whole, and a unit of 1000 (kB, MB, GB, TB, PB) or of 1024 (KiB, MiB, GiB, TiB,
// PiB, or without the B). Letters may have any case, and spaces may separate the
// two parts. No unit means bytes. The error completes a sentence that begins with
// the size.
func ParseSize(written string) (int64, error) {
	m := sizeText.FindStringSubmatch(strings.TrimSpace(written))
	if m == nil {
		return 0, errors.New("is not a size: write one such as 512KiB, 20MB, 2GiB, or a number of bytes")
	}
	unit, ok := sizeUnits[strings.ToLower(m[2])]
	if !ok {
		if letter := strings.ToUpper(m[2]); len(letter) == 1 && strings.Contains("KMGTP", letter) {
			return 0, fmt.Errorf("has the unit %s: write %sB for powers of 1000 or %siB for powers of 1024", m[2], letter, letter)
		}
		return 0, fmt.Errorf("has the unknown unit %s: write B, KB, MB, GB, TB, or KiB, MiB, GiB, TiB", m[2])
	}
	number, ok := new(big.Rat).SetString(m[1])
	if !ok {
		return 0, errors.New("is not a whole number of bytes")
	}
	number.Mul(number, new(big.Rat).SetInt64(unit))
	switch {
	case !number.IsInt():
		return 0, errors.New("is not a whole number of bytes")
	case !number.Num().IsInt64():
		return 0, errSizeTooLarge
	}
	return number.Num().Int64(), nil
}
