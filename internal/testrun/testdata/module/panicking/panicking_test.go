package panicking

import "testing"

func TestPanics(t *testing.T) { panic("the reason of the panic") }
