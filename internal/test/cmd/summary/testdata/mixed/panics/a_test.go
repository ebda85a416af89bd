package panics

import "testing"

func TestPanic(*testing.T) { panic("boom") }
