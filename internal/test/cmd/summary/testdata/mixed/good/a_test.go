package good

import "testing"

func TestPass(t *testing.T) { t.Log("not shown") }

func TestSkipA(t *testing.T) { t.Skip("no server") }

func TestSkipB(t *testing.T) { t.Skip("no server") }
