package sample

import "testing"

func TestDiscount(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		total  Price
		member bool
		want   Price
	}{{50, true, 50}, {200, true, 180}, {200, false, 200}, {2000, false, 1800}} {
		if got, err := Discount(test.total, test.member); got != test.want || err != nil {
			t.Errorf("Discount(%d, %t) is %d, %v; want %d", test.total, test.member, got, err, test.want)
		}
	}
	if _, err := Discount(-5, false); err == nil {
		t.Error("no error")
	}
}

func TestCount(t *testing.T) {
	if Count(3) != 3 {
		t.Error("wrong count")
	}
}

func TestWithin(t *testing.T) {
	if !Within(10) || Within(11) {
		t.Error("wrong")
	}
}

func TestFails(t *testing.T) { t.Error("this test fails without a mutant, too") }
